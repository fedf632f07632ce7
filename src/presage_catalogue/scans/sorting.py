"""Sort the elements of each row, or find the largest of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Operation, filled

_PRELUDE = """
typedef $output$ Output;
struct Item { $members$ };

__device__ Item item_of(const float *row, int c) { return {$item$}; }
__device__ Item item_last() { return {$last$}; }
__device__ Output result(Item item) { return item.$result$; }
__device__ bool above(Item a, Item b) { return a.key > b.key; }
__device__ Item shuffled(Item item, int by) { return {$shuffle$}; }
"""

_NAIVE_SORT = """
const float *row = x + (size_t)blockIdx.x * cols;
for (int c = threadIdx.x; c < cols; c += 256) {
    int rank = 0; // how many elements come before this one
    for (int j = 0; j < cols; j++) rank += row[j] < row[c] || (row[j] == row[c] && j < c);
    y[(size_t)blockIdx.x * cols + rank] = result(item_of(row, c));
}
"""

_NAIVE_TOPK = """
__shared__ float value[256];
__shared__ int index[256];
const float *row = x + (size_t)blockIdx.x * cols;
const int t = threadIdx.x;
float last = INFINITY; // the largest found so far that is no longer looked for
int last_index = -1;
for (int k = 0; k < $topk$; k++) {
    float best = -INFINITY;
    int best_index = 0x7fffffff;
    for (int c = t; c < cols; c += 256) {
        const bool left = row[c] < last || (row[c] == last && c > last_index);
        if (left && (best_index == 0x7fffffff || row[c] > best)) best = row[c], best_index = c;
    }
    value[t] = best, index[t] = best_index;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half && (value[t + half] > value[t] || (value[t + half] == value[t] && index[t + half] < index[t])))
            value[t] = value[t + half], index[t] = index[t + half];
        __syncthreads();
    }
    last = value[0], last_index = index[0];
    if (t == 0) y[(size_t)blockIdx.x * $topk$ + k] = last;
    __syncthreads();
}
"""

_ORDERED_BITS = """
bits = x.to(tl.int32, bitcast=True)
ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
key = tl.where(inside, ordered * 4294967296 + col, 0x7FFFFFFFFFFFFFFF)
"""


class RowSort(Operation):
    """Sorts each row in ascending order. Returns the values or the original indices."""

    inputs = (Array("x", "rows, cols"),)
    _draw = (9, (100, 700))
    _tolerance = Tolerance(1e-9, "sorting computes nothing: each output is one of the inputs, or an integer")
    timed = {"gpu": cases("rows cols: 65536 128; 2048 2048")}
    checks = cases("rows cols: 1 1; 5 2 large; 19 33 normal; 2 2500 normal; 3 515 outliers; 7 128 tiny; 9 61 zeros")

    def __init__(self, name: str, summary: str, eager: str, *, indices: bool) -> None:
        super().__init__(name, summary, eager=eager)
        self._indices = indices
        self.outputs = (Array("y", "rows, cols", "int32" if indices else "T"),)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, (x,) = sampler.xp, super().make_inputs(case, sampler)
        if not self._indices:
            return (x,)
        # The original indices are unique only if no two elements are equal, so the elements are a mapped permutation.
        place = xp.astype(xp.argsort(x), x.dtype) / x.shape[1] - 0.45
        return (place * place * place + place,)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.argsort(x) if self._indices else xp.sort(x, axis=-1),)

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {
                "ins": "x",
                "key": _ORDERED_BITS.strip() if self._indices else "key = x",
                "unkey": "key & 0xFFFFFFFF" if self._indices else "key",
                "item": "col_i" if self._indices else "x_i",
                "dtype": "torch.int32" if self._indices else "torch.float32",
            }
        if suffix == ".c":
            return {}
        both = {
            "output": "int" if self._indices else "float",
            "members": "float key; int index;" if self._indices else "float key;",
            "item": "row[c], c" if self._indices else "row[c]",
            "last": "INFINITY, 0x7fffffff" if self._indices else "INFINITY",
            "result": "index" if self._indices else "key",
            "shuffle": ", ".join(
                f"__shfl_xor_sync(0xffffffffu, item.{name}, by)" for name in ("key", "index")[: 1 + self._indices]
            ),
        }
        return {
            "entry": self.name,
            "parameters": self.c_arguments(),
            "prelude": filled(_PRELUDE, both),
            "items": filled(_PRELUDE, both),
            "naive": _NAIVE_SORT.strip(),
            "item_bytes": "8" if self._indices else "4",
        }


class TopK(Operation):
    """The k largest elements of each row, in descending order."""

    name = "topk_rows"
    count = 8
    inputs = (Array("x", "rows, cols"),)
    _tolerance = Tolerance(1e-9, "nothing is computed: each output is one of the inputs")
    outputs = (Array("y", f"rows, {count}"),)
    timed = {"gpu": cases("rows cols: 65536 256; 512 65536")}
    checks = cases(
        "rows cols: 1 8; 5 9 large; 67 33 normal; 2 10007 normal; 3 516 outliers; 7 128 tiny; 9 61 zeros; 4 300 equal"
    )
    _eager = f"torch.topk(x, {count}, dim=-1).values"
    summary = f"y[r] = the {count} largest elements of x[r], in descending order"

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (-xp.sort(-x, axis=-1)[:, : self.count],)

    def flops(self, case: Case) -> int:
        return case.dims["rows"] * (case.dims["cols"] - 1)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 30), "cols": rng.randint(8, rng.choice((100, 2500)))}
        return Case(dims, values=rng.choice(self.draw_styles))

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {"ins": "x", "topk": str(self.count)}
        if suffix == ".c":
            return {}
        return {
            "entry": self.name,
            "parameters": self.c_arguments(),
            "prelude": "",
            "naive": filled(_NAIVE_TOPK, {"topk": str(self.count)}),
            "topk": str(self.count),
        }


OPERATIONS = (
    RowSort(
        "sort_rows",
        "y[r] = the elements of x[r] in ascending order",
        "torch.sort(x, dim=-1).values",
        indices=False,
    ),
    RowSort(
        "argsort_rows",
        "x[r, y[r, 0]], x[r, y[r, 1]], ... are the elements of x[r], no two of which are equal, in ascending order",
        "torch.argsort(x, dim=-1).to(torch.int32)",
        indices=True,
    ),
    TopK(),
)
