"""Scatters: every input row is added to the output row that an index names, and many may name the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.gather_scatter.lists import SUM, stretches
from presage_catalogue.layout.moves import cases

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
    """y[indices[i]] += x[i], from zeros on; `width` is the number of columns, `1` for single numbers. The indices are
    uniform, but in the style `outliers` almost all alike."""

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        width: str,
        eager: str,
        timed: tuple[Case, ...],
        checks: tuple[Case, ...],
        draw: Callable[[random.Random], tuple[int, ...]],
    ) -> None:
        super().__init__(name)
        trailing = "" if width == "1" else f", {width}"
        self.summary, self._width = summary, width
        self.inputs = (Array("x", f"n{trailing}"), Array("indices", "n", "int32"))
        self.outputs = (Array("y", f"targets{trailing}"),)
        self.parameters, self.timed, self.checks = ("targets",), {"gpu": timed}, checks
        self._eager, self._draw = eager, draw

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        n, targets = case.dims["n"], case.dims["targets"]
        indices = sampler.integers((n,), 0, targets)
        if case.values == "outliers":
            indices = sampler.xp.where(sampler.integers((n,), 0, 10) > 0, indices[0], indices)
        return sampler.values(self.shape(self.inputs[0], case)), indices

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Sorted by target, what belongs to each is a stretch."""
        x, indices = inputs
        order = xp.argsort(indices)
        edges = xp.arange(case.dims["targets"] + 1, dtype=indices.dtype, device=indices.device)
        return (stretches(xp, x[order], xp.searchsorted(indices[order], edges)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, indices = inputs
        return self.oracle(xp, case, xp.abs(x), indices)

    def tolerance(self, case: Case) -> Tolerance:
        return SUM

    def flops(self, case: Case) -> int:
        rows, width = max(0, case.dims["n"] - case.dims["targets"]), case.dims.get(self._width, 1)
        return rows * width

    def draw_case(self, rng: random.Random) -> Case:
        styles = ("normal", "large", "tiny", "outliers")
        return Case(dict(zip(self.scalars, self._draw(rng), strict=True)), values=rng.choice(styles))

    def given(self, suffix: str) -> Mapping[str, str]:
        wide = self._width != "1"
        if suffix == ".py":
            shape = f"targets, {self._width}" if wide else "targets"
            return {
                "arguments": "x, indices, targets",
                "eager": self._eager,
                "scatter_width": "x.shape[1]" if wide else "1",
                "scatter_shape": shape.replace(self._width, "x.shape[1]") if wide else shape,
                **({} if wide else {"single": ""}),
            }
        sizes = ", ".join(f"int {name}" for name in self.scalars)
        arguments = f"const float *__restrict__ x, const int *__restrict__ indices, float *__restrict__ y, {sizes}"
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


OPERATIONS = (
    ScatterAdd(
        "scatter_add",
        "y[t] = sum of x[i] for all i with indices[i] = t: rows added to the rows that are named",
        width="cols",
        eager="torch.zeros(targets, x.shape[1], device=x.device).index_add_(0, indices, x)",
        timed=cases("n targets cols", (131072, 65536, 128), (1000000, 1000, 30)),
        checks=cases(
            "n targets cols",
            (1, 1, 1),
            (1, 7, 131, "large"),
            (531, 3, 1, "tiny"),
            (7, 100, 9),
            (267, 51, 130, "normal"),
            (600, 64, 64, "outliers"),
            (165, 2051, 36, "large"),
        ),
        draw=lambda rng: (rng.randint(1, 500), rng.randint(1, 300), rng.randint(1, 100)),
    ),
    ScatterAdd(
        "bincount_weighted",
        "y[t] = sum of x[i] for all i with indices[i] = t: a histogram with weights",
        width="1",
        eager="torch.bincount(indices, x, targets)",
        timed=cases("n targets", (16777216, 1000), (16777216, 1048576)),
        checks=cases(
            "n targets",
            (1, 1),
            (1, 1031, "large"),
            (5031, 1, "tiny"),
            (1003, 9),
            (30011, 4099, "normal"),
            (20000, 64, "outliers"),
            (131, 60000, "large"),
        ),
        draw=lambda rng: (rng.randint(1, 20000), rng.choice((rng.randint(1, 60), rng.randint(1, 9000)))),
    ),
)
