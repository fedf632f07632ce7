"""Upsampling of images by a factor of two in height and width."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import CUDNN_IN_FLOAT32, Formula, Operation


class Upsample(Operation):
    """Computes out[i, 2 y + a, 2 x + b] for a, b in {0, 1} from the points of u around (y, x). A point outside the
    image has the value of the nearest point inside. `code` computes an output from v(dy, dx), `a` and `b`."""

    torch_imports = CUDNN_IN_FLOAT32
    inputs = (Array("u", "n, h, w"),)
    outputs = (Array("out", "n, 2 * h, 2 * w"),)
    timed = {"gpu": cases("n h w: 1 2048 4096; 512 128 126")}
    checks = cases(
        "n h w: 1 1 1; 1 1 300 normal; 3 70 1 large; 1 33 65 outliers; 2 37 130 normal; 1 20 132 tiny; 1 20 20 equal"
    )

    _draw = (3, 60, 140)

    def __init__(
        self, name: str, summary: str, oracle: Formula, code: str, mode: str, *, flops: int, radius: int
    ) -> None:
        super().__init__(name, summary, oracle=oracle, flops=flops)
        self._code, self._radius = code, radius
        options = "" if mode == "nearest" else ", align_corners=False"
        self._eager = f'return F.interpolate(u[:, None], scale_factor=2, mode="{mode}"{options})[:, 0]'

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (u,) = inputs
        n, h, w = u.shape
        for axis in (1, 2):
            halves = [self._oracle(xp, u, axis, side)[..., None] for side in (-1, 1)]
            whole = xp.concat(halves, axis=-1)
            if axis == 1:
                u = xp.reshape(xp.permute_dims(whole, (0, 1, 3, 2)), (n, 2 * h, w))
            else:
                u = xp.reshape(whole, (n, 2 * h, 2 * w))
        return (u,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return self.oracle(xp, case, xp.abs(inputs[0]))

    def tolerance(self, case: Case) -> Tolerance:
        if self._radius == 0:
            return Tolerance(0.0, "copies are exact", absolute=0.0)
        return Tolerance(1e-6, "some ten roundings of 6e-8 in float32, relative to the sizes of all terms")

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {
                "ins": "u",
                "upsample": f"value = {self._code.replace('v(', 'fetch(u_ptr, image, y, x, h, w, inside, ')}",
                "eager": self._eager,
            }
        code = re.sub(r"\d\.\d+", r"\g<0>f", self._code)
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "points": "4 * n * h * w",
            "upsample": f"return {code};",
            "halo": str(self._radius),
            "naive": "const int x = at % (2 * w) / 2, y = at / (2 * w) % (2 * h) / 2;\n"
            "const int a = at / (2 * w) % 2, b = at % 2;\n"
            "const float *image = u + at / (2 * w) / (2 * h) * h * w;\n"
            "const auto v = [&](int dy, int dx) {\n"
            "    return image[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];\n};\n"
            f"out[at] = {code};",
        }


def _beside(xp: ModuleType, u: Any, axis: int, side: int) -> Any:
    """Return the neighbour before (-1) or after (1) each element along an axis, or the element itself at the border."""
    length = u.shape[axis]
    if axis == 1:
        parts = (u[:, :1, :], u[:, : length - 1, :]) if side < 0 else (u[:, 1:, :], u[:, length - 1 :, :])
    else:
        parts = (u[:, :, :1], u[:, :, : length - 1]) if side < 0 else (u[:, :, 1:], u[:, :, length - 1 :])
    return xp.concat(parts, axis=axis)


OPERATIONS = (
    Upsample(
        "upsample_nearest2x",
        "out[i, p, q] = u[i, p // 2, q // 2]",
        lambda xp, u, axis, side: u,
        "v(0, 0)",
        "nearest",
        flops=0,
        radius=0,
    ),
    Upsample(
        "upsample_bilinear2x",
        "along each axis, out is 0.75 * the point it lies in + 0.25 * the next one on its side; outside the image lies"
        " its nearest point",
        lambda xp, u, axis, side: 0.75 * u + 0.25 * _beside(xp, u, axis, side),
        "0.5625 * v(0, 0) + 0.1875 * (v(2 * a - 1, 0) + v(0, 2 * b - 1)) + 0.0625 * v(2 * a - 1, 2 * b - 1)",
        "bilinear",
        flops=2,
        radius=1,
    ),
)
