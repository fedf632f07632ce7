"""A transformer's gated feed-forward block."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.layernorm_gate_project.problem import sigmoid
from presage_catalogue.research.staged import Staged, sum_error


def _case(tokens: int, d: int, f: int, values: str = "uniform") -> Case:
    return Case({"tokens": tokens, "d": d, "f": f}, values=values)


class SwigluMlp(Staged):
    summary = "y = (silu(x @ w1) * (x @ w3)) @ w2, with silu(a) = a / (1 + exp(-a))"
    inputs = (Array("x", "tokens, d"), Array("w1", "d, f"), Array("w3", "d, f"), Array("w2", "f, d"))
    outputs = (Array("y", "tokens, d"),)
    timed = {"gpu": (_case(4096, 256, 512), _case(128, 768, 2048))}
    checks = (
        _case(1, 1, 1),
        _case(3, 17, 130, "large"),
        _case(67, 33, 40, "normal"),
        _case(130, 20, 70, "outliers"),
        _case(19, 129, 65, "tiny"),
        _case(40, 64, 96, "normal"),
        _case(5, 30, 31, "zeros"),
    )
    most_products = 2
    eager = "return (torch.nn.functional.silu(x @ w1) * (x @ w3)) @ w2"

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        tokens, d, f = case.dims.values()
        x = sampler.values((tokens, d), case.dtype)
        w1, w3 = (sampler.values((d, f), case.dtype, "uniform") * d**-0.5 for _ in range(2))
        return x, w1, w3, sampler.values((f, d), case.dtype, "uniform") * f**-0.5

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, w1, w3, w2 = inputs
        a = xp.matmul(x, w1)
        return (xp.matmul(a * sigmoid(xp, a) * xp.matmul(x, w3), w2),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The root of the sum of squares of the last product's terms, each as large as what it is made of."""
        x, w1, w3, w2 = inputs
        a, b = xp.matmul(x, w1), xp.matmul(x, w3)
        in_a, in_b = (xp.sqrt(xp.matmul(x * x, w * w)) for w in (w1, w3))
        s = sigmoid(xp, a)
        slope = xp.abs(s * (1.0 + a * (1.0 - s)))
        terms = xp.abs(a * s) * (xp.abs(b) + in_b) + slope * xp.abs(b) * in_a
        return (xp.sqrt(xp.matmul(terms * terms, w2 * w2)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(2 * case.dims["d"], case.dims["f"]),
            "sums of d and then of f terms, off by the root of their length * 2^-24 of their terms; 16 covers any order"
            " and the worst of all elements, and terms rounded to a 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        tokens, d, f = case.dims.values()
        return 3 * tokens * d * f

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 90), rng.randint(1, 100), rng.randint(1, 140), style)
