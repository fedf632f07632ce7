"""The triangle multiplicative update of a pair representation, with outgoing edges."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.layernorm_gate_project.problem import gated, layer_norm, sigmoid, weights
from presage_catalogue.research.staged import Staged, sum_error
from presage_catalogue.research.trimul_einsum.problem import contract


def _case(n: int, c: int, hidden: int, values: str = "uniform") -> Case:
    return Case({"n": n, "c": c, "hidden": hidden}, values=values)


class Trimul(Staged):
    summary = (
        "x = layernorm(z) with gamma, beta; sides = mask * sigmoid(x @ w_gate) * (x @ w_proj), of which the first hidden"
        " columns are left and the others right; s[i, j, h] = sum over k of left[i, k, h] * right[j, k, h];"
        " y = sigmoid(x @ w_out_gate) * (layernorm(s) @ w_out) with gamma_out, beta_out; both norms with 1e-5"
    )
    inputs = (
        Array("z", "n, n, c"),
        Array("mask", "n, n"),
        Array("gamma", "c"),
        Array("beta", "c"),
        Array("w_proj", "c, 2 * hidden"),
        Array("w_gate", "c, 2 * hidden"),
        Array("w_out_gate", "c, c"),
        Array("gamma_out", "hidden"),
        Array("beta_out", "hidden"),
        Array("w_out", "hidden, c"),
    )
    outputs = (Array("y", "n, n, c"),)
    timed = {"gpu": (_case(256, 64, 64), _case(128, 128, 128))}
    checks = (
        _case(1, 1, 1),
        _case(2, 9, 33, "large"),
        _case(5, 101, 17, "normal"),
        _case(9, 33, 128, "outliers"),
        _case(13, 16, 5, "tiny"),
        _case(21, 7, 12, "normal"),
        _case(6, 30, 31, "zeros"),
    )
    most_products = 2
    eager = """
x = torch.nn.functional.layer_norm(z, (z.shape[-1],), gamma, beta, 1e-5)
sides = mask[:, :, None] * torch.sigmoid(x @ w_gate) * (x @ w_proj)
left, right = sides.chunk(2, dim=-1)
s = torch.einsum("ikh,jkh->ijh", left, right)
s = torch.nn.functional.layer_norm(s, (s.shape[-1],), gamma_out, beta_out, 1e-5)
return torch.sigmoid(x @ w_out_gate) * (s @ w_out)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        n, c, hidden = case.dims.values()
        z, drawn = sampler.values((n, n, c), case.dtype), sampler.values((n, n), case.dtype, "uniform")
        mask = sampler.xp.astype(drawn > -1.2, drawn.dtype)
        first = weights(sampler, c, [2 * hidden, 2 * hidden, c], case.dtype)
        return (z, mask, *first, *weights(sampler, hidden, [c], case.dtype))

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._solve(xp, *inputs)[0],)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return (self._solve(xp, *inputs)[1],)

    def _solve(self, xp: Any, z: Any, mask: Any, gamma: Any, beta: Any, *rest: Any) -> tuple[Any, Any]:
        """The result, and the size of the terms that it is made of through all stages."""
        w_proj, w_gate, w_out_gate, gamma_out, beta_out, w_out = rest
        hidden = w_out.shape[0]
        x, size = layer_norm(xp, z, gamma, beta)
        sides, terms = (mask[:, :, None] * each for each in gated(xp, x, size, w_proj, w_gate))
        terms = (xp.abs(sides) + terms) ** 2
        s = contract(xp, sides[..., :hidden], sides[..., hidden:])
        s_size = xp.sqrt(contract(xp, terms[..., :hidden], terms[..., hidden:]))
        normal, normal_size = layer_norm(xp, s, gamma_out, beta_out, s_size)
        gate, value = sigmoid(xp, xp.matmul(x, w_out_gate)), xp.matmul(normal, w_out)
        in_gate = xp.sqrt(xp.matmul(size * size, w_out_gate * w_out_gate))
        in_value = xp.sqrt(xp.matmul(normal_size * normal_size, w_out * w_out))
        return gate * value, gate * in_value + gate * (1.0 - gate) * xp.abs(value) * in_gate

    def tolerance(self, case: Case) -> Tolerance:
        n, c, hidden = case.dims.values()
        return Tolerance(
            sum_error(2 * c + n + 2 * hidden),
            "the norms and products one after the other add up c, n and hidden terms, each sum off by the root of its"
            " length * 2^-24 of its terms; 16 covers any order and the worst of all elements, and terms rounded to a"
            " 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        n, c, hidden = case.dims.values()
        return n * n * (4 * c * hidden + n * hidden + c * c + hidden * c)

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 14), rng.randint(1, 80), rng.randint(1, 80), style)
