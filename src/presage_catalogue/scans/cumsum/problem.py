"""Running sums along the last axis."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Cumsum(Problem):
    summary = "y[r, c] = sum over i <= c of x[r, i], for each row r"
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "rows, cols"),)
    timed = {
        "cpu": (Case({"rows": 512, "cols": 2048}), Case({"rows": 1, "cols": 1048576})),
        "gpu": (
            Case({"rows": 8192, "cols": 4096}),
            Case({"rows": 65536, "cols": 256}),
            Case({"rows": 4, "cols": 4194304}),
        ),
    }
    # Sums of equal terms round the same way again and again, so the `equal` case is short.
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 259, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 70001}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="outliers"),
        Case({"rows": 5, "cols": 23}, values="equal"),
        Case({"rows": 3, "cols": 4099}, values="tiny"),
        Case({"rows": 13, "cols": 7}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.cumulative_sum(x, axis=-1),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The prefix's root sum of squares times the root of its length: each element adds one more rounding."""
        (x,) = inputs
        lengths = xp.arange(1, case.dims["cols"] + 1, dtype=x.dtype, device=x.device)
        return (xp.sqrt(lengths * xp.cumulative_sum(x * x, axis=-1)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24,
            "a running sum of n terms collects n roundings of 2^-24, which add up like a random walk; 16 covers the"
            " worst of all elements, while terms rounded to a 10-bit mantissa already show in short prefixes",
        )

    def flops(self, case: Case) -> int:
        return case.dims["rows"] * (case.dims["cols"] - 1)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 40), "cols": rng.randint(1, 5000)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
