"""Two-dimensional convolution."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


def _case(n: int, c: int, h: int, w: int, o: int, r: int, s: int, values: str = "uniform") -> Case:
    return Case({"n": n, "c": c, "h": h, "w": w, "o": o, "r": r, "s": s}, values=values)


class Conv2d(Problem):
    summary = (
        "y[i, o, p, q] = sum over c, r, s of x[i, c, p + r, q + s] * weight[o, c, r, s]:"
        " cross-correlation, stride 1, no padding"
    )
    inputs = (Array("x", "n, c, h, w"), Array("weight", "o, c, r, s"))
    outputs = (Array("y", "n, o, h - r + 1, w - s + 1"),)
    timed = {
        "cpu": (_case(1, 32, 58, 58, 32, 3, 3), _case(2, 16, 68, 68, 16, 5, 5)),
        "gpu": (
            _case(32, 128, 58, 58, 128, 3, 3),
            _case(16, 256, 28, 28, 512, 1, 1),
            _case(16, 16, 228, 228, 64, 5, 5),
        ),
    }
    # A long sum of equal terms drifts by more than the tolerance's random walk: `equal` cases have c * r * s <= 30.
    checks = (
        _case(1, 1, 1, 1, 1, 1, 1),
        _case(2, 3, 7, 5, 4, 7, 5, "normal"),
        _case(1, 5, 19, 83, 7, 3, 1, "large"),
        _case(3, 9, 11, 37, 13, 1, 3, "outliers"),
        _case(1, 3, 9, 70, 5, 3, 3, "equal"),
        _case(2, 17, 23, 21, 9, 5, 2, "tiny"),
        _case(1, 40, 10, 131, 3, 1, 1, "normal"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """One matrix product per tap, over the image shifted by it."""
        x, weight = inputs
        n, o, rows, cols = self.shape(self.outputs[0], case)
        total: Any = 0.0
        for r in range(case.dims["r"]):
            for s in range(case.dims["s"]):
                shifted = xp.reshape(x[:, :, r : r + rows, s : s + cols], (n, case.dims["c"], rows * cols))
                total = total + xp.matmul(weight[:, :, r, s], shifted)
        return (xp.reshape(total, (n, o, rows, cols)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        return (xp.sqrt(self.oracle(xp, case, x * x, weight * weight)[0]),)

    def tolerance(self, case: Case) -> Tolerance:
        terms = case.dims["c"] * case.dims["r"] * case.dims["s"]
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(terms),
            "c * r * s roundings of 2^-24 in a running sum grow like its square root; 16 covers any order and small"
            " Winograd transforms, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """One per channel pair and pixel: Winograd tiles and FFTs can save nearly all of r * s, Strassen more."""
        return math.prod(self.shape(self.outputs[0], case)) * case.dims["c"]

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case) * case.dims["r"] * case.dims["s"]

    def draw_case(self, rng: random.Random) -> Case:
        r, s = rng.randint(1, 6), rng.randint(1, 6)
        h, w = rng.randint(r, 30), rng.randint(s, 80)
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 3), rng.randint(1, 20), h, w, rng.randint(1, 20), r, s, style)
