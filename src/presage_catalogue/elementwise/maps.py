"""Maps: operations that compute each element of their outputs from the same element of their inputs.

This module has the maps of one input; `fused.py` has those of several. Each entry of `OPERATIONS` gives the formula
three times: for the oracle, for kernels (see `formulas`; alternatives, possibly wrong, may follow) and for PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.formulas import Code
from presage_catalogue.operation import Facts, Formula, Operation

_SMALL, _LARGE = 24_000_000, 280_000_000
"""The approximate bytes of inputs and outputs of the two cases that are timed on a GPU."""


class Map(Operation):
    """outputs[i] = f(inputs[i])."""

    adds_up = False
    elementwise = True

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        formula: str,
        eager: str,
        /,
        *others: str,
        arrays: str = "x -> y",
        relative: float = 2e-6,
        reason: str = "a few roundings in float32, each of 6e-8, and elementary functions good to some 2e-7",
        positive: str = "",
        half: bool = False,
        **facts: Unpack[Facts],
    ) -> None:
        ins, outs = (names.split() for names in arrays.split("->"))
        facts.setdefault("tolerance", Tolerance(relative, reason, 2e-7 if half else 1e-30))
        facts.setdefault("draw", (20000,))
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, summary, **facts)
        self.inputs, self.outputs = (tuple(Array(each, "n") for each in names) for names in (ins, outs))
        self._code = Code(name, ins, outs, formula, others, half)
        self._positive, self._dtype = positive.split(), "float16" if half else "float32"
        if "timed" not in facts:
            self.timed, self.checks = self._timed(half), self._checks()

    def _timed(self, half: bool) -> dict[str, tuple[Case, ...]]:
        per_element = (2 if half else 4) * (len(self.inputs) + len(self.outputs))
        gpu = (self._case(_SMALL // per_element // 2 * 2 + 1), self._case(_LARGE // per_element // 1024 * 1024))
        return {"gpu": gpu} if half else {"cpu": (self._case(131072), self._case(500003)), "gpu": gpu}

    def _checks(self) -> tuple[Case, ...]:
        sizes, styles = (3, 31, 1025, 4095, 30011), self.draw_styles
        drawn = [self._case(n, styles[(i + 1) % len(styles)]) for i, n in enumerate(sizes)]
        return (self._case(1), *drawn, self._case(9000, styles[0]), self._case(777, "zeros"))

    def _case(self, n: int, values: str = "uniform") -> Case:
        return Case({"n": n}, dtype=self._dtype, values=values)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        drawn = super().make_inputs(case, sampler)
        positive = [array.name in self._positive for array in self.inputs]
        return tuple(sampler.xp.abs(x) + 1e-3 if above else x for x, above in zip(drawn, positive, strict=True))

    def code(self, suffix: str) -> Mapping[str, str]:
        return self._code.given(suffix)


_STEP = 0.2
_TERMS = 28


def erf(xp: ModuleType, x: Any) -> Any:
    """The error function, which the array API lacks, with an absolute error of 1e-15.

    It is the Fourier sine series 2/pi * (h*x + sum over n of exp(-(n*h)^2) / n * sin(2*n*h*x)) (Strecok, 1968), summed
    by Clenshaw's recurrence. The series has the period pi/h, so x is clamped to [-6, 6], beyond which erf is +-1.
    """
    x = xp.clip(x, -6.0, 6.0)
    angle = 2.0 * _STEP * x
    twice_cosine = 2.0 * xp.cos(angle)
    current, previous = xp.zeros_like(x), xp.zeros_like(x)
    for n in range(_TERMS, 0, -1):
        current, previous = math.exp(-((n * _STEP) ** 2)) / n + twice_cosine * current - previous, current
    return (_STEP * x + xp.sin(angle) * current) * (2.0 / math.pi)


def gelu(xp: ModuleType, x: Any) -> Any:
    return 0.5 * x * (1.0 + erf(xp, x * math.sqrt(0.5)))


def sigmoid(xp: ModuleType, x: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(-x))


def log1p(xp: ModuleType, x: Any) -> Any:
    return xp.log1p(x)


def _softplus(xp: ModuleType, x: Any) -> Any:
    return xp.maximum(x, 0.0 * x) + xp.log1p(xp.exp(-xp.abs(x)))


_EXPONENTIAL = "exp(v) in float32 is off by 2e-7 and by 9e-8 for each unit of v, whose rounding it magnifies"
_CANCELS = "a few roundings of 6e-8 each, in terms that may cancel, so that the error scales with them"

_SIN = (
    "k = floor(0.15915494 * x + 0.5); r = x - k * 6.28125 - k * 0.0019353072; s = r * r;"
    "p = 1.6059044e-10 - 7.6471637e-13 * s; p1 = p * s - 2.5052108e-08; p2 = p1 * s + 2.7557319e-06;"
    "p3 = p2 * s - 0.0001984127; p4 = p3 * s + 0.0083333333; p5 = p4 * s - 0.16666667; y = r + r * s * p5"
)
_QUOTIENT = (
    "s = z * z;"
    "p = 2.77068142495902e-08 - 2.72614225801306e-10 * s; p1 = p * s - 2.10102402082508e-06;"
    "p2 = p1 * s - 5.69250639462346e-05; p3 = p2 * s - 7.34990630326855e-04; p4 = p3 * s - 2.95459980854025e-03;"
    "p5 = p4 * s - 1.60960333262415e-02; q = -1.45660718464996e-05 * s - 2.13374055278905e-04;"
    "q1 = q * s - 1.68282697438203e-03; q2 = q1 * s - 7.37332916720468e-03; q3 = q2 * s - 1.42647390514189e-02;"
)
"""z * p5 / q3 approximates erf(z) for |z| <= 4. Beyond 4, erf is 1 in float32."""

OPERATIONS = (
    Map(
        "gelu",
        "y[i] = 0.5 * x[i] * (1 + erf(x[i] / sqrt(2))), the exact form and not the one with tanh",
        gelu,
        "c = 1.0 + erf(0.70710678 * x); y = 0.5 * x * c",
        "torch.nn.functional.gelu(x)",
        "y = x * normcdf(x)",
        # erf by Abramowitz and Stegun 7.1.26, and by a rational function.
        "a = abs(x); z = min(0.70710678 * a, 4.0); t = 1.0 / (1.0 + 0.3275911 * z); p = 1.061405429 * t - 1.453152027;"
        "p1 = p * t + 1.421413741; p2 = p1 * t - 0.284496736; p3 = p2 * t + 0.254829592;"
        "y = 0.5 * (x + a * (1.0 - p3 * t * exp(-z * z)))",
        f"a = abs(x); z = min(0.70710678 * a, 4.0); {_QUOTIENT} y = 0.5 * (x + a * z * p5 / q3)",
        flops=4,
        relative=1e-6,
        reason="a float32 erf is good to about 4e-7, and 1 + erf cancels for negative x, so the error scales with x"
        " and not with the result; the form with tanh is off by 5e-4",
        scale=lambda xp, x: xp.abs(x),
        timed={"cpu": cases("n: 262144; 1000003"), "gpu": cases("n: 8388608; 33554432")},
        checks=cases("n: 1; 3 large; 31 tiny; 1025 normal; 4095 outliers; 30011 large; 777 zeros"),
    ),
    Map(
        "silu",
        "y[i] = x[i] / (1 + exp(-x[i]))",
        lambda xp, x: x * sigmoid(xp, x),
        "e = exp(-x); y = x / (1.0 + e)",
        "torch.nn.functional.silu(x)",
        "y = 0.5 * x * (1.0 + tanh(0.5 * x))",
        "e = exp(x); y = x * e / (1.0 + e)",
        flops=4,
        scale=lambda xp, x: xp.abs(x),
    ),
    Map(
        "relu",
        "y[i] = max(x[i], 0)",
        lambda xp, x: xp.maximum(x, 0.0 * x),
        "y = max(x, 0.0)",
        "torch.relu(x)",
        "y = where(x > 0.0, x, 0.0)",
        "y = 0.5 * (x + abs(x))",
        flops=1,
        relative=2.5e-7,
        reason="nothing is rounded, or once by 6e-8",
    ),
    Map(
        "leaky_relu",
        "y[i] = x[i] where that is positive, else 0.01 * x[i]",
        lambda xp, x: xp.where(x > 0, x, 0.01 * x),
        "y = where(x > 0.0, x, 0.01 * x)",
        "torch.nn.functional.leaky_relu(x, 0.01)",
        "y = max(x, 0.01 * x)",
        "y = max(x, 0.0) + 0.01 * min(x, 0.0)",
        flops=1,
        relative=5e-7,
        reason="two roundings in float32, each of 6e-8",
    ),
    Map(
        "sigmoid",
        "y[i] = 1 / (1 + exp(-x[i]))",
        sigmoid,
        "e = exp(-x); y = 1.0 / (1.0 + e)",
        "torch.sigmoid(x)",
        "y = 0.5 + 0.5 * tanh(0.5 * x)",
        "e = exp(x); y = e / (1.0 + e)",
        flops=3,
        relative=1e-6,
        reason=_EXPONENTIAL,
        scale=lambda xp, x: sigmoid(xp, x) * (1.0 + xp.abs(x)),
    ),
    Map(
        "tanh",
        "y[i] = tanh(x[i])",
        lambda xp, x: xp.tanh(x),
        "y = tanh(x)",
        "torch.tanh(x)",
        "e = exp(2.0 * x); y = (e - 1.0) / (e + 1.0)",
        "e = exp(-2.0 * abs(x)); t = (1.0 - e) / (1.0 + e); y = where(x < 0.0, -t, t)",
        "z = min(max(x, -4.97), 4.97); s = z * z; p = z * (135135.0 + s * (17325.0 + s * (378.0 + s)));"
        "y = p / (135135.0 + s * (62370.0 + s * (3150.0 + s * 28.0)))",
        flops=5,
        reason="a tanh in float32 is good to 3e-7 of its value, if it does not cancel near zero",
    ),
    Map(
        "softplus",
        "y[i] = log(1 + exp(x[i])), without overflow",
        _softplus,
        "e = exp(-abs(x)); l = log1p(e); y = max(x, 0.0) + l",
        "torch.nn.functional.softplus(x)",
        "y = log1p(exp(x))",
        "e = exp(-abs(x)); y = max(x, 0.0) + log(1.0 + e)",
        flops=5,
        relative=1e-6,
        reason=_EXPONENTIAL,
        scale=lambda xp, x: _softplus(xp, x) * (1.0 + xp.abs(x)),
    ),
    Map(
        "mish",
        "y[i] = x[i] * tanh(log(1 + exp(x[i])))",
        lambda xp, x: x * xp.tanh(_softplus(xp, x)),
        "e = exp(min(x, 20.0)); d = e * (e + 2.0); y = x * d / (d + 2.0)",
        "torch.nn.functional.mish(x)",
        "y = x * tanh(log1p(exp(x)))",
        "e = exp(x); d = e * (e + 2.0); y = x * d / (d + 2.0)",
        flops=6,
        relative=1e-6,
        reason=_EXPONENTIAL,
        scale=lambda xp, x: xp.abs(x) * xp.tanh(_softplus(xp, x)) * (1.0 + xp.abs(x)),
    ),
    Map(
        "elu",
        "y[i] = x[i] where that is positive, else exp(x[i]) - 1",
        lambda xp, x: xp.where(x > 0, x, xp.expm1(x)),
        "y = where(x > 0.0, x, expm1(x))",
        "torch.nn.functional.elu(x)",
        "y = max(x, 0.0) + min(exp(x) - 1.0, 0.0)",
        "t = tanh(0.5 * min(x, 0.0)); y = max(x, 0.0) + 2.0 * t / (1.0 - t)",
        flops=3,
        reason="expm1 in float32 is good to 4e-7 of its value, if it does not cancel near zero",
    ),
    Map(
        "selu",
        "y[i] = 1.0507009873554805 * (x[i] where positive, else 1.6732632423543772 * (exp(x[i]) - 1))",
        lambda xp, x: 1.0507009873554805 * xp.where(x > 0, x, 1.6732632423543772 * xp.expm1(x)),
        "y = where(x > 0.0, 1.05070099 * x, 1.75809934 * expm1(x))",
        "torch.selu(x)",
        "y = 1.05070099 * (max(x, 0.0) + min(1.67326324 * (exp(x) - 1.0), 0.0))",
        "t = tanh(0.5 * min(x, 0.0)); y = 1.05070099 * max(x, 0.0) + 3.51619868 * t / (1.0 - t)",
        flops=4,
        reason="expm1 in float32 is good to 4e-7 of its value, if it does not cancel near zero",
    ),
    Map(
        "hardswish",
        "y[i] = x[i] * min(max(x[i] + 3, 0), 6) / 6",
        lambda xp, x: x * xp.clip(x + 3.0, 0.0, 6.0) / 6.0,
        "y = x * min(max(x + 3.0, 0.0), 6.0) / 6.0",
        "torch.nn.functional.hardswish(x)",
        "y = x * min(max(0.16666667 * x + 0.5, 0.0), 1.0)",
        "y = where(x > 3.0, x, where(x > -3.0, x * (x + 3.0) / 6.0, 0.0))",
        flops=5,
        relative=1e-6,
        reason=_CANCELS,
        scale=lambda xp, x: xp.abs(x),
    ),
    Map(
        "hardsigmoid",
        "y[i] = min(max(x[i] / 6 + 0.5, 0), 1)",
        lambda xp, x: xp.clip(x / 6.0 + 0.5, 0.0, 1.0),
        "y = min(max(x / 6.0 + 0.5, 0.0), 1.0)",
        "torch.nn.functional.hardsigmoid(x)",
        "y = min(max(x + 3.0, 0.0), 6.0) / 6.0",
        "y = min(max(0.16666667 * x + 0.5, 0.0), 1.0)",
        flops=4,
        relative=1e-6,
        reason=_CANCELS,
        scale=lambda xp, x: xp.clip(0.5 + xp.abs(x) / 6.0, 0.0, 1.0),
    ),
    Map(
        "softsign",
        "y[i] = x[i] / (1 + |x[i]|)",
        lambda xp, x: x / (1.0 + xp.abs(x)),
        "d = 1.0 + abs(x); y = x / d",
        "torch.nn.functional.softsign(x)",
        "t = 1.0 - 1.0 / (1.0 + abs(x)); y = where(x < 0.0, -t, t)",
        flops=3,
        relative=1e-6,
    ),
    Map(
        "exp",
        "y[i] = exp(x[i])",
        lambda xp, x: xp.exp(x),
        "y = exp(x)",
        "torch.exp(x)",
        "y = pow(2.7182817, x)",
        "r = 0.0078125 * x; a = 1.0 + r * (1.0 + r * (0.5 + r * (0.16666667 + r * 0.041666668))); b = a * a; c = b * b;"
        "d = c * c; e = d * d; f = e * e; g = f * f; y = g * g",
        flops=1,
        relative=1e-6,
        reason=_EXPONENTIAL,
        scale=lambda xp, x: xp.exp(x) * (1.0 + xp.abs(x)),
        draw_styles=("normal", "tiny", "outliers"),
    ),
    Map(
        "log1p",
        "y[i] = log(1 + x[i]), for x[i] >= 0.001",
        log1p,
        "y = log1p(x)",
        "torch.log1p(x)",
        "y = log(1.0 + x)",
        "s = x / (2.0 + x); q = s * s; y = 2.0 * s * (1.0 + q * (0.33333333 + q * (0.2 + q * 0.14285714)))",
        flops=2,
        reason="log1p in float32 is good to 3e-7 of its value, where log(1 + x) is off by 6e-8 / x",
        positive="x",
    ),
    Map(
        "rsqrt",
        "y[i] = 1 / sqrt(x[i]), for x[i] >= 0.001",
        lambda xp, x: 1.0 / xp.sqrt(x),
        "y = rsqrt(x)",
        "torch.rsqrt(x)",
        "y = 1.0 / sqrt(x)",
        "y = pow(x, -0.5)",
        "y = exp(-0.5 * log(x))",
        flops=2,
        relative=1e-6,
        reason="a root and a quotient in float32 are good to some 2e-7 each",
        positive="x",
    ),
    Map(
        "sin",
        "y[i] = sin(x[i])",
        lambda xp, x: xp.sin(x),
        "y = sin(x)",
        "torch.sin(x)",
        _SIN,
        "k = floor(0.15915494 * x + 0.5); r = x - k * 6.2831855; y = sin(r)",
        flops=1,
        relative=3e-6,
        reason="sin in float32 is good to 2e-7, and with its argument reduced in two steps to 2e-6 at 4000",
        scale=lambda xp, x: xp.clip(xp.abs(x), 0.0, 1.0),
    ),
    Map(
        "cube",
        "y[i] = x[i] ** 3",
        lambda xp, x: x * x * x,
        "s = x * x; y = s * x",
        "x * x * x",
        "y = pow(x, 3.0)",
        "l = log(abs(x)); t = exp(3.0 * l); y = where(x < 0.0, -t, t)",
        flops=2,
        relative=1e-6,
        reason="two roundings in float32, each of 6e-8, or a power good to some 5e-7",
    ),
    Map(
        "squared_relu",
        "y[i] = max(x[i], 0) ** 2",
        lambda xp, x: xp.maximum(x, 0.0 * x) ** 2,
        "r = max(x, 0.0); y = r * r",
        "torch.square(torch.relu(x))",
        "y = where(x > 0.0, x * x, 0.0)",
        "y = 0.5 * (x * x + x * abs(x))",
        flops=2,
        relative=5e-7,
        reason="two roundings in float32, each of 6e-8",
    ),
    Map(
        "erf",
        "y[i] = erf(x[i])",
        lambda xp, x: erf(xp, x),
        "y = erf(x)",
        "torch.erf(x)",
        f"z = min(max(x, -4.0), 4.0); {_QUOTIENT} y = z * p5 / q3",
        "y = 1.0 - erfc(x)",
        "y = tanh(1.1283792 * x * (1.0 + 0.0894 * x * x))",
        flops=8,
        reason="an erf in float32 is good to 4e-7 of its value, if it does not cancel near zero",
    ),
    Map(
        "gelu_tanh",
        "y[i] = 0.5 * x[i] * (1 + tanh(sqrt(2 / pi) * (x[i] + 0.044715 * x[i] ** 3)))",
        lambda xp, x: 0.5 * x * (1.0 + xp.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))),
        "u = 0.7978845608 * (x + 0.044715 * x * x * x); t = tanh(u); y = 0.5 * x * (1.0 + t)",
        "torch.nn.functional.gelu(x, approximate='tanh')",
        "u = 1.5957691216 * (x + 0.044715 * x * x * x); y = x / (1.0 + exp(-u))",
        "u = 1.5957691216 * (x + 0.044715 * x * x * x); e = exp(u); y = x * e / (1.0 + e)",
        "y = 0.5 * x * (1.0 + erf(0.70710678 * x))",
        flops=9,
        scale=lambda xp, x: xp.abs(x),
    ),
    Map(
        "clamp",
        "y[i] = min(max(x[i], -0.6), 0.8)",
        lambda xp, x: xp.clip(x, -0.6, 0.8),
        "y = min(max(x, -0.6), 0.8)",
        "torch.clamp(x, -0.6, 0.8)",
        "y = where(x < -0.6, -0.6, where(x > 0.8, 0.8, x))",
        "y = 0.5 * (abs(x + 0.6) - abs(x - 0.8) + 0.2)",
        flops=2,
        relative=2.5e-7,
        reason="nothing is rounded but the bounds, by 6e-8",
    ),
    Map(
        "silu_half",
        "y[i] = x[i] / (1 + exp(-x[i])), with x and y in float16",
        lambda xp, x: x * sigmoid(xp, x),
        "e = exp(-x); d = 1.0 + e; y = x / d",
        "torch.nn.functional.silu(x)",
        "y = 0.5 * x * (1.0 + tanh(0.5 * x))",
        flops=4,
        relative=5.5e-4,
        reason="float16 rounds by 4.9e-4; a second rounding on the way is too many",
        half=True,
        draw_styles=("normal", "tiny", "outliers"),
    ),
)
