"""Batch normalisation: scales each channel by statistics of the batch, either given (inference) or computed from the
batch itself (training)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Operation

_EPS = 1e-5


class BatchNormInference(Operation):
    name = "batchnorm_inference"
    _eager = "torch.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-5)"
    summary = "y[b, c, i] = (x[b, c, i] - mean[c]) / sqrt(variance[c] + 1e-5) * weight[c] + bias[c]"
    _tolerance = Tolerance(
        2e-6,
        "some eight roundings in float32, each of 6e-8 of the terms, and a reciprocal root good to 2e-7;"
        " a scale rounded to 11 bits is off by up to 5e-4",
    )
    _flops = 2
    _draw = (4, 40, 600)
    inputs = (
        Array("x", "batch, channels, size"),
        Array("mean", "channels"),
        Array("variance", "channels"),
        Array("weight", "channels"),
        Array("bias", "channels"),
    )
    outputs = (Array("y", "batch, channels, size"),)
    timed = {
        "gpu": cases("batch channels size: 32 64 12544; 256 2048 49"),
    }
    checks = cases(
        "batch channels size: 1 1 1 large; 3 5 2; 2 2 4097 normal; 4 17 251 large; 1 33 1000 tiny; 5 131 49 outliers;"
        " 2 3 36 equal; 3 3 516 zeros"
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        channels = (case.dims["channels"],)
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        mean, spread, weight, bias = (sampler.values(channels, case.dtype, "uniform") for _ in range(4))
        return x, mean, spread * spread + 0.01, weight, bias

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, mean, variance, weight, bias = (p if p.ndim == 3 else p[None, :, None] for p in inputs)
        return ((x - mean) / xp.sqrt(variance + _EPS) * weight + bias,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, mean, variance, weight, bias = (p if p.ndim == 3 else p[None, :, None] for p in inputs)
        return ((xp.abs(x) + xp.abs(mean)) / xp.sqrt(variance + _EPS) * xp.abs(weight) + xp.abs(bias),)


class BatchNormTraining(Operation):
    name = "batchnorm_training"
    _eager = """
variance, mean = torch.var_mean(x, dim=0, correction=0)
return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-5), mean, variance
"""
    summary = (
        "mean[c] and variance[c] over the rows of x, and"
        " y[r, c] = (x[r, c] - mean[c]) / sqrt(variance[c] + 1e-5) * weight[c] + bias[c]"
    )
    _flops = 5
    _draw = ((40, 2000), 130)
    inputs = (Array("x", "rows, cols"), Array("weight", "cols"), Array("bias", "cols"))
    outputs = (Array("y", "rows, cols"), Array("mean", "cols"), Array("variance", "cols"))
    timed = {"gpu": cases("rows cols: 32768 1024; 2048 8192")}
    checks = cases(
        "rows cols: 1 1 large; 2 5; 4099 3 normal; 251 67 large; 1000 36 tiny; 133 260 outliers; 35 6 equal;"
        " 129 130 zeros"
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, cols = sampler.xp, (case.dims["cols"],)
        x = sampler.values(self.shape(self.inputs[0], case), case.dtype)
        # Every other column is far from zero relative to its spread.
        odd = xp.arange(cols[0], device=x.device)[None, :] % 2 == 1
        x = xp.astype(x + xp.where(odd, 64.0, 0.0) * xp.mean(xp.abs(x)), xp.float32)
        return x, sampler.values(cols, case.dtype, "uniform"), sampler.values(cols, case.dtype, "uniform")

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight, bias = inputs
        mean = xp.mean(x, axis=0)
        variance = xp.mean((x - mean) ** 2, axis=0)
        return (x - mean) / xp.sqrt(variance + _EPS) * weight + bias, mean, variance

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        # Include the mean's rounding error: it dominates when the elements of a column are nearly equal.
        x, weight, bias = inputs
        _, mean, variance = expected
        scale, size = 1.0 / xp.sqrt(variance + _EPS), xp.abs(mean)
        squares = ((x - mean) * scale) ** 2 + (0.2 * mean * scale) ** 2 + 1.0
        spread = xp.sqrt(variance)
        of_variance = variance + 0.05 * size * spread + 1e-6 * mean**2
        return xp.sqrt(squares * weight**2 + bias**2), size + spread, of_variance

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            (64.0 + 8.0 * case.dims["rows"] ** 0.5) * 2.0**-24,
            "one by one in float32, a column's sums are off by about 0.3 * sqrt(rows) * 2^-24, here with room for the"
            " worst of many columns; inputs of 11 bits are off by up to 8000 * 2^-24",
        )


OPERATIONS = (BatchNormInference(), BatchNormTraining())
