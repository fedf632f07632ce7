"""The sum of two vectors."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.formulas import Code

_CODE = Code("vector_add", ("x", "y"), ("z",), "z = x + y")


class VectorAdd(Problem):
    adds_up = False
    summary = "z[i] = x[i] + y[i]"
    inputs = (Array("x", "n"), Array("y", "n"))
    outputs = (Array("z", "n"),)
    timed = {
        "cpu": (Case({"n": 524288}), Case({"n": 1300003})),
        "gpu": (Case({"n": 4194304}), Case({"n": 16777216}), Case({"n": 25000003})),
    }
    checks = (
        Case({"n": 1}),
        Case({"n": 2}, values="large"),
        Case({"n": 15}, values="tiny"),
        Case({"n": 1023}, values="outliers"),
        Case({"n": 4099}, values="normal"),
        Case({"n": 65537}, values="large"),
        Case({"n": 100003}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        x, y = (sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)
        return x, y

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, y = inputs
        return (x + y,)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(2.5e-7, "one float32 addition is right to 2^-24 = 6e-8, even where the terms cancel")

    def flops(self, case: Case) -> int:
        return case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 50000)}, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        return _CODE.shared(suffix)
