"""The outputs of a chunked gated delta rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.chunked import CHUNK, Chunked, cut, gates, keys, tokens, turned
from presage_catalogue.research.staged import sum_error


class GdnChunkFwdO(Chunked):
    summary = (
        "for each chunk of 64 tokens: o[i] = (exp(g[i]) * q[i] @ h[chunk] + sum over j <= i of exp(g[i] - g[j]) *"
        " (q[i] . k[j]) * v_new[j]) / sqrt(dk); dk <= 128"
    )
    inputs = (
        Array("q", "heads, 64 * chunks, dk"),
        Array("k", "heads, 64 * chunks, dk"),
        Array("v_new", "heads, 64 * chunks, dv"),
        Array("h", "heads, chunks, dk, dv"),
        Array("g", "heads, 64 * chunks"),
    )
    outputs = (Array("o", "heads, 64 * chunks, dv"),)
    eager = """
heads, length, dk = q.shape
q, k, v = (x.view(heads, length // 64, 64, -1) for x in (q, k, v_new))
g = g.view(heads, length // 64, 64)
distance = g[..., :, None] - g[..., None, :]
causal = torch.ones((64, 64), dtype=torch.bool, device=q.device).tril()
scores = (q @ k.transpose(2, 3)) * torch.exp(torch.where(causal, distance, -torch.inf))
o = torch.exp(g)[..., None] * (q @ h) + scores @ v
return (o * dk**-0.5).view(heads, length, -1)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        heads, chunks, dk, dv = case.dims.values()
        q = sampler.values((*tokens(case), dk), case.dtype, "uniform")
        v_new, h = sampler.values((*tokens(case), dv), case.dtype), sampler.values((heads, chunks, dk, dv), case.dtype)
        return q, keys(case, sampler), v_new, h, gates(case, sampler)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        q, k, v_new, h, g = inputs
        return (self._outputs(xp, q, k, v_new, h, g) * case.dims["dk"] ** -0.5,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The root of the sum of all terms' squares."""
        q, k, v_new, h, g = inputs
        return (xp.sqrt(self._outputs(xp, q * q, k * k, v_new * v_new, h * h, 2.0 * g) / case.dims["dk"]),)

    def _outputs(self, xp: Any, q: Any, k: Any, v_new: Any, h: Any, g: Any) -> Any:
        shape = v_new.shape
        q, k, v_new, g = (cut(xp, x) for x in (q, k, v_new, g))
        weights = xp.exp(xp.minimum(g[..., :, None] - g[..., None, :], 0.0 * g[..., :, None]))
        scores = xp.tril(xp.matmul(q, turned(xp, k)) * weights)
        o = xp.exp(g)[..., None] * xp.matmul(q, h) + xp.matmul(scores, v_new)
        return xp.reshape(o, shape)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(CHUNK, 2 * case.dims["dk"]),
            "sums of dk and then of 64 terms, off by the root of their length * 2^-24 of their terms; 16 covers any"
            " order and the worst of all elements, and terms rounded to a 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices; half of the scores are not needed."""
        heads, chunks, dk, dv = case.dims.values()
        return heads * chunks * CHUNK * (dk * dv + CHUNK // 2 * (dk + dv))
