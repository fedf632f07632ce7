"""Depthwise causal convolution over a sequence."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


def _case(batch: int, channels: int, length: int, width: int, values: str = "uniform") -> Case:
    return Case({"batch": batch, "channels": channels, "length": length, "width": width}, values=values)


class CausalConv1d(Problem):
    summary = (
        "y[b, c, t] = sum over j < width of weight[c, j] * x[b, c, t - (width - 1) + j],"
        " where x is zero to the left of its start"
    )
    inputs = (Array("x", "batch, channels, length"), Array("weight", "channels, width"))
    outputs = (Array("y", "batch, channels, length"),)
    timed = {
        "cpu": (_case(4, 256, 1024, 4), _case(2, 48, 8192, 16)),
        "gpu": (_case(8, 2048, 2048, 4), _case(64, 4096, 128, 4), _case(2, 1024, 16384, 16)),
    }
    # A long sum of equal terms drifts by more than the tolerance's random walk, so no `equal` case is wider than 30.
    checks = (
        _case(1, 1, 1, 1),
        _case(2, 3, 5, 9, "normal"),
        _case(3, 5, 129, 4, "large"),
        _case(1, 7, 1037, 3, "outliers"),
        _case(2, 11, 65, 16, "equal"),
        _case(5, 1, 333, 1, "tiny"),
        _case(1, 2, 200, 67, "normal"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        batch, channels, length, width = case.dims.values()
        left = xp.zeros((batch, channels, width - 1), dtype=x.dtype, device=x.device)
        padded = xp.concat((left, x), axis=-1)
        return (sum(weight[:, j : j + 1] * padded[:, :, j : j + length] for j in range(width)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        return (xp.sqrt(self.oracle(xp, case, x * x, weight * weight)[0]),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(case.dims["width"]),
            "width roundings of 2^-24 in a running sum grow like its square root; 16 covers any order, and stays"
            " under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """A multiplication and an addition per output: fast filtering can save most of the other taps' work."""
        batch, channels, length, width = case.dims.values()
        return batch * channels * length * min(2, width)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 4), rng.randint(1, 40), rng.randint(1, 900), rng.randint(1, 20), style)
