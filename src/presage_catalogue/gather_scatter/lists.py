"""Sums over lists: each output row is the sum of the input rows, or of the products, that its list names.

Each entry of `OPERATIONS` gives C and Triton code for the position of the list of output r and for its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Operation

SUM = Tolerance(
    2e-6,
    "adding some hundred terms in float32 in any order is off by about 3e-8 of the sum of their sizes, and by 1e-6 at"
    " worst; terms rounded to 11 bits by some 2e-5. The sums over stretches are differences of running sums in float64",
    absolute=1e-9,
)


def stretches(xp: ModuleType, x: Any, offsets: Any) -> Any:
    """Return the sums of x between consecutive offsets along the first axis, as differences of running sums."""
    running = xp.cumulative_sum(x, axis=0)
    running = xp.concat((xp.zeros_like(running[:1]), running), axis=0)
    return running[offsets[1:]] - running[offsets[:-1]]


def draw_offsets(sampler: Sampler, lists: int, entries: int) -> Any:
    """Draw the offsets of lists with random lengths. Some lists are empty."""
    inner = sampler.xp.sort(sampler.integers((lists + 1,), 0, entries + 1))
    inner[0], inner[-1] = 0, entries
    return inner


class ListSum(Operation):
    """A sum over lists. `places` and `triton` are the C and Triton code for the placeholders of its families."""

    _tolerance = SUM

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        places: Mapping[str, str],
        triton: Mapping[str, str],
        naive: str,
        naive_launch: str,
        make: Callable[[Mapping[str, int], Sampler], tuple[Any, ...]],
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        self._places, self._triton, self._naive, self._naive_launch = places, triton, naive, naive_launch
        self._make = make

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return self._make(case.dims, sampler)

    def told(self, case: Case) -> tuple[Any, ...]:
        return (case.dims,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return self.oracle(xp, case, *(xp.abs(x) if xp.isdtype(x.dtype, "real floating") else x for x in inputs))

    def code(self, suffix: str) -> Mapping[str, str]:
        ins, (out,) = self.ins, self.outputs
        if suffix == ".py":
            empty = f"torch.empty(({out.shape},), dtype=torch.float32, device={ins[0]}.device)"
            return {
                **self.triton_names,
                "empty": f"{out.name} = {empty}",
                "result": out.name,
                **self._triton,
            }
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "include": "",
            "naive": self._naive,
            "naive_launch": self._naive_launch,
            "list_call": ", ".join((*ins, out.name, *self.scalars)),
            **self._places,
        }


_NAIVE_ROWS = """\
extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x, r = i / dim, c = i % dim;
    if (r >= lists) return;
    const int begin = {begin}, end = {end};
    float sum = 0.0f;
    for (int j = begin; j < end; j++) sum += x[(size_t)({row}) * dim + c];
    y[(size_t)r * dim + c] = sum;
}}"""
_NAIVE_PRODUCTS = """\
extern "C" __global__ void {entry}({arguments}) {{
    const int r = blockIdx.x * 256 + threadIdx.x;
    if (r >= rows) return;
    const int begin = {begin}, end = {end};
    float sum = 0.0f;
    for (int j = begin; j < end; j += {step}) sum += values[j] * x[columns[j]];
    y[r] = sum;
}}"""


def _list(
    kind: str,
    naive: tuple[str, str],
    name: str,
    summary: str,
    arguments: str,
    c: dict[str, str],
    triton: dict[str, str],
    **rest: Any,
) -> ListSum:
    """Make a `ListSum`. `kind` selects its families; `naive` is the code and the grid of the naive kernel."""
    return ListSum(
        name,
        summary,
        places={f"{kind}_{key}": code for key, code in c.items()},
        triton={f"{kind}_{key}": code for key, code in triton.items()},
        naive=naive[0].format(entry=name, arguments=arguments, **c),
        naive_launch=naive[1],
        **rest,
    )


def _rows(*row: Any, **rest: Any) -> ListSum:
    """Make a sum of rows of x: for each position j in list r, `row` is the expression of the row to add."""
    grid = "cdiv(lists * dim, 256)"
    return _list("list", (_NAIVE_ROWS, grid), *row, outputs=(Array("y", "lists, dim"),), **rest)


def _products(*row: Any, **rest: Any) -> ListSum:
    """Make a sum of values[j] * x[columns[j]], where j runs in list r from `begin` in steps of `step`."""
    return _list("entry", (_NAIVE_PRODUCTS, "cdiv(rows, 256)"), *row, outputs=(Array("y", "rows"),), **rest)


def _bag_oracle(xp: ModuleType, dims: Mapping[str, int], x: Any, indices: Any) -> Any:
    """Add one position of all bags at a time, as all rows at once would not fit into memory."""
    total = x[indices[:, 0]]
    for k in range(1, dims["bag"]):
        total = total + x[indices[:, k]]
    return total


def _ell_oracle(xp: ModuleType, dims: Mapping[str, int], values: Any, columns: Any, x: Any) -> Any:
    return xp.sum(values * x[columns], axis=0)


def _csr_oracle(xp: ModuleType, dims: Mapping[str, int], values: Any, columns: Any, offsets: Any, x: Any) -> Any:
    return stretches(xp, values * x[columns], offsets)


OPERATIONS = (
    _rows(
        "embedding_bag_sum",
        "y[r] = sum over k of x[indices[r, k]]: the rows that each bag names, added up",
        "const float *x, const int *indices, float *y, int lists, int bag, int table, int dim",
        {"begin": "r * bag", "end": "r * bag + bag", "row": "indices[j]", "owner": "j / bag", "entries": "lists * bag"},
        {
            "begin": "r * bag",
            "end": "r * bag + bag",
            "row": "tl.load(indices_ptr + j, mask=j < end, other=0)",
            "count": "indices.shape[0]",
        },
        inputs=(Array("x", "table, dim"), Array("indices", "lists, bag", "int32")),
        make=lambda dims, sampler: (
            sampler.values((dims["table"], dims["dim"])),
            sampler.integers((dims["lists"], dims["bag"]), 0, dims["table"]),
        ),
        oracle=_bag_oracle,
        eager="torch.nn.functional.embedding_bag(indices, x, mode='sum')",
        timed=cases("lists bag table dim: 16384 32 65536 128; 65536 4 8192 256"),
        checks=cases(
            "lists bag table dim: 1 1 1 1; 1 131 50 3 large; 131 1 7 1 tiny; 7 9 100 36; 33 17 65 130 normal;"
            " 130 5 300 64 outliers; 3 260 300 20 large"
        ),
        draw=(60, 30, 300, 90),
        flops=lambda dims: dims["lists"] * (dims["bag"] - 1) * dims["dim"],
    ),
    _rows(
        "segment_sum",
        "y[r] = sum of x[j] for j from offsets[r] up to offsets[r + 1]: stretches of rows, some empty, added up",
        "const float *x, const int *offsets, float *y, int entries, int lists, int dim",
        {
            "begin": "offsets[r]",
            "end": "offsets[r + 1]",
            "row": "j",
            "owner": "find(offsets, lists, j)",
            "entries": "entries",
        },
        {
            "begin": "tl.load(offsets_ptr + r)",
            "end": "tl.load(offsets_ptr + r + 1)",
            "row": "j",
            "count": "offsets.shape[0] - 1",
        },
        inputs=(Array("x", "entries, dim"), Array("offsets", "lists + 1", "int32")),
        make=lambda dims, sampler: (
            sampler.values((dims["entries"], dims["dim"])),
            draw_offsets(sampler, dims["lists"], dims["entries"]),
        ),
        oracle=lambda xp, dims, x, offsets: stretches(xp, x, offsets),
        eager="torch.segment_reduce(x, 'sum', offsets=offsets)",
        timed=cases("entries lists dim: 262144 8192 128; 1000000 300 32"),
        checks=cases(
            "entries lists dim: 1 1 1; 1031 1 3 large; 3 131 5 tiny; 7 9 36; 333 17 130 normal; 1030 55 64 outliers;"
            " 260 300 20 large"
        ),
        draw=(700, 60, 90),
        flops=lambda dims: max(0, dims["entries"] - dims["lists"]) * dims["dim"],
    ),
    _products(
        "spmv_ell",
        "y[r] = sum over k of values[k, r] * x[columns[k, r]]: a sparse matrix with equally many entries in each row",
        "const float *values, const int *columns, const float *x, float *y, int rows, int width, int cols",
        {"begin": "r", "end": "width * rows", "step": "rows"},
        {"begin": "r", "end": "width * rows + 0 * r", "step": "rows", "longest": "width", "rows": "values.shape[1]"},
        inputs=(Array("values", "width, rows"), Array("columns", "width, rows", "int32"), Array("x", "cols")),
        make=lambda dims, sampler: (
            sampler.values((dims["width"], dims["rows"])),
            sampler.integers((dims["width"], dims["rows"]), 0, dims["cols"]),
            sampler.values((dims["cols"],)),
        ),
        oracle=_ell_oracle,
        eager="(values * x[columns]).sum(0)",
        timed=cases("rows width cols: 524288 16 524288; 16384 512 4096"),
        checks=cases(
            "rows width cols: 1 1 1; 1 1031 50 large; 531 1 7 tiny; 7 9 100; 67 33 251 normal; 300 65 3000 outliers;"
            " 65 130 36 large"
        ),
        draw=(300, 60, 500),
        flops=lambda dims: dims["rows"] * (2 * dims["width"] - 1),
    ),
    _products(
        "spmv_csr",
        "y[r] = sum of values[j] * x[columns[j]] for j from offsets[r] up to offsets[r + 1]: a sparse matrix by rows",
        "const float *values, const int *columns, const int *offsets, const float *x, float *y, int entries, int rows,"
        " int cols",
        {"begin": "offsets[r]", "end": "offsets[r + 1]", "step": "1"},
        {
            "begin": "tl.load(offsets_ptr + r, mask=r < rows, other=0)",
            "end": "tl.load(offsets_ptr + r + 1, mask=r < rows, other=0)",
            "step": "1",
            "longest": "tl.max(end - begin)",
            "rows": "offsets.shape[0] - 1",
        },
        inputs=(
            Array("values", "entries"),
            Array("columns", "entries", "int32"),
            Array("offsets", "rows + 1", "int32"),
            Array("x", "cols"),
        ),
        make=lambda dims, sampler: (
            sampler.values((dims["entries"],)),
            sampler.integers((dims["entries"],), 0, dims["cols"]),
            draw_offsets(sampler, dims["rows"], dims["entries"]),
            sampler.values((dims["cols"],)),
        ),
        oracle=_csr_oracle,
        eager="torch.mv(torch.sparse_csr_tensor(offsets, columns, values, (len(offsets) - 1, len(x))), x)",
        timed=cases("entries rows cols: 8388608 524288 524288; 8388608 16384 4096"),
        checks=cases(
            "entries rows cols: 1 1 1; 1031 1 50 large; 3 131 7 tiny; 70 9 100; 3300 67 251 normal;"
            " 20000 300 3000 outliers; 8000 65 36 large"
        ),
        draw=(9000, 300, 500),
        flops=lambda dims: 2 * dims["entries"] - min(dims["entries"], dims["rows"]),
    ),
)
