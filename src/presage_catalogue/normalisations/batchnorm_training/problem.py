"""Batch normalisation as in training: with the statistics of this very batch, which are returned too."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler

_EPS = 1e-5


class BatchNormTraining(Problem):
    summary = (
        "mean[c] and variance[c] over the rows of x, and"
        " y[r, c] = (x[r, c] - mean[c]) / sqrt(variance[c] + 1e-5) * weight[c] + bias[c]"
    )
    inputs = (Array("x", "rows, cols"), Array("weight", "cols"), Array("bias", "cols"))
    outputs = (Array("y", "rows, cols"), Array("mean", "cols"), Array("variance", "cols"))
    timed = {"gpu": (Case({"rows": 32768, "cols": 1024}), Case({"rows": 2048, "cols": 8192}))}
    checks = (
        Case({"rows": 1, "cols": 1}, values="large"),
        Case({"rows": 2, "cols": 5}),
        Case({"rows": 4099, "cols": 3}, values="normal"),
        Case({"rows": 251, "cols": 67}, values="large"),
        Case({"rows": 1000, "cols": 36}, values="tiny"),
        Case({"rows": 133, "cols": 260}, values="outliers"),
        Case({"rows": 35, "cols": 6}, values="equal"),
        Case({"rows": 129, "cols": 130}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, cols = sampler.xp, (case.dims["cols"],)
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        # Every other column lies far from zero, beside its spread.
        odd = xp.arange(cols[0], device=x.device)[None, :] % 2 == 1
        x = xp.astype(x + xp.where(odd, 64.0, 0.0) * xp.mean(xp.abs(x)), xp.float32)
        return x, sampler.values(cols, case.dtype, "uniform"), sampler.values(cols, case.dtype, "uniform")

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight, bias = inputs
        mean = xp.mean(x, axis=0)
        variance = xp.mean((x - mean) ** 2, axis=0)
        return (x - mean) / xp.sqrt(variance + _EPS) * weight + bias, mean, variance

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        # The mean's rounding error counts too: all that is left where the elements of a column are nearly equal.
        x, weight, bias = inputs
        _, mean, variance = expected
        scale, size = 1.0 / xp.sqrt(variance + _EPS), xp.abs(mean)
        squares = ((x - mean) * scale) ** 2 + (0.2 * mean * scale) ** 2 + 1.0
        spread = xp.sqrt(variance)
        of_variance = variance + 0.05 * size * spread + 1e-6 * mean**2
        return xp.sqrt(squares * weight**2 + bias**2), size + spread, of_variance

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            (64.0 + 8.0 * case.dims["rows"] ** 0.5) * 2.0**-24,
            "one by one in float32, a column's sums are off by about 0.3 * sqrt(rows) * 2^-24, here with room for the"
            " worst of many columns; inputs of 11 bits are off by up to 8000 * 2^-24",
        )

    def flops(self, case: Case) -> int:
        return 5 * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, rng.choice((40, 2000))), "cols": rng.randint(1, 130)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
