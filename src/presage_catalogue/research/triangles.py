"""Triangle multiplicative updates: the whole operation and its stages."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.maps import sigmoid
from presage_catalogue.research.staged import Staged, sum_error

EPSILON = 1e-5


def weights(sampler: Sampler, c: int, widths: list[int], dtype: str) -> list[Any]:
    """Draw a layer norm's gamma and beta for c columns, and matrices that preserve the magnitude of their inputs."""
    gamma = 1.0 + 0.2 * sampler.values((c,), dtype, "uniform")
    beta = 0.1 * sampler.values((c,), dtype, "uniform")
    return [gamma, beta, *(sampler.values((c, width), dtype, "uniform") * c**-0.5 for width in widths)]


def layer_norm(xp: Any, x: Any, gamma: Any, beta: Any, size: Any = None) -> tuple[Any, Any]:
    """Return the layer norm over the last axis, and the magnitude of the terms of its elements. `size` is the magnitude
    of the terms of x, by default that of x itself."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    scale = gamma / xp.sqrt(xp.mean((x - mean) ** 2, axis=-1, keepdims=True) + EPSILON)
    terms = xp.abs(x) if size is None else size
    return (x - mean) * scale + beta, xp.abs(scale) * (terms + xp.abs(mean)) + xp.abs(beta)


def gated(xp: Any, n: Any, size: Any, w_proj: Any, w_gate: Any) -> tuple[Any, Any]:
    """Return sigmoid(n @ w_gate) * (n @ w_proj), and the magnitude of its terms. `size`: the magnitude of n's terms."""
    gate, value = sigmoid(xp, xp.matmul(n, w_gate)), xp.matmul(n, w_proj)
    in_gate = xp.sqrt(xp.matmul(size * size, w_gate * w_gate))
    in_value = xp.sqrt(xp.matmul(size * size, w_proj * w_proj))
    return gate * value, gate * in_value + gate * (1.0 - gate) * xp.abs(value) * in_gate


def contract(xp: Any, left: Any, right: Any) -> Any:
    """Compute the sums over k as one matrix product for each h."""
    return xp.permute_dims(xp.matmul(xp.permute_dims(left, (2, 0, 1)), xp.permute_dims(right, (2, 1, 0))), (1, 2, 0))


class LayernormGateProject(Staged):
    name = "layernorm_gate_project"
    summary = (
        "y = mask[r] * sigmoid(n @ w_gate) * (n @ w_proj), n the layer norm of x's rows: (x - mean) / sqrt(var + 1e-5)"
        " * gamma + beta, with the variance's mean over all c columns"
    )
    textbook = 2
    inputs = (
        Array("x", "rows, c"),
        Array("mask", "rows"),
        Array("gamma", "c"),
        Array("beta", "c"),
        Array("w_proj", "c, hidden"),
        Array("w_gate", "c, hidden"),
    )
    outputs = (Array("y", "rows, hidden"),)
    _draw = (140, 128, 140)
    timed = {"gpu": cases("rows c hidden: 65536 128 128; 147456 48 96")}
    checks = cases(
        "rows c hidden: 1 1 1; 3 33 5 large; 131 17 40 normal; 70 128 65 outliers; 37 100 129 tiny; 19 64 32 normal;"
        " 50 31 7 zeros"
    )
    most_products = 2
    _eager = """
n = torch.nn.functional.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5)
return mask[:, None] * torch.sigmoid(n @ w_gate) * (n @ w_proj)
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        rows, c = case.dims["rows"], case.dims["c"]
        x, drawn = sampler.values((rows, c), case.dtype), sampler.values((rows,), case.dtype, "uniform")
        mask = sampler.xp.astype(drawn > -1.2, drawn.dtype)
        return (x, mask, *weights(sampler, c, [case.dims["hidden"]] * 2, case.dtype))

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, mask, gamma, beta, w_proj, w_gate = inputs
        n, _ = layer_norm(xp, x, gamma, beta)
        return (mask[:, None] * sigmoid(xp, xp.matmul(n, w_gate)) * xp.matmul(n, w_proj),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, mask, gamma, beta, w_proj, w_gate = inputs
        n, size = layer_norm(xp, x, gamma, beta)
        return (mask[:, None] * gated(xp, n, size, w_proj, w_gate)[1],)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(2 * case.dims["c"]),
            "the norm's two sums and the products' sums of c terms are each off by some sqrt(c) * 2^-24 of their terms;"
            " 16 covers any order and the worst of all elements, and terms rounded to a 10-bit mantissa do not pass",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        return 2 * case.dims["rows"] * case.dims["c"] * case.dims["hidden"]


class Trimul(Staged):
    name = "trimul"
    summary = (
        "x = layernorm(z) with gamma, beta; sides = mask * sigmoid(x @ w_gate) * (x @ w_proj), of which the first"
        " hidden columns are left and the others right; s[i, j, h] = sum over k of left[i, k, h] * right[j, k, h];"
        " y = sigmoid(x @ w_out_gate) * (layernorm(s) @ w_out) with gamma_out, beta_out; both norms with 1e-5"
    )
    textbook = 2
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
    _draw = (14, 80, 80)
    timed = {"gpu": cases("n c hidden: 256 64 64; 128 128 128")}
    checks = cases(
        "n c hidden: 1 1 1; 2 9 33 large; 5 101 17 normal; 9 33 128 outliers; 13 16 5 tiny; 21 7 12 normal;"
        " 6 30 31 zeros"
    )
    most_products = 2
    _eager = """
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
        """Return the result, and the magnitude of its terms, propagated through all stages."""
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


class TrimulEinsum(Staged):
    name = "trimul_einsum"
    summary = "y[i, j, h] = sum over k of left[i, k, h] * right[j, k, h]; h is innermost in memory"
    textbook = 2
    inputs = (Array("left", "n, n, hidden"), Array("right", "n, n, hidden"))
    outputs = (Array("y", "n, n, hidden"),)
    _draw = (24, 60)
    timed = {"gpu": cases("n hidden: 256 128; 400 40")}
    # The `equal` case is short: the rounding errors of equal terms add up beyond the tolerance's random walk.
    checks = cases(
        "n hidden: 1 1; 3 129 large; 17 5 normal; 18 33 outliers; 29 7 tiny; 70 2 normal; 9 40 equal; 12 16 zeros"
    )
    _eager = 'return torch.einsum("ikh,jkh->ijh", left, right).contiguous()'

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (contract(xp, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        left, right = inputs
        return (xp.sqrt(contract(xp, left * left, right * right)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(case.dims["n"]),
            "n roundings of 2^-24 in a running sum grow like sqrt(n); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        return case.dims["n"] ** 3 * case.dims["hidden"]


OPERATIONS = (LayernormGateProject(), Trimul(), TrimulEinsum())
