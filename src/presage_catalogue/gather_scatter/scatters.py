"""Scatters: each input element is added to the output element that its index names. Indices may repeat."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.gather_scatter.lists import SUM, stretches
from presage_catalogue.operation import Facts, Operation

_NAIVE = """\
extern "C" __global__ void clear({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < targets * {width}) y[i] = 0.0f;
}}

extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n * {width}) atomicAdd(y + (size_t)indices[i / {width}] * {width} + i % {width}, x[i]);
}}"""


class ScatterAdd(Operation):
    """y[indices[i]] += x[i], starting from zeros. `width` is the number of columns, `1` for scalars. The indices are
    uniform, except in the style `outliers`, where about nine in ten are equal."""

    parameters = ("targets",)
    _tolerance = SUM

    def __init__(self, name: str, summary: str, *, width: str, **facts: Unpack[Facts]) -> None:
        super().__init__(name, summary, **facts)
        trailing = "" if width == "1" else f", {width}"
        self._width = width
        self.inputs = (Array("x", f"n{trailing}"), Array("indices", "n", "int32"))
        self.outputs = (Array("y", f"targets{trailing}"),)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        n, targets = case.dims["n"], case.dims["targets"]
        indices = sampler.integers((n,), 0, targets)
        if case.values == "outliers":
            indices = sampler.xp.where(sampler.integers((n,), 0, 10) > 0, indices[0], indices)
        return sampler.values(self.shape(self.inputs[0], case)), indices

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Sort by target, so that the inputs of each target are contiguous, and sum each run."""
        x, indices = inputs
        order = xp.argsort(indices)
        edges = xp.arange(case.dims["targets"] + 1, dtype=indices.dtype, device=indices.device)
        return (stretches(xp, x[order], xp.searchsorted(indices[order], edges)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, indices = inputs
        return self.oracle(xp, case, xp.abs(x), indices)

    def flops(self, case: Case) -> int:
        rows, width = max(0, case.dims["n"] - case.dims["targets"]), case.dims.get(self._width, 1)
        return rows * width

    def code(self, suffix: str) -> Mapping[str, str]:
        wide = self._width != "1"
        if suffix == ".py":
            shape = f"targets, {self._width}" if wide else "targets"
            return {
                "arguments": "x, indices, targets",
                "scatter_width": "x.shape[1]" if wide else "1",
                "scatter_shape": shape.replace(self._width, "x.shape[1]") if wide else shape,
                **({} if wide else {"single": ""}),
            }
        arguments = self.c_arguments()
        second = f"// presage: block 256\n// presage: entry {self.name}\n// presage: grid cdiv(n * {self._width}, 256)"
        return {
            "entry": "clear",
            "include": "",
            "naive_launch": f"cdiv(targets * {self._width}, 256)\n{second}",
            "naive": _NAIVE.format(arguments=arguments, entry=self.name, width=self._width),
            "scatter_entry": self.name,
            "scatter_arguments": arguments,
            "scatter_width": self._width,
            "scatter_wides": "1, 4, 2" if wide else "1",
            "scatter_sizes": ", ".join(self.scalars),
            **({"rows_wide": ""} if wide else {"single": ""}),
        }


class Histogram(Operation):
    name = "histogram"
    summary = "counts[v] = how many of x[0] .. x[n - 1] equal v; every x is in [0, bins)"
    inputs = (Array("x", "n", "int32"),)
    outputs = (Array("counts", "bins", "int64"),)
    parameters = ("bins",)
    timed = {
        "cpu": cases("n bins: 2097152 256 outliers; 1048576 65536"),
        "gpu": cases("n bins: 67108864 256; 67108864 256 outliers; 33554432 1048576"),
    }
    # `equal` puts every element into one bin, `outliers` all but one in a hundred: the worst contention.
    checks = cases("n bins: 1 1; 1001 1; 1 977; 100003 7 equal; 70001 4099 outliers; 131 100003; 65537 33 equal")
    draw_styles = ("uniform", "outliers", "equal")
    _tolerance = Tolerance(0.0, "counts are integers, so they are equal or wrong", absolute=0.0)
    _draw = (60000, (64, 20000))
    _eager = "torch.bincount(x, minlength=bins)"

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        n, bins = case.dims.values()
        x = sampler.integers((n,), 0, bins)
        if case.values == "outliers":
            x = sampler.xp.where(sampler.integers((n,), 0, 100) > 0, x[0], x)
        return (x,)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Sort x. The count of a value is the distance between its insertion point and that of the next value."""
        (x,) = inputs
        edges = xp.arange(case.dims["bins"] + 1, dtype=x.dtype, device=x.device)
        places = xp.searchsorted(xp.sort(x), edges)
        return (places[1:] - places[:-1],)

    def flops(self, case: Case) -> int:
        """One addition or comparison per element, except for the elements of one bin, which follows from the total."""
        return case.dims["n"] - case.dims["n"] // case.dims["bins"]



OPERATIONS = (
    Histogram(),
    ScatterAdd(
        "scatter_add",
        "y[t] = sum of x[i] for all i with indices[i] = t: rows added to the rows that are named",
        width="cols",
        eager="torch.zeros(targets, x.shape[1], device=x.device).index_add_(0, indices, x)",
        timed=cases("n targets cols: 131072 65536 128; 1000000 1000 30"),
        checks=cases(
            "n targets cols: 1 1 1; 1 7 131 large; 531 3 1 tiny; 7 100 9; 267 51 130 normal; 600 64 64 outliers;"
            " 165 2051 36 large"
        ),
        draw=(500, 300, 100),
    ),
    ScatterAdd(
        "bincount_weighted",
        "y[t] = sum of x[i] for all i with indices[i] = t: a histogram with weights",
        width="1",
        eager="torch.bincount(indices, x, targets)",
        timed=cases("n targets: 16777216 1000; 16777216 1048576"),
        checks=cases(
            "n targets: 1 1; 1 1031 large; 5031 1 tiny; 1003 9; 30011 4099 normal; 20000 64 outliers; 131 60000 large"
        ),
        draw=(20000, (60, 9000)),
    ),
)
