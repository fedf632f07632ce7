"""The sum over the last axis."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Sum(Problem):
    summary = "y[r] = sum over c of x[r, c], for each row r"
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "rows"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 128, "cols": 16384})),
        "gpu": (Case({"rows": 16384, "cols": 2048}), Case({"rows": 2048, "cols": 32768})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 5, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 10007}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 33, "cols": 1023}, values="outliers"),
        Case({"rows": 259, "cols": 17}, values="tiny"),
        Case({"rows": 13, "cols": 31}, values="equal"),
        Case({"rows": 7, "cols": 2049}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.sum(x, axis=-1),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.sqrt(xp.sum(x * x, axis=-1)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            1e-4,
            "adding one by one in float32 is off by about 0.3 * sqrt(cols) * 2^-24 of the terms' root of squares, 3e-6"
            " for 32768 of them and 2e-5 in the worst of many rows; terms rounded to 11 bits are off by about 2e-4",
        )

    def flops(self, case: Case) -> int:
        return case.dims["rows"] * (case.dims["cols"] - 1)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 5000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
