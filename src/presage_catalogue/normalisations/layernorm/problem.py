"""Layer normalisation over the last axis."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler

_EPS = 1e-5


def _statistics(xp: ModuleType, x: Any) -> tuple[Any, Any]:
    """Each row's mean, and the reciprocal of its standard deviation."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return mean, 1.0 / xp.sqrt(variance + _EPS)


class LayerNorm(Problem):
    summary = (
        "y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + 1e-5) * weight[c] + bias[c],"
        " with the variance divided by cols"
    )
    inputs = (Array("x", "rows, cols"), Array("weight", "cols"), Array("bias", "cols"))
    outputs = (Array("y", "rows, cols"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 96, "cols": 8192})),
        "gpu": (Case({"rows": 16384, "cols": 1024}), Case({"rows": 4096, "cols": 8192})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}, values="large"),
        Case({"rows": 5, "cols": 2}),
        Case({"rows": 1, "cols": 4097}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 17, "cols": 1000}, values="tiny"),
        Case({"rows": 33, "cols": 129}, values="outliers"),
        Case({"rows": 9, "cols": 515}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        cols = (case.dims["cols"],)
        return x, sampler.values(cols, case.dtype, "uniform"), sampler.values(cols, case.dtype, "uniform")

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight, bias = inputs
        mean, scale = _statistics(xp, x)
        return ((x - mean) * scale * weight + bias,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        # The mean's rounding error counts too: all that is left where the elements of a row are nearly equal.
        x, weight, bias = inputs
        mean, scale = _statistics(xp, x)
        squares = ((x - mean) * scale) ** 2 + (mean * scale) ** 2 + 1.0
        return (xp.sqrt(squares * weight**2 + bias**2),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            1e-5,
            "one by one in float32, the sum of squares is off by about 0.2 * sqrt(cols) * 2^-24 and half of that shows:"
            " 6e-7 for 8192 columns, 2e-6 in the worst of many rows; inputs rounded to 11 bits are off by up to 5e-4",
        )

    def flops(self, case: Case) -> int:
        return 5 * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 3000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
