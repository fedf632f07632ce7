"""Pooling without padding: a reduction of the elements of each window that fits completely.

Each entry of `OPERATIONS` gives the reduction. The names of its sizes determine whether windows are 2-D or 1-D.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import Facts, Formula, Operation

_PLANES = ("n", "c", "h", "w", "window", "stride")
_ROWS = ("n", "c", "w", "window", "stride")
_HALVES = ("n", "c", "h", "w")


class Pooling(Operation):
    """Reduces each window by adding its elements to a state, in row-major order, and writing the result.

    The families have placeholders for the state's type and start value, for adding `x` (and `index`, the position of x
    in its plane), for merging with the state `b` of later elements, and for writing the output."""

    torch_imports = "import torch.nn.functional as F"
    largest_window = 6

    def __init__(self, name: str, summary: str, reduction: Reduction, **facts: Unpack[Facts]) -> None:
        super().__init__(name, summary, **facts)
        self._reduction, self._names = reduction, self.scalars
        shape, out = {
            _PLANES: ("n, c, h, w", "n, c, (h - window) // stride + 1, (w - window) // stride + 1"),
            _ROWS: ("n, c, w", "n, c, (w - window) // stride + 1"),
            _HALVES: ("n, c, h, w", "n, c, h // 2, w // 2"),
        }[self.scalars]
        self.inputs = (Array("x", shape),)
        self.outputs = (Array("y", out), *([Array("index", out, "int64")] if reduction.indexed else []))
        self.parameters = ("window", "stride") if "window" in self.scalars else ()

    def _window(self, case: Case) -> tuple[int, int, int, int]:
        """Return the window's height and width, and the vertical and horizontal stride."""
        if self._names == _HALVES:
            return 2, 2, 2, 2
        window, stride = case.dims["window"], case.dims["stride"]
        return (window, window, stride, stride) if "h" in case.dims else (1, window, 1, stride)

    def _windows(self, case: Case, x: Any) -> list[Any]:
        """Return one array per window position: the first element of each window, the second, and so on."""
        high, wide, down, across = self._window(case)
        if "h" not in case.dims:
            x = x[:, :, None, :]
        rows, cols = (x.shape[2] - high) // down + 1, (x.shape[3] - wide) // across + 1
        return [
            x[:, :, u : u + (rows - 1) * down + 1 : down, v : v + (cols - 1) * across + 1 : across]
            for u in range(high)
            for v in range(wide)
        ]

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        windows = self._windows(case, inputs[0])
        outputs = [self._reduction.oracle(xp, windows)]
        if self._reduction.indexed:
            shape = inputs[0].shape[2:]
            where = xp.reshape(xp.arange(math.prod(shape), device=inputs[0].device), (1, 1, *shape))
            largest, index = windows[0], xp.astype(windows[0] * 0, xp.int64)
            for x, place in zip(windows, self._windows(case, where), strict=True):
                index = xp.where((x > largest) | (x is windows[0]), place, index)
                largest = xp.maximum(largest, x)
            outputs.append(index)
        return tuple(xp.reshape(y, self.shape(self.outputs[0], case)) for y in outputs)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._reduction.scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        size = self._reduction.scale(xp, self._windows(case, inputs[0]))
        return (xp.reshape(size, self.shape(self.outputs[0], case)),)

    def tolerance(self, case: Case) -> Tolerance:
        return self._reduction.tolerance

    def bytes(self, case: Case) -> int:
        """Rows and columns that no window covers are not counted as read."""
        high, wide, down, across = self._window(case)
        shape = self.shape(self.outputs[0], case)
        rows, cols = (shape[2] if "h" in case.dims else 1), shape[-1]
        read = ((rows - 1) * min(high, down) + high) * ((cols - 1) * min(wide, across) + wide)
        written = sum(self.array_bytes(array, case) for array in self.outputs)
        return 4 * case.dims["n"] * case.dims["c"] * read + written

    def flops(self, case: Case) -> int:
        """One operation per element inside a window. Overlapping windows may share operations."""
        return self.bytes(case) // 4 - math.prod(self.shape(self.outputs[0], case)) * (1 + 2 * self._reduction.indexed)

    def draw_case(self, rng: random.Random) -> Case:
        window, stride = rng.randint(1, self.largest_window), rng.randint(1, 4)
        sizes = {
            "n": rng.randint(1, 3),
            "c": rng.randint(1, 8),
            "h": rng.randint(max(2, window), 40),
            "w": rng.randint(max(2, window), 110),
            "window": window,
            "stride": stride,
        }
        return Case({name: sizes[name] for name in self._names}, values=rng.choice(self.draw_styles))

    def code(self, suffix: str) -> Mapping[str, str]:
        reduction, kind = self._reduction, self._names
        if suffix == ".py":
            return {
                "arguments": "data" if "window" in self._names else "(*data, 2, 2)",
                "ins": ", ".join(("x", *self.parameters)),
                "flat": "x.view(x.shape[0], x.shape[1], 1, -1)" if kind == _ROWS else "x",
                "high": "1" if kind == _ROWS else "window",
                "down": "1" if kind == _ROWS else "stride",
                "triton_rows": "1, 2" if kind == _ROWS else "4, 1, 2, 8, 16",
                **reduction.triton,
                "shape": "n, c, cols" if kind == _ROWS else "n, c, rows, cols",
            }
        geometry = {
            _PLANES: "const int high = window, wide = window, down = stride, across = stride;",
            _ROWS: "const int h = 1, high = 1, wide = window, down = 1, across = stride;",
            _HALVES: "const int high = 2, wide = 2, down = 2, across = 2;",
        }[kind]
        rows, cols = {
            _PLANES: ("((h - window) // stride + 1)", "((w - window) // stride + 1)"),
            _ROWS: ("1", "((w - window) // stride + 1)"),
            _HALVES: ("(h // 2)", "(w // 2)"),
        }[kind]
        heights = {_PLANES: ("h", "window", "stride"), _ROWS: ("1", "1", "1"), _HALVES: ("h", "2", "2")}[kind]
        widths = {_PLANES: ("window", "stride"), _ROWS: ("window", "stride"), _HALVES: ("2", "2")}[kind]
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "geometry": f"{geometry}\nconst int rows = (h - high) / down + 1, cols = (w - wide) / across + 1;",
            "planes": "n * c",
            "rows": rows,
            "cols": cols,
            "h": heights[0],
            "high": heights[1],
            "down": heights[2],
            "wide": widths[0],
            "across": widths[1],
            "square": "0" if kind == _ROWS else "1",
            "strip_rows": "1" if kind == _ROWS else "4, 1, 2, 8",
            "tile_rows": "1" if kind == _ROWS else "16, 8, 32",
            "tile_cols": "256, 64, 128, 512, 1024, 2048" if kind == _ROWS else "32, 64, 128",
            **reduction.c,
        }


class MaxPool2d(Pooling):
    largest_window = 8

    def flops(self, case: Case) -> int:
        """Only the comparisons of windows that do not overlap. The windows between them may share all comparisons."""
        n, c, _, _, window, stride = case.dims.values()
        _, _, rows, cols = self.shape(self.outputs[0], case)
        apart = -(-window // stride)
        return n * c * -(-rows // apart) * -(-cols // apart) * (window * window - 1)


@dataclass(frozen=True)
class Reduction:
    """The reduction of a window: the oracle, the kernels' code, and the tolerance between them."""

    oracle: Formula
    tolerance: Tolerance
    c: Mapping[str, str]
    triton: Mapping[str, str]
    scale: Formula | None = None
    indexed: bool = False


def _float_state(start: str, take: str, merge: str, write: str) -> dict[str, str]:
    """Return the C code of a reduction whose state is one float."""
    state = {"state": "typedef float State;", "state_bytes": "4"}
    return {**state, "start": start, "take": take, "merge": merge, "write": write}


_EXACT = Tolerance(0.0, "a maximum is one of its inputs, so nothing is rounded", absolute=0.0)
_SUMMED = Tolerance(
    4e-6,
    "at most some 60 roundings of 6e-8 in any order, relative to the mean size of the terms",
)

MAX = Reduction(
    lambda xp, windows: reduce(xp.maximum, windows),
    _EXACT,
    _float_state("-INFINITY", "s = fmaxf(s, x);", "s = fmaxf(s, b);", "y[at] = s;"),
    {"start": "-float('inf')", "take": "tl.maximum(state, x)", "merge": "tl.maximum(a, b)", "finish": "state"},
)
MEAN = Reduction(
    lambda xp, windows: sum(windows[1:], windows[0]) / len(windows),
    _SUMMED,
    _float_state("0.0f", "s += x;", "s += b;", "y[at] = s / (high * wide);"),
    {"start": "0.0", "take": "state + x", "merge": "a + b", "finish": "state / COUNT"},
    scale=lambda xp, windows: sum(xp.abs(x) for x in windows) / len(windows),
)
ROOT_OF_SQUARES = Reduction(
    lambda xp, windows: xp.sqrt(sum(x * x for x in windows)),
    Tolerance(4e-6, "at most some 60 roundings of 6e-8 in any order; the root halves them"),
    _float_state("0.0f", "s += x * x;", "s += b;", "y[at] = sqrtf(s);"),
    {"start": "0.0", "take": "state + x * x", "merge": "a + b", "finish": "tl.sqrt(state)"},
)
FIRST_MAX = Reduction(
    lambda xp, windows: reduce(xp.maximum, windows),
    _EXACT,
    {
        "state": "struct State {\n    float value;\n    int index;\n};",
        "state_bytes": "8",
        "start": "{-INFINITY, -1}",
        "take": "if (x > s.value) s.value = x, s.index = index;",
        "merge": "if (b.value > s.value) s = b;",
        "write": "y[at] = s.value;\nindex[at] = s.index;",
    },
    {"ties": "first, last"},
    indexed=True,
)

_PLANE_CHECKS = cases(
    "n c h w window stride: 1 1 2 2 1 1; 2 3 5 5 5 3 normal; 1 5 17 83 3 2 large; 3 2 23 41 2 4 outliers;"
    " 1 2 9 70 4 1 equal; 2 4 31 30 2 2 tiny; 1 3 40 131 7 3 normal"
)
_ROW_CHECKS = cases(
    "n c w window stride: 1 1 1 1 1; 2 3 5 5 3 normal; 1 5 683 3 2 large; 3 2 341 2 5 outliers; 1 2 70 4 1 equal;"
    " 2 40 30 2 2 tiny; 1 3 1031 7 3 normal"
)
_HALF_CHECKS = cases(
    "n c h w: 1 1 2 2; 2 3 5 7 normal; 1 5 17 83 large; 3 2 23 141 outliers; 1 2 9 70 equal; 2 4 32 136 normal;"
    " 1 3 67 20 tiny"
)
_IN_PLANE = "y[i, c, p, q] = {} over u, v < window of x[i, c, p * stride + u, q * stride + v]: windows that fit wholly"
_IN_ROW = "y[i, c, q] = {} over v < window of x[i, c, q * stride + v]: windows that fit wholly, no padding"

OPERATIONS = (
    MaxPool2d(
        "maxpool2d",
        "y[i, c, p, q] = max over u, v < window of x[i, c, p * stride + u, q * stride + v]:"
        " windows that fit wholly, no padding",
        MAX,
        timed={
            "cpu": cases("n c h w window stride: 4 32 112 112 3 2; 1 64 96 96 7 1"),
            "gpu": cases("n c h w window stride: 64 64 112 112 3 2; 32 128 96 96 7 1; 64 64 224 224 2 2"),
        },
        checks=cases(
            "n c h w window stride: 1 1 1 1 1 1; 2 3 5 5 5 3 normal; 1 5 17 83 3 2 large; 3 2 23 41 2 5 outliers;"
            " 1 2 9 70 4 1 equal; 2 4 31 30 2 2 tiny; 1 3 40 131 8 3 normal; 1 2 12 37 1 2 zeros"
        ),
        eager="F.max_pool2d(x, window, stride)",
    ),
    Pooling(
        "avgpool2d",
        _IN_PLANE.format("mean"),
        MEAN,
        timed=cases("n c h w window stride: 64 64 112 112 3 2; 32 128 96 96 5 1"),
        checks=_PLANE_CHECKS,
        eager="F.avg_pool2d(x, window, stride)",
    ),
    Pooling(
        "lp_pool2d",
        _IN_PLANE.format("the root of the sum of squares"),
        ROOT_OF_SQUARES,
        timed=cases("n c h w window stride: 64 64 112 112 2 2; 32 128 96 96 4 1"),
        checks=_PLANE_CHECKS,
        eager="F.lp_pool2d(x, 2.0, window, stride)",
    ),
    Pooling(
        "maxpool2d_indices",
        _IN_PLANE.format("max") + "; index[i, c, p, q] = where the first such x lies in its plane of h * w",
        FIRST_MAX,
        timed=cases("n c h w window stride: 64 64 112 112 2 2; 32 64 96 98 3 2"),
        checks=_PLANE_CHECKS,
        eager="F.max_pool2d(x, window, stride, return_indices=True)",
    ),
    Pooling(
        "maxpool1d",
        _IN_ROW.format("max"),
        MAX,
        timed=cases("n c w window stride: 16 128 16384 4 4; 256 512 254 8 1"),
        checks=_ROW_CHECKS,
        eager="F.max_pool1d(x, window, stride)",
    ),
    Pooling(
        "avgpool1d",
        _IN_ROW.format("mean"),
        MEAN,
        timed=cases("n c w window stride: 16 128 16384 3 2; 256 512 254 16 1"),
        checks=_ROW_CHECKS,
        eager="F.avg_pool1d(x, window, stride)",
    ),
    Pooling(
        "downsample_mean2x2",
        "y[i, c, p, q] = mean of the four x[i, c, 2 p .. 2 p + 1, 2 q .. 2 q + 1]; an odd last row or column is"
        " left out",
        MEAN,
        timed=cases("n c h w: 16 3 1024 1024; 256 64 57 58"),
        checks=_HALF_CHECKS,
        eager="F.avg_pool2d(x, 2)",
    ),
)
