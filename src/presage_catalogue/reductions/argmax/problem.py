"""The position of the largest element along the last axis."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Argmax(Problem):
    summary = "y[r] = the smallest c at which x[r, c] is the maximum of row r"
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "rows", "int64"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 128, "cols": 16384})),
        "gpu": (Case({"rows": 16384, "cols": 2048}), Case({"rows": 2048, "cols": 32768})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 3, "cols": 2}, values="large"),
        Case({"rows": 1, "cols": 10007}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 9, "cols": 1000}, values="equal"),
        Case({"rows": 33, "cols": 1025}, values="outliers"),
        Case({"rows": 259, "cols": 17}, values="tiny"),
        Case({"rows": 7, "cols": 4099}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        rows, cols = case.dims["rows"], case.dims["cols"]
        x = sampler.values((rows, cols), case.dtype)
        # Random rows hardly ever tie, so every other one gets its maximum a second time.
        xp = sampler.xp
        row, column = (xp.arange(size, device=x.device) for size in (rows, cols))
        again = (column[None, :] == sampler.integers((rows,), 0, cols)[:, None]) & (row[:, None] % 2 == 0)
        return (xp.where(again, xp.max(x, axis=-1, keepdims=True), x),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        cols = case.dims["cols"]
        # Not xp.argmax: which of several equal elements it gives is not the same everywhere.
        column = xp.arange(cols, dtype=xp.int64, device=x.device)
        return (xp.min(xp.where(x == xp.max(x, axis=-1, keepdims=True), column, cols), axis=-1),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(0.0, "a position is right or wrong", absolute=0.0)

    def flops(self, case: Case) -> int:
        return case.dims["rows"] * (case.dims["cols"] - 1)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 5000)))}
        return Case(dims, values=rng.choice(("normal", "large", "outliers", "equal")))
