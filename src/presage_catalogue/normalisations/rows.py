"""Row normalisations: compute statistics of each row, then map the row's elements with them.

The statistics run over a row: the last axis of a matrix, or the elements of one channel (or group of channels) of one
image. Each entry of `OPERATIONS` gives the oracle, the statistics, the PyTorch code, and the expression of each output
element in C (`emit`) and in Triton (`tile_emit`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.normalisations.statistics import BACKWARD, LENGTH, MOMENTS, ROOT_MEAN_SQUARE, Statistics
from presage_catalogue.operation import Facts, Formula, Limit, Operation, indented, several

_UNIT = 2.0**-24


@dataclass(frozen=True)
class Layout:
    """The position of rows in the arrays, the parameter that belongs to an element, and the sizes of drawn cases."""

    dims: tuple[str, ...]
    shape: str
    params: str
    rows: str
    cols: str
    draw: Sequence[Limit] | Callable[[random.Random], Sequence[int]]
    channels: tuple[str, str, str] | None = None
    """C expressions for period, step and size: parameter (row % period) * step + column / size belongs to an element.
    None if the parameter's index is the column."""

    parameters: tuple[str, ...] = ()


def _groups(rng: random.Random) -> tuple[int, ...]:
    groups = rng.randint(1, 5)
    return rng.randint(1, 4), groups * rng.randint(1, 6), rng.randint(1, 900), groups


MATRIX = Layout(("rows", "cols"), "rows, cols", "cols", "rows", "cols", (130, (40, 2000)))
INSTANCES = Layout(
    ("batch", "channels", "size"),
    "batch, channels, size",
    "channels",
    "batch * channels",
    "size",
    (4, 30, 900),
    ("channels", "1", "size"),
)
GROUPS = Layout(
    ("batch", "channels", "size", "groups"),
    "batch, channels, size",
    "channels",
    "batch * groups",
    "channels // groups * size",
    _groups,
    ("groups", "channels // groups", "size"),
    ("groups",),
)


class RowNorm(Operation):
    checks = cases(
        "rows cols: 1 1 large; 5 2; 2 4097 normal; 67 251 large; 17 1000 tiny; 33 132 outliers; 6 35 equal; 9 516 zeros"
    )
    _flops = 4

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        statistics: Statistics,
        eager: str,
        /,
        *,
        emit: Sequence[str],
        tile_emit: Sequence[str],
        prepare: Sequence[str] = ("x",),
        tile_prepare: Sequence[str] = ("x",),
        reads: str = "x",
        params: str = "",
        writes: str = "y",
        layout: Layout = MATRIX,
        dtype: str = "float32",
        errors: tuple[float, float] = (24.0, 2.0),
        absolute: float = 1e-30,
        off_centre: bool = False,
        **facts: Unpack[Facts],
    ) -> None:
        """`errors` (a, b): for n elements, any order of summation may be off by (a + b * sqrt(n)) * 2^-24.
        `off_centre` moves every other row of the first input far from zero, relative to its spread."""
        facts.setdefault("draw", layout.draw)
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, summary, **facts)
        self._statistics, self._layout, self.parameters, self._dtype = statistics, layout, layout.parameters, dtype
        self._full, self._params, self._outs = reads.split(), params.split(), writes.split()
        self.inputs = (
            *(Array(each, layout.shape) for each in self._full),
            *(Array(each, layout.params) for each in self._params),
        )
        self.outputs = tuple(Array(each, layout.shape) for each in self._outs)
        self._emit, self._tile_emit, self._prepare, self._tile_prepare = emit, tile_emit, prepare, tile_prepare
        self.timed = {kind: tuple(replace(case, dtype=dtype) for case in timed) for kind, timed in self.timed.items()}
        self.checks = tuple(replace(case, dtype=dtype) for case in self.checks)
        self._errors, self._absolute, self._off_centre = errors, absolute, off_centre

    def _row_shape(self, case: Case) -> tuple[int, int]:
        rows, cols = (self.shape(Array("", part), case)[0] for part in (self._layout.rows, self._layout.cols))
        return rows, cols

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp = sampler.xp
        made = [sampler.values(self.shape(self.inputs[0], case), "float32") for _ in self._full]
        if self._off_centre:
            rows = xp.reshape(made[0], self._row_shape(case))
            odd = xp.arange(rows.shape[0], device=rows.device)[:, None] % 2 == 1
            rows = rows + xp.where(odd, 64.0, 0.0) * xp.mean(xp.abs(rows))
            made[0] = xp.reshape(rows, made[0].shape)
        made += [sampler.values(self.shape(array, case), "float32", "uniform") for array in self.inputs[len(made) :]]
        return tuple(xp.astype(x, getattr(xp, case.dtype)) for x in made)

    def _in_rows(self, xp: Any, case: Case, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs reshaped to rows, and the parameters in a shape that broadcasts to them."""
        shape = self._row_shape(case)
        full, params = inputs[: len(self._full)], inputs[len(self._full) :]
        if self._layout.channels:
            batch, channels, size = self.shape(self.inputs[0], case)
            spread = [xp.broadcast_to(each[None, :, None], (batch, channels, size)) for each in params]
            params = [xp.reshape(each, shape) for each in spread]
        return [*(xp.reshape(x, shape) for x in full), *params]

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        outputs = several(self._oracle(xp, *self._in_rows(xp, case, inputs)))
        return tuple(xp.reshape(y, self.shape(array, case)) for y, array in zip(outputs, self.outputs, strict=True))

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        scales = super().magnitude(xp, case, expected, *self._in_rows(xp, case, inputs))
        return tuple(xp.reshape(y, self.shape(array, case)) for y, array in zip(scales, self.outputs, strict=True))

    def tolerance(self, case: Case) -> Tolerance:
        if hasattr(self, "_tolerance"):
            return self._tolerance
        once, each = self._errors
        if self._dtype == "float16":
            return Tolerance(
                2e-3,
                "the result and up to two steps before it are rounded to 11 bits, each to 5e-4; sums in half precision"
                " are off by several times as much",
                absolute=6e-8,
            )
        return Tolerance(
            (once + each * self._row_shape(case)[1] ** 0.5) * _UNIT,
            "one by one in float32, a row's sums are off by about 0.3 * sqrt(n) * 2^-24, here with room for the worst"
            f" of many rows and {once:g} * 2^-24 for what follows; inputs of 11 bits are off by up to 8000 * 2^-24",
            absolute=self._absolute,
        )

    def code(self, suffix: str) -> Mapping[str, str]:
        return self._triton() if suffix == ".py" else self._cuda() if suffix == ".cu" else {}

    def _cuda(self) -> dict[str, str]:
        layout = self._layout
        cols = layout.cols.replace("//", "/")
        period, step, size = (part.replace("//", "/") for part in layout.channels or ("1", "1", "1"))
        arrays = ", ".join(f"{{{', '.join(names) or 'nullptr'}}}" for names in (self._full, self._params, self._outs))
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "arrays": f"{{{arrays}, {layout.rows}, {cols}, {period}, {step}, {size}}}",
            "rows": layout.rows,
            "cols": layout.cols,
            "norm": self._norm(self._statistics.tunes),
            "plain": self._norm(()),
            "kept": str(len(self._prepare)),
            "vectors": "4, 1" if self._dtype == "float32" else "4, 8, 2, 1",
            "one_pass": self._statistics.one_pass or "//",
        }

    def _norm(self, tunes: tuple[str, ...]) -> str:
        """Return the CUDA code of the state, the row's statistics and the functions of an element."""
        s, kind = self._statistics, self.c_type(self.inputs[0])
        lines = [f"// presage: {tune}" for tune in tunes]
        lines += [f"#define {name} {value}" for name, value in s.defaults.items() if not tunes]
        lines += ["#include <cuda_fp16.h>"] if kind == "half" else []
        lines += [s.setup] if s.setup else []
        counts = {"INPUTS": self._full, "PARAMS": self._params, "OUTPUTS": self._outs, "KEPT": self._prepare}
        lines += [f"#define {name} {len(things)}" for name, things in counts.items()]
        lines += [f"#define BY_COLUMN {int(self._layout.channels is None)}", f"typedef {kind} T;", ""]
        lines += ["struct State {", *(f"    {kind} {name};" for kind, name in s.fields), "};", ""]
        lines += ["__device__ State empty() {", f"    return {{{', '.join('0' for _ in s.fields)}}};", "}", ""]
        lines += ["__device__ State from_lane(const State *s, int offset) {", "    State o;"]
        lines += [f"    o.{name} = __shfl_xor_sync(0xffffffffu, s->{name}, offset);" for _, name in s.fields]
        lines += ["    return o;", "}", ""]
        lines += ["__device__ void include(State *s, const float *k, int pass, const State *first, int n) {"]
        lines += [*indented(s.include), "}", "", "__device__ void merge(State *s, const State *o) {"]
        lines += [*indented(s.merge), "}", "", "struct Row {", "    float mean, scale, along, across;", "};", ""]
        lines += ["__device__ Row finish(const State *first, const State *last, int n) {", "    Row r;"]
        lines += [*indented(s.finish), "    return r;", "}", ""]
        lines += ["__device__ void prepare(float *k, const float *in, const float *p) {"]
        lines += [f"    const float {name} = in[{i}];" for i, name in enumerate(self._full)]
        lines += [f"    const float {name} = p[{i}];" for i, name in enumerate(self._params)]
        lines += [f"    k[{i}] = {value};" for i, value in enumerate(self._prepare)] + ["}", ""]
        lines += ["__device__ void emit(float *out, const float *k, const float *p, const Row *r) {"]
        lines += [f"    const float {name} = p[{i}];" for i, name in enumerate(self._params)]
        lines += [f"    out[{i}] = {value};" for i, value in enumerate(self._emit)] + ["}"]
        return "\n".join(lines)

    def _triton(self) -> dict[str, str]:
        s, layout = self._statistics, self._layout
        ins = self.ins
        where = "col" if layout.channels is None else "(row % period) * step + col // size"
        places = {**dict.fromkeys(self._full, "at"), **dict.fromkeys(self._params, where)}
        kept = [f"v{i}" for i in range(len(self._tile_prepare))]
        load = [
            f"{name} = tl.load({name}_ptr + {at}, mask=inside, other=0.0).to(tl.float32)" for name, at in places.items()
        ]
        unpack = f"{', '.join([*ins, *self.parameters])}, = data"
        if layout.channels:
            unpack += f"\nbatch, channels, size = {self._full[0]}.shape"
            unpack += f"\nrows, cols = {layout.rows}, {layout.cols}"
        else:
            unpack += f"\nrows, cols = {self._full[0]}.shape"
        results = s.results
        return {
            "tunes": "\n".join(f"# presage: {tune}" for tune in s.tile_tunes) or "METHOD = 0",
            "ins": ", ".join([*ins, *self.parameters]),
            "unpack": unpack,
            "empty": "\n".join(f"{name} = torch.empty_like({self._full[0]})" for name in self._outs),
            "arrays": ", ".join([*ins, *self._outs]),
            "pointers": ", ".join(f"{name}_ptr" for name in [*ins, *self._outs]),
            "channels": ", ".join(layout.channels or ("1", "1", "1")),
            "load": "\n".join([*load, *(f"{k} = {e}" for k, e in zip(kept, self._tile_prepare, strict=True))]),
            "whole": s.tile_whole,
            "start": "\n".join(f"{name} = tl.zeros([HEIGHT, WIDTH], tl.float32)" for name in s.tile_fields),
            "add": s.tile_add,
            "fold": s.tile_fold,
            "emit": "\n".join(f"{name} = {value}" for name, value in zip(self._outs, self._tile_emit, strict=True)),
            "store": "\n".join(f"tl.store({name}_ptr + at, {name}, mask=inside)" for name in self._outs),
            "outs": ", ".join(self._outs),
            "first": self._full[0],
            "results": str(len(results)),
            "save": "\n".join(
                f"tl.store(rows_ptr + {k} * rows + row, {name}, mask=row < rows)" for k, name in enumerate(results)
            ),
            "restore": "\n".join(
                f"{name} = tl.load(rows_ptr + {k} * rows + row, mask=row < rows)" for k, name in enumerate(results)
            ),
        }


def _statistics(xp: ModuleType, x: Any) -> tuple[Any, Any]:
    """Return each row's mean and the reciprocal of its standard deviation."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    return mean, 1.0 / xp.sqrt(xp.mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)


def _layernorm(xp: ModuleType, x: Any, weight: Any = 1.0, bias: Any = 0.0) -> Any:
    mean, scale = _statistics(xp, x)
    return (x - mean) * scale * weight + bias


def _layernorm_scale(xp: ModuleType, x: Any, weight: Any = 1.0, bias: Any = 0.0, of_mean: float = 0.2) -> Any:
    # Include the mean's rounding error: it dominates when the elements of a row are nearly equal.
    mean, scale = _statistics(xp, x)
    squares = ((x - mean) * scale) ** 2 + (of_mean * mean * scale) ** 2 + 1.0
    return xp.sqrt(squares * weight**2 + bias**2)


def _rms(xp: ModuleType, x: Any) -> Any:
    return 1.0 / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _gated(xp: ModuleType, x: Any, gate: Any, weight: Any) -> Any:
    v = x * gate / (1.0 + xp.exp(-gate))
    return v * _rms(xp, v) * weight


def _backward(xp: ModuleType, x: Any, dy: Any, weight: Any) -> Any:
    mean, scale = _statistics(xp, x)
    g, z = dy * weight, (x - mean) * scale
    return scale * (g - xp.mean(g, axis=-1, keepdims=True) - z * xp.mean(g * z, axis=-1, keepdims=True))


def _backward_scale(xp: ModuleType, x: Any, dy: Any, weight: Any) -> Any:
    mean, scale = _statistics(xp, x)
    g, z = dy * weight, (x - mean) * scale
    typical = xp.sqrt(xp.mean(g * g, axis=-1, keepdims=True))
    return scale * (xp.abs(g) + typical * (1.0 + xp.abs(z))) * (1.0 + 0.2 * xp.abs(mean) * scale)


_LAYERNORM = "(k[0] - r->mean) * r->scale"
_TILE_LAYERNORM = "(v0 - mean) * scale"
_AFFINE: dict[str, Any] = {
    "params": "weight bias",
    "emit": (f"{_LAYERNORM} * weight + bias",),
    "tile_emit": (f"{_TILE_LAYERNORM} * weight + bias",),
}
_WEIGHTED: dict[str, Any] = {
    "params": "weight",
    "emit": ("k[0] * r->scale * weight",),
    "tile_emit": ("v0 * scale * weight",),
}
_CENTRED: dict[str, Any] = {"errors": (64.0, 8.0), "off_centre": True}

OPERATIONS = (
    RowNorm(
        "layernorm",
        "y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + 1e-5) * weight[c] + bias[c],"
        " with the variance divided by cols",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-5)",
        **_AFFINE,
        flops=5,
        scale=lambda xp, x, weight, bias: _layernorm_scale(xp, x, weight, bias, of_mean=1.0),
        tolerance=Tolerance(
            1e-5,
            "one by one in float32, the sum of squares is off by about 0.2 * sqrt(cols) * 2^-24 and half of that shows:"
            " 6e-7 for 8192 columns, 2e-6 in the worst of many rows; inputs rounded to 11 bits are off by up to 5e-4",
        ),
        timed={"cpu": cases("rows cols: 1024 1024; 96 8192"), "gpu": cases("rows cols: 16384 1024; 4096 8192")},
        checks=cases(
            "rows cols: 1 1 large; 5 2; 1 4097 normal; 67 251 large; 17 1000 tiny; 33 129 outliers; 9 515 zeros"
        ),
        draw=(130, (40, 3000)),
    ),
    RowNorm(
        "rmsnorm",
        "y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + 1e-6) * weight[c]",
        lambda xp, x, weight: x * _rms(xp, x) * weight,
        ROOT_MEAN_SQUARE,
        "torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps=1e-6)",
        **_WEIGHTED,
        tolerance=Tolerance(
            1.5e-5,
            "one by one in float32, the sum of squares is off by about 0.2 * sqrt(cols) * 2^-24 and half of that shows:"
            " 8e-7 for 16384 columns, 3e-6 in the worst of many rows; inputs rounded to 11 bits are off by up to 5e-4",
        ),
        timed={"cpu": cases("rows cols: 512 2048; 64 16384"), "gpu": cases("rows cols: 16384 2048; 4096 8192")},
        checks=cases(
            "rows cols: 1 1; 7 1 large; 1 4097 normal; 67 251 large; 17 1000 tiny; 33 129 outliers; 5 35 equal;"
            " 9 515 zeros"
        ),
        draw=(130, (40, 3000)),
    ),
    RowNorm(
        "layernorm_plain",
        "y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + 1e-5), with the variance divided by cols",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5)",
        timed=cases("rows cols: 32768 768; 2048 16384"),
        emit=(_LAYERNORM,),
        tile_emit=(_TILE_LAYERNORM,),
        scale=_layernorm_scale,
        **_CENTRED,
    ),
    RowNorm(
        "l2_normalise",
        "y[r, c] = x[r, c] / max(sqrt(sum over c of x[r, c]^2), 1e-12)",
        lambda xp, x: x / xp.clip(xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True)), 1e-12, xp.inf),
        LENGTH,
        "torch.nn.functional.normalize(x, dim=-1)",
        timed=cases("rows cols: 65536 256; 4096 8192"),
        emit=("k[0] * r->scale",),
        tile_emit=("v0 * scale",),
        flops=3,
    ),
    RowNorm(
        "rmsnorm_residual",
        "s = x + residual; y[r, c] = s[r, c] / sqrt(mean over c of s[r, c]^2 + 1e-6) * weight[c]; both are returned",
        lambda xp, x, residual, weight: (
            x + residual,
            (x + residual) * _rms(xp, x + residual) * weight,
        ),
        ROOT_MEAN_SQUARE,
        "(s := x + residual), torch.nn.functional.rms_norm(s, s.shape[-1:], weight, eps=1e-6)",
        timed=cases("rows cols: 8192 2048; 2048 8192"),
        reads="x residual",
        params="weight",
        writes="s y",
        prepare=("x + residual",),
        tile_prepare=("x + residual",),
        emit=("k[0]", "k[0] * r->scale * weight"),
        tile_emit=("v0", "v0 * scale * weight"),
        flops=5,
        scale=lambda xp, x, residual, weight: (
            xp.abs(x) + xp.abs(residual),
            (xp.abs(x) + xp.abs(residual)) * _rms(xp, x + residual) * xp.abs(weight),
        ),
    ),
    RowNorm(
        "layernorm_residual",
        "layer normalisation of x + residual over c, with epsilon 1e-5, weight[c] and bias[c]",
        lambda xp, x, residual, weight, bias: _layernorm(xp, x + residual, weight, bias),
        MOMENTS,
        "torch.nn.functional.layer_norm(x + residual, x.shape[-1:], weight, bias, eps=1e-5)",
        timed=cases("rows cols: 16384 1024; 2048 12288"),
        reads="x residual",
        prepare=("x + residual",),
        tile_prepare=("x + residual",),
        **_AFFINE,
        flops=6,
        scale=lambda xp, x, residual, weight, bias: (
            _layernorm_scale(xp, x + residual, weight, bias)
            + (xp.abs(x) + xp.abs(residual)) * _statistics(xp, x + residual)[1] * xp.abs(weight) * 0.05
        ),
        **_CENTRED,
    ),
    RowNorm(
        "rmsnorm_gated",
        "v = x * gate / (1 + exp(-gate)); y[r, c] = v[r, c] / sqrt(mean over c of v[r, c]^2 + 1e-6) * weight[c]",
        _gated,
        ROOT_MEAN_SQUARE,
        "torch.nn.functional.rms_norm(x * torch.nn.functional.silu(gate), x.shape[-1:], weight, eps=1e-6)",
        timed=cases("rows cols: 16384 1024; 2048 12288"),
        reads="x gate",
        params="weight",
        prepare=("x * (gate / (1.0f + expf(-gate)))",),
        tile_prepare=("x * (gate / (1.0 + tl.exp(-gate)))",),
        emit=("k[0] * r->scale * weight",),
        tile_emit=("v0 * scale * weight",),
        flops=8,
        absolute=1e-25,
    ),
    RowNorm(
        "layernorm_backward",
        "dx = scale * (g - mean of g - z * mean of g * z) row by row, with g = dy * weight, z = (x - mean of x) * scale"
        " and scale = 1 / sqrt(variance of x + 1e-5)",
        _backward,
        BACKWARD,
        "torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[-1:], (m := x.mean(-1, keepdim=True)),"
        " torch.rsqrt((x - m).square().mean(-1, keepdim=True) + 1e-5), weight, None, [True, False, False])[0]",
        timed=cases("rows cols: 16384 1024; 4096 6144"),
        reads="x dy",
        params="weight",
        writes="dx",
        prepare=("x", "dy * weight"),
        tile_prepare=("x", "dy * weight"),
        emit=("r->scale * (k[1] - r->along - (k[0] - r->mean) * r->across)",),
        tile_emit=("scale * (v1 - along - (v0 - mean) * across)",),
        flops=10,
        scale=_backward_scale,
        **_CENTRED,
    ),
    RowNorm(
        "rmsnorm_half",
        "y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + 1e-6) * weight[c], of float16 numbers",
        lambda xp, x, weight: x * _rms(xp, x) * weight,
        ROOT_MEAN_SQUARE,
        "torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps=1e-6)",
        timed=cases("rows cols: 65536 512; 8192 8192"),
        **_WEIGHTED,
        dtype="float16",
    ),
    RowNorm(
        "instancenorm",
        "each channel of each image is normalised over its size, with epsilon 1e-5, weight[channel] and bias[channel]",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.instance_norm(x, weight=weight, bias=bias, eps=1e-5)",
        timed=cases("batch channels size: 16 128 16384; 128 256 1024"),
        layout=INSTANCES,
        checks=cases(
            "batch channels size: 1 1 2; 3 5 3 large; 2 2 4097 normal; 4 17 251 large; 1 18 1000 tiny;"
            " 5 7 132 outliers; 2 3 35 equal; 3 3 516 zeros"
        ),
        **_AFFINE,
        flops=5,
        scale=_layernorm_scale,
        **_CENTRED,
    ),
    RowNorm(
        "groupnorm",
        "each group of channels of each image is normalised as one, with epsilon 1e-5, weight[channel], bias[channel]",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.group_norm(x, groups, weight, bias, eps=1e-5)",
        timed=cases("batch channels size groups: 16 256 4096 32; 256 512 256 32"),
        layout=GROUPS,
        checks=cases(
            "batch channels size groups: 1 1 2 1; 3 6 3 3 large; 1 4 2049 2 normal; 4 34 126 17 large;"
            " 1 36 125 9 tiny; 5 7 132 7 outliers; 2 6 35 2 equal; 3 4 516 1 zeros"
        ),
        **_AFFINE,
        flops=5,
        scale=_layernorm_scale,
        **_CENTRED,
    ),
)
