"""Depthwise convolutions: each channel has its own filter, and the output has the size of the input."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import CUDNN_IN_FLOAT32, Facts, Operation


class Depthwise(Operation):
    """y[i, c, p] = sum over taps k of x[i, c, p + k - before] * weight[c, k], with zero padding, optionally followed by
    a bias and SiLU. Kernels get planes of h by w. A sequence is a plane with one row."""

    torch_imports = CUDNN_IN_FLOAT32
    _flops = 2  # fast filtering algorithms can save most of the work of the other taps
    _tolerance = Tolerance(
        3e-6,
        "at most some 30 roundings of 6e-8 in any order, relative to the sizes of all terms; SiLU, whose slope is at"
        " most 1.1, and its exponential add a few",
    )

    def __init__(
        self,
        name: str,
        summary: str,
        taps: tuple[int, int],
        before: tuple[int, int],
        *,
        silu: bool = False,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        self._taps, self._before, self._silu = taps, before, silu
        self._flat = taps[0] == 1
        shape = "n, c, w" if self._flat else "n, c, h, w"
        filters = f"c, {taps[1]}" if self._flat else f"c, {taps[0]}, {taps[1]}"
        self.inputs = (Array("x", shape), Array("weight", filters), *([Array("bias", "c")] if silu else []))
        self.outputs = (Array("y", shape),)

    def _sum(self, xp: ModuleType, x: Any, weight: Any) -> Any:
        if self._flat:
            x, weight = x[:, :, None, :], weight[:, None, :]
        n, c, h, w = x.shape
        for axis in (2, 3):
            padding = self._before[axis - 2], self._taps[axis - 2] - 1 - self._before[axis - 2]
            edges = [
                xp.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), dtype=x.dtype, device=x.device)
                for size in padding
            ]
            x = xp.concat((edges[0], x, edges[1]), axis=axis)
        total = sum(
            x[:, :, u : u + h, v : v + w] * weight[None, :, u, v, None, None]
            for u in range(self._taps[0])
            for v in range(self._taps[1])
        )
        return xp.reshape(total, (n, c, w)) if self._flat else total

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        total = self._sum(xp, inputs[0], inputs[1])
        if self._silu:
            total = total + inputs[2][None, :, None]
            total = total / (1.0 + xp.exp(-total))
        return (total,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        sizes = [xp.abs(x) for x in inputs]
        total = self._sum(xp, sizes[0], sizes[1])
        return (total + sizes[2][None, :, None] if self._silu else total,)

    def textbook_flops(self, case: Case) -> int:
        return self.flops(case) * math.prod(self._taps)

    def code(self, suffix: str) -> Mapping[str, str]:
        rows, cols = self._taps
        if suffix == ".py":
            return {
                "ins": ", ".join(self.ins),
                "tile_rows": "1" if self._flat else "8, 1, 2, 4, 16",
                "filter": f"({rows}, {cols}, {self._before[0]}, {self._before[1]})",
                "bias": "bias" if self._silu else "weight",
                "silu": "total += tl.load(bias_ptr + channel)\ntotal = total / (1.0 + tl.exp(-total))"
                if self._silu
                else "",
            }
        finish = "value / (1.0f + expf(-value))" if self._silu else "value"
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "points": "n * c * w" if self._flat else "n * c * h * w",
            "macros": f"#define ROWS {rows}\n#define COLS {cols}",
            "naive": ("const int h = 1;\n" if self._flat else "")
            + _NAIVE.replace("BEGIN", "bias[channel]" if self._silu else "0.0f")
            .replace("FINISH", finish)
            .replace("ABOVE", str(self._before[0]))
            .replace("LEFT", str(self._before[1])),
            "planes": "n * c",
            "h": "1" if self._flat else "h",
            "rows": str(rows),
            "cols": str(cols),
            "above": str(self._before[0]),
            "left": str(self._before[1]),
            "height": "const int h = 1;" if self._flat else "",
            "begin": "bias[channel]" if self._silu else "0.0f",
            "silu": finish,
            "tile_cols": "512, 128, 256, 1024, 2048" if self._flat else "32, 16, 64, 128",
            "high": "// presage: tune TY = 1" if self._flat else "// presage: tune TY = 16, 4, 8, 32, 64",
            "tall": "// presage: tune BY = 1" if self._flat else "// presage: tune BY = 8, 1, 4, 16",
            "run": "// presage: tune ROWS = 1" if self._flat else "// presage: tune ROWS = 4, 1, 2, 8, 16",
        }


_NAIVE = """
const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
if (at >= (size_t)n * c * h * w) return;
const int col = at % w, row = at / w % h, channel = at / w / h % c;
const float *plane = x + at / w / h * h * w;
float value = BEGIN;
for (int u = 0; u < ROWS; u++)
    for (int v = 0; v < COLS; v++) {
        const int p = row + u - ABOVE, q = col + v - LEFT;
        if (p >= 0 && p < h && q >= 0 && q < w) value += weight[(channel * ROWS + u) * COLS + v] * plane[p * w + q];
    }
y[at] = FINISH;
""".strip()


class CausalConv1d(Operation):
    torch_imports = CUDNN_IN_FLOAT32
    name = "causal_conv1d"
    summary = (
        "y[b, c, t] = sum over j < width of weight[c, j] * x[b, c, t - (width - 1) + j],"
        " where x is zero to the left of its start"
    )
    inputs = (Array("x", "batch, channels, length"), Array("weight", "channels, width"))
    outputs = (Array("y", "batch, channels, length"),)
    timed = {
        "cpu": cases("batch channels length width: 4 256 1024 4; 2 48 8192 16"),
        "gpu": cases("batch channels length width: 8 2048 2048 4; 64 4096 128 4; 2 1024 16384 16"),
    }
    # No `equal` case is wider than 30: the rounding errors of equal terms add up beyond the tolerance's random walk.
    checks = cases(
        "batch channels length width: 1 1 1 1; 2 3 5 9 normal; 3 5 129 4 large; 1 7 1037 3 outliers; 2 11 65 16 equal;"
        " 5 1 333 1 tiny; 1 2 200 67 normal"
    )
    _draw = (4, 40, 900, 20)
    _eager = "F.conv1d(F.pad(x, (weight.shape[1] - 1, 0)), weight[:, None], groups=weight.shape[0])"

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        batch, channels, length, width = case.dims.values()
        left = xp.zeros((batch, channels, width - 1), dtype=x.dtype, device=x.device)
        padded = xp.concat((left, x), axis=-1)
        return (sum(weight[:, j : j + 1] * padded[:, :, j : j + length] for j in range(width)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, weight = inputs
        return (xp.sqrt(self.oracle(xp, case, x * x, weight * weight)[0]),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(case.dims["width"]),
            "width roundings of 2^-24 in a running sum grow like its square root; 16 covers any order, and stays"
            " under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """At most two operations per output: fast filtering can save most of the work of the other taps."""
        batch, channels, length, width = case.dims.values()
        return batch * channels * length * min(2, width)



OPERATIONS = (
    CausalConv1d(),
    Depthwise(
        "depthwise_conv2d",
        "y[i, c, p, q] = sum over u, v < 3 of x[i, c, p + u - 1, q + v - 1] * weight[c, u, v], x zero outside",
        (3, 3),
        (1, 1),
        timed=cases("n c h w: 32 64 112 112; 128 512 14 14"),
        checks=cases(
            "n c h w: 1 1 1 1; 2 3 1 140 normal; 1 5 70 1 large; 1 3 33 65 outliers; 2 4 37 132 normal;"
            " 3 17 7 7 tiny; 1 2 20 20 equal"
        ),
        draw=(3, 12, 40, 90),
        eager="F.conv2d(x, weight[:, None], padding=1, groups=x.shape[1])",
    ),
    Depthwise(
        "depthwise_conv2d_7x7",
        "y[i, c, p, q] = sum over u, v < 7 of x[i, c, p + u - 3, q + v - 3] * weight[c, u, v], x zero outside",
        (7, 7),
        (3, 3),
        timed=cases("n c h w: 16 96 56 56; 64 384 14 14"),
        checks=cases(
            "n c h w: 1 1 1 1; 2 3 1 140 normal; 1 5 70 1 large; 1 3 33 65 outliers; 1 4 37 68 normal; 3 17 7 7 tiny"
        ),
        draw=(3, 12, 40, 90),
        eager="F.conv2d(x, weight[:, None], padding=3, groups=x.shape[1])",
    ),
    Depthwise(
        "depthwise_conv1d_silu",
        "y[i, c, t] = silu(bias[c] + sum over k < 4 of x[i, c, t + k - 3] * weight[c, k]), x zero before its start",
        (1, 4),
        (0, 3),
        timed=cases("n c w: 8 2048 2048; 64 4096 126"),
        checks=cases(
            "n c w: 1 1 1; 2 3 5 normal; 3 5 129 large; 1 7 1037 outliers; 2 11 64 equal; 5 1 333 tiny; 1 3 2052 normal"
        ),
        draw=(3, 12, 900),
        eager="F.silu(F.conv1d(F.pad(x, (3, 0)), weight[:, None], bias, groups=x.shape[1]))",
        silu=True,
    ),
)
