"""Sorting the elements of each row, and finding the largest of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.scans.running import filled

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
    """The elements of each row in ascending order, or where they came from."""

    inputs = (Array("x", "rows, cols"),)
    timed = {"gpu": (Case({"rows": 65536, "cols": 128}), Case({"rows": 2048, "cols": 2048}))}
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 5, "cols": 2}, values="large"),
        Case({"rows": 19, "cols": 33}, values="normal"),
        Case({"rows": 2, "cols": 2500}, values="normal"),
        Case({"rows": 3, "cols": 515}, values="outliers"),
        Case({"rows": 7, "cols": 128}, values="tiny"),
        Case({"rows": 9, "cols": 61}, values="zeros"),
    )

    def __init__(self, name: str, summary: str, eager: str, *, indices: bool) -> None:
        super().__init__(name)
        self.summary, self._eager, self._indices = summary, eager, indices
        self.outputs = (Array("y", "rows, cols", "int32" if indices else "T"),)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, shape = sampler.xp, self.shape(self.inputs[0], case)
        x = sampler.values(shape, case.dtype)
        if not self._indices:
            return (x,)
        # Where elements came from is only known if no two are equal: a permutation, stretched out.
        place = xp.astype(xp.argsort(x), x.dtype) / shape[1] - 0.45
        return (place * place * place + place,)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.argsort(x) if self._indices else xp.sort(x, axis=-1),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(1e-9, "sorting computes nothing: each output is one of the inputs, or an integer")

    def flops(self, case: Case) -> int:
        return 0

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 9), "cols": rng.randint(1, rng.choice((100, 700)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {
                "ins": "x",
                "helpers": "",
                "eager": self._eager,
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
            "parameters": f"const float *__restrict__ x, {both['output']} *__restrict__ y, int rows, int cols",
            "prelude": filled(_PRELUDE, both),
            "items": filled(_PRELUDE, both),
            "naive": _NAIVE_SORT.strip(),
            "item_bytes": "8" if self._indices else "4",
        }


class TopK(Operation):
    """The few largest elements of each row, in descending order."""

    count = 8
    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", f"rows, {count}"),)
    timed = {"gpu": (Case({"rows": 65536, "cols": 256}), Case({"rows": 512, "cols": 65536}))}
    checks = (
        Case({"rows": 1, "cols": 8}),
        Case({"rows": 5, "cols": 9}, values="large"),
        Case({"rows": 67, "cols": 33}, values="normal"),
        Case({"rows": 2, "cols": 10007}, values="normal"),
        Case({"rows": 3, "cols": 516}, values="outliers"),
        Case({"rows": 7, "cols": 128}, values="tiny"),
        Case({"rows": 9, "cols": 61}, values="zeros"),
        Case({"rows": 4, "cols": 300}, values="equal"),
    )
    summary = f"y[r] = the {count} largest elements of x[r], in descending order"

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (-xp.sort(-x, axis=-1)[:, : self.count],)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(1e-9, "nothing is computed: each output is one of the inputs")

    def flops(self, case: Case) -> int:
        return case.dims["rows"] * (case.dims["cols"] - 1)

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 30), "cols": rng.randint(8, rng.choice((100, 2500)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            eager = f"torch.topk(x, {self.count}, dim=-1).values"
            return {"ins": "x", "helpers": "", "eager": eager, "topk": str(self.count)}
        if suffix == ".c":
            return {}
        return {
            "entry": self.name,
            "parameters": "const float *__restrict__ x, float *__restrict__ y, int rows, int cols",
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
    TopK("topk_rows"),
)
