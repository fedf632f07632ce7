"""The cross-entropy loss of each row's logits against its target class."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


def _terms(xp: ModuleType, logits: Any, targets: Any) -> tuple[Any, Any]:
    """Each row's log of the sum of exponentials, and its target's logit."""
    top = xp.max(logits, axis=-1, keepdims=True)
    normaliser = top + xp.log(xp.sum(xp.exp(logits - top), axis=-1, keepdims=True))
    chosen = xp.take_along_axis(logits, xp.reshape(targets, (-1, 1)), axis=-1)
    return normaliser[:, 0], chosen[:, 0]


class CrossEntropy(Problem):
    summary = "loss[r] = log(sum over c of exp(logits[r, c])) - logits[r, targets[r]], without overflow"
    inputs = (Array("logits", "rows, cols"), Array("targets", "rows", "int64"))
    outputs = (Array("loss", "rows"),)
    timed = {
        "cpu": (Case({"rows": 1024, "cols": 1024}), Case({"rows": 64, "cols": 32000})),
        "gpu": (Case({"rows": 8192, "cols": 4096}), Case({"rows": 2048, "cols": 32000})),
    }
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 3, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 4097}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 17, "cols": 1000}, values="equal"),
        Case({"rows": 33, "cols": 129}, values="outliers"),
        Case({"rows": 131, "cols": 15}, values="tiny"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        logits = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        return logits, sampler.integers((case.dims["rows"],), 0, case.dims["cols"], "int64")

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        normaliser, chosen = _terms(xp, *inputs)
        return (normaliser - chosen,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        # The 1 stands for the logarithm: a relative error of the sum becomes an absolute one of its logarithm.
        normaliser, chosen = _terms(xp, *inputs)
        return (xp.sqrt(1.0 + normaliser**2 + chosen**2),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            4e-6,
            "one by one in float32, the sum of 32000 exponentials is off by about 2e-6 and its logarithm by as much,"
            " beside terms of about 11; logits rounded to 11 bits are off by about 2e-4",
        )

    def flops(self, case: Case) -> int:
        return 2 * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 3000)))}
        return Case(dims, values=rng.choice(("normal", "large", "outliers")))
