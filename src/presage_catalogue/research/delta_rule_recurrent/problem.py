"""The gated delta rule, token by token."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import Staged, sum_error


def _case(heads: int, length: int, dk: int, dv: int, values: str = "uniform") -> Case:
    return Case({"heads": heads, "length": length, "dk": dk, "dv": dv}, values=values)


class DeltaRuleRecurrent(Staged):
    summary = (
        "for each head, token by token, from a state S of zeros (dk, dv): S = exp(g) * S; S = S + k^T (beta * (v - k S));"
        " o = q S / sqrt(dk); dk <= 128"
    )
    inputs = (
        Array("q", "heads, length, dk"),
        Array("k", "heads, length, dk"),
        Array("v", "heads, length, dv"),
        Array("beta", "heads, length"),
        Array("g", "heads, length"),
    )
    outputs = (Array("o", "heads, length, dv"),)
    timed = {"gpu": (_case(64, 256, 128, 128), _case(512, 96, 64, 64))}
    checks = (
        _case(1, 1, 1, 1),
        _case(2, 9, 5, 3, "large"),
        _case(1, 103, 33, 17, "normal"),
        _case(3, 20, 16, 70, "outliers"),
        _case(1, 33, 128, 40, "normal"),
        _case(2, 17, 100, 5, "tiny"),
        _case(2, 10, 64, 32, "zeros"),
    )
    compiles_whole = False
    eager = """
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
        """Half of the classical count; a chunked form needs no fewer."""
        heads, length, dk, dv = case.dims.values()
        return heads * length * dk * dv

    def textbook_flops(self, case: Case) -> int:
        return 7 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 3), rng.randint(1, 60), rng.randint(1, 128), rng.randint(1, 50), style)
