"""The first stage of a triangle multiplicative update: layer norm, projection, gate and mask."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import Staged, sum_error

EPSILON = 1e-5


def _case(rows: int, c: int, hidden: int, values: str = "uniform") -> Case:
    return Case({"rows": rows, "c": c, "hidden": hidden}, values=values)


class LayernormGateProject(Staged):
    summary = (
        "y = mask[r] * sigmoid(n @ w_gate) * (n @ w_proj), n the layer norm of x's rows: (x - mean) / sqrt(var + 1e-5) *"
        " gamma + beta, with the variance's mean over all c columns"
    )
    inputs = (
        Array("x", "rows, c"),
        Array("mask", "rows"),
        Array("gamma", "c"),
        Array("beta", "c"),
        Array("w_proj", "c, hidden"),
        Array("w_gate", "c, hidden"),
    )
    outputs = (Array("y", "rows, hidden"),)
    timed = {"gpu": (_case(65536, 128, 128), _case(147456, 48, 96))}
    checks = (
        _case(1, 1, 1),
        _case(3, 33, 5, "large"),
        _case(131, 17, 40, "normal"),
        _case(70, 128, 65, "outliers"),
        _case(37, 100, 129, "tiny"),
        _case(19, 64, 32, "normal"),
        _case(50, 31, 7, "zeros"),
    )
    most_products = 2
    eager = """
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

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 140), rng.randint(1, 128), rng.randint(1, 140), style)


def weights(sampler: Sampler, c: int, widths: list[int], dtype: str) -> list[Any]:
    """A layer norm's gamma and beta for c columns, and matrices that keep the size of what they multiply."""
    gamma = 1.0 + 0.2 * sampler.values((c,), dtype, "uniform")
    beta = 0.1 * sampler.values((c,), dtype, "uniform")
    return [gamma, beta, *(sampler.values((c, width), dtype, "uniform") * c**-0.5 for width in widths)]


def sigmoid(xp: Any, x: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(-x))


def layer_norm(xp: Any, x: Any, gamma: Any, beta: Any, size: Any = None) -> tuple[Any, Any]:
    """The layer norm over the last axis, and the size of the terms that its elements are made of; `size` is that of
    x's own terms."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    scale = gamma / xp.sqrt(xp.mean((x - mean) ** 2, axis=-1, keepdims=True) + EPSILON)
    terms = xp.abs(x) if size is None else size
    return (x - mean) * scale + beta, xp.abs(scale) * (terms + xp.abs(mean)) + xp.abs(beta)


def gated(xp: Any, n: Any, size: Any, w_proj: Any, w_gate: Any) -> tuple[Any, Any]:
    """sigmoid(n @ w_gate) * (n @ w_proj), and the size of its terms where n's have this size."""
    gate, value = sigmoid(xp, xp.matmul(n, w_gate)), xp.matmul(n, w_proj)
    in_gate = xp.sqrt(xp.matmul(size * size, w_gate * w_gate))
    in_value = xp.sqrt(xp.matmul(size * size, w_proj * w_proj))
    return gate * value, gate * in_value + gate * (1.0 - gate) * xp.abs(value) * in_gate
