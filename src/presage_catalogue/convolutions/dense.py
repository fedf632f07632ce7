"""Dense convolutions in one, two and three dimensions, without padding.

Each entry of `OPERATIONS` gives the number of filter taps along each axis, as a number or as the name of a size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import CUDNN_IN_FLOAT32, Facts, Operation

Taps = Sequence[int | str]
_AXES = "dhw"


class Convolution(Operation):
    """y[i, o, p] = sum over channels c and taps k of x[i, c, p * stride + k * dilation] * weight[o, c, k], optionally
    followed by a bias and ReLU. Kernels always get three axes. A missing axis has one element and one tap."""

    torch_imports = CUDNN_IN_FLOAT32
    def __init__(
        self,
        name: str,
        summary: str,
        taps: Taps,
        timed: str,
        /,
        *,
        stride: int = 1,
        dilation: int = 1,
        relu: bool = False,
        cpu: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        self._taps, self._stride, self._dilation, self._relu = tuple(taps), stride, dilation, relu
        self._axes = _AXES[-len(taps) :]
        self._names = ("n", "c", *self._axes, "o", *(tap for tap in taps if isinstance(tap, str)))
        super().__init__(name, summary, **facts)
        kinds = {"cpu": cpu, "gpu": timed}
        self.timed = {kind: cases(f"{' '.join(self._names)}: {rows}") for kind, rows in kinds.items() if rows}
        self._eager = self._call()
        self._reach = [_reach(tap, dilation) for tap in taps]
        self._sizes = [f"(({axis} - {far}) // {stride} + 1)" for axis, far in zip(self._axes, self._reach, strict=True)]
        self.inputs = (
            Array("x", f"n, c, {', '.join(self._axes)}"),
            Array("weight", f"o, c, {', '.join(map(str, taps))}"),
            *([Array("bias", "o")] if relu else []),
        )
        self.outputs = (Array("y", f"n, o, {', '.join(self._sizes)}"),)
        if "checks" not in facts:
            self.checks = tuple(self._check(i) for i in range(7))

    def _case(self, *sizes: int, values: str = "uniform") -> Case:
        return Case(dict(zip(self._names, sizes, strict=True)), values=values)

    def _check(self, i: int) -> Case:
        """Return check case i: minimal, narrow, wide or deep. The `equal` case has few terms, as its errors add up."""
        n, c, o = ((1, 1, 1), (2, 3, 4), (1, 5, 7), (3, 9, 13), (1, 1, 5), (2, 17, 9), (1, 40, 3))[i]
        beyond: dict[int, tuple[tuple[int, ...], ...]] = {
            1: ((0,), (4,), (82,), (36,), (69,), (20,), (130,)),
            2: ((0, 0), (3, 1), (9, 80), (10, 34), (6, 67), (16, 18), (5, 127)),
            3: ((0, 0, 0), (1, 3, 1), (2, 3, 60), (4, 7, 9), (2, 2, 33), (5, 3, 12), (2, 1, 109)),
        }
        sizes = [int(far) + more for far, more in zip(self._reach, beyond[len(self._taps)][i], strict=True)]
        values = ("uniform", "normal", "large", "outliers", "equal", "tiny", "normal")[i]
        return self._case(n, c, *sizes, o, values=values)

    def _numbers(self, case: Case) -> list[int]:
        """Return the number of filter taps along each axis."""
        return [case.dims[tap] if isinstance(tap, str) else tap for tap in self._taps]

    def _sum(self, xp: ModuleType, case: Case, x: Any, weight: Any) -> Any:
        """Compute the sum with one matrix product per tap, over the image shifted by the tap's offset."""
        n, _, *out = self.shape(self.outputs[0], case)
        taps = self._numbers(case)
        total: Any = 0.0
        for tap in range(math.prod(taps)):
            window: list[slice] = []
            at: list[int] = []
            rest = tap
            for size, length in zip(reversed(taps), reversed(out), strict=True):
                first = rest % size * self._dilation
                at.insert(0, rest % size)
                window.insert(0, slice(first, first + (length - 1) * self._stride + 1, self._stride))
                rest //= size
            shifted = xp.reshape(x[(slice(None), slice(None), *window)], (n, case.dims["c"], math.prod(out)))
            total = total + xp.matmul(weight[(slice(None), slice(None), *at)], shifted)
        return total

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        total = self._sum(xp, case, inputs[0], inputs[1])
        if self._relu:
            total = xp.maximum(total + inputs[2][None, :, None], 0.0)
        return (xp.reshape(total, self.shape(self.outputs[0], case)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        squares = self._sum(xp, case, inputs[0] ** 2, inputs[1] ** 2)
        if self._relu:
            squares = squares + inputs[2][None, :, None] ** 2
        return (xp.reshape(xp.sqrt(squares), self.shape(self.outputs[0], case)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(case.dims["c"] * math.prod(self._numbers(case))),
            "as many roundings of 2^-24 in a running sum as it has terms grow like their square root; 16 covers any"
            " order and small Winograd transforms, and stays under the 2^-12 that rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """One per output element and input channel: Winograd and FFT can save nearly all taps, and Strassen more."""
        return math.prod(self.shape(self.outputs[0], case)) * case.dims["c"]

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case) * math.prod(self._numbers(case))

    def bytes(self, case: Case) -> int:
        """Elements that no tap reaches because of the stride are not counted as read."""
        read = case.dims["n"] * case.dims["c"]
        for taps, size in zip(self._numbers(case), self.shape(self.outputs[0], case)[2:], strict=True):
            read *= (size - 1) * min(taps, self._stride) + taps
        whole = self.array_bytes(self.inputs[0], case)
        return super().bytes(case) - whole + min(whole, 4 * read)

    def draw_case(self, rng: random.Random) -> Case:
        if callable(self._draw):
            return super().draw_case(rng)
        limits = {1: (300,), 2: (25, 60), 3: (5, 9, 24)}[len(self._taps)]
        sizes = [int(far) + rng.randint(0, most) for far, most in zip(self._reach, limits, strict=True)]
        return self._case(
            rng.randint(1, 3), rng.randint(1, 16), *sizes, rng.randint(1, 20), values=rng.choice(self.draw_styles)
        )

    def code(self, suffix: str) -> Mapping[str, str]:
        missing = 3 - len(self._taps)
        taps: tuple[int | str, ...] = (*[1] * missing, *self._taps)
        strides = (*[1] * missing, *[self._stride] * len(self._taps))
        dilations = (*[1] * missing, *[self._dilation] * len(self._taps))
        if suffix == ".py":
            return {
                "ins": ", ".join(self.ins),
                "sizes": f"n, c, {', '.join(self._axes)}",
                "ones": "; ".join(f"{axis} = 1" for axis in _AXES[:missing]) or "pass",
                "taps": str(taps) if all(isinstance(tap, int) for tap in taps) else "(1, *weight.shape[2:])",
                "strides": str(strides),
                "dilations": str(dilations),
                "shape": f"n, o, {', '.join('o' + axis for axis in self._axes)}",
                "bias": "bias" if self._relu else "weight",
                "epilogue": "total = tl.maximum(total + tl.load(bias_ptr + out, mask=out < o, other=0.0), 0.0)"
                if self._relu
                else "",
            }
        values = {"K": taps, "S": strides, "D": dilations}
        macros = [
            f"#define {letter}{axis.upper()} {value}"
            for letter, triple in values.items()
            for axis, value in zip(_AXES, triple, strict=True)
        ]
        ones = "".join(f"const int {axis} = 1;\n" for axis in _AXES[:missing])
        sizes = (
            f"{ones}const int od = (d - (KD - 1) * DD - 1) / SD + 1, oh = (h - (KH - 1) * DH - 1) / SH + 1;\n"
            "const int ow = (w - (KW - 1) * DW - 1) / SW + 1, area = od * oh * ow;"
        )
        finish = "fmaxf(value + bias[out], 0.0f)" if self._relu else "value"
        area = " * ".join(self._sizes)
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "macros": "\n".join(macros),
            "naive": f"{sizes}\n{_NAIVE}".replace("FINISH", finish),
            "sizes": sizes,
            "points": f"n * o * {area}",
            "area": area,
            "depth": self._sizes[0] if len(taps) - missing == 3 else "1",
            "height": self._sizes[-2] if missing < 2 else "1",
            "width": self._sizes[-1],
            "taps": _product(taps),
            "tall": str(taps[1]),
            "finish": finish,
            "tiles": "// presage: tune TH = 1\n// presage: tune TW = 128, 64, 256"
            if missing == 2
            else "// presage: tune TH = 8, 4, 16\n// presage: tune TW = 32, 16",
            "staged": f"4 * STAGE * ({taps[0]} * ((TH - 1) * {strides[1]} + {_reach(taps[1], dilations[1])})"
            f" * ((TW - 1) * {strides[2]} + {_reach(taps[2], dilations[2])} + PAD) + OUT * {_product(taps)})",
        }

    def _call(self) -> str:
        options = "".join(
            f", {name}={value}" for name, value in (("stride", self._stride), ("dilation", self._dilation)) if value > 1
        )
        call = f"F.conv{len(self._taps)}d(x, weight{', bias' if self._relu else ''}{options})"
        return f"F.relu({call})" if self._relu else call


def _reach(tap: int | str, dilation: int) -> int | str:
    """Return how many elements of an axis a filter covers. Filters whose tap count is a size have no dilation."""
    return tap if isinstance(tap, str) else (tap - 1) * dilation + 1


def _product(taps: Taps) -> str:
    numbers = [tap for tap in taps if isinstance(tap, int)]
    return str(math.prod(numbers)) if len(numbers) == len(taps) else f"({' * '.join(map(str, taps))})"


_NAIVE = """
const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
if (at >= (size_t)n * o * area) return;
const int r = at % ow, q = at / ow % oh, p = at / ow / oh % od, out = at / area % o;
const float *image = x + at / area / o * c * d * h * w;
float value = 0.0f;
for (int channel = 0; channel < c; channel++)
    for (int t = 0; t < KD; t++)
        for (int u = 0; u < KH; u++)
            for (int v = 0; v < KW; v++)
                value += image[((channel * d + p * SD + t * DD) * h + q * SH + u * DH) * w + r * SW + v * DW] *
                         weight[(((out * c + channel) * KD + t) * KH + u) * KW + v];
y[at] = FINISH;
""".strip()
_SUM = "y[i, o, p] = sum over c, k of x[i, c, {}] * weight[o, c, k]: cross-correlation, no padding, "


def _draw_conv2d(rng: random.Random) -> tuple[int, ...]:
    r, s = rng.randint(1, 6), rng.randint(1, 6)
    h, w = rng.randint(r, 30), rng.randint(s, 80)
    return rng.randint(1, 3), rng.randint(1, 20), h, w, rng.randint(1, 20), r, s


OPERATIONS = (
    Convolution(
        "conv2d",
        "y[i, o, p, q] = sum over c, r, s of x[i, c, p + r, q + s] * weight[o, c, r, s]:"
        " cross-correlation, stride 1, no padding",
        ("r", "s"),
        "32 128 58 58 128 3 3; 16 256 28 28 512 1 1; 16 16 228 228 64 5 5",
        cpu="1 32 58 58 32 3 3; 2 16 68 68 16 5 5",
        # `equal` cases have few terms: the rounding errors of equal terms add up beyond the tolerance's random walk.
        checks=cases(
            "n c h w o r s: 1 1 1 1 1 1 1; 2 3 7 5 4 7 5 normal; 1 5 19 83 7 3 1 large; 3 9 11 37 13 1 3 outliers;"
            " 1 3 9 70 5 3 3 equal; 2 17 23 21 9 5 2 tiny; 1 40 10 131 3 1 1 normal"
        ),
        draw=_draw_conv2d,
    ),
    Convolution(
        "conv1d",
        _SUM.format("p + k") + "stride 1, filters of 5",
        (5,),
        "8 128 4096 128; 128 32 1000 64",
    ),
    Convolution(
        "dilated_conv1d",
        _SUM.format("p + 4 k") + "stride 1, filters of 3 with a dilation of 4",
        (3,),
        "8 128 8192 128; 96 64 1000 64",
        dilation=4,
    ),
    Convolution(
        "conv2d_1x1",
        _SUM.format("p + k") + "filters of one pixel",
        (1, 1),
        "16 256 28 28 512; 32 64 112 112 32",
    ),
    Convolution(
        "conv2d_strided",
        _SUM.format("2 p + k") + "stride 2, filters of 3 by 3",
        (3, 3),
        "16 64 113 113 128; 64 256 15 15 256",
        stride=2,
    ),
    Convolution(
        "conv2d_bias_relu",
        "y[i, o, p] = max(0, bias[o] + sum over c, k of x[i, c, p + k] * weight[o, c, k]): no padding, stride 1,"
        " filters of 3 by 3",
        (3, 3),
        "16 64 58 58 128; 16 3 226 226 32",
        relu=True,
    ),
    Convolution(
        "conv2d_5x5",
        _SUM.format("p + k") + "stride 1, filters of 5 by 5",
        (5, 5),
        "16 32 60 60 64; 16 8 132 132 32",
    ),
    Convolution(
        "conv3d",
        _SUM.format("p + k") + "stride 1, filters of 3 by 3 by 3",
        (3, 3, 3),
        "2 16 34 66 66 32; 2 4 66 66 130 8",
    ),
)
