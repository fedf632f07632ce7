"""Histogram of integers."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


class Histogram(Problem):
    summary = "counts[v] = how many of x[0] .. x[n - 1] equal v; every x is in [0, bins)"
    inputs = (Array("x", "n", "int32"),)
    outputs = (Array("counts", "bins", "int64"),)
    parameters = ("bins",)
    timed = {
        "cpu": (Case({"n": 2097152, "bins": 256}, values="outliers"), Case({"n": 1048576, "bins": 65536})),
        "gpu": (
            Case({"n": 67108864, "bins": 256}),
            Case({"n": 67108864, "bins": 256}, values="outliers"),
            Case({"n": 33554432, "bins": 1048576}),
        ),
    }
    # `equal` puts every element into one bin, `outliers` all but one in a hundred: the worst contention there is.
    checks = (
        Case({"n": 1, "bins": 1}),
        Case({"n": 1001, "bins": 1}),
        Case({"n": 1, "bins": 977}),
        Case({"n": 100003, "bins": 7}, values="equal"),
        Case({"n": 70001, "bins": 4099}, values="outliers"),
        Case({"n": 131, "bins": 100003}),
        Case({"n": 65537, "bins": 33}, values="equal"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        n, bins = case.dims.values()
        x = sampler.integers((n,), 0, bins)
        if case.values == "outliers":
            x = sampler.xp.where(sampler.integers((n,), 0, 100) > 0, x[0], x)
        return (x,)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Sorted, a value's count is the distance between where it and the next value would go."""
        (x,) = inputs
        edges = xp.arange(case.dims["bins"] + 1, dtype=x.dtype, device=x.device)
        places = xp.searchsorted(xp.sort(x), edges)
        return (places[1:] - places[:-1],)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(0.0, "counts are integers, so they are equal or wrong", absolute=0.0)

    def flops(self, case: Case) -> int:
        """One addition or comparison per element, less the bin that the total gives away."""
        return case.dims["n"] - case.dims["n"] // case.dims["bins"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"n": rng.randint(1, 60000), "bins": rng.choice((rng.randint(1, 64), rng.randint(1, 20000)))}
        return Case(dims, values=rng.choice(("uniform", "outliers", "equal")))
