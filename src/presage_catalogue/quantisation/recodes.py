"""Recodings: convert each element between formats with given scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Operation

_NAIVE = """\
extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x, r = i / {width}, c = i % {width};
    if (r >= rows) return;
    const {from} v = {source}[i];
{lines}
}}"""


class Recode(Operation):
    """Converts each element v (row r, column c) of the first input to one or more neighbouring elements of the output.

    `c` and `triton` have one expression for each output element. The expressions may read the other inputs."""

    timed = {"gpu": cases("rows cols: 8192 4096; 300000 100")}
    checks = cases(
        "rows cols: 1 1; 1 1031 large; 131 1 tiny; 7 9 normal; 67 251 outliers; 130 64 normal; 33 1028 large"
    )
    _draw = (120, 200)

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        make: Callable[..., tuple[Any, ...]],
        c: tuple[str, ...],
        triton: tuple[str, ...],
        setup: str = "",
        width: str = "cols",
        unpack: str = "rows, cols = {source}.shape",
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        self._width, self._c, self._triton, self._setup = width, c, triton, setup
        self._make, self._unpack = make, unpack

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return self._make(sampler, *(self.shape(array, case) for array in self.inputs))

    def code(self, suffix: str) -> Mapping[str, str]:
        ins, (out,) = self.ins, self.outputs
        several = len(self._c) > 1
        if suffix == ".py":
            put = "{0}_ptr + ({1}) * {2} + {3}" if several else "{0}_ptr + ({1})"
            count = len(self._c)
            kind = "float32" if out.dtype == "T" else out.dtype
            lines = [
                f"tl.store({put.format(out.name, 'place', count, k)}, {value}, mask=inside)"
                for k, value in enumerate(self._triton)
            ]
            return {
                "arguments": ", ".join(ins),
                "body": f"return {self._eager}",
                "ins": ", ".join(ins),
                "pointers": ", ".join(f"{name}_ptr" for name in (*ins, out.name)),
                "sizes": ", ".join(self.scalars),
                "source": ins[0],
                "out": out.name,
                "recode_unpack": self._unpack.format(source=ins[0]),
                "empty": f"{out.name} = torch.empty(({out.shape}), dtype=torch.{kind}, device={ins[0]}.device)",
                "recode": "\n".join((*filter(None, self._setup.split("\n")), *lines)),
                "width": self._width,
            }
        float8 = "float8_e4m3fn" in (array.dtype for array in (*self.inputs, out))
        given = {
            "entry": self.name,
            "include": "#include <cuda_fp8.h>" if float8 else "",
            "arguments": self.c_arguments(),
            "moved": ", ".join((*ins, out.name, *self.scalars)),
            "source": ins[0],
            "from": self.c_type(self.inputs[0]),
            "to": self.c_type(out),
            "out": out.name,
            "outs": str(len(self._c)),
            "width": self._width,
            "recode": "\n".join(f"out[{k}] = {value};" for k, value in enumerate(self._c)),
            "naive_grid": f"cdiv(rows * {self._width}, 256)",
        }
        puts = (f"    {out.name}[(size_t)i * {len(self._c)} + {k}] = {value};" for k, value in enumerate(self._c))
        given["naive"] = _NAIVE.format(**given, lines="\n".join(puts))
        return given


_CODE = Tolerance(0.0, "half a step, and 1e-3 for what float32 loses before it rounds", absolute=0.501)
_PRODUCT = Tolerance(2e-7, "one product, rounded in float32")
_EXACT = Tolerance(0.0, "the scales are powers of two, so that every step but the rounding is exact", absolute=0.0)
_BLOCKS: dict[str, Any] = {
    "timed": cases("rows blocks: 4096 56; 50000 5"),
    "checks": cases("rows blocks: 1 1; 1 33 large; 131 1 tiny; 7 9 normal; 37 5 outliers; 70 4 normal; 9 31 large"),
    "draw": (60, 9),
}


def _scales(sampler: Sampler, shape: tuple[int, ...]) -> Any:
    return sampler.xp.abs(sampler.values(shape)) * 0.01 + 1e-4


def _float8(sampler: Sampler, shape: tuple[int, ...]) -> Any:
    xp = sampler.xp
    return xp.astype(xp.clip(sampler.values(shape), -448.0, 448.0), xp.float8_e4m3fn)


def _powers(sampler: Sampler, shape: tuple[int, ...]) -> Any:
    xp = sampler.xp
    return xp.astype(2.0 ** xp.astype(sampler.integers(shape, -7, 1), xp.float64), xp.float32)


def _unpack_int4(xp: ModuleType, packed: Any, scales: Any) -> Any:
    rows, blocks = scales.shape
    both = xp.stack((packed % 16, packed // 16), -1)
    values = xp.reshape(xp.astype(both, xp.float64) - 8.0, (rows, blocks, 128))
    return xp.reshape(values * scales[:, :, None], (rows, blocks * 128))


def _scaled_blocks(xp: ModuleType, codes: Any, scales: Any) -> Any:
    rows, blocks = scales.shape
    return xp.reshape(xp.reshape(codes, (rows, blocks, 128)) * scales[:, :, None], (rows, blocks * 128))


OPERATIONS = (
    Recode(
        "per_tensor_quant_int8",
        "codes[r, c] = x[r, c] / scale[0], rounded and cut to -128 .. 127",
        inputs=(Array("x", "rows, cols"), Array("scale", "1")),
        outputs=(Array("codes", "rows, cols", "int8"),),
        c=("(signed char)__float2int_rn(fminf(fmaxf(v / scale[0], -128.0f), 127.0f))",),
        setup="scaled = v / tl.load(scale_ptr)",
        triton=("tl.floor(tl.minimum(tl.maximum(scaled, -128.0), 127.0) + 0.5).to(tl.int8)",),
        eager="(x / scale).round().clamp(-128, 127).to(torch.int8)",
        make=lambda sampler, x, scale: (sampler.values(x), sampler.values(scale, style="zeros") + 0.02),
        oracle=lambda xp, x, scale: xp.clip(x / scale, -128.0, 127.0),
        tolerance=_CODE,
        flops=1,
    ),
    Recode(
        "dequant_int8",
        "y[r, c] = codes[r, c] * scales[r]",
        inputs=(Array("codes", "rows, cols", "int8"), Array("scales", "rows")),
        outputs=(Array("y", "rows, cols"),),
        c=("(float)v * scales[r]",),
        setup="scale = tl.load(scales_ptr + r, mask=row_inside, other=0.0)",
        triton=("v.to(tl.float32) * scale",),
        eager="codes.float() * scales[:, None]",
        make=lambda sampler, codes, scales: (sampler.integers(codes, -128, 128, "int8"), _scales(sampler, scales)),
        oracle=lambda xp, codes, scales: xp.astype(codes, xp.float64) * scales[:, None],
        tolerance=_PRODUCT,
        flops=1,
    ),
    Recode(
        "dequant_int4",
        "y[r, 2 i] = (packed[r, i] % 16 - 8) * scale and y[r, 2 i + 1] = (packed[r, i] / 16 - 8) * scale, with the"
        " scale of 128 neighbours of a row",
        inputs=(Array("packed", "rows, 64 * blocks", "uint8"), Array("scales", "rows, blocks")),
        outputs=(Array("y", "rows, 128 * blocks"),),
        width="(64 * blocks)",
        c=(
            "(float)((int)(v & 15) - 8) * scales[r * blocks + c / 64]",
            "(float)((int)(v >> 4) - 8) * scales[r * blocks + c / 64]",
        ),
        setup="scale = tl.load(scales_ptr + r * blocks + c // 64, mask=inside, other=0.0)\nwhole = v.to(tl.int32)",
        triton=("(whole % 16 - 8).to(tl.float32) * scale", "(whole // 16 - 8).to(tl.float32) * scale"),
        eager="((torch.stack((packed & 15, packed >> 4), -1).view(*scales.shape, 128).float() - 8.0)"
        " * scales[..., None]).flatten(1)",
        unpack="rows, blocks = scales.shape",
        make=lambda sampler, packed, scales: (sampler.integers(packed, 0, 256, "uint8"), _scales(sampler, scales)),
        oracle=_unpack_int4,
        tolerance=_PRODUCT,
        flops=1,
        **_BLOCKS,
    ),
    Recode(
        "fake_quant",
        "y[r, c] = x[r, c] / scales[r], rounded to even and cut to -128 .. 127, times scales[r], a power of two",
        inputs=(Array("x", "rows, cols"), Array("scales", "rows")),
        outputs=(Array("y", "rows, cols"),),
        c=("rintf(fminf(fmaxf(v / scales[r], -128.0f), 127.0f)) * scales[r]",),
        setup="scale = tl.load(scales_ptr + r, mask=row_inside, other=1.0)\n"
        "# Past 2^23 a float has no room for fractions.\n"
        "whole = tl.minimum(tl.maximum(v / scale, -128.0), 127.0) + 12582912.0 - 12582912.0",
        triton=("whole * scale",),
        eager="(x / scales[:, None]).round().clamp(-128, 127) * scales[:, None]",
        make=lambda sampler, x, scales: (sampler.values(x), _powers(sampler, scales)),
        oracle=lambda xp, x, scales: xp.round(xp.clip(x / scales[:, None], -128.0, 127.0)) * scales[:, None],
        tolerance=_EXACT,
        flops=2,
    ),
    Recode(
        "dequant_fp8",
        "y[r, c] = codes[r, c] * scale, codes being float8_e4m3fn, with the scale of 128 neighbours of a row",
        inputs=(Array("codes", "rows, 128 * blocks", "float8_e4m3fn"), Array("scales", "rows, blocks")),
        outputs=(Array("y", "rows, 128 * blocks"),),
        width="(128 * blocks)",
        c=("(float)v * scales[r * blocks + c / 128]",),
        setup="scale = tl.load(scales_ptr + r * blocks + c // 128, mask=inside, other=0.0)",
        triton=("v.to(tl.float32) * scale",),
        eager="(codes.float().view(*scales.shape, 128) * scales[..., None]).flatten(1)",
        unpack="rows, blocks = scales.shape",
        make=lambda sampler, codes, scales: (_float8(sampler, codes), _scales(sampler, scales)),
        oracle=_scaled_blocks,
        tolerance=_PRODUCT,
        flops=1,
        **_BLOCKS,
    ),
    Recode(
        "requantise",
        "codes[r, c] = (sums[r, c] + bias[c]) * scales[c], rounded and cut to -128 .. 127",
        inputs=(Array("sums", "rows, cols", "int32"), Array("bias", "cols", "int32"), Array("scales", "cols")),
        outputs=(Array("codes", "rows, cols", "int8"),),
        c=("(signed char)__float2int_rn(fminf(fmaxf((float)(v + bias[c]) * scales[c], -128.0f), 127.0f))",),
        setup="moved = (v + tl.load(bias_ptr + c, mask=col_inside, other=0)).to(tl.float32)\n"
        "scaled = moved * tl.load(scales_ptr + c, mask=col_inside, other=0.0)",
        triton=("tl.floor(tl.minimum(tl.maximum(scaled, -128.0), 127.0) + 0.5).to(tl.int8)",),
        eager="((sums + bias).float() * scales).round().clamp(-128, 127).to(torch.int8)",
        make=lambda sampler, sums, bias, scales: (
            sampler.integers(sums, -20000, 20000),
            sampler.integers(bias, -3000, 3000),
            _scales(sampler, scales),
        ),
        oracle=lambda xp, sums, bias, scales: xp.clip(
            xp.astype(sums + bias[None, :], xp.float64) * scales[None, :], -128.0, 127.0
        ),
        tolerance=_CODE,
        flops=2,
    ),
)
