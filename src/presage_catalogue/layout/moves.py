"""Moves: operations whose output elements are copies of input elements at other positions, with little computation.

Each entry of `OPERATIONS` gives the position from which an output element is read, as a few steps that are translated
to C and Triton. The defaults describe a move from matrix to matrix.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import Facts, Operation

EXACT = Tolerance(0.0, "values move and none is computed", absolute=0.0)


@dataclass(frozen=True)
class Read:
    """Assigns `name` the element of input `array` at index `at`, or zero if the condition `when` is false.

    `along`: "r" if the element depends on the row only, "c" if on the column only."""

    name: str
    array: str
    at: str
    when: str = ""
    along: str = ""


class Move(Operation):
    """Computes the output, viewed as a matrix of `rows` and `cols`, by the steps in `code`: reads, and integer
    assignments `name = expression` over r, c and the sizes, with integer division `/`. `value` is the output element;
    in it, `column` is c. If the condition `whole` holds, N consecutive columns of the output are also consecutive in
    each input, and the C code moves them at once."""

    inputs = (Array("x", "rows, cols"),)
    outputs = (Array("y", "rows, cols"),)
    timed = {"gpu": cases("rows cols: 8192 4096; 200000 100")}
    checks = cases("rows cols: 1 1; 1 1031 large; 1031 1 tiny; 7 9; 67 251 outliers; 130 64 normal; 33 1028 large")
    draw_styles: tuple[str, ...] = ("normal", "large", "tiny")
    _tolerance = EXACT
    _draw = (150, 300)

    def __init__(
        self,
        name: str,
        summary: str,
        *code: str | Read,
        rows: str = "rows",
        cols: str = "cols",
        value: str = "v",
        value_triton: str = "",
        whole: str = "false",
        push: Sequence[str] = (),
        least_bytes: Callable[[Case], int] | None = None,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        self._rows, self._cols, self._code, self._push = rows, cols, code, tuple(push)
        self._value, self._value_triton, self._whole = value, value_triton or value, whole
        self._least_bytes = least_bytes

    def told(self, case: Case) -> tuple[Any, ...]:
        return (case.dims,)

    def bytes(self, case: Case) -> int:
        return self._least_bytes(case) if self._least_bytes else super().bytes(case)

    def code(self, suffix: str) -> Mapping[str, str]:
        return self._given_triton() if suffix == ".py" else self._given_cuda()

    def _given_cuda(self) -> dict[str, str]:
        ins, (out,) = self.ins, self.outputs
        given = {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "inputs": ", ".join((*self.pointers()[:-1], self.c_sizes)),
            "call": ", ".join((*ins, *self.scalars)),
            "moved": ", ".join((*ins, out.name, *self.scalars)),
            "out": out.name,
            "type": self.c_type(out),
            "include": "#include <cuda_fp16.h>" if self.c_type(out) == "half" else "",
            "rows": self._rows,
            "cols": self._cols,
            "whole": self._whole,
            "fetch": self._fetch(),
        }
        if self._push:
            given["from"], given["source_cols"] = ins[0], self.inputs[0].shape.split(",")[-1].strip()
            given["push"] = "\n".join(f"const int {step};" for step in self._push)
        return given

    def _fetch(self) -> str:
        packed = self._whole != "false"
        types = {array.name: self.c_type(array) for array in self.inputs}
        lines, unpack = [], []
        for part in self._code:
            if isinstance(part, str):
                lines.append(f"const int {part};")
            elif packed and part.along != "r":
                kind = f"Pack<{types[part.array]}, N>"
                value = f"*(const {kind} *)({part.array} + {part.at})"
                lines.append(f"const {kind} {part.name}_pack = {_guarded(value, part.when, f'{kind}{{}}')};")
                unpack.append(f"    const {types[part.array]} {part.name} = {part.name}_pack.at[i];")
            else:
                value = _guarded(f"{part.array}[{part.at}]", part.when, f"({types[part.array]})0")
                lines.append(f"const {types[part.array]} {part.name} = {value};")
        if not packed:
            return "\n".join((*lines, "const int column = c;", f"out[0] = {self._value};"))
        loop = ("#pragma unroll", "for (int i = 0; i < N; i++) {", "    const int column = c + i;")
        return "\n".join((*lines, *loop, *unpack, f"    out[i] = {self._value};", "}"))

    def _given_triton(self) -> dict[str, str]:
        ins, (out,) = self.ins, self.outputs
        lines = []
        for part in self._code:
            if isinstance(part, str):
                lines.append(_whole_division(part))
                continue
            mask = {"": "inside", "r": "row_inside", "c": "col_inside"}[part.along]
            mask += f" & ({_whole_division(part.when)})" if part.when else ""
            lines.append(
                f"{part.name} = tl.load({part.array}_ptr + ({_whole_division(part.at)}), mask={mask}, other=0)"
            )
        return {
            **self.triton_names,
            "empty": f"{out.name} = torch.empty(({out.shape},), dtype={self._out_dtype()}, device={ins[0]}.device)",
            "out": out.name,
            "rows": self._rows,
            "cols": self._cols,
            "fetch": "\n".join((*lines, "column = c", f"value = {_whole_division(self._value_triton)}")),
        }

    def _out_dtype(self) -> str:
        (out,) = self.outputs
        return "torch.float32" if out.dtype == "T" else f"torch.{out.dtype}"


def _guarded(value: str, when: str, otherwise: str) -> str:
    return f"{when} ? {value} : {otherwise}" if when else value


def _whole_division(text: str) -> str:
    return re.sub(r"(?<!/)/(?!/)", "//", text)


def _roll_draw(rng: random.Random) -> tuple[int, ...]:
    cols = rng.randint(1, 300)
    return rng.randint(1, 150), cols, rng.randint(0, cols - 1)


_IMAGE_CHECKS = cases(
    "batch channels height width: 1 1 1 1; 1 3 1 131 large; 2 1 67 1 tiny; 1 5 7 9; 2 33 16 20 normal;"
    " 1 2 70 129 outliers; 3 64 8 8 large"
)
_IMAGE = Array("x", "batch, channels, height, width")


OPERATIONS = (
    Move(
        "transpose",
        "y[c, r] = x[r, c], written out in full",
        Read("v", "x", "c * cols + r"),
        outputs=(Array("y", "cols, rows"),),
        rows="cols",
        cols="rows",
        push=("to = c * rows + r",),
        oracle=lambda xp, dims, x: xp.permute_dims(x, (1, 0)),
        eager="x.t().contiguous()",
        timed={"cpu": cases("rows cols: 1024 1024; 2000 700"), "gpu": cases("rows cols: 4096 8192; 30000 700")},
        checks=cases("rows cols: 1 1; 1 1031 large; 1031 1 tiny; 7 9; 67 251 outliers; 129 64 normal; 255 513 large"),
        draw=(400, 400),
    ),
    Move(
        "permute_0213",
        "y[b, h, s, d] = x[b, s, h, d], written out in full",
        "s = r % seq",
        "h = r / seq % heads",
        "b = r / (seq * heads)",
        Read("v", "x", "((b * seq + s) * heads + h) * dim + c"),
        inputs=(Array("x", "batch, seq, heads, dim"),),
        outputs=(Array("y", "batch, heads, seq, dim"),),
        rows="batch * heads * seq",
        cols="dim",
        whole="dim % N == 0",
        push=(
            "h = r % heads",
            "s = r / heads % seq",
            "b = r / (heads * seq)",
            "to = ((b * heads + h) * seq + s) * dim + c",
        ),
        oracle=lambda xp, dims, x: xp.permute_dims(x, (0, 2, 1, 3)),
        eager="x.transpose(1, 2).contiguous()",
        timed=cases("batch seq heads dim: 8 2048 16 64; 512 77 12 20"),
        checks=cases(
            "batch seq heads dim: 1 1 1 1; 1 131 3 1 large; 2 1 7 33 tiny; 1 5 1 9; 2 17 5 64 normal;"
            " 1 129 3 100 outliers; 5 8 12 20 large"
        ),
        draw=(4, 50, 9, 70),
    ),
    Move(
        "flip_rows",
        "y[r, c] = x[rows - 1 - r, c]: the rows in the opposite order",
        Read("v", "x", "(rows - 1 - r) * cols + c"),
        whole="cols % N == 0",
        push=("to = (rows - 1 - r) * cols + c",),
        oracle=lambda xp, dims, x: xp.flip(x, axis=0),
        eager="torch.flip(x, (0,))",
    ),
    Move(
        "flip_columns",
        "y[r, c] = x[r, cols - 1 - c]: every row in the opposite order",
        Read("v", "x", "r * cols + cols - 1 - c"),
        push=("to = r * cols + cols - 1 - c",),
        oracle=lambda xp, dims, x: xp.flip(x, axis=1),
        eager="torch.flip(x, (1,))",
    ),
    Move(
        "roll",
        "y[r, c] = x[r, (c - shift) mod cols]: every row moved to the right, and round at its end",
        Read("v", "x", "r * cols + (c + cols - shift) % cols"),
        parameters=("shift",),
        whole="cols % N == 0 && shift % N == 0",
        push=("to = r * cols + (c + shift) % cols",),
        oracle=lambda xp, dims, x: xp.roll(x, dims["shift"], 1),
        eager="torch.roll(x, shift, 1)",
        timed=cases("rows cols shift: 8192 4096 1024; 150000 150 37"),
        checks=cases(
            "rows cols shift: 1 1 0; 1 1031 1030 large; 1031 1 0 tiny; 7 9 4; 67 251 3 outliers; 130 64 12 normal;"
            " 33 1028 514 large"
        ),
        draw=_roll_draw,
    ),
    Move(
        "concat_columns",
        "y[r] is the row a[r] followed by the row b[r]",
        Read("first", "a", "r * left + c", "(c < left)"),
        Read("second", "b", "r * right + c - left", "(c >= left)"),
        inputs=(Array("a", "rows, left"), Array("b", "rows, right")),
        outputs=(Array("y", "rows, left + right"),),
        cols="(left + right)",
        value="column < left ? first : second",
        value_triton="tl.where(column < left, first, second)",
        whole="left % N == 0 && right % N == 0",
        oracle=lambda xp, dims, a, b: xp.concat((a, b), axis=1),
        eager="torch.cat((a, b), 1)",
        timed=cases("rows left right: 16384 1024 512; 400000 50 7"),
        checks=cases(
            "rows left right: 1 1 1; 1 1031 3 large; 531 1 2 tiny; 7 9 4; 67 51 200 outliers; 130 64 12 normal;"
            " 33 512 514 large"
        ),
        draw=(150, 150, 150),
    ),
    Move(
        "interleave_columns",
        "y[r, 2 * c] = a[r, c] and y[r, 2 * c + 1] = b[r, c]",
        Read("even", "a", "r * cols + c / 2", "(c % 2 == 0)"),
        Read("odd", "b", "r * cols + c / 2", "(c % 2 == 1)"),
        inputs=(Array("a", "rows, cols"), Array("b", "rows, cols")),
        outputs=(Array("y", "rows, 2 * cols"),),
        cols="(2 * cols)",
        value="column % 2 == 0 ? even : odd",
        value_triton="tl.where(column % 2 == 0, even, odd)",
        oracle=lambda xp, dims, a, b: xp.reshape(xp.stack((a, b), 2), (dims["rows"], 2 * dims["cols"])),
        eager="torch.stack((a, b), 2).flatten(1)",
        timed=cases("rows cols: 8192 2048; 200000 50"),
    ),
    Move(
        "pixel_shuffle",
        "y[b, c, 2 h + i, 2 w + j] = x[b, 4 c + 2 i + j, h, w]: groups of four channels become squares of pixels",
        "plane = r / (2 * height) * 4 + r % 2 * 2 + c % 2",
        Read("v", "x", "(plane * height + r / 2 % height) * width + c / 2"),
        inputs=(Array("x", "batch, 4 * channels, height, width"),),
        outputs=(Array("y", "batch, channels, 2 * height, 2 * width"),),
        parameters=("channels",),
        rows="batch * channels * height * 2",
        cols="(2 * width)",
        push=(
            "plane = r / height",
            "h = r % height",
            "to = ((plane / 4 * height + h) * 2 + plane / 2 % 2) * 2 * width + c * 2 + plane % 2",
        ),
        oracle=lambda xp, dims, x: xp.reshape(
            xp.permute_dims(
                xp.reshape(x, (dims["batch"], dims["channels"], 2, 2, dims["height"], dims["width"])),
                (0, 1, 4, 2, 5, 3),
            ),
            (dims["batch"], dims["channels"], 2 * dims["height"], 2 * dims["width"]),
        ),
        eager="torch.nn.functional.pixel_shuffle(x, 2)",
        timed=cases("batch channels height width: 4 64 128 256; 256 32 28 28"),
        checks=cases(
            "batch channels height width: 1 1 1 1; 1 1 1 131 large; 2 1 67 1 tiny; 1 3 7 9; 2 9 16 20 normal;"
            " 1 1 70 129 outliers; 3 16 8 8 large"
        ),
        draw=(3, 5, 20, 40),
    ),
    Move(
        "im2col",
        "y[b, 9 c + 3 i + j, h * width + w] = x[b, c, h + i - 1, w + j - 1], zero outside the image",
        "h = c / width + r % 9 / 3 - 1",
        "w = c % width + r % 3 - 1",
        Read("v", "x", "(r / 9 * height + h) * width + w", "((h >= 0) & (h < height) & (w >= 0) & (w < width))"),
        inputs=(_IMAGE,),
        outputs=(Array("y", "batch, channels * 9, height * width"),),
        rows="batch * channels * 9",
        cols="(height * width)",
        oracle=lambda xp, dims, x: _im2col(xp, dims, x),
        eager="torch.nn.functional.unfold(x, 3, padding=1)",
        timed=cases("batch channels height width: 4 32 128 256; 128 64 28 28"),
        checks=_IMAGE_CHECKS,
        draw=(3, 9, 20, 40),
    ),
    Move(
        "tril",
        "y[b, r, c] = x[b, r, c] where c <= r, and 0 above that diagonal",
        "row = r % size",
        Read("v", "x", "r * size + c", "(c <= row)"),
        inputs=(Array("x", "batch, size, size"),),
        outputs=(Array("y", "batch, size, size"),),
        rows="batch * size",
        cols="size",
        value="column <= row ? v : 0.0f",
        value_triton="v",
        whole="size % N == 0",
        oracle=lambda xp, dims, x: xp.tril(x),
        eager="torch.tril(x)",
        timed=cases("batch size: 1 6144; 3000 100"),
        checks=cases("batch size: 1 1; 40 7 large; 3 33 tiny; 2 64 outliers; 1 131 normal; 1 260 large; 113 12"),
        draw=(9, 110),
        least_bytes=lambda case: (
            4 * case.dims["batch"] * (case.dims["size"] * (case.dims["size"] + 1) // 2 + case.dims["size"] ** 2)
        ),
    ),
    Move(
        "pad2d",
        "y[b, h, w] = x[b, h - pad, w - pad], zero outside the image",
        "h = r % (height + 2 * pad) - pad",
        "w = c - pad",
        "b = r / (height + 2 * pad)",
        Read("v", "x", "(b * height + h) * width + w", "((h >= 0) & (h < height) & (w >= 0) & (w < width))"),
        inputs=(Array("x", "batch, height, width"),),
        outputs=(Array("y", "batch, height + 2 * pad, width + 2 * pad"),),
        parameters=("pad",),
        rows="batch * (height + 2 * pad)",
        cols="(width + 2 * pad)",
        whole="width % N == 0 && pad % N == 0",
        oracle=lambda xp, dims, x: _pad(xp, dims["pad"], x),
        eager="torch.nn.functional.pad(x, (pad, pad, pad, pad))",
        timed=cases("batch height width pad: 32 512 1024 4; 16384 32 32 1"),
        checks=cases(
            "batch height width pad: 1 1 1 1; 1 1 131 2 large; 2 67 1 3 tiny; 5 7 9 1; 33 16 20 4 normal;"
            " 2 70 129 1 outliers; 30 8 8 0 large"
        ),
        draw=lambda rng: (rng.randint(1, 9), rng.randint(1, 40), rng.randint(1, 70), rng.randint(0, 5)),
    ),
    Move(
        "repeat_interleave",
        "y[repeats * r + k] = x[r] for k in 0 .. repeats - 1: every row several times in a row",
        Read("v", "x", "r / repeats * cols + c"),
        outputs=(Array("y", "rows * repeats, cols"),),
        parameters=("repeats",),
        rows="rows * repeats",
        whole="cols % N == 0",
        oracle=lambda xp, dims, x: xp.reshape(
            xp.broadcast_to(x[:, None, :], (dims["rows"], dims["repeats"], dims["cols"])),
            (dims["rows"] * dims["repeats"], dims["cols"]),
        ),
        eager="torch.repeat_interleave(x, repeats, 0)",
        timed=cases("rows cols repeats: 8192 1024 4; 100000 50 7"),
        checks=cases(
            "rows cols repeats: 1 1 1; 1 1031 3 large; 331 1 5 tiny; 7 9 4; 67 51 2 outliers; 130 64 6 normal;"
            " 33 516 1 large"
        ),
        draw=(50, 200, 6),
    ),
    Move(
        "bias_add",
        "y[r, c] = x[r, c] + bias[c]",
        Read("v", "x", "r * cols + c"),
        Read("bias_of_column", "bias", "c", along="c"),
        inputs=(Array("x", "rows, cols"), Array("bias", "cols")),
        value="v + bias_of_column",
        whole="cols % N == 0",
        oracle=lambda xp, dims, x, bias: x + bias[None, :],
        eager="x + bias",
        flops=1,
        tolerance=Tolerance(2e-7, "one rounding of the sum in float32, 6e-8 of it"),
    ),
    Move(
        "cast_half",
        "y[r, c] = x[r, c] rounded to half precision",
        Read("v", "x", "r * cols + c"),
        outputs=(Array("y", "rows, cols", "float16"),),
        value="__float2half(v)",
        value_triton="v.to(tl.float16)",
        whole="cols % N == 0",
        oracle=lambda xp, dims, x: x,
        eager="x.half()",
        tolerance=Tolerance(
            4.9e-4, "half an ulp of 11 bits is at most 2^-11 = 4.88e-4; 2^-25 for subnormals", absolute=3e-8
        ),
    ),
    Move(
        "nchw_to_nhwc",
        "y[b, h, w, c] = x[b, c, h, w], written out in full",
        "pixels = height * width",
        Read("v", "x", "(r / pixels * channels + c) * pixels + r % pixels"),
        inputs=(_IMAGE,),
        outputs=(Array("y", "batch, height, width, channels"),),
        rows="batch * height * width",
        cols="channels",
        push=(
            "b = r / (channels * height)",
            "channel = r / height % channels",
            "to = ((b * height + r % height) * width + c) * channels + channel",
        ),
        oracle=lambda xp, dims, x: xp.permute_dims(x, (0, 2, 3, 1)),
        eager="x.permute(0, 2, 3, 1).contiguous()",
        timed=cases("batch channels height width: 16 256 64 64; 64 3 384 256"),
        checks=_IMAGE_CHECKS,
        draw=(3, 9, 20, 40),
    ),
)


def _pad(xp: ModuleType, pad: int, x: Any) -> Any:
    """Pad the last two axes with zeros."""
    for axis in (x.ndim - 2, x.ndim - 1):
        shape = list(x.shape)
        shape[axis] = pad
        zeros = xp.zeros(tuple(shape), dtype=x.dtype, device=x.device)
        x = xp.concat((zeros, x, zeros), axis=axis)
    return x


def _im2col(xp: ModuleType, dims: Mapping[str, int], x: Any) -> Any:
    batch, channels, height, width = dims.values()
    padded = _pad(xp, 1, x)
    shifted = [padded[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return xp.reshape(xp.stack(shifted, 2), (batch, channels * 9, height * width))
