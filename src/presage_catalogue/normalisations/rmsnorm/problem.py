"""Root-mean-square normalisation over the last axis."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler

_EPS = 1e-6


class RmsNorm(Problem):
    summary = "y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + 1e-6) * weight[c]"
    inputs = (Array("x", "rows, cols"), Array("weight", "cols"))
    outputs = (Array("y", "rows, cols"),)
    timed = {
        "cpu": (Case({"rows": 512, "cols": 2048}), Case({"rows": 64, "cols": 16384})),
        "gpu": (Case({"rows": 16384, "cols": 2048}), Case({"rows": 4096, "cols": 8192})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 7, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 4097}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 17, "cols": 1000}, values="tiny"),
        Case({"rows": 33, "cols": 129}, values="outliers"),
        Case({"rows": 5, "cols": 35}, values="equal"),
        Case({"rows": 9, "cols": 515}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        return x, sampler.values((case.dims["cols"],), case.dtype, "uniform")

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        return (x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + _EPS) * weight,)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            1.5e-5,
            "one by one in float32, the sum of squares is off by about 0.2 * sqrt(cols) * 2^-24 and half of that shows:"
            " 8e-7 for 16384 columns, 3e-6 in the worst of many rows; inputs rounded to 11 bits are off by up to 5e-4",
        )

    def flops(self, case: Case) -> int:
        return 4 * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 3000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
