"""Causal attention without a softmax, which a running state can compute."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.chunked import turned
from presage_catalogue.research.staged import Staged, sum_error


def _case(heads: int, length: int, dk: int, dv: int, values: str = "uniform") -> Case:
    return Case({"heads": heads, "length": length, "dk": dk, "dv": dv}, values=values)


class LinearAttention(Staged):
    summary = "o[t] = sum over s <= t of (q[t] . k[s]) * v[s], for each head; dk <= 128"
    inputs = (Array("q", "heads, length, dk"), Array("k", "heads, length, dk"), Array("v", "heads, length, dv"))
    outputs = (Array("o", "heads, length, dv"),)
    timed = {"gpu": (_case(32, 2048, 64, 64), _case(512, 200, 32, 64))}
    checks = (
        _case(1, 1, 1, 1),
        _case(2, 9, 5, 3, "large"),
        _case(1, 200, 33, 17, "normal"),
        _case(3, 65, 16, 70, "outliers"),
        _case(1, 70, 128, 40, "normal"),
        _case(2, 130, 20, 5, "tiny"),
        _case(2, 64, 64, 33, "zeros"),
    )
    eager = """
heads, length, dk = q.shape
chunks = -(-length // 64)
q, k, v = (torch.nn.functional.pad(x, (0, 0, 0, -length % 64)).view(heads, chunks, 64, -1) for x in (q, k, v))
sums = (k.transpose(2, 3) @ v).cumsum(1)
state = torch.nn.functional.pad(sums[:, :-1], (0, 0, 0, 0, 1, 0))
scores = (q @ k.transpose(2, 3)).tril()
return (q @ state + scores @ v).view(heads, chunks * 64, -1)[:, :length].contiguous()
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        heads, length, dk, dv = case.dims.values()
        q, k = (sampler.values((heads, length, dk), case.dtype, "uniform") for _ in range(2))
        return q, k * dk**-0.5, sampler.values((heads, length, dv), case.dtype)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._attend(xp, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return (xp.sqrt(self._attend(xp, *(x * x for x in inputs))),)

    def _attend(self, xp: Any, q: Any, k: Any, v: Any) -> Any:
        return xp.matmul(xp.tril(xp.matmul(q, turned(xp, k))), v)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(2 * case.dims["dk"], case.dims["length"]),
            "sums of dk and of up to `length` terms, in either order, off by the root of their length * 2^-24 of their"
            " terms; 16 covers the worst of all elements, and terms rounded to a 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count of the cheaper way: a running state, or all pairs."""
        heads, length, dk, dv = case.dims.values()
        return heads * length * min(2 * dk * dv, (length + 1) * (dk + dv) // 2)

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 3), rng.randint(1, 150), rng.randint(1, 128), rng.randint(1, 50), style)
