"""The Gaussian error linear unit, in its exact form."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.formulas import Code

_CODE = Code("gelu", ("x",), ("y",), "c = 1.0 + erf(0.70710678 * x); y = 0.5 * x * c")
_STEP = 0.2
_TERMS = 28


def erf(xp: ModuleType, x: Any) -> Any:
    """The error function to 1e-15 absolute, which the array API lacks.

    It is the Fourier sine series 2/pi * (h*x + sum over n of exp(-(n*h)^2) / n * sin(2*n*h*x)) (Strecok, 1968), summed
    by Clenshaw's recurrence. It repeats with a period of pi/h, so x is held to where erf has long been 1.
    """
    x = xp.clip(x, -6.0, 6.0)
    angle = 2.0 * _STEP * x
    twice_cosine = 2.0 * xp.cos(angle)
    current, previous = xp.zeros_like(x), xp.zeros_like(x)
    for n in range(_TERMS, 0, -1):
        current, previous = math.exp(-((n * _STEP) ** 2)) / n + twice_cosine * current - previous, current
    return (_STEP * x + xp.sin(angle) * current) * (2.0 / math.pi)


class Gelu(Problem):
    adds_up = False
    summary = "y[i] = 0.5 * x[i] * (1 + erf(x[i] / sqrt(2))), the exact form and not the one with tanh"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"),)
    timed = {
        "cpu": (Case({"n": 262144}), Case({"n": 1000003})),
        "gpu": (Case({"n": 8388608}), Case({"n": 33554432})),
    }
    checks = (
        Case({"n": 1}),
        Case({"n": 3}, values="large"),
        Case({"n": 31}, values="tiny"),
        Case({"n": 1025}, values="normal"),
        Case({"n": 4095}, values="outliers"),
        Case({"n": 30011}, values="large"),
        Case({"n": 777}, values="zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (0.5 * x * (1.0 + erf(xp, x * math.sqrt(0.5))),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.abs(x),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            1e-6,
            "a float32 erf is good to about 4e-7, and 1 + erf cancels for negative x, so the error scales with x"
            " and not with the result; the form with tanh is off by 5e-4",
        )

    def flops(self, case: Case) -> int:
        return 4 * case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 20000)}, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        return _CODE.shared(suffix)
