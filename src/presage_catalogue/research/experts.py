"""Parts of a mixture of experts: the gate, and the layers of one expert."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.maps import sigmoid
from presage_catalogue.research.staged import Staged, sum_error


class MoeGate(Staged):
    name = "moe_gate"
    summary = (
        "for each token, p = softmax(logits) over its experts: the two experts of the largest p, the larger first, and"
        " their p divided by the sum of both; logits of a token are never equal, and there are at least two experts"
    )
    inputs = (Array("logits", "tokens, experts"),)
    outputs = (Array("weights", "tokens, 2"), Array("chosen", "tokens, 2", "int32"))
    timed = {"gpu": cases("tokens experts: 524288 64; 120000 250")}
    checks = cases(
        "tokens experts: 1 2; 3 3 large; 130 8 normal; 67 33 outliers; 35 250 normal; 77 256 large; 301 65 tiny;"
        " 33 128 zeros"
    )
    _eager = """
weights, chosen = torch.topk(torch.softmax(logits, dim=-1), 2, dim=-1)
return weights / weights.sum(-1, keepdim=True), chosen.to(torch.int32)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """Draw logits: for each token, multiples of about 4 / experts in a random order, plus an offset drawn in the
        case's style. The step size varies between tokens, as otherwise all tokens would have the same weights."""
        tokens, experts = case.dims.values()
        xp = sampler.xp
        ranks = xp.argsort(sampler.values((tokens, experts), case.dtype, "uniform"))
        moved = sampler.values((tokens, 1), case.dtype)
        steps = (4.0 + sampler.values((tokens, 1), case.dtype, "uniform")) / experts
        return (xp.astype(ranks, moved.dtype) * steps + moved,)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (logits,) = inputs
        first = xp.argmax(logits, axis=-1)
        best = xp.max(logits, axis=-1, keepdims=True)
        others = xp.where(logits < best, logits, -xp.inf)
        second = xp.argmax(others, axis=-1)
        ratio = xp.exp(xp.max(others, axis=-1) - best[:, 0])
        weights = xp.stack([1.0 / (1.0 + ratio), ratio / (1.0 + ratio)], 1)
        return weights, xp.astype(xp.stack([first, second], 1), xp.int32)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            4e-6,
            "a quotient of two exponentials good to 2 ulp of 6e-8, of arguments of up to 6 that are themselves rounded"
            " by 2^-24 of their size, and a few roundings more",
        )

    def flops(self, case: Case) -> int:
        return case.dims["tokens"] * (case.dims["experts"] - 1)

    def textbook_flops(self, case: Case) -> int:
        return 6 * case.dims["tokens"] * case.dims["experts"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"tokens": rng.randint(1, 200), "experts": rng.randint(2, 256)}
        return Case(dims, values=rng.choice(self.draw_styles))


class SwigluMlp(Staged):
    name = "swiglu_mlp"
    summary = "y = (silu(x @ w1) * (x @ w3)) @ w2, with silu(a) = a / (1 + exp(-a))"
    textbook = 2
    inputs = (Array("x", "tokens, d"), Array("w1", "d, f"), Array("w3", "d, f"), Array("w2", "f, d"))
    outputs = (Array("y", "tokens, d"),)
    _draw = (90, 100, 140)
    timed = {"gpu": cases("tokens d f: 4096 256 512; 128 768 2048")}
    checks = cases(
        "tokens d f: 1 1 1; 3 17 130 large; 67 33 40 normal; 130 20 70 outliers; 19 129 65 tiny; 40 64 96 normal;"
        " 5 30 31 zeros"
    )
    most_products = 2
    _eager = "return (torch.nn.functional.silu(x @ w1) * (x @ w3)) @ w2"

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
        """The root sum of squares of the last product's terms, where each term has the magnitude of its own terms."""
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
        """Half of the classical count, as for any matrix product."""
        tokens, d, f = case.dims.values()
        return 3 * tokens * d * f


OPERATIONS = (MoeGate(), SwigluMlp())
