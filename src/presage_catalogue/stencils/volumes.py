"""Stencils on volumes: each point of a grid of three dimensions from its neighbours, zero outside."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler

Weights = Mapping[tuple[int, int, int], float]


def _dims(n: int, d: int, h: int, w: int, values: str = "uniform") -> Case:
    return Case({"n": n, "d": d, "h": h, "w": w}, values=values)


class VolumeStencil(Operation):
    """out[i, z, y, x] = the sum of weight * u[i, z + dz, y + dy, x + dx] over neighbours at most one step away."""

    inputs = (Array("u", "n, d, h, w"),)
    outputs = (Array("out", "n, d, h, w"),)
    timed = {"gpu": (_dims(1, 256, 256, 384), _dims(64, 72, 72, 74))}
    checks = (
        _dims(1, 1, 1, 1),
        _dims(1, 1, 1, 140, "normal"),
        _dims(2, 3, 70, 1, "large"),
        _dims(1, 17, 19, 67, "outliers"),
        _dims(2, 9, 11, 36, "tiny"),
        _dims(1, 40, 5, 35, "normal"),
        _dims(1, 10, 10, 10, "equal"),
    )

    def __init__(
        self, name: str, summary: str, weights: Weights, eager: str, *, flops: int, taps: tuple[float, ...] = ()
    ) -> None:
        """`taps`, if given, are the weights of the one-dimensional stencil that this is the product of."""
        super().__init__(name)
        self.summary = f"{summary}; zero outside the volume"
        self._weights, self._eager, self._flops, self._taps = weights, eager, flops, taps

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

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

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            3e-6, "27 terms, at most 27 roundings of 6e-8 in any order, relative to the sizes of all terms"
        )

    def flops(self, case: Case) -> int:
        return self._flops * math.prod(case.dims.values())

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _dims(rng.randint(1, 2), rng.randint(1, 20), rng.randint(1, 30), rng.randint(1, 70), style)

    def given(self, suffix: str) -> Mapping[str, str]:
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
            "arguments": "const float *__restrict__ u, float *__restrict__ out, int n, int d, int h, int w",
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
