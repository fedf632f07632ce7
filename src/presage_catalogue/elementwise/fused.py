"""Maps of several inputs, and chains of elementwise steps that benefit from fusion. The entries are as in `maps`."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from presage.problems.base import cases
from presage_catalogue.elementwise.maps import Map, erf, gelu, sigmoid

_ROUNDINGS = "a few roundings in float32, each of 6e-8"
_CANCELS = "a few roundings of 6e-8 each, in terms that may cancel, so that the error scales with them"


def _gelu_slope(xp: ModuleType, x: Any) -> Any:
    return 0.5 * (1.0 + erf(xp, x * math.sqrt(0.5))) + x * xp.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _huber(xp: ModuleType, p: Any, t: Any) -> Any:
    distance = xp.abs(p - t)
    return xp.where(distance < 1.0, 0.5 * distance * distance, distance - 0.5)


def _adam(xp: ModuleType, p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
    new_m = 0.9 * m + 0.1 * g
    new_v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * new_m / (xp.sqrt(new_v) + 1e-8), new_m, new_v


def _adam_scale(xp: ModuleType, p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
    first, second = 0.9 * xp.abs(m) + 0.1 * xp.abs(g), 0.999 * v + 0.001 * g * g
    return xp.abs(p) + 0.001 * first / xp.sqrt(second), first, second


def _momentum(xp: ModuleType, p: Any, g: Any, m: Any) -> tuple[Any, ...]:
    new_m = 0.9 * m + g
    return p - 0.01 * new_m, new_m


def _momentum_scale(xp: ModuleType, p: Any, g: Any, m: Any) -> tuple[Any, ...]:
    step = 0.9 * xp.abs(m) + xp.abs(g)
    return xp.abs(p) + 0.01 * step, step


OPERATIONS = (
    Map(
        "vector_add",
        "z[i] = x[i] + y[i]",
        lambda xp, x, y: x + y,
        "z = x + y",
        "x + y",
        flops=1,
        arrays="x y -> z",
        relative=2.5e-7,
        reason="one float32 addition is right to 2^-24 = 6e-8, even where the terms cancel",
        timed={"cpu": cases("n: 524288; 1300003"), "gpu": cases("n: 4194304; 16777216; 25000003")},
        checks=cases("n: 1; 2 large; 15 tiny; 1023 outliers; 4099 normal; 65537 large; 100003 zeros"),
        draw=(50000,),
    ),
    Map(
        "mul",
        "y[i] = a[i] * b[i]",
        lambda xp, a, b: a * b,
        "y = a * b",
        "a * b",
        flops=1,
        arrays="a b -> y",
        relative=2.5e-7,
        reason="one rounding in float32, of 6e-8",
    ),
    Map(
        "divide",
        "y[i] = a[i] / b[i], for b[i] >= 0.001",
        lambda xp, a, b: a / b,
        "y = a / b",
        "a / b",
        "r = 1.0 / b; y = a * r",
        "y = a * exp(-log(b))",
        flops=1,
        arrays="a b -> y",
        relative=6e-7,
        reason="a quotient by a reciprocal in float32 is good to 3e-7",
        positive="b",
    ),
    Map(
        "maximum",
        "y[i] = max(a[i], b[i])",
        lambda xp, a, b: xp.maximum(a, b),
        "y = max(a, b)",
        "torch.maximum(a, b)",
        "y = where(a > b, a, b)",
        "y = 0.5 * (a + b + abs(a - b))",
        flops=1,
        arrays="a b -> y",
        relative=2.5e-7,
        reason="nothing is rounded",
    ),
    Map(
        "squared_difference",
        "y[i] = (a[i] - b[i]) ** 2",
        lambda xp, a, b: (a - b) * (a - b),
        "d = a - b; y = d * d",
        "(a - b) ** 2",
        "y = a * a - 2.0 * a * b + b * b",
        "y = pow(abs(a - b), 2.0)",
        flops=2,
        arrays="a b -> y",
        relative=5e-7,
        reason="two roundings in float32, each of 6e-8, the first of them squared",
    ),
    Map(
        "hypot",
        "y[i] = sqrt(a[i] ** 2 + b[i] ** 2)",
        lambda xp, a, b: xp.sqrt(a * a + b * b),
        "s = a * a + b * b; y = sqrt(s)",
        "torch.hypot(a, b)",
        "y = hypot(a, b)",
        "u = max(abs(a), abs(b)); r = min(abs(a), abs(b)) / max(u, 1e-30); y = u * sqrt(1.0 + r * r)",
        "u = max(abs(a), abs(b)); r = min(abs(a), abs(b)) / u; y = u * sqrt(1.0 + r * r)",
        flops=4,
        arrays="a b -> y",
        relative=1e-6,
        reason=f"{_ROUNDINGS}, and a root good to 2e-7",
    ),
    Map(
        "swiglu",
        "y[i] = a[i] / (1 + exp(-a[i])) * b[i]",
        lambda xp, a, b: a * sigmoid(xp, a) * b,
        "e = exp(-a); s = a / (1.0 + e); y = s * b",
        "torch.nn.functional.silu(a) * b",
        "y = 0.5 * a * (1.0 + tanh(0.5 * a)) * b",
        "e = exp(a); y = a * e / (1.0 + e) * b",
        flops=5,
        arrays="a b -> y",
        scale=lambda xp, a, b: xp.abs(a * b),
    ),
    Map(
        "geglu",
        "y[i] = 0.5 * a[i] * (1 + erf(a[i] / sqrt(2))) * b[i]",
        lambda xp, a, b: gelu(xp, a) * b,
        "c = 1.0 + erf(0.70710678 * a); y = 0.5 * a * c * b",
        "torch.nn.functional.gelu(a) * b",
        "y = a * normcdf(a) * b",
        "u = 1.5957691216 * (a + 0.044715 * a * a * a); y = a / (1.0 + exp(-u)) * b",
        flops=6,
        arrays="a b -> y",
        scale=lambda xp, a, b: xp.abs(a * b),
    ),
    Map(
        "silu_backward",
        "y[i] = g[i] * s * (1 + x[i] * (1 - s)), where s = 1 / (1 + exp(-x[i]))",
        lambda xp, g, x: g * sigmoid(xp, x) * (1.0 + x * (1.0 - sigmoid(xp, x))),
        "e = exp(-x); s = 1.0 / (1.0 + e); y = g * s * (1.0 + x * (1.0 - s))",
        "torch.ops.aten.silu_backward(g, x)",
        "s = 0.5 + 0.5 * tanh(0.5 * x); y = g * s * (1.0 + x * (1.0 - s))",
        "e = exp(-x); y = g * (1.0 + e + x * e) / ((1.0 + e) * (1.0 + e))",
        flops=8,
        arrays="g x -> y",
        reason=_CANCELS,
        scale=lambda xp, g, x: xp.abs(g) * (1.0 + xp.abs(x)),
    ),
    Map(
        "gelu_backward",
        "y[i] = g[i] * (c + x[i] * d), where c and d are the normal distribution's function and density at x[i]",
        lambda xp, g, x: g * _gelu_slope(xp, x),
        "c = 0.5 + 0.5 * erf(0.70710678 * x); d = 0.39894228 * exp(-0.5 * x * x); y = g * (c + x * d)",
        "torch.ops.aten.gelu_backward(g, x)",
        "y = g * (normcdf(x) + 0.39894228 * x * exp(-0.5 * x * x))",
        "u = 0.7978845608 * (x + 0.044715 * x * x * x); t = tanh(u);"
        "y = g * (0.5 + 0.5 * t + 0.5 * x * (1.0 - t * t) * (0.7978845608 + 0.1070322244 * x * x))",
        flops=12,
        arrays="g x -> y",
        reason=_CANCELS,
        scale=lambda xp, g, x: xp.abs(g),
    ),
    Map(
        "tanh_backward",
        "y[i] = g[i] * (1 - t[i] ** 2), where t = tanh(x) of the forward pass",
        lambda xp, g, t: g * (1.0 - t * t),
        "d = 1.0 - t * t; y = g * d",
        "torch.ops.aten.tanh_backward(g, t)",
        "y = g - g * t * t",
        "y = g * (1.0 - t) * (1.0 + t)",
        flops=3,
        arrays="g t -> y",
        relative=1e-6,
        reason=_CANCELS,
        scale=lambda xp, g, t: xp.abs(g) * (1.0 + t * t),
    ),
    Map(
        "addcmul",
        "y[i] = a[i] + 0.5 * b[i] * c[i]",
        lambda xp, a, b, c: a + 0.5 * b * c,
        "t = b * c; y = a + 0.5 * t",
        "torch.addcmul(a, b, c, value=0.5)",
        flops=3,
        arrays="a b c -> y",
        relative=5e-7,
        reason=_CANCELS,
        scale=lambda xp, a, b, c: xp.abs(a) + xp.abs(0.5 * b * c),
    ),
    Map(
        "lerp",
        "y[i] = a[i] + w[i] * (b[i] - a[i])",
        lambda xp, a, b, w: a + w * (b - a),
        "d = b - a; y = a + w * d",
        "torch.lerp(a, b, w)",
        "y = (1.0 - w) * a + w * b",
        "y = where(w < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w))",
        flops=3,
        arrays="a b w -> y",
        relative=1e-6,
        reason=_CANCELS,
        scale=lambda xp, a, b, w: (xp.abs(a) + xp.abs(b)) * (1.0 + xp.abs(w)),
    ),
    Map(
        "select",
        "y[i] = a[i] where c[i] is positive, else b[i]",
        lambda xp, c, a, b: xp.where(c > 0, a, b),
        "y = where(c > 0.0, a, b)",
        "torch.where(c > 0, a, b)",
        "u = 1.0 / (1.0 + exp(-1000000.0 * c)); y = u * a + (1.0 - u) * b",
        flops=1,
        arrays="c a b -> y",
        relative=2.5e-7,
        reason="nothing is rounded",
    ),
    Map(
        "add_relu",
        "y[i] = max(a[i] + b[i], 0)",
        lambda xp, a, b: xp.maximum(a + b, 0.0 * a),
        "s = a + b; y = max(s, 0.0)",
        "torch.relu(a + b)",
        "y = where(a > -b, a + b, 0.0)",
        "y = 0.5 * (a + b + abs(a + b))",
        flops=2,
        arrays="a b -> y",
        relative=2.5e-7,
        reason="one rounding in float32, of 6e-8",
    ),
    Map(
        "add_gelu_scale",
        "y[i] = 1.7 * gelu(a[i] + b[i]), with the exact gelu",
        lambda xp, a, b: 1.7 * gelu(xp, a + b),
        "s = a + b; c = 1.0 + erf(0.70710678 * s); g = 0.5 * s * c; y = 1.7 * g",
        "1.7 * torch.nn.functional.gelu(a + b)",
        "s = a + b; y = 1.7 * s * normcdf(s)",
        "s = a + b; u = 1.5957691216 * (s + 0.044715 * s * s * s); y = 1.7 * s / (1.0 + exp(-u))",
        flops=6,
        arrays="a b -> y",
        scale=lambda xp, a, b: 1.7 * xp.abs(a + b),
    ),
    Map(
        "residual_gate",
        "y[i] = x[i] + g[i] * silu(x[i] + h[i])",
        lambda xp, x, h, g: x + g * (x + h) * sigmoid(xp, x + h),
        "s = x + h; e = exp(-s); a = s / (1.0 + e); t = g * a; y = x + t",
        "x + g * torch.nn.functional.silu(x + h)",
        "s = x + h; y = x + 0.5 * g * s * (1.0 + tanh(0.5 * s))",
        "s = x + h; e = exp(s); y = x + g * s * e / (1.0 + e)",
        flops=7,
        arrays="x h g -> y",
        scale=lambda xp, x, h, g: xp.abs(x) + xp.abs(g * (x + h)),
    ),
    Map(
        "huber",
        "y[i] = 0.5 * d ** 2 where d = |p[i] - t[i]| is below 1, else d - 0.5",
        _huber,
        "d = abs(p - t); q = 0.5 * d * d; y = where(d < 1.0, q, d - 0.5)",
        "torch.nn.functional.smooth_l1_loss(p, t, reduction='none')",
        "d = abs(p - t); m = min(d, 1.0); y = m * (d - 0.5 * m)",
        "y = sqrt(1.0 + (p - t) * (p - t)) - 1.0",
        flops=4,
        arrays="p t -> y",
        relative=1e-6,
        reason=_ROUNDINGS,
    ),
    Map(
        "sgd_momentum",
        "m' = 0.9 * m + g; p' = p - 0.01 * m'",
        _momentum,
        "new_m = 0.9 * m + g; new_p = p - 0.01 * new_m",
        "(p - 0.01 * (0.9 * m + g), 0.9 * m + g)",
        "new_m = 0.9 * m + g; new_p = p - 0.009 * m - 0.01 * g",
        flops=4,
        arrays="p g m -> new_p new_m",
        relative=5e-7,
        reason=_CANCELS,
        scale=_momentum_scale,
    ),
    Map(
        "adam_step",
        "m' = 0.9 m + 0.1 g; v' = 0.999 v + 0.001 g^2; p' = p - 0.001 m' / (sqrt(v') + 1e-8), for v >= 0.001",
        _adam,
        "new_m = 0.9 * m + 0.1 * g; new_v = 0.999 * v + 0.001 * g * g; r = sqrt(new_v) + 1e-08;"
        "new_p = p - 0.001 * new_m / r",
        "(p - 0.001 * (m_ := 0.9 * m + 0.1 * g) / (torch.sqrt(v_ := 0.999 * v + 0.001 * g * g) + 1e-8), m_, v_)",
        "new_m = m + 0.1 * (g - m); new_v = v + 0.001 * (g * g - v); new_p = p - 0.001 * new_m * rsqrt(new_v)",
        "new_m = 0.9 * m + 0.1 * g; new_v = 0.999 * v + 0.001 * g * g; new_p = p - 0.001 * new_m / sqrt(v)",
        flops=12,
        arrays="p g m v -> new_p new_m new_v",
        relative=1e-6,
        reason=_CANCELS,
        scale=_adam_scale,
        positive="v",
    ),
    Map(
        "swiglu_half",
        "y[i] = a[i] / (1 + exp(-a[i])) * b[i], with all of them in float16",
        lambda xp, a, b: a * sigmoid(xp, a) * b,
        "e = exp(-a); d = 1.0 + e; s = a / d; y = s * b",
        "torch.nn.functional.silu(a) * b",
        "y = 0.5 * a * (1.0 + tanh(0.5 * a)) * b",
        flops=5,
        arrays="a b -> y",
        relative=1.1e-3,
        reason="float16 rounds by 4.9e-4, the product and perhaps the factor before it",
        half=True,
        draw_styles=("normal", "tiny", "uniform"),
    ),
)
