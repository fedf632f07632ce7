"""The base class of this room's operations: each computes a statistic of every row and an output from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

from presage.problems.base import Array, Case, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Formula, Operation, filled

_STATE = """
typedef struct { $members$ int rows, cols; } Arguments;
typedef struct { float $fields$; } State;
typedef struct { $row_fields$ } Row;

FUNCTION Row row_of(const Arguments *a, int r) {
    const Row row = {$row_values$};
    return row;
}

FUNCTION State identity() {
    const State s = {$identity$};
    return s;
}

FUNCTION State joined(State a, State b) {
    $joined$
}
"""

_C_PRELUDE = f"""
#define LABEL int64_t
{_STATE}
FUNCTION State included(State s, const Arguments *a, size_t at) {{
    $unpack$
    const State before = s;
    (void)before;
    $prepare$
    $rescale$
    $add$
    return s;
}}
$finish$
"""

_CUDA_PRELUDE = f"""
$include$
#define LABEL long long
#define MASKED $masked$
#define INPUTS $inputs$
#ifndef STEP
#define STEP 1
#endif
#ifndef EXP
#define EXP expf
#endif
typedef $element$ Element;
{_STATE}
FUNCTION State shuffled(State s, int offset) {{ return {{$shuffle$}}; }}

template <int N> struct alignas(sizeof(Element) * N) Pack {{ Element at[N]; }};
template <int N> struct Group {{ Pack<N> of[INPUTS]; }};

// N neighbours of every input.
template <int N> FUNCTION Group<N> fetch(const Arguments &a, int r, int v) {{
    const size_t start = (size_t)r * a.cols;
    Group<N> g;
    $fetch$
    return g;
}}

template <int N> FUNCTION State included(State s, const Group<N> &g, const Row &row, int first) {{
    $grouped$
#pragma unroll
    for (int i = 0; i < N; i++) {{
        if (MASKED && first + i >= row.extent) continue;
        $unpack$
        const State before = s;
        $prepare$
        $rescale$
        $add$
    }}
    return s;
}}

template <int Lanes> FUNCTION State warp_total(State s) {{
    for (int offset = Lanes / 2; offset > 0; offset /= 2) s = joined(s, shuffled(s, offset));
    return s;
}}

// Every thread gets the total of all.
template <int Count> FUNCTION State block_total(State s) {{
    __shared__ State of_warp[32];
    s = warp_total<32>(s);
    if (Count == 32) return s;
    __syncthreads(); // an earlier call's readers are done
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = s;
    __syncthreads();
    s = threadIdx.x % 32 < Count / 32 ? of_warp[threadIdx.x % 32] : identity();
    return warp_total<32>(s);
}}

$finish$
"""

_GROUPED = """
if (STEP) {
    const State before = s;
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (MASKED && first + i >= row.extent) continue;
        $unpack$
        $prepare$
    }
    $rescale$
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (MASKED && first + i >= row.extent) continue;
        $unpack$
        $add$
    }
    return s;
}
"""


@dataclass(frozen=True)
class Statistic:
    """Code for a running total of a row's elements.

    In C, `s` is the total, `before` its previous value, and elements have the names of their inputs. An element is
    added in three steps: prepare, rescale, add. A group of elements can share the rescaling. In Triton, each lane has
    its own total until the lanes are reduced along the row.
    """

    identity: Mapping[str, str]
    """The names of the total's floats, and their start values."""
    add: str
    prepare: str
    rescale: str
    joined: str
    """C: returns the merged total of `a` and `b`."""
    triton_include: str
    """Triton lines that add a tile to the lanes' totals."""
    triton_reduce: str
    """Triton lines that merge the lanes along axis 1, and keep that axis."""
    triton_whole: str
    """Triton lines that compute the total of a tile that holds whole rows."""
    triton_step: str
    """Triton lines that add a tile to a total of one value per row."""
    outside: str
    """The value that Triton loads for elements outside the row."""
    tunables: str = "//"

    @property
    def names(self) -> list[str]:
        return list(self.identity)

    def of(self, name: str) -> Statistic:
        """Return the statistic for an input with another name than x."""
        texts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "identity"}
        named: dict[str, Any] = {field: re.sub(r"\bx\b", name, text) for field, text in texts.items()}
        return replace(self, **named)


def total(c: str, triton: str) -> Statistic:
    """Return the statistic that sums an expression over the row."""
    return Statistic(
        identity={"sum": "0.0f"},
        prepare="",
        rescale="",
        add=f"s.sum += {c};",
        joined="const State s = {a.sum + b.sum};\nreturn s;",
        triton_include=f"sum += tl.where(seen, {triton}, 0.0)",
        triton_reduce="sum = tl.sum(sum, axis=1, keep_dims=True)",
        triton_whole=f"sum = tl.sum(tl.where(seen, {triton}, 0.0), axis=1, keep_dims=True)",
        triton_step=f"sum += tl.sum(tl.where(seen, {triton}, 0.0), axis=1, keep_dims=True)",
        outside="0.0",
    )


# Finite, so that merging two empty totals does not compute infinity minus infinity.
_LOWEST = "-3.0e38"

EXPONENTIALS = Statistic(
    identity={"largest": f"{_LOWEST}f", "sum": "0.0f"},
    prepare="s.largest = fmaxf(s.largest, x);",
    rescale="s.sum *= EXP(before.largest - s.largest);",
    add="s.sum += EXP(x - s.largest);",
    joined="const float top = fmaxf(a.largest, b.largest);\n"
    "const State s = {top, a.sum * EXP(a.largest - top) + b.sum * EXP(b.largest - top)};\n"
    "return s;",
    triton_include="bigger = tl.maximum(largest, x)\n"
    "sum = sum * tl.exp(largest - bigger) + tl.exp(x - bigger)\n"
    "largest = bigger",
    triton_reduce="top = tl.max(largest, axis=1, keep_dims=True)\n"
    "sum = tl.sum(sum * tl.exp(largest - top), axis=1, keep_dims=True)\n"
    "largest = top",
    triton_whole=f"largest = tl.maximum(tl.max(x, axis=1, keep_dims=True), {_LOWEST})\n"
    "sum = tl.sum(tl.exp(x - largest), axis=1, keep_dims=True)",
    triton_step="bigger = tl.maximum(largest, tl.max(x, axis=1, keep_dims=True))\n"
    "sum = sum * tl.exp(largest - bigger) + tl.sum(tl.exp(x - bigger), axis=1, keep_dims=True)\n"
    "largest = bigger",
    outside='-float("inf")',
    tunables="// presage: tune STEP = 1, 0",
)
"""The largest element, and the sum of exponentials relative to it. With STEP, the sum is rescaled once per group."""

EXPONENTIALS_AND_SUM = Statistic(
    identity={**EXPONENTIALS.identity, "plain": "0.0f"},
    prepare=EXPONENTIALS.prepare,
    rescale=EXPONENTIALS.rescale,
    add=f"{EXPONENTIALS.add}\ns.plain += x;",
    joined=EXPONENTIALS.joined.replace("top)};", "top), a.plain + b.plain};"),
    triton_include=f"{EXPONENTIALS.triton_include}\nplain += tl.where(seen, x, 0.0)",
    triton_reduce=f"{EXPONENTIALS.triton_reduce}\nplain = tl.sum(plain, axis=1, keep_dims=True)",
    triton_whole=f"{EXPONENTIALS.triton_whole}\nplain = tl.sum(tl.where(seen, x, 0.0), axis=1, keep_dims=True)",
    triton_step=f"{EXPONENTIALS.triton_step}\nplain += tl.sum(tl.where(seen, x, 0.0), axis=1, keep_dims=True)",
    outside=EXPONENTIALS.outside,
    tunables=EXPONENTIALS.tunables,
)


class RowOperation(Operation):
    """An operation on the rows of one or two float inputs, optionally with a label per row, and a statistic per row."""

    def __init__(
        self,
        name: str,
        summary: str,
        statistic: Statistic,
        oracle: Formula,
        eager: str,
        /,
        *,
        reads: str = "x",
        output: str = "y",
        output_shape: str = "rows, cols",
        labels: str = "",
        element: str = "T",
        scaled: str = "",
        extent: str = "",
        extent_triton: str = "",
        gpu: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, summary, **facts)
        self.statistic = statistic
        self._ins, self._out, self._labels = reads.split(), output, labels
        self._element, self._scaled = element, scaled
        self._extent, self._extent_triton = extent, extent_triton
        self.inputs = tuple(Array(each, "rows, cols", element) for each in self._ins)
        if labels:
            self.inputs += (Array(labels, "rows", "int64"),)
        self.outputs = (Array(output, output_shape, element),)
        if gpu:
            self.timed = {**self.timed, "gpu": cases(f"rows cols: {gpu}")}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        shape = self.shape(self.inputs[0], case)
        drawn: tuple[Any, ...] = tuple(sampler.values(shape, self.dtype(self.inputs[0], case)) for _ in self._ins)
        if self._labels:
            drawn += (sampler.integers((shape[0],), 0, shape[1], "int64"),)
        return drawn

    # The code for the placeholders of the room's families.

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return self._given_triton()
        if suffix == ".c" and self._element == "float16":
            return {}
        return self._given_c(suffix == ".cu")

    def _pointers(self) -> list[tuple[str, str]]:
        number = "half" if self._element == "float16" else "float"
        pointers = [(f"const {number} *", each) for each in self._ins]
        if self._labels:
            pointers.append(("const LABEL *", self._labels))
        return [*pointers, (f"{number} *", self._out)]

    def _given_c(self, cuda: bool) -> Mapping[str, str]:
        pointers = self._pointers()
        restrict = "__restrict__ " if cuda else "restrict "
        statistic = self.statistic
        return {
            "entry": self.name,
            "tunables": statistic.tunables if cuda else "//",
            "parameters": ", ".join([*(f"{kind}{restrict}{name}" for kind, name in pointers), "int rows", "int cols"]),
            "names": ", ".join([*(name for _, name in pointers), "rows", "cols"]),
            "state_bytes": str(4 * len(statistic.names)),
            "element_bytes": "2" if self._element == "float16" else "4",
            "inputs": str(len(self._ins)),
            "prelude": self._prelude_cuda() if cuda else self._prelude_c(),
            **(self._passes() if statistic is EXPONENTIALS and cuda else {}),
        }

    def _passes(self) -> Mapping[str, str]:
        """Return the code for families that find the largest element in a first pass and the sum in a second."""
        common = self._common([f"float(g.of[{i}].at[i])" for i in range(len(self._ins))], cuda=True)
        return {"largest": "s.largest", **{name: common[name] for name in ("unpack", "prepare", "add")}}

    def _common(self, at: Sequence[str], cuda: bool) -> dict[str, str]:
        statistic = self.statistic
        fields = "int label; float scale;" if self._labels else ""
        values = f", (int)a->{self._labels}[r], 1.0f / a->rows" if self._labels else ""
        own = [f"const float {name} = {value}{self._scaled};" for name, value in zip(self._ins, at, strict=True)]
        common = {
            "members": " ".join(f"{kind}{name};" for kind, name in self._pointers()),
            "fields": ", ".join(statistic.names),
            "row_fields": f"int extent; {fields}".strip(),
            "row_values": f"{self._extent or 'a->cols'}{values}",
            "identity": ", ".join(statistic.identity.values()),
            "joined": statistic.joined,
            "unpack": "\n".join(own),
            "prepare": statistic.prepare,
            "rescale": statistic.rescale,
            "add": statistic.add,
        }
        return {**common, "finish": filled(self._finish(cuda), common)}

    def _finish(self, cuda: bool) -> str:
        """Return C functions that compute the output from a total. They contain the placeholders of the preludes."""
        raise NotImplementedError

    def _prelude_c(self) -> str:
        common = self._common([f"a->{name}[at]" for name in self._ins], cuda=False)
        return filled(_C_PRELUDE, common).replace("FUNCTION", "static inline")

    def _prelude_cuda(self) -> str:
        names, half = self.statistic.names, self._element == "float16"
        shuffle = [f"__shfl_xor_sync(0xffffffffu, s.{name}, offset)" for name in names]
        common = {
            **self._common([f"float(g.of[{i}].at[i])" for i in range(len(self._ins))], cuda=True),
            "include": "#include <cuda_fp16.h>" if half else "",
            "element": "half" if half else "float",
            "masked": str(int(bool(self._extent))),
            "inputs": str(len(self._ins)),
            "shuffle": ", ".join(shuffle),
            "fetch": "\n".join(
                f"g.of[{i}] = ((const Pack<N> *)(a.{name} + start))[v];" for i, name in enumerate(self._ins)
            ),
        }
        grouped = {**common, "grouped": filled(_GROUPED, common) if self.statistic.prepare else ""}
        return filled(_CUDA_PRELUDE, grouped).replace("FUNCTION", "__device__")

    def _triton_apply(self) -> Mapping[str, str]:
        raise NotImplementedError

    def _given_triton(self) -> Mapping[str, str]:
        statistic, names = self.statistic, self.statistic.names
        ins = [*self._ins, self._labels] if self._labels else self._ins
        scaled = self._scaled.replace("f", "")
        load = [
            f"{name} = tl.load({name}_ptr + at, mask=seen, other={statistic.outside}).to(tl.float32){scaled}"
            for name in self._ins
        ]
        identity = {name: value.rstrip("f") for name, value in statistic.identity.items()}
        return {
            "ins": ", ".join(ins),
            "first": self._ins[0],
            "out": self._out,
            "pointers": ", ".join(f"{name}_ptr" for name in (*ins, self._out)),
            "in_pointers": ", ".join(f"{name}_ptr" for name in ins),
            "seen": f"inside & {self._extent_triton}" if self._extent_triton else "inside",
            "load": "\n".join(load),
            "row": f"label = tl.load({self._labels}_ptr + row, mask=row < rows, other=0)" if self._labels else "pass",
            "begin": "\n".join(f"{n} = tl.full([ROWS, BLOCK], {v}, tl.float32)" for n, v in identity.items()),
            "begin_rows": "\n".join(f"{n} = tl.full([ROWS, 1], {v}, tl.float32)" for n, v in identity.items()),
            "include": statistic.triton_include,
            "reduce": statistic.triton_reduce,
            "whole": statistic.triton_whole,
            "step": statistic.triton_step,
            "count": str(len(names)),
            "save": "\n".join(
                f"tl.store(partial_ptr + {i} * tl.num_programs(0) + tl.program_id(0) + tl.zeros([1, 1], tl.int32), {n})"
                for i, n in enumerate(names)
            ),
            "restore": "\n".join(f"{n} = tl.load(partial_ptr + {i} * stride + parts)" for i, n in enumerate(names)),
            "restore_masked": "\n".join(
                f"{n} = tl.load(partial_ptr + {i} * stride + parts, mask=row < rows, other={v})"
                for i, (n, v) in enumerate(identity.items())
            ),
            **self._triton_apply(),
        }
