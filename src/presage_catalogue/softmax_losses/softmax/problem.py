"""Softmax over the last axis."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.softmax_losses.maps import SOFTMAX


class Softmax(Problem):
    summary = "y[r, c] = exp(x[r, c]) / sum over c of exp(x[r, c]), for each row r, without overflow"
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "rows, cols"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 64, "cols": 16384})),
        "gpu": (Case({"rows": 16384, "cols": 1024}), Case({"rows": 1024, "cols": 32768})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 3, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 4097}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 17, "cols": 1000}, values="equal"),
        Case({"rows": 33, "cols": 129}, values="outliers"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return (e / xp.sum(e, axis=-1, keepdims=True),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2e-5,
            "float32 exp is good to 2 ulp, but rounding x - max costs |x - max| * 2^-24 relative (up to 1e-5 where"
            " the result is not negligible), and the sum adds about sqrt(cols) * 2^-24",
            absolute=1e-9,
        )

    def flops(self, case: Case) -> int:
        return 4 * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, 3000)}
        return Case(dims, values=rng.choice(("normal", "large", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        # Those that need the entry's name or a line of PyTorch are the plain kernels, which lie beside this file.
        return {name: code for name, code in SOFTMAX.given(suffix).items() if name not in ("entry", "eager")}
