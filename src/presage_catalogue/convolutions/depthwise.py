"""Depthwise convolutions: every channel has a filter of its own, and the output is as large as the input."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler


class Depthwise(Operation):
    """y[i, c, p] = sum over taps k of x[i, c, p + k - before] * weight[c, k], where x is zero outside, and then perhaps
    a bias and SiLU. Kernels see planes of h by w; a sequence is a plane with one row."""

    def __init__(
        self,
        name: str,
        summary: str,
        taps: tuple[int, int],
        before: tuple[int, int],
        timed: Sequence[Sequence[int]],
        checks: Sequence[tuple[Any, ...]],
        eager: str,
        *,
        silu: bool = False,
    ) -> None:
        super().__init__(name)
        self.summary = summary
        self._taps, self._before, self._silu, self._eager = taps, before, silu, eager
        self._flat = taps[0] == 1
        shape = "n, c, w" if self._flat else "n, c, h, w"
        filters = f"c, {taps[1]}" if self._flat else f"c, {taps[0]}, {taps[1]}"
        self.inputs = (Array("x", shape), Array("weight", filters), *([Array("bias", "c")] if silu else []))
        self.outputs = (Array("y", shape),)
        self.timed = {"gpu": tuple(self._case(*sizes) for sizes in timed)}
        self.checks = tuple(self._case(*sizes[:-1], values=sizes[-1]) for sizes in checks)

    def _case(self, *sizes: int, values: str = "uniform") -> Case:
        return Case(
            dict(zip(("n", "c", "w") if self._flat else ("n", "c", "h", "w"), sizes, strict=True)), values=values
        )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

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

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            3e-6,
            "at most some 30 roundings of 6e-8 in any order, relative to the sizes of all terms; SiLU, whose slope is"
            " at most 1.1, and its exponential add a few",
        )

    def flops(self, case: Case) -> int:
        """A multiplication and an addition per output: fast filtering can save most of the other taps' work."""
        return 2 * math.prod(case.dims.values())

    def textbook_flops(self, case: Case) -> int:
        return self.flops(case) * math.prod(self._taps)

    def draw_case(self, rng: random.Random) -> Case:
        sizes = [rng.randint(1, 3), rng.randint(1, 12)]
        sizes += [rng.randint(1, 900)] if self._flat else [rng.randint(1, 40), rng.randint(1, 90)]
        return self._case(*sizes, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        names = [array.name for array in self.inputs]
        rows, cols = self._taps
        if suffix == ".py":
            return {
                "ins": ", ".join(names),
                "eager": self._eager,
                "tile_rows": "1" if self._flat else "8, 1, 2, 4, 16",
                "filter": f"({rows}, {cols}, {self._before[0]}, {self._before[1]})",
                "bias": "bias" if self._silu else "weight",
                "silu": "total += tl.load(bias_ptr + channel)\ntotal = total / (1.0 + tl.exp(-total))"
                if self._silu
                else "",
            }
        dims = "int n, int c, int w" if self._flat else "int n, int c, int h, int w"
        pointers = ", ".join(f"const float *__restrict__ {name}" for name in names)
        finish = "value / (1.0f + expf(-value))" if self._silu else "value"
        return {
            "entry": self.name,
            "arguments": f"{pointers}, float *__restrict__ y, {dims}",
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

OPERATIONS = (
    Depthwise(
        "depthwise_conv2d",
        "y[i, c, p, q] = sum over u, v < 3 of x[i, c, p + u - 1, q + v - 1] * weight[c, u, v], x zero outside",
        (3, 3),
        (1, 1),
        ((32, 64, 112, 112), (128, 512, 14, 14)),
        (
            (1, 1, 1, 1, "uniform"),
            (2, 3, 1, 140, "normal"),
            (1, 5, 70, 1, "large"),
            (1, 3, 33, 65, "outliers"),
            (2, 4, 37, 132, "normal"),
            (3, 17, 7, 7, "tiny"),
            (1, 2, 20, 20, "equal"),
        ),
        "F.conv2d(x, weight[:, None], padding=1, groups=x.shape[1])",
    ),
    Depthwise(
        "depthwise_conv2d_7x7",
        "y[i, c, p, q] = sum over u, v < 7 of x[i, c, p + u - 3, q + v - 3] * weight[c, u, v], x zero outside",
        (7, 7),
        (3, 3),
        ((16, 96, 56, 56), (64, 384, 14, 14)),
        (
            (1, 1, 1, 1, "uniform"),
            (2, 3, 1, 140, "normal"),
            (1, 5, 70, 1, "large"),
            (1, 3, 33, 65, "outliers"),
            (1, 4, 37, 68, "normal"),
            (3, 17, 7, 7, "tiny"),
        ),
        "F.conv2d(x, weight[:, None], padding=3, groups=x.shape[1])",
    ),
    Depthwise(
        "depthwise_conv1d_silu",
        "y[i, c, t] = silu(bias[c] + sum over k < 4 of x[i, c, t + k - 3] * weight[c, k]), x zero before its start",
        (1, 4),
        (0, 3),
        ((8, 2048, 2048), (64, 4096, 126)),
        (
            (1, 1, 1, "uniform"),
            (2, 3, 5, "normal"),
            (3, 5, 129, "large"),
            (1, 7, 1037, "outliers"),
            (2, 11, 64, "equal"),
            (5, 1, 333, "tiny"),
            (1, 3, 2052, "normal"),
        ),
        "F.silu(F.conv1d(F.pad(x, (3, 0)), weight[:, None], bias, groups=x.shape[1]))",
        silu=True,
    ),
)
