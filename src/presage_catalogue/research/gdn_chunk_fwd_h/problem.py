"""The recurrence over chunks of a gated delta rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.chunked import CHUNK, Chunked, cut, gates, keys, tokens, turned
from presage_catalogue.research.staged import sum_error


class GdnChunkFwdH(Chunked):
    summary = (
        "for each head, chunk by chunk of 64 tokens, from a state S of zeros (dk, dv): h[chunk] = S; v_new = u - w @ S;"
        " S = exp(g_last) * S + k^T @ (exp(g_last - g) * v_new), g_last the g of the chunk's last token; dk <= 128"
    )
    inputs = (
        Array("k", "heads, 64 * chunks, dk"),
        Array("w", "heads, 64 * chunks, dk"),
        Array("u", "heads, 64 * chunks, dv"),
        Array("g", "heads, 64 * chunks"),
    )
    outputs = (Array("h", "heads, chunks, dk, dv"), Array("v_new", "heads, 64 * chunks, dv"))
    eager = """
heads, length, dk = k.shape
dv = u.shape[-1]
k, w, u = (x.view(heads, length // 64, 64, -1) for x in (k, w, u))
g = g.view(heads, length // 64, 64)
state = torch.zeros((heads, dk, dv), dtype=u.dtype, device=u.device)
h, v_new = torch.empty((heads, length // 64, dk, dv), dtype=u.dtype, device=u.device), torch.empty_like(u)
for c in range(length // 64):
    h[:, c] = state
    v_new[:, c] = u[:, c] - w[:, c] @ state
    last = g[:, c, -1:]
    kept = v_new[:, c] * torch.exp(last - g[:, c])[:, :, None]
    state = state * torch.exp(last)[:, :, None] + k[:, c].transpose(1, 2) @ kept
return h, v_new.view(heads, length, dv)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """w is small enough that the state stays bounded: a chunk subtracts about half of it at most."""
        k, w = keys(case, sampler), sampler.values((*tokens(case), case.dims["dk"]), case.dtype, "uniform") * 2.0**-5
        return k, w, sampler.values((*tokens(case), case.dims["dv"]), case.dtype), gates(case, sampler)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        k, w, u, g = (cut(xp, x) for x in inputs)
        return self._run(xp, k, w, u, g, -1.0)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The same recurrence for the squares of all terms."""
        k, w, u, g = (cut(xp, x) for x in inputs)
        h, v_new = self._run(xp, k * k, w * w, u * u, 2.0 * g, 1.0)
        return xp.sqrt(h), xp.sqrt(v_new)

    def _run(self, xp: Any, k: Any, w: Any, u: Any, g: Any, sign: float) -> tuple[Any, Any]:
        heads, chunks = k.shape[:2]
        state = xp.matmul(turned(xp, k[:, 0]), u[:, 0]) * 0.0
        h, v_new = [], []
        for c in range(chunks):
            h.append(state)
            v_new.append(u[:, c] + sign * xp.matmul(w[:, c], state))
            last = g[:, c, -1:]
            kept = v_new[-1] * xp.exp(last - g[:, c])[:, :, None]
            state = state * xp.exp(last)[:, :, None] + xp.matmul(turned(xp, k[:, c]), kept)
        return xp.stack(h, 1), xp.reshape(xp.stack(v_new, 1), (heads, chunks * CHUNK, u.shape[-1]))

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2 * sum_error(CHUNK, case.dims["dk"]),
            "sums of dk and of 64 terms in turn, off by the root of their length * 2^-24 of their terms; a chunk forgets"
            " about half of the state and of its errors, which doubles them at most, and terms rounded to a 10-bit"
            " mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        heads, chunks, dk, dv = case.dims.values()
        return 2 * heads * max(chunks - 1, 0) * CHUNK * dk * dv
