"""Stencils on volumes: compute each point of a 3-D grid from its neighbours, with zero padding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import CUDNN_IN_FLOAT32, Operation

Weights = Mapping[tuple[int, int, int], float]


class VolumeStencil(Operation):
    """out[i, z, y, x] = sum of weight * u[i, z + dz, y + dy, x + dx] over neighbours one step away at most."""

    torch_imports = CUDNN_IN_FLOAT32
    inputs = (Array("u", "n, d, h, w"),)
    outputs = (Array("out", "n, d, h, w"),)
    timed = {"gpu": cases("n d h w: 1 256 256 384; 64 72 72 74")}
    checks = cases(
        "n d h w: 1 1 1 1; 1 1 1 140 normal; 2 3 70 1 large; 1 17 19 67 outliers; 2 9 11 36 tiny; 1 40 5 35 normal;"
        " 1 10 10 10 equal"
    )

    _draw = (2, 20, 30, 70)
    _tolerance = Tolerance(
        3e-6, "27 terms, at most 27 roundings of 6e-8 in any order, relative to the sizes of all terms"
    )

    def __init__(
        self, name: str, summary: str, weights: Weights, eager: str, *, flops: int, taps: tuple[float, ...] = ()
    ) -> None:
        """`taps`, if given, are the weights of the 1-D stencil whose product along the three axes is this stencil."""
        super().__init__(name, f"{summary}; zero outside the volume", eager=eager, flops=flops)
        self._weights, self._taps = weights, taps

    def _apply(self, xp: ModuleType, u: Any, weights: Weights) -> Any:
        shape = u.shape[1:]
        for axis in (1, 2, 3):
            edge = xp.zeros((*u.shape[:axis], 1, *u.shape[axis + 1 :]), dtype=u.dtype, device=u.device)
            u = xp.concat((edge, u, edge), axis=axis)
        d, h, w = shape
        return sum(
            weight * u[:, dz + 1 : dz + 1 + d, dy + 1 : dy + 1 + h, dx + 1 : dx + 1 + w]
            for (dz, dy, dx), weight in weights.items()
        )

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._apply(xp, inputs[0], self._weights),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return (self._apply(xp, xp.abs(inputs[0]), {at: abs(weight) for at, weight in self._weights.items()}),)

    def code(self, suffix: str) -> Mapping[str, str]:
        by_weight: dict[float, list[str]] = {}
        for at, weight in self._weights.items():
            by_weight.setdefault(weight, []).append(f"v{at}")
        sums = [(weight, " + ".join(terms)) for weight, terms in by_weight.items()]
        if suffix == ".py":
            code = " + ".join(f"{weight!r} * ({terms})" for weight, terms in sums)
            moved = re.sub(
                r"v\((-?\d), (-?\d), (-?\d)\)", r"fetch(plane_ptr, z + (\1), y + (\2), x + (\3), d, h, w, inside)", code
            )
            return {
                "ins": "u",
                "volume": f"value = {moved}",
                "eager": self._eager,
                **({"products": ", ".join(map(repr, self._taps))} if self._taps else {}),
            }
        code = " + ".join(f"{weight!r}f * ({terms})" for weight, terms in sums)
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "points": "n * d * h * w",
            "volume": f"return {code};",
            "naive": "const int x = at % w, y = at / w % h, z = at / w / h % d;\n"
            "const auto v = [&](int dz, int dy, int dx) {\n"
            "    const bool inside = z + dz >= 0 && z + dz < d && y + dy >= 0 && y + dy < h && x + dx >= 0"
            " && x + dx < w;\n"
            "    return inside ? u[(long long)at + (dz * h + dy) * w + dx] : 0.0f;\n};\n"
            f"out[at] = {code};",
            **({"products": ", ".join(f"{tap!r}f" for tap in self._taps)} if self._taps else {}),
        }


_FACES = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
_CUBE = tuple((dz, dy, dx) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
_TENT = (0.25, 0.5, 0.25)

OPERATIONS = (
    VolumeStencil(
        "stencil3d_7point",
        "out = 0.4 * u + 0.1 * (the sum of the six nearest neighbours)",
        {(0, 0, 0): 0.4, **dict.fromkeys(_FACES, 0.1)},
        "p = F.pad(u, (1, 1, 1, 1, 1, 1))\n"
        "z, y, x = p[:, :, 1:-1, 1:-1], p[:, 1:-1, :, 1:-1], p[:, 1:-1, 1:-1, :]\n"
        "return 0.4 * u + 0.1 * (z[:, :-2] + z[:, 2:] + y[:, :, :-2] + y[:, :, 2:] + x[..., :-2] + x[..., 2:])",
        flops=8,
    ),
    VolumeStencil(
        "stencil3d_box27",
        "out = the sum of the 3 by 3 by 3 points around, divided by 27",
        dict.fromkeys(_CUBE, 1 / 27),
        "return F.avg_pool3d(F.pad(u, (1, 1, 1, 1, 1, 1))[:, None], 3, 1)[:, 0]",
        flops=7,
        taps=(1 / 3, 1 / 3, 1 / 3),
    ),
    VolumeStencil(
        "stencil3d_tent27",
        "out = the sum over the 3 by 3 by 3 points around of b[dz] * b[dy] * b[dx] * u with b = (1, 2, 1) / 4",
        {(dz, dy, dx): _TENT[dz + 1] * _TENT[dy + 1] * _TENT[dx + 1] for dz, dy, dx in _CUBE},
        "tent = torch.tensor([0.25, 0.5, 0.25], device=u.device)\n"
        "kernel = tent[:, None, None] * tent[:, None] * tent\n"
        "return F.conv3d(u[:, None], kernel[None, None], padding=1)[:, 0]",
        flops=7,
        taps=_TENT,
    ),
)
