"""Gathers: each output element is an input element selected by an index or a mask.

The entries of `OPERATIONS` are as in `layout.moves`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from presage.problems.base import Array, Case, cases
from presage.problems.sampler import Sampler
from presage_catalogue.layout.moves import Move, Read

_NAIVE = """\
template <class T, int N> struct alignas(sizeof(T) * N) Pack {{ T at[N]; }};

template <int N> __device__ void fetch({inputs}, int r, int c, {type} *out) {{
{fetch}
}}

extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x, out_cols = {cols};
    if (i < {rows} * out_cols) fetch<1>({call}, i / out_cols, i % out_cols, {out} + i);
}}"""


class Gather(Move):
    """A move with inputs that may be indices or masks. `below` gives the upper bound of each index input."""

    draw_styles = ("normal", "large", "tiny", "equal")

    def __init__(
        self, name: str, summary: str, *code: str | Read, below: Mapping[str, str], row: str = "", **rest: Any
    ) -> None:
        super().__init__(name, summary, *code, **rest)
        self._below, self._row = below, row

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        made = []
        for array in self.inputs:
            shape, dtype = self.shape(array, case), self.dtype(array, case)
            if dtype == "bool":
                made.append(sampler.integers(shape, 0, 2) == 1)
            elif array.name in self._below:
                made.append(sampler.integers(shape, 0, case.dims[self._below[array.name]], dtype))
            else:
                made.append(sampler.values(shape, dtype))
        return tuple(made)

    def code(self, suffix: str) -> Mapping[str, str]:
        given = dict(super().code(suffix))
        if suffix == ".py":
            return given
        fetch = given["fetch"].replace("\n", "\n    ")
        given["naive_launch"] = f"cdiv({given['rows']} * {given['cols']}, 256)"
        given["naive"] = _NAIVE.format(**{**given, "fetch": f"    {fetch}"})
        if self._row:
            given["pick"] = self._row
        return given


def _embedding_bytes(case: Case) -> int:
    """Bytes of the output, the indices, and the table rows that some index names: expected number minus 5 %."""
    tokens, vocab, dim = case.dims.values()
    named = 1 if case.values in ("equal", "zeros") else 0.95 * vocab * (1.0 - (1.0 - 1.0 / vocab) ** tokens)
    return int(4 * dim * (tokens + named)) + 8 * tokens


def _picked_bytes(case: Case) -> int:
    """Bytes of the output, the indices, and the columns of x that some index names: expected number minus 10 %."""
    rows, cols, picked = case.dims.values()
    named = 0.9 * cols * (1.0 - (1.0 - 1.0 / cols) ** picked)
    return int(4 * rows * (picked + named)) + 4 * picked


def _along_bytes(case: Case) -> int:
    """Bytes of the output, the indices, and the elements of x that some index names: expected number minus 10 %."""
    rows, cols, picked = case.dims.values()
    named = 0.9 * cols * (1.0 - (1.0 - 1.0 / cols) ** picked)
    return int(rows * (12 * picked + 4 * named))


_PICKING = cases(
    "rows cols picked: 1 1 1; 1 1031 33 large; 531 1 5 tiny; 7 9 40; 67 251 130 normal; 30 64 516 outliers;"
    " 13 2051 256 large"
)

OPERATIONS = (
    Gather(
        "embedding",
        "y[t] = table[indices[t]]: a row of the table for every token",
        Read("row", "indices", "r", along="r"),
        Read("v", "table", "row * dim + c"),
        inputs=(Array("table", "vocab, dim"), Array("indices", "tokens", "int64")),
        outputs=(Array("y", "tokens, dim"),),
        below={"indices": "vocab"},
        rows="tokens",
        cols="dim",
        whole="dim % N == 0",
        oracle=lambda xp, dims, table, indices: table[indices],
        eager="torch.nn.functional.embedding(indices, table)",
        timed=cases("tokens vocab dim: 32768 8192 1024; 262144 131072 100"),
        checks=cases(
            "tokens vocab dim: 1 1 1; 1 7 1031 large; 531 3 1 tiny; 7 100 9; 67 251 130 normal; 300 64 64 outliers;"
            " 65 2051 36 large"
        ),
        draw=(200, 500, 150),
        least_bytes=_embedding_bytes,
    ),
    Gather(
        "index_select_columns",
        "y[r, j] = x[r, indices[j]]: the named columns of a matrix",
        Read("col", "indices", "c", along="c"),
        Read("v", "x", "r * cols + col"),
        inputs=(Array("x", "rows, cols"), Array("indices", "picked", "int32")),
        outputs=(Array("y", "rows, picked"),),
        below={"indices": "cols"},
        cols="picked",
        row="indices[c]",
        oracle=lambda xp, dims, x, indices: x[:, indices],
        eager="torch.index_select(x, 1, indices)",
        timed=cases("rows cols picked: 4096 4096 4096; 100000 200 150"),
        checks=_PICKING,
        draw=(100, 200, 200),
        least_bytes=_picked_bytes,
    ),
    Gather(
        "gather_along",
        "y[r, j] = x[r, indices[r, j]]: other elements from every row",
        Read("col", "indices", "r * picked + c"),
        Read("v", "x", "r * cols + col"),
        inputs=(Array("x", "rows, cols"), Array("indices", "rows, picked", "int64")),
        outputs=(Array("y", "rows, picked"),),
        below={"indices": "cols"},
        cols="picked",
        row="indices[(size_t)r * picked + c]",
        oracle=lambda xp, dims, x, indices: xp.take_along_axis(x, indices, axis=1),
        eager="torch.gather(x, 1, indices)",
        timed=cases("rows cols picked: 4096 8192 2048; 65536 300 150"),
        checks=_PICKING,
        draw=(100, 200, 200),
        least_bytes=_along_bytes,
    ),
    Gather(
        "one_hot",
        "y[r, c] = 1 where c = labels[r], and 0 elsewhere",
        Read("label", "labels", "r", along="r"),
        inputs=(Array("labels", "rows", "int32"),),
        outputs=(Array("y", "rows, classes"),),
        parameters=("classes",),
        below={"labels": "classes"},
        cols="classes",
        value="column == label ? 1.0f : 0.0f",
        value_triton="tl.where(column == label, 1.0, 0.0)",
        whole="classes % N == 0",
        oracle=lambda xp, dims, labels: xp.astype(
            labels[:, None] == xp.arange(dims["classes"], dtype=labels.dtype, device=labels.device)[None, :],
            xp.float64,
        ),
        eager="torch.nn.functional.one_hot(labels.long(), classes).float()",
        timed=cases("rows classes: 8192 8192; 500000 101"),
        checks=cases("rows classes: 1 1; 1 1031; 1031 1; 7 9; 67 251; 130 64 equal; 33 1028"),
        draw=(200, 300),
    ),
    Gather(
        "masked_fill",
        "y[r, c] = -10000 where mask[r, c], and x[r, c] elsewhere",
        Read("masked", "mask", "r * cols + c"),
        Read("v", "x", "r * cols + c"),
        inputs=(Array("x", "rows, cols"), Array("mask", "rows, cols", "bool")),
        below={},
        value="masked ? -10000.0f : v",
        value_triton="tl.where(masked != 0, -10000.0, v)",
        whole="cols % N == 0",
        oracle=lambda xp, dims, x, mask: xp.where(mask, -10000.0, x),
        eager="x.masked_fill(mask, -10000.0)",
        timed=cases("rows cols: 8192 4096; 300000 77"),
    ),
)
