"""Sums of the rows of a product of two matrices."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class MatmulSumRows(Problem):
    summary = "y[i] = sum over j and p of a[i, p] * b[p, j]: the sums of the rows of a product; both are row-major"
    inputs = (Array("a", "m, k"), Array("b", "k, n"))
    outputs = (Array("y", "m"),)
    timed = {"gpu": (Case({"m": 2048, "n": 2048, "k": 1024}), Case({"m": 256, "n": 4096, "k": 4096}))}
    # A long sum of equal terms drifts by more than the tolerance's random walk, so `equal` has few of them.
    checks = (
        Case({"m": 1, "n": 1, "k": 1}),
        Case({"m": 1, "n": 301, "k": 77}, values="normal"),
        Case({"m": 259, "n": 1, "k": 5}, values="large"),
        Case({"m": 67, "n": 131, "k": 261}, values="outliers"),
        Case({"m": 13, "n": 17, "k": 531}, values="tiny"),
        Case({"m": 5, "n": 3, "k": 7}, values="equal"),
        Case({"m": 132, "n": 68, "k": 64}, values="normal"),
        Case({"m": 31, "n": 7, "k": 129}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.sum(xp.matmul(a, b), axis=-1),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.sqrt(xp.sum(xp.matmul(a * a, b * b), axis=-1)),)

    def tolerance(self, case: Case) -> Tolerance:
        steps = 16 + 8 * math.sqrt(case.dims["k"]) + 8 * math.sqrt(case.dims["n"])
        return Tolerance(
            2.0**-24 * steps,
            "sums of k terms and then of n, or of n and then of k, drift like the roots of both, and 8 covers the worst"
            " of many rows; that stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """b's rows can be added up first, which leaves a product of a matrix and a vector."""
        return case.dims["k"] * (case.dims["n"] - 1) + case.dims["m"] * case.dims["k"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"m": rng.randint(1, 150), "n": rng.randint(1, 150), "k": rng.randint(1, 300)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
