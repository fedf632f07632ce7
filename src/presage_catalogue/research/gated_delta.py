"""Stages of gated delta rules and linear attention. Sequences are processed in chunks of 64 tokens."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import SUM_ERROR, Staged, sum_error

CHUNK = 64


class Chunked(Staged):
    """A stage on sequences of 64 * chunks tokens per head, with keys of size dk <= 128 and values of size dv."""

    textbook = 2
    _draw = (3, 3, 128, 70)
    timed = {"gpu": cases("heads chunks dk dv: 32 32 128 128; 256 8 64 64")}
    checks = cases(
        "heads chunks dk dv: 1 1 1 1; 2 1 5 3 large; 1 3 33 17 normal; 2 1 16 130 outliers; 1 2 64 64 normal;"
        " 1 2 128 65 tiny; 3 2 7 9 zeros"
    )


def tokens(case: Case) -> tuple[int, int]:
    return case.dims["heads"], CHUNK * case.dims["chunks"]


def gates(case: Case, sampler: Sampler) -> Any:
    """Draw the logarithms of the gates, all at most 0, as cumulative sums within each chunk."""
    heads, length = tokens(case)
    steps = -0.02 * sampler.xp.abs(sampler.values((heads, length // CHUNK, CHUNK), case.dtype, "uniform"))
    return sampler.xp.reshape(sampler.xp.cumulative_sum(steps, axis=-1), (heads, length))


def keys(case: Case, sampler: Sampler) -> Any:
    """Draw vectors of about unit length, in every style."""
    dk = case.dims["dk"]
    return sampler.values((*tokens(case), dk), case.dtype, "uniform") * dk**-0.5


def cut(xp: Any, x: Any) -> Any:
    """Reshape (heads, tokens, ...) to (heads, chunks, 64, ...)."""
    return xp.reshape(x, (x.shape[0], x.shape[1] // CHUNK, CHUNK, *x.shape[2:]))


def turned(xp: Any, x: Any) -> Any:
    """Transpose the last two axes."""
    return xp.permute_dims(x, (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2))


class ChunkCumsumGates(Staged):
    name = "chunk_cumsum_gates"
    summary = (
        "y[b, t, h] = sum of g[b, s, h] over all s <= t of the same chunk of 64 tokens; the last chunk may be shorter"
    )
    inputs = (Array("g", "batch, length, heads"),)
    outputs = (Array("y", "batch, length, heads"),)
    _draw = (4, 400, 40)
    timed = {"gpu": cases("batch length heads: 16 32768 32; 48 65500 5")}
    checks = cases(
        "batch length heads: 1 1 1; 2 63 3 large; 1 65 33 normal; 3 200 16 outliers; 2 1000 5 normal; 1 129 130 tiny;"
        " 5 64 7 equal; 2 100 9 zeros"
    )
    _eager = """
batch, length, heads = g.shape
padded = torch.nn.functional.pad(g, (0, 0, 0, -length % 64)).view(batch, -1, 64, heads)
return padded.cumsum(2).view(batch, -1, heads)[:, :length].contiguous()
"""

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._sums(xp, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The root sum of squares of the prefix times the root of its length, as each element adds one rounding."""
        (g,) = inputs
        return (xp.sqrt(self._sums(xp, g * g) * self._sums(xp, g * 0.0 + 1.0)),)

    def _sums(self, xp: Any, g: Any) -> Any:
        parts = [
            xp.cumulative_sum(g[:, start : start + CHUNK, :], axis=1) for start in range(0, int(g.shape[1]), CHUNK)
        ]
        return xp.concat(parts, axis=1)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            SUM_ERROR,
            "a running sum of n <= 64 terms collects n roundings of 2^-24, which add up like a random walk; 16 covers"
            " the worst of all elements, while terms rounded to a 10-bit mantissa already show in short prefixes",
        )

    def flops(self, case: Case) -> int:
        batch, length, heads = case.dims.values()
        return batch * heads * (length - -(-length // CHUNK))


class DeltaRuleRecurrent(Staged):
    name = "delta_rule_recurrent"
    summary = (
        "for each head, token by token, from a state S of zeros (dk, dv): S = exp(g) * S; S = S + k^T (beta * (v - k"
        " S)); o = q S / sqrt(dk); dk <= 128"
    )
    textbook = 7
    inputs = (
        Array("q", "heads, length, dk"),
        Array("k", "heads, length, dk"),
        Array("v", "heads, length, dv"),
        Array("beta", "heads, length"),
        Array("g", "heads, length"),
    )
    outputs = (Array("o", "heads, length, dv"),)
    _draw = (3, 60, 128, 50)
    timed = {"gpu": cases("heads length dk dv: 64 256 128 128; 512 96 64 64")}
    checks = cases(
        "heads length dk dv: 1 1 1 1; 2 9 5 3 large; 1 103 33 17 normal; 3 20 16 70 outliers; 1 33 128 40 normal;"
        " 2 17 100 5 tiny; 2 10 64 32 zeros"
    )
    _eager = """
heads, length, dk = k.shape
state = torch.zeros((heads, dk, v.shape[-1]), dtype=v.dtype, device=v.device)
o = torch.empty_like(v)
for t in range(length):
    key = k[:, t, :, None]
    state = state * torch.exp(g[:, t])[:, None, None]
    value = beta[:, t, None, None] * (v[:, t, None, :] - (key * state).sum(1, keepdim=True))
    state = state + key * value
    o[:, t] = (q[:, t, :, None] * state).sum(1)
return o * dk**-0.5
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        heads, length, dk, dv = case.dims.values()
        xp = sampler.xp
        q, k = (sampler.values((heads, length, dk), case.dtype, "uniform") for _ in range(2))
        k = k / xp.sqrt(xp.sum(k * k, axis=-1, keepdims=True) + 1e-6)
        beta = xp.abs(sampler.values((heads, length), case.dtype, "uniform")) * 0.5
        g = -0.1 * xp.abs(sampler.values((heads, length), case.dtype, "uniform"))
        return q, k, sampler.values((heads, length, dv), case.dtype), beta, g

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        q, k, v, beta, g = inputs
        return (self._run(xp, q, k, v, beta, g, -1.0) * case.dims["dk"] ** -0.5,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The same recurrence for the squares of all terms."""
        q, k, v, beta, g = inputs
        return (xp.sqrt(self._run(xp, q * q, k * k, v * v, beta * beta, 2.0 * g, 1.0) / case.dims["dk"]),)

    def _run(self, xp: Any, q: Any, k: Any, v: Any, beta: Any, g: Any, sign: float) -> Any:
        state = k[:, 0, :, None] * v[:, 0, None, :] * 0.0
        outputs = []
        for t in range(k.shape[1]):
            state = state * xp.exp(g[:, t])[:, None, None]
            seen = xp.matmul(k[:, t, None, :], state)
            state = state + k[:, t, :, None] * (beta[:, t, None, None] * (v[:, t, None, :] + sign * seen))
            outputs.append(xp.matmul(q[:, t, None, :], state)[:, 0])
        return xp.stack(outputs, 1)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2 * sum_error(2 * case.dims["dk"]),
            "two sums of dk terms for each token, off by sqrt(dk) * 2^-24 of their terms; what the state holds of them"
            " fades with it, which doubles them at most, and terms rounded to a 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count. A chunked form does not need fewer."""
        heads, length, dk, dv = case.dims.values()
        return heads * length * dk * dv


class GdnChunkFwdH(Chunked):
    name = "gdn_chunk_fwd_h"
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
    _eager = """
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
        """Draw w so small that the state stays bounded: a chunk subtracts at most about half of the state."""
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
            "sums of dk and of 64 terms in turn, off by the root of their length * 2^-24 of their terms; a chunk"
            " forgets about half of the state and of its errors, which doubles them at most, and terms rounded to a"
            " 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        heads, chunks, dk, dv = case.dims.values()
        return 2 * heads * max(chunks - 1, 0) * CHUNK * dk * dv


class GdnChunkFwdO(Chunked):
    name = "gdn_chunk_fwd_o"
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
    _eager = """
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
        """The root sum of squares of all terms."""
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
        """Half of the classical count, as for any matrix product. Half of the scores are not needed."""
        heads, chunks, dk, dv = case.dims.values()
        return heads * chunks * CHUNK * (dk * dv + CHUNK // 2 * (dk + dv))


class GdnRecomputeWU(Chunked):
    name = "gdn_recompute_w_u"
    summary = (
        "for each chunk of 64 tokens: w = a @ (beta * exp(g) * k) and u = a @ (beta * v), where a is the chunk's 64 *"
        " 64 matrix, which is zero above its diagonal"
    )
    textbook = 4
    inputs = (
        Array("k", "heads, 64 * chunks, dk"),
        Array("v", "heads, 64 * chunks, dv"),
        Array("beta", "heads, 64 * chunks"),
        Array("a", "heads, 64 * chunks, 64"),
        Array("g", "heads, 64 * chunks"),
    )
    outputs = (Array("w", "heads, 64 * chunks, dk"), Array("u", "heads, 64 * chunks, dv"))
    _eager = """
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


class LinearAttention(Staged):
    name = "linear_attention"
    summary = "o[t] = sum over s <= t of (q[t] . k[s]) * v[s], for each head; dk <= 128"
    textbook = 2
    inputs = (Array("q", "heads, length, dk"), Array("k", "heads, length, dk"), Array("v", "heads, length, dv"))
    outputs = (Array("o", "heads, length, dv"),)
    _draw = (3, 150, 128, 50)
    timed = {"gpu": cases("heads length dk dv: 32 2048 64 64; 512 200 32 64")}
    checks = cases(
        "heads length dk dv: 1 1 1 1; 2 9 5 3 large; 1 200 33 17 normal; 3 65 16 70 outliers; 1 70 128 40 normal;"
        " 2 130 20 5 tiny; 2 64 64 33 zeros"
    )
    _eager = """
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
        """Half of the classical count of the cheaper algorithm: a running state, or all pairs."""
        heads, length, dk, dv = case.dims.values()
        return heads * length * min(2 * dk * dv, (length + 1) * (dk + dv) // 2)


OPERATIONS = (
    ChunkCumsumGates(),
    DeltaRuleRecurrent(),
    GdnChunkFwdH(),
    GdnChunkFwdO(),
    GdnRecomputeWU(),
    LinearAttention(),
)
