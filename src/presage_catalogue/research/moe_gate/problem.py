"""The gate of a mixture of experts: each token's two best experts and their weights."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import Staged


def _case(tokens: int, experts: int, values: str = "uniform") -> Case:
    return Case({"tokens": tokens, "experts": experts}, values=values)


class MoeGate(Staged):
    summary = (
        "for each token, p = softmax(logits) over its experts: the two experts of the largest p, the larger first, and"
        " their p divided by the sum of both; logits of a token are never equal, and there are at least two experts"
    )
    inputs = (Array("logits", "tokens, experts"),)
    outputs = (Array("weights", "tokens, 2"), Array("chosen", "tokens, 2", "int32"))
    timed = {"gpu": (_case(524288, 64), _case(120000, 250))}
    checks = (
        _case(1, 2),
        _case(3, 3, "large"),
        _case(130, 8, "normal"),
        _case(67, 33, "outliers"),
        _case(35, 250, "normal"),
        _case(77, 256, "large"),
        _case(301, 65, "tiny"),
        _case(33, 128, "zeros"),
    )
    eager = """
weights, chosen = torch.topk(torch.softmax(logits, dim=-1), 2, dim=-1)
return weights / weights.sum(-1, keepdim=True), chosen.to(torch.int32)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """Each token's logits are steps of about 4 / experts in a random order, moved as a whole by what the style draws.
        How long a token's steps are is its own, or the weights would be the same for all."""
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
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 200), rng.randint(2, 256), style)
