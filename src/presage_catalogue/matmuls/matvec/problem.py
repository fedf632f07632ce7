"""Product of a matrix and a vector."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Matvec(Problem):
    summary = "y[i] = sum over p of a[i, p] * x[p]; a is row-major"
    inputs = (Array("a", "m, k"), Array("x", "k"))
    outputs = (Array("y", "m"),)
    timed = {"gpu": (Case({"m": 16384, "k": 4096}), Case({"m": 512, "k": 131072}))}
    # A long sum of equal terms drifts by more than the tolerance's random walk, so no `equal` case has k over 30.
    checks = (
        Case({"m": 1, "k": 1}),
        Case({"m": 3, "k": 10007}, values="normal"),
        Case({"m": 301, "k": 77}, values="large"),
        Case({"m": 67, "k": 1031}, values="outliers"),
        Case({"m": 1031, "k": 33}, values="tiny"),
        Case({"m": 13, "k": 23}, values="equal"),
        Case({"m": 33, "k": 2052}, values="normal"),
        Case({"m": 31, "k": 129}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, x = inputs
        return (xp.matmul(a, x),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        a, x = inputs
        return (xp.sqrt(xp.matmul(a * a, x * x)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2.0**-24 * (4 * math.sqrt(case.dims["k"]) + 12),
            "k roundings of 2^-24 in a running sum grow like 0.3 sqrt(k), and 4 covers the worst of many rows; up to"
            " 131072 terms that stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        return case.dims["m"] * case.dims["k"]

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"m": rng.randint(1, 300), "k": rng.randint(1, rng.choice((200, 3000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
