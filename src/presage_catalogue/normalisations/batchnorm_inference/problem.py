"""Batch normalisation with known statistics, as a trained network applies it."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler

_EPS = 1e-5


class BatchNormInference(Problem):
    summary = "y[b, c, i] = (x[b, c, i] - mean[c]) / sqrt(variance[c] + 1e-5) * weight[c] + bias[c]"
    inputs = (
        Array("x", "batch, channels, size"),
        Array("mean", "channels"),
        Array("variance", "channels"),
        Array("weight", "channels"),
        Array("bias", "channels"),
    )
    outputs = (Array("y", "batch, channels, size"),)
    timed = {
        "gpu": (
            Case({"batch": 32, "channels": 64, "size": 12544}),
            Case({"batch": 256, "channels": 2048, "size": 49}),
        ),
    }
    checks = (
        Case({"batch": 1, "channels": 1, "size": 1}, values="large"),
        Case({"batch": 3, "channels": 5, "size": 2}),
        Case({"batch": 2, "channels": 2, "size": 4097}, values="normal"),
        Case({"batch": 4, "channels": 17, "size": 251}, values="large"),
        Case({"batch": 1, "channels": 33, "size": 1000}, values="tiny"),
        Case({"batch": 5, "channels": 131, "size": 49}, values="outliers"),
        Case({"batch": 2, "channels": 3, "size": 36}, values="equal"),
        Case({"batch": 3, "channels": 3, "size": 516}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        channels = (case.dims["channels"],)
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        mean, spread, weight, bias = (sampler.values(channels, case.dtype, "uniform") for _ in range(4))
        return x, mean, spread * spread + 0.01, weight, bias

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, mean, variance, weight, bias = (p if p.ndim == 3 else p[None, :, None] for p in inputs)
        return ((x - mean) / xp.sqrt(variance + _EPS) * weight + bias,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, mean, variance, weight, bias = (p if p.ndim == 3 else p[None, :, None] for p in inputs)
        return ((xp.abs(x) + xp.abs(mean)) / xp.sqrt(variance + _EPS) * xp.abs(weight) + xp.abs(bias),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2e-6,
            "some eight roundings in float32, each of 6e-8 of the terms, and a reciprocal root good to 2e-7;"
            " a scale rounded to 11 bits is off by up to 5e-4",
        )

    def flops(self, case: Case) -> int:
        return 2 * case.dims["batch"] * case.dims["channels"] * case.dims["size"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"batch": rng.randint(1, 4), "channels": rng.randint(1, 40), "size": rng.randint(1, 600)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))
