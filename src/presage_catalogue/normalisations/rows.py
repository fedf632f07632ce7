"""Row normalisations: statistics of each row, then a map of its elements with them.

A row is whatever the statistics run over: the last axis of a matrix, or the elements of a channel or of a group of
channels of one image. In C a family hands over the elements of the inputs as `in`, those of the parameters as `p`, and
what `prepare` makes of them as `k`; in Triton all of them have their names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler

Formula = Callable[..., Any]
_UNIT = 2.0**-24
_ODD = "THREADS == 256 and VECTOR == 4"
_TILE_ODD = "WARPS == 4 and LONG == 1024"

_C_TYPES = {"float32": "float", "float16": "half"}


@dataclass(frozen=True)
class Statistics:
    """How a row's `mean`, `scale` and whatever else its elements need come from sums over it."""

    fields: tuple[tuple[str, str], ...]
    """C types and names of a state that starts at zero."""
    include: str
    """C: adds `k` to `s`, in the first or second `pass`; in the second, `first` is the whole row's first state."""
    merge: str
    finish: str
    """C: fills the row `r` from `first` and `last`, the whole row's states after each pass, and `n`."""
    tunes: tuple[str, ...]
    defaults: Mapping[str, int]
    tile_whole: str
    """Triton: the statistics of rows that are there as a whole."""
    tile_fields: tuple[str, ...]
    tile_add: str
    tile_fold: str
    tile_tunes: tuple[str, ...] = ()
    results: tuple[str, ...] = ("scale",)
    setup: str = ""
    one_pass: str = ""
    """A line of a header: which configurations get by with one pass, unless all do."""


def _indented(code: str) -> list[str]:
    return [line if line.startswith("#") else f"    {line}" for line in code.split("\n")]


@dataclass(frozen=True)
class Layout:
    """Where rows lie in the arrays, and which parameter belongs to an element."""

    dims: tuple[str, ...]
    shape: str
    params: str
    rows: str
    cols: str
    channels: tuple[str, str, str] | None = None
    """Period, step and size, where parameter (row % period) * step + column / size belongs to an element, in C."""

    parameters: tuple[str, ...] = ()


MATRIX = Layout(("rows", "cols"), "rows, cols", "cols", "rows", "cols")
INSTANCES = Layout(
    ("batch", "channels", "size"),
    "batch, channels, size",
    "channels",
    "batch * channels",
    "size",
    ("channels", "1", "size"),
)
GROUPS = Layout(
    ("batch", "channels", "size", "groups"),
    "batch, channels, size",
    "channels",
    "batch * groups",
    "channels // groups * size",
    ("groups", "channels // groups", "size"),
    ("groups",),
)

MATRIX_CHECKS = (
    Case({"rows": 1, "cols": 1}, values="large"),
    Case({"rows": 5, "cols": 2}),
    Case({"rows": 2, "cols": 4097}, values="normal"),
    Case({"rows": 67, "cols": 251}, values="large"),
    Case({"rows": 17, "cols": 1000}, values="tiny"),
    Case({"rows": 33, "cols": 132}, values="outliers"),
    Case({"rows": 6, "cols": 35}, values="equal"),
    Case({"rows": 9, "cols": 516}, values="zeros"),
)


class RowNorm(Operation):
    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        statistics: Statistics,
        eager: str,
        *,
        timed: tuple[Case, ...],
        emit: Sequence[str],
        tile_emit: Sequence[str],
        prepare: Sequence[str] = ("x",),
        tile_prepare: Sequence[str] = ("x",),
        inputs: str = "x",
        params: str = "",
        outputs: str = "y",
        layout: Layout = MATRIX,
        checks: tuple[Case, ...] = MATRIX_CHECKS,
        dtype: str = "float32",
        flops: int = 4,
        scale: Formula | None = None,
        errors: tuple[float, float] = (24.0, 2.0),
        absolute: float = 1e-30,
        off_centre: bool = False,
    ) -> None:
        """`errors` are roundings of 2^-24 that any order of adding may be off by, once and for each root of the number
        of elements. `off_centre` moves every other row of the first input far from zero, beside its spread."""
        super().__init__(name)
        self.summary, self._oracle, self._statistics, self._eager = summary, oracle, statistics, eager
        self._layout, self.parameters, self._dtype = layout, layout.parameters, dtype
        self._full, self._params, self._outs = inputs.split(), params.split(), outputs.split()
        self.inputs = (
            *(Array(each, layout.shape) for each in self._full),
            *(Array(each, layout.params) for each in self._params),
        )
        self.outputs = tuple(Array(each, layout.shape) for each in self._outs)
        self._emit, self._tile_emit, self._prepare, self._tile_prepare = emit, tile_emit, prepare, tile_prepare
        self.timed = {"gpu": tuple(Case(case.dims, dtype, case.values) for case in timed)}
        self.checks = tuple(Case(case.dims, dtype, case.values) for case in checks)
        self._flops, self._scale, self._errors, self._absolute = flops, scale, errors, absolute
        self._off_centre = off_centre

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
        """The inputs as rows, and the parameters as something that broadcasts to them."""
        shape = self._row_shape(case)
        full, params = inputs[: len(self._full)], inputs[len(self._full) :]
        if self._layout.channels:
            batch, channels, size = self.shape(self.inputs[0], case)
            spread = [xp.broadcast_to(each[None, :, None], (batch, channels, size)) for each in params]
            params = [xp.reshape(each, shape) for each in spread]
        return [*(xp.reshape(x, shape) for x in full), *params]

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        outputs = self._oracle(xp, *self._in_rows(xp, case, inputs))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(xp.reshape(y, self.shape(array, case)) for y, array in zip(outputs, self.outputs, strict=True))

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        scales = self._scale(xp, *self._in_rows(xp, case, inputs))
        scales = scales if isinstance(scales, tuple) else (scales,)
        return tuple(xp.reshape(y, self.shape(array, case)) for y, array in zip(scales, self.outputs, strict=True))

    def tolerance(self, case: Case) -> Tolerance:
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

    def flops(self, case: Case) -> int:
        rows, cols = self._row_shape(case)
        return self._flops * rows * cols

    def draw_case(self, rng: random.Random) -> Case:
        values = rng.choice(("normal", "large", "tiny", "outliers"))
        if self._layout is MATRIX:
            dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 2000)))}
            return Case(dims, self._dtype, values)
        groups = rng.randint(1, 5)
        dims = {"batch": rng.randint(1, 4), "channels": groups * rng.randint(1, 6), "size": rng.randint(1, 900)}
        return Case(dims | ({"groups": groups} if self._layout is GROUPS else {}), self._dtype, values)

    def given(self, suffix: str) -> Mapping[str, str]:
        return self._triton() if suffix == ".py" else self._cuda() if suffix == ".cu" else {}

    def _cuda(self) -> dict[str, str]:
        kind, layout = _C_TYPES[self._dtype], self._layout
        qualified = [f"const {kind} *__restrict__ {array.name}" for array in self.inputs]
        qualified += [f"{kind} *__restrict__ {array.name}" for array in self.outputs]
        cols = layout.cols.replace("//", "/")
        period, step, size = (part.replace("//", "/") for part in layout.channels or ("1", "1", "1"))
        arrays = ", ".join(f"{{{', '.join(names) or 'nullptr'}}}" for names in (self._full, self._params, self._outs))
        return {
            "entry": self.name,
            "arguments": ", ".join([*qualified, *(f"int {name}" for name in layout.dims)]),
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
        """The state, the row's statistics and the functions of an element, in CUDA."""
        s, kind = self._statistics, _C_TYPES[self._dtype]
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
        lines += [*_indented(s.include), "}", "", "__device__ void merge(State *s, const State *o) {"]
        lines += [*_indented(s.merge), "}", "", "struct Row {", "    float mean, scale, along, across;", "};", ""]
        lines += ["__device__ Row finish(const State *first, const State *last, int n) {", "    Row r;"]
        lines += [*_indented(s.finish), "    return r;", "}", ""]
        lines += ["__device__ void prepare(float *k, const float *in, const float *p) {"]
        lines += [f"    const float {name} = in[{i}];" for i, name in enumerate(self._full)]
        lines += [f"    const float {name} = p[{i}];" for i, name in enumerate(self._params)]
        lines += [f"    k[{i}] = {value};" for i, value in enumerate(self._prepare)] + ["}", ""]
        lines += ["__device__ void emit(float *out, const float *k, const float *p, const Row *r) {"]
        lines += [f"    const float {name} = p[{i}];" for i, name in enumerate(self._params)]
        lines += [f"    out[{i}] = {value};" for i, value in enumerate(self._emit)] + ["}"]
        return "\n".join(lines) + "\n" + PACKS

    def _triton(self) -> dict[str, str]:
        s, layout = self._statistics, self._layout
        ins = [array.name for array in self.inputs]
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
            "eager": self._eager,
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


PACKS = """
struct Arrays {
    const T *in[INPUTS], *param[PARAMS > 0 ? PARAMS : 1];
    T *out[OUTPUTS];
    int rows, cols, period, step, size;
};

template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
template <int N> struct alignas(4 * N) Kept { float at[KEPT][N]; };
template <int N> struct Given { float at[PARAMS > 0 ? PARAMS : 1][N]; };

template <int N> __device__ Given<N> parameters(const Arrays &a, int row, int v) {
    Given<N> given;
#pragma unroll
    for (int j = 0; j < PARAMS; j++) {
        if (BY_COLUMN) {
            const Pack<N> pack = ((const Pack<N> *)a.param[j])[v];
#pragma unroll
            for (int i = 0; i < N; i++) given.at[j][i] = (float)pack.at[i];
        } else {
#pragma unroll
            for (int i = 0; i < N; i++)
                given.at[j][i] = (float)a.param[j][row % a.period * a.step + (v * N + i) / a.size];
        }
    }
    return given;
}

// What a row keeps of its elements v * N and following.
template <int N> __device__ Kept<N> gather(const Arrays &a, int row, int v) {
    const Given<N> given = parameters<N>(a, row, v);
    Pack<N> packs[INPUTS];
#pragma unroll
    for (int j = 0; j < INPUTS; j++) packs[j] = ((const Pack<N> *)(a.in[j] + (size_t)row * a.cols))[v];
    Kept<N> kept;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float in[INPUTS], p[PARAMS > 0 ? PARAMS : 1], k[KEPT];
#pragma unroll
        for (int j = 0; j < INPUTS; j++) in[j] = (float)packs[j].at[i];
#pragma unroll
        for (int j = 0; j < PARAMS; j++) p[j] = given.at[j][i];
        prepare(k, in, p);
#pragma unroll
        for (int j = 0; j < KEPT; j++) kept.at[j][i] = k[j];
    }
    return kept;
}

template <int N> __device__ void include_all(State *s, const Kept<N> &kept, int pass, const State *first, int n) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        float k[KEPT];
#pragma unroll
        for (int j = 0; j < KEPT; j++) k[j] = kept.at[j][i];
        include(s, k, pass, first, n);
    }
}

template <int N> __device__ void scatter(const Arrays &a, int row, int v, const Kept<N> &kept, const Row *r) {
    const Given<N> given = parameters<N>(a, row, v);
    Pack<N> packs[OUTPUTS];
#pragma unroll
    for (int i = 0; i < N; i++) {
        float out[OUTPUTS], p[PARAMS > 0 ? PARAMS : 1], k[KEPT];
#pragma unroll
        for (int j = 0; j < KEPT; j++) k[j] = kept.at[j][i];
#pragma unroll
        for (int j = 0; j < PARAMS; j++) p[j] = given.at[j][i];
        emit(out, k, p, r);
#pragma unroll
        for (int j = 0; j < OUTPUTS; j++) packs[j].at[i] = (T)out[j];
    }
#pragma unroll
    for (int j = 0; j < OUTPUTS; j++) ((Pack<N> *)(a.out[j] + (size_t)row * a.cols))[v] = packs[j];
}

__device__ State warp_total(State s) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const State o = from_lane(&s, offset);
        merge(&s, &o);
    }
    return s;
}"""

MOMENTS = Statistics(
    fields=(("float", "count"), ("float", "mean"), ("float", "squares")),
    include="""\
#if METHOD == 0
if (pass == 0) s->mean += k[0];
else s->squares += (k[0] - first->mean / n) * (k[0] - first->mean / n);
#elif METHOD == 1
s->count += 1.0f;
const float apart = k[0] - s->mean;
s->mean += __fdividef(apart, s->count);
s->squares += apart * (k[0] - s->mean);
#else
s->mean += k[0];
s->squares += k[0] * k[0];
#endif""",
    merge="""\
#if METHOD == 1
const float count = s->count + o->count;
if (o->count == 0.0f) return;
const float share = o->count / count, apart = o->mean - s->mean;
s->squares += o->squares + apart * apart * s->count * share;
s->mean += apart * share;
s->count = count;
#else
s->mean += o->mean;
s->squares += o->squares;
#endif""",
    finish="""\
r.mean = METHOD == 1 ? first->mean : first->mean / n;
r.scale = rsqrtf(fmaxf(METHOD == 2 ? last->squares / n - r.mean * r.mean : last->squares / n, 0.0f) + 1e-5f);""",
    tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or ({_ODD})"),
    defaults={"METHOD": 0},
    setup="#define PASSES (METHOD == 0 ? 2 : 1)",
    one_pass="// presage: where METHOD != 0 or PARTS == 1",
    tile_whole="""\
mean = tl.sum(v0, axis=1, keep_dims=True) / cols
apart = tl.where(inside, v0 - mean, 0.0)
scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1, keep_dims=True) / cols + 1e-5)""",
    tile_fields=("count", "means", "squares"),
    tile_add="""\
if METHOD == 0:
    count += tl.where(inside, 1.0, 0.0)
    apart = tl.where(inside, v0 - means, 0.0)
    means += apart / tl.maximum(count, 1.0)
    squares += apart * (v0 - means)
else:
    means += v0
    squares += v0 * v0""",
    tile_fold="""\
if METHOD == 0:
    mean = tl.sum(means * count, axis=1, keep_dims=True) / cols
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=1, keep_dims=True) / cols
else:
    mean = tl.sum(means, axis=1, keep_dims=True) / cols
    spread = tl.maximum(tl.sum(squares, axis=1, keep_dims=True) / cols - mean * mean, 0.0)
scale = 1.0 / tl.sqrt(spread + 1e-5)""",
    tile_tunes=("tune METHOD = 0, 1", f"where METHOD == 0 or ({_TILE_ODD})"),
    results=("mean", "scale"),
)


def _squares(scale: str, tile_scale: str) -> Statistics:
    """The sum of squares, in float, in double or in half precision."""
    return Statistics(
        fields=(("Sum", "squares"),),
        include="s->squares = s->squares + (Sum)(k[0] * k[0]);",
        merge="s->squares = s->squares + o->squares;",
        finish=f"const float squares = (float)last->squares;\nr.scale = {scale};",
        tunes=("tune METHOD = 0, 1, 2", "where METHOD != 1 or VECTOR == 4", f"where METHOD != 2 or ({_ODD})"),
        defaults={"METHOD": 0},
        setup="""\
#define PASSES 1
#if METHOD == 1
typedef double Sum;
#elif METHOD == 2
#include <cuda_fp16.h>
typedef half Sum;
#else
typedef float Sum;
#endif""",
        tile_whole=f"total = tl.sum(v0 * v0, axis=1, keep_dims=True)\nscale = {tile_scale}",
        tile_fields=("squares",),
        tile_add="squares += v0 * v0",
        tile_fold=f"total = tl.sum(squares, axis=1, keep_dims=True)\nscale = {tile_scale}",
    )


ROOT_MEAN_SQUARE = _squares("rsqrtf(squares / n + 1e-6f)", "1.0 / tl.sqrt(total / cols + 1e-6)")
LENGTH = _squares("1.0f / fmaxf(sqrtf(squares), 1e-12f)", "1.0 / tl.maximum(tl.sqrt(total), 1e-12)")

BACKWARD = Statistics(
    fields=(("Sum", "mean"), ("Sum", "squares"), ("Sum", "along"), ("Sum", "across")),
    include="""\
#if METHOD == 0
if (pass == 0) {
    s->mean += k[0];
    s->along += k[1];
} else {
    const float apart = k[0] - first->mean / n;
    s->squares += apart * apart;
    s->across += apart * k[1];
}
#else
s->mean += k[0];
s->along += k[1];
s->squares += (Sum)k[0] * k[0];
s->across += (Sum)k[0] * k[1];
#endif""",
    merge="""\
s->mean += o->mean;
s->squares += o->squares;
s->along += o->along;
s->across += o->across;""",
    finish="""\
const Sum mean = first->mean / n, along = first->along / n;
const Sum squares = METHOD == 0 ? last->squares / n : last->squares / n - mean * mean;
const Sum across = METHOD == 0 ? last->across / n : last->across / n - mean * along;
r.mean = mean;
r.scale = rsqrtf(fmaxf((float)squares, 0.0f) + 1e-5f);
r.along = along;
r.across = (float)across * r.scale * r.scale;""",
    tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or ({_ODD})"),
    defaults={"METHOD": 0},
    setup="""\
#define PASSES (METHOD == 0 ? 2 : 1)
#if METHOD == 1
typedef double Sum;
#else
typedef float Sum;
#endif""",
    one_pass="// presage: where METHOD != 0 or PARTS == 1",
    tile_whole="""\
mean = tl.sum(v0, axis=1, keep_dims=True) / cols
apart = tl.where(inside, v0 - mean, 0.0)
scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1, keep_dims=True) / cols + 1e-5)
along = tl.sum(v1, axis=1, keep_dims=True) / cols
across = tl.sum(apart * v1, axis=1, keep_dims=True) / cols * scale * scale""",
    tile_fields=("count", "means", "squares", "alongs", "acrosses"),
    tile_add="""\
if METHOD == 0:
    # Running means of both, and sums of products of the distances from them.
    count += tl.where(inside, 1.0, 0.0)
    apart = tl.where(inside, v0 - means, 0.0)
    beside = tl.where(inside, v1 - alongs, 0.0)
    means += apart / tl.maximum(count, 1.0)
    alongs += beside / tl.maximum(count, 1.0)
    squares += apart * (v0 - means)
    acrosses += beside * (v0 - means)
else:
    means += v0
    alongs += v1
    squares += v0 * v0
    acrosses += v0 * v1""",
    tile_fold="""\
if METHOD == 0:
    mean = tl.sum(means * count, axis=1, keep_dims=True) / cols
    along = tl.sum(alongs * count, axis=1, keep_dims=True) / cols
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=1, keep_dims=True) / cols
    product = tl.sum(acrosses + count * (means - mean) * (alongs - along), axis=1, keep_dims=True) / cols
else:
    mean = tl.sum(means, axis=1, keep_dims=True) / cols
    along = tl.sum(alongs, axis=1, keep_dims=True) / cols
    spread = tl.maximum(tl.sum(squares, axis=1, keep_dims=True) / cols - mean * mean, 0.0)
    product = tl.sum(acrosses, axis=1, keep_dims=True) / cols - mean * along
scale = 1.0 / tl.sqrt(spread + 1e-5)
across = product * scale * scale""",
    tile_tunes=("tune METHOD = 0, 1", f"where METHOD == 0 or ({_TILE_ODD})"),
    results=("mean", "scale", "along", "across"),
)


def _statistics(xp: ModuleType, x: Any) -> tuple[Any, Any]:
    """Each row's mean, and the reciprocal of its standard deviation."""
    mean = xp.mean(x, axis=-1, keepdims=True)
    return mean, 1.0 / xp.sqrt(xp.mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)


def _layernorm(xp: ModuleType, x: Any, weight: Any = 1.0, bias: Any = 0.0) -> Any:
    mean, scale = _statistics(xp, x)
    return (x - mean) * scale * weight + bias


def _layernorm_scale(xp: ModuleType, x: Any, weight: Any = 1.0, bias: Any = 0.0) -> Any:
    # The mean's rounding error counts too: all that is left where the elements of a row are nearly equal.
    mean, scale = _statistics(xp, x)
    squares = ((x - mean) * scale) ** 2 + (0.2 * mean * scale) ** 2 + 1.0
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


def _matrices(*shapes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case({"rows": rows, "cols": cols}) for rows, cols in shapes)


def _images(names: tuple[str, ...], *shapes: tuple[tuple[int, ...], str]) -> tuple[Case, ...]:
    return tuple(Case(dict(zip(names, sizes, strict=True)), values=values) for sizes, values in shapes)


_LAYERNORM = "(k[0] - r->mean) * r->scale"
_TILE_LAYERNORM = "(v0 - mean) * scale"

OPERATIONS = (
    RowNorm(
        "layernorm_plain",
        "y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + 1e-5), with the variance divided by cols",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5)",
        timed=_matrices((32768, 768), (2048, 16384)),
        emit=(_LAYERNORM,),
        tile_emit=(_TILE_LAYERNORM,),
        scale=_layernorm_scale,
        errors=(64.0, 8.0),
        off_centre=True,
    ),
    RowNorm(
        "l2_normalise",
        "y[r, c] = x[r, c] / max(sqrt(sum over c of x[r, c]^2), 1e-12)",
        lambda xp, x: x / xp.clip(xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True)), 1e-12, xp.inf),
        LENGTH,
        "torch.nn.functional.normalize(x, dim=-1)",
        timed=_matrices((65536, 256), (4096, 8192)),
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
        timed=_matrices((8192, 2048), (2048, 8192)),
        inputs="x residual",
        params="weight",
        outputs="s y",
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
        timed=_matrices((16384, 1024), (2048, 12288)),
        inputs="x residual",
        params="weight bias",
        prepare=("x + residual",),
        tile_prepare=("x + residual",),
        emit=(f"{_LAYERNORM} * weight + bias",),
        tile_emit=(f"{_TILE_LAYERNORM} * weight + bias",),
        flops=6,
        scale=lambda xp, x, residual, weight, bias: (
            _layernorm_scale(xp, x + residual, weight, bias)
            + (xp.abs(x) + xp.abs(residual)) * _statistics(xp, x + residual)[1] * xp.abs(weight) * 0.05
        ),
        errors=(64.0, 8.0),
        off_centre=True,
    ),
    RowNorm(
        "rmsnorm_gated",
        "v = x * gate / (1 + exp(-gate)); y[r, c] = v[r, c] / sqrt(mean over c of v[r, c]^2 + 1e-6) * weight[c]",
        _gated,
        ROOT_MEAN_SQUARE,
        "torch.nn.functional.rms_norm(x * torch.nn.functional.silu(gate), x.shape[-1:], weight, eps=1e-6)",
        timed=_matrices((16384, 1024), (2048, 12288)),
        inputs="x gate",
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
        timed=_matrices((16384, 1024), (4096, 6144)),
        inputs="x dy",
        params="weight",
        outputs="dx",
        prepare=("x", "dy * weight"),
        tile_prepare=("x", "dy * weight"),
        emit=("r->scale * (k[1] - r->along - (k[0] - r->mean) * r->across)",),
        tile_emit=("scale * (v1 - along - (v0 - mean) * across)",),
        flops=10,
        scale=_backward_scale,
        errors=(64.0, 8.0),
        off_centre=True,
    ),
    RowNorm(
        "rmsnorm_half",
        "y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + 1e-6) * weight[c], of float16 numbers",
        lambda xp, x, weight: x * _rms(xp, x) * weight,
        ROOT_MEAN_SQUARE,
        "torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps=1e-6)",
        timed=_matrices((65536, 512), (8192, 8192)),
        params="weight",
        emit=("k[0] * r->scale * weight",),
        tile_emit=("v0 * scale * weight",),
        dtype="float16",
    ),
    RowNorm(
        "instancenorm",
        "each channel of each image is normalised over its size, with epsilon 1e-5, weight[channel] and bias[channel]",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.instance_norm(x, weight=weight, bias=bias, eps=1e-5)",
        timed=_images(INSTANCES.dims, ((16, 128, 16384), "uniform"), ((128, 256, 1024), "uniform")),
        layout=INSTANCES,
        checks=_images(
            INSTANCES.dims,
            ((1, 1, 2), "uniform"),
            ((3, 5, 3), "large"),
            ((2, 2, 4097), "normal"),
            ((4, 17, 251), "large"),
            ((1, 18, 1000), "tiny"),
            ((5, 7, 132), "outliers"),
            ((2, 3, 35), "equal"),
            ((3, 3, 516), "zeros"),
        ),
        params="weight bias",
        emit=(f"{_LAYERNORM} * weight + bias",),
        tile_emit=(f"{_TILE_LAYERNORM} * weight + bias",),
        flops=5,
        scale=_layernorm_scale,
        errors=(64.0, 8.0),
        off_centre=True,
    ),
    RowNorm(
        "groupnorm",
        "each group of channels of each image is normalised as one, with epsilon 1e-5, weight[channel], bias[channel]",
        _layernorm,
        MOMENTS,
        "torch.nn.functional.group_norm(x, groups, weight, bias, eps=1e-5)",
        timed=_images(GROUPS.dims, ((16, 256, 4096, 32), "uniform"), ((256, 512, 256, 32), "uniform")),
        layout=GROUPS,
        checks=_images(
            GROUPS.dims,
            ((1, 1, 2, 1), "uniform"),
            ((3, 6, 3, 3), "large"),
            ((1, 4, 2049, 2), "normal"),
            ((4, 34, 126, 17), "large"),
            ((1, 36, 125, 9), "tiny"),
            ((5, 7, 132, 7), "outliers"),
            ((2, 6, 35, 2), "equal"),
            ((3, 4, 516, 1), "zeros"),
        ),
        params="weight bias",
        emit=(f"{_LAYERNORM} * weight + bias",),
        tile_emit=(f"{_TILE_LAYERNORM} * weight + bias",),
        flops=5,
        scale=_layernorm_scale,
        errors=(64.0, 8.0),
        off_centre=True,
    ),
)
