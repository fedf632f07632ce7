"""Product of two matrices."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.matmuls.products import Form, places


class Matmul(Problem):
    summary = "c[i, j] = sum over p of a[i, p] * b[p, j]; all matrices are row-major"
    inputs = (Array("a", "m, k"), Array("b", "k, n"))
    outputs = (Array("c", "m, n"),)
    timed = {
        "cpu": (Case({"m": 384, "n": 384, "k": 384}), Case({"m": 1024, "n": 64, "k": 512})),
        "gpu": (
            Case({"m": 4096, "n": 4096, "k": 4096}),
            Case({"m": 8192, "n": 1024, "k": 2048}),
            Case({"m": 64, "n": 8192, "k": 4096}),
        ),
    }
    # A long sum of equal terms drifts by more than the tolerance's random walk, so no `equal` case has k over 30.
    checks = (
        Case({"m": 1, "n": 1, "k": 1}),
        Case({"m": 1, "n": 301, "k": 77}, values="normal"),
        Case({"m": 259, "n": 1, "k": 1}, values="large"),
        Case({"m": 67, "n": 131, "k": 521}, values="outliers"),
        Case({"m": 13, "n": 17, "k": 1031}, values="tiny"),
        Case({"m": 5, "n": 33, "k": 23}, values="equal"),
        Case({"m": 31, "n": 7, "k": 129}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.matmul(a, b),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.sqrt(xp.matmul(a * a, b * b)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(case.dims["k"]),
            "k roundings of 2^-24 in a running sum grow like sqrt(k); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count: Strassen's 7/8 per level halves it only at the fifth, which never pays here."""
        return case.dims["m"] * case.dims["n"] * case.dims["k"]

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"m": rng.randint(1, 150), "n": rng.randint(1, 150), "k": rng.randint(1, 700)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        return places(self, Form(), suffix)
