"""The vectors that a chunked gated delta rule's recurrence is made of, from its triangular matrices."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.chunked import CHUNK, Chunked, cut, gates, keys, tokens
from presage_catalogue.research.staged import sum_error


class GdnRecomputeWU(Chunked):
    summary = (
        "for each chunk of 64 tokens: w = a @ (beta * exp(g) * k) and u = a @ (beta * v), where a is the chunk's 64 * 64"
        " matrix, which is zero above its diagonal"
    )
    inputs = (
        Array("k", "heads, 64 * chunks, dk"),
        Array("v", "heads, 64 * chunks, dv"),
        Array("beta", "heads, 64 * chunks"),
        Array("a", "heads, 64 * chunks, 64"),
        Array("g", "heads, 64 * chunks"),
    )
    outputs = (Array("w", "heads, 64 * chunks, dk"), Array("u", "heads, 64 * chunks, dv"))
    eager = """
heads, length, dk = k.shape
a = a.view(heads, length // 64, 64, 64)
w = a @ (k * (beta * torch.exp(g))[..., None]).view(heads, length // 64, 64, dk)
u = a @ (v * beta[..., None]).view(heads, length // 64, 64, -1)
return w.view(heads, length, dk), u.view(heads, length, -1)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        heads, length = tokens(case)
        xp = sampler.xp
        beta = xp.abs(sampler.values((heads, length), case.dtype, "uniform")) * 0.5
        drawn = sampler.values((heads, length // CHUNK, CHUNK, CHUNK), case.dtype, "uniform")
        a = xp.reshape(xp.tril(drawn), (heads, length, CHUNK)) * 1.0
        v = sampler.values((heads, length, case.dims["dv"]), case.dtype)
        return keys(case, sampler), v, beta, a, gates(case, sampler)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        k, v, beta, a, g = inputs
        return self._products(xp, a, k * (beta * xp.exp(g))[..., None], v * beta[..., None])

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        k, v, beta, a, g = inputs
        right = k * (beta * xp.exp(g))[..., None], v * beta[..., None]
        w, u = self._products(xp, a * a, *(x * x for x in right))
        return xp.sqrt(w), xp.sqrt(u)

    def _products(self, xp: Any, a: Any, *right: Any) -> tuple[Any, ...]:
        return tuple(xp.reshape(xp.matmul(cut(xp, a), cut(xp, x)), x.shape) for x in right)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(CHUNK),
            "64 roundings of 2^-24 in a running sum grow like sqrt(64); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """A quarter of the classical count: half of the matrix is zero."""
        heads, chunks, dk, dv = case.dims.values()
        return heads * chunks * CHUNK * CHUNK // 2 * (dk + dv)

    def textbook_flops(self, case: Case) -> int:
        return 4 * self.flops(case)
