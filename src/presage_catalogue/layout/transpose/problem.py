"""The transpose of a matrix."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Transpose(Problem):
    summary = "y[c, r] = x[r, c], written out in full"
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "cols, rows"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 2000, "cols": 700})),
        "gpu": (Case({"rows": 4096, "cols": 8192}), Case({"rows": 30000, "cols": 700})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 1, "cols": 1031}, values="large"),
        Case({"rows": 1031, "cols": 1}, values="tiny"),
        Case({"rows": 7, "cols": 9}),
        Case({"rows": 67, "cols": 251}, values="outliers"),
        Case({"rows": 129, "cols": 64}, values="normal"),
        Case({"rows": 255, "cols": 513}, values="large"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.permute_dims(x, (1, 0)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(0.0, "values move and none is computed", absolute=0.0)

    def flops(self, case: Case) -> int:
        return 0

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 400), "cols": rng.randint(1, 400)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny")))
