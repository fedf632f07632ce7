"""Stencils on planes: compute each point of an image from its neighbours in the same image.

Each entry of `OPERATIONS` gives the formula for the oracle and as C and Triton code. v(dy, dx) is a neighbour. The code
may use the point's y and x, the image's h and w, and `at`, the point's index in the array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import CUDNN_IN_FLOAT32, Facts, Formula, Operation

Neighbour = Callable[[int, int], Any]
Weights = Mapping[tuple[int, int], float]

_ZERO = "zero outside the image"
_CLAMP = "outside the image, its nearest point"

_FETCH = {
    _ZERO: "return y >= 0 && y < h && x >= 0 && x < w ? plane[y * w + x] : 0;",
    _CLAMP: "return plane[min(max(y, 0), h - 1) * w + min(max(x, 0), w - 1)];",
}
_FLAT = {
    _ZERO: "return y * w + x >= 0 && y * w + x < h * w ? plane[y * w + x] : 0;",
    _CLAMP: "return plane[min(max(y * w + x, 0), h * w - 1)];",
}
_TRITON_FETCH = {
    _ZERO: (
        "return tl.load(plane_ptr + y * w + x, mask=inside & (y >= 0) & (y < h) & (x >= 0) & (x < w), other=0)",
        "return tl.load(plane_ptr + y * w + x, mask=inside & (y * w + x >= 0) & (y * w + x < h * w), other=0)",
    ),
    _CLAMP: (
        "y = tl.minimum(tl.maximum(y, 0), h - 1)\n"
        "x = tl.minimum(tl.maximum(x, 0), w - 1)\n"
        "return tl.load(plane_ptr + y * w + x, mask=inside, other=0)",
        "return tl.load(plane_ptr + tl.minimum(tl.maximum(y * w + x, 0), h * w - 1), mask=inside, other=0)",
    ),
}


def neighbours(xp: ModuleType, u: Any, ry: int, rx: int, outside: str) -> Neighbour:
    """Return the function v(dy, dx): the padded image, shifted so that each point holds its neighbour at (dy, dx)."""
    _, h, w = u.shape
    for axis, radius in ((1, ry), (2, rx)):
        if radius == 0:
            continue
        first, last = (u[:, :1, :], u[:, -1:, :]) if axis == 1 else (u[:, :, :1], u[:, :, -1:])
        if outside == _ZERO:
            first, last = first * 0, last * 0
        u = xp.concat((*[first] * radius, u, *[last] * radius), axis=axis)
    return lambda dy, dx: u[:, ry + dy : ry + dy + h, rx + dx : rx + dx + w]


class PlaneStencil(Operation):
    """out[i, y, x] = f(u[i, y + dy, x + dx] with |dy| <= ry and |dx| <= rx)."""

    torch_imports = CUDNN_IN_FLOAT32
    timed = {"gpu": cases("n h w: 1 4096 6144; 384 250 254")}
    checks = cases(
        "n h w: 1 1 1; 1 1 300 normal; 3 70 1 large; 1 33 65 outliers; 2 67 131 normal; 1 37 260 tiny; 1 40 40 equal;"
        " 2 9 16 zeros"
    )

    _draw = (3, 90, 200)

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        c: str,
        triton: str,
        eager: str,
        /,
        *,
        ry: int = 1,
        rx: int = 1,
        outside: str = _ZERO,
        second: Array | None = None,
        prepare: Mapping[str, str] | None = None,
        element: str = "float32",
        relative: float = 1e-6,
        absolute: float = 1e-30,
        reason: str = "some ten roundings of 6e-8 in float32, relative to the sizes of all terms",
        more: Mapping[str, Mapping[str, str]] | None = None,
        **facts: Unpack[Facts],
    ) -> None:
        facts["tolerance"] = Tolerance(relative, reason, absolute)
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, f"{summary}; {outside}", **facts)
        self.inputs = (Array("u", "n, h, w", element), *([second] if second else []))
        self.outputs = (Array("out", "n, h, w", element),)
        self._ry, self._rx, self._element, self._outside = ry, rx, element, outside
        self._c, self._triton, self._prepare, self._more = c, triton, prepare or {}, more or {}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        if self._element == "uint8":
            return (sampler.integers(self.shape(self.inputs[0], case), 0, 2, "uint8"),)
        return super().make_inputs(case, sampler)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._oracle(xp, neighbours(xp, inputs[0], self._ry, self._rx, self._outside), *inputs[1:]),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        first, *others = (xp.abs(x) for x in inputs)
        around = neighbours(xp, first, self._ry, self._rx, self._outside)
        return super().magnitude(xp, case, expected, around, *others)

    def code(self, suffix: str) -> Mapping[str, str]:
        names = self.ins
        if suffix == ".py":
            exact, flat = _TRITON_FETCH[self._outside]
            return {
                "ins": ", ".join(names),
                "pointers": ", ".join(f"{name}_ptr" for name in (*names, "out")),
                "prepare": self._prepare.get(".py", ""),
                "fetch": exact,
                "flat": flat,
                "formula": _fetched(self._triton),
                "eager": self._eager,
                **self._more.get(".py", {}),
            }
        kind = self.c_type(self.inputs[0])
        vector = {"float32": "float", "uint8": "uchar"}[self._element]
        prepare = self._prepare.get(".cu", "")
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
            "points": "n * h * w",
            "type": kind,
            "vector2": f"{vector}2",
            "vector4": f"{vector}4",
            "bytes": str({"float32": 4, "uint8": 1}[self._element]),
            "ry": str(self._ry),
            "rx": str(self._rx),
            "prepare": prepare,
            "fetch": _FETCH[self._outside],
            "flat": _FLAT[self._outside],
            "formula": self._c,
            "naive": f"const int px = at % w, py = at / w % h, y = py, x = px;\n"
            f"const {kind} *plane = u + (at - (size_t)py * w - px);\n"
            f"const auto v = [&](int dy, int dx) -> {kind} {{\n"
            f"    const int y = py + dy, x = px + dx;\n    {_FETCH[self._outside]}\n}};\n"
            f"{prepare}\nout[at] = [&]() -> {kind} {{\n{self._c}\n}}();",
            **self._more.get(".cu", {}),
        }


def _fetched(code: str) -> str:
    """Replace v(dy, dx) in Triton code by calls of `fetch` with explicit coordinates, as Triton has no closures."""
    return re.sub(r"\bv\((-?\d), (-?\d)\)", r"fetch(plane_ptr, y + (\1), x + (\2), h, w, inside, EDGE)", code)


def _sum(weights: Weights, suffix: str = "f") -> str:
    """Return the weighted sum as C code, or, with an empty suffix, as Triton code."""
    by_weight: dict[float, list[str]] = {}
    for (dy, dx), weight in weights.items():
        by_weight.setdefault(weight, []).append(f"v({dy}, {dx})")
    return " + ".join(f"{weight!r}{suffix} * ({' + '.join(terms)})" for weight, terms in by_weight.items())


def _linear(weights: Weights) -> tuple[Formula, str, str, Formula]:
    """Return the oracle, the C and Triton code and the scale of a sum with constant weights."""
    return (
        lambda xp, v: sum(weight * v(dy, dx) for (dy, dx), weight in weights.items()),
        f"return {_sum(weights)};",
        f"value = {_sum(weights, '')}",
        lambda xp, v: sum(abs(weight) * v(dy, dx) for (dy, dx), weight in weights.items()),
    )


_CROSS = ((-1, 0), (1, 0), (0, -1), (0, 1))
_BOX = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
_LAPLACE = {**dict.fromkeys(_CROSS, 1.0), (0, 0): -4.0}
_BINOMIAL = (0.0625, 0.25, 0.375, 0.25, 0.0625)
_BLUR = {(dy, dx): _BINOMIAL[dy + 2] * _BINOMIAL[dx + 2] for dy in range(-2, 3) for dx in range(-2, 3)}
_SECOND_DERIVATIVE = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
_ROW = {(0, dx): _SECOND_DERIVATIVE[abs(dx)] for dx in range(-4, 5)}
_GX = {(-1, -1): -1.0, (-1, 1): 1.0, (0, -1): -2.0, (0, 1): 2.0, (1, -1): -1.0, (1, 1): 1.0}
_GY = {(dx, dy): weight for (dy, dx), weight in _GX.items()}
_SLICE = "p[:, {0}:h + {0}, {1}:w + {1}]"
_PAD = "h, w = u.shape[1:]\np = F.pad(u, ({0}, {0}, {1}, {1}){2})\n"


def _eager(code: str, ry: int = 1, rx: int = 1, clamp: bool = False) -> str:
    """Translate code with v(dy, dx) to PyTorch code on slices of the padded image."""
    moved = re.sub(r"\bv\((-?\d), (-?\d)\)", lambda m: _SLICE.format(int(m[1]) + ry, int(m[2]) + rx), code)
    return _PAD.format(rx, ry, ', mode="replicate"' if clamp else "") + moved


def _life(xp: ModuleType, v: Neighbour) -> Any:
    wide = [xp.astype(v(dy, dx), xp.int32) for dy, dx in _BOX]
    alive, around = wide[4], sum(wide[1:], wide[0]) - wide[4]
    return xp.astype((around == 3) | ((around == 2) & (alive == 1)), xp.uint8)


# The median of nine by 19 compare-exchanges: sort the rows of three, then the remaining candidates for the median.
_EXCHANGES = (
    (1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3), (5, 8), (4, 7), (3, 6), (1, 4),
    (2, 5), (4, 7), (4, 2), (6, 4), (4, 2),
)  # fmt: skip


def _median(low: str, high: str, declare: str, end: str) -> str:
    lines = [f"{declare}p{i} = v({dy}, {dx}){end}" for i, (dy, dx) in enumerate(_BOX)]
    for i, (a, b) in enumerate(_EXCHANGES):
        lines.append(f"{'const ' if declare else ''}{declare}t{i} = {low}(p{a}, p{b}){end}")
        lines.append(f"p{b} = {high}(p{a}, p{b}){end}")
        lines.append(f"p{a} = t{i}{end}")
    return "\n".join(lines)


def _stacked(xp: ModuleType, v: Neighbour) -> Any:
    return xp.concat([v(dy, dx)[..., None] for dy, dx in _BOX], axis=-1)


def _bilateral(xp: ModuleType, v: Neighbour) -> Any:
    weights = [xp.exp(-0.5 * (v(dy, dx) - v(0, 0)) ** 2 - 0.25 * (abs(dy) + abs(dx))) for dy, dx in _BOX]
    return sum(weight * v(dy, dx) for weight, (dy, dx) in zip(weights, _BOX, strict=True)) / sum(
        weights[1:], weights[0]
    )


def _largest(xp: ModuleType, v: Neighbour) -> Any:
    return xp.max(_stacked(xp, v), axis=-1)


def _step(xp: ModuleType, v: Neighbour) -> Any:
    return v(0, 0) + 0.125 * sum(weight * v(dy, dx) for (dy, dx), weight in _LAPLACE.items())


def _heat(xp: ModuleType, v: Neighbour) -> Any:
    """Compute two time steps. In the second step, points outside the image are zero, too."""
    return _step(xp, neighbours(xp, _step(xp, v), 1, 1, _ZERO))


def _heat_code(suffix: str) -> str:
    """Return code that computes both time steps from 13 points: the first step is computed at the five points of the
    cross that are inside the image."""
    lines = []
    for i, (by, bx) in enumerate(((0, 0), *_CROSS)):
        around = " + ".join(f"v({by + dy}, {bx + dx})" for dy, dx in _CROSS)
        if suffix == ".cu":
            inside = f"y + {by} >= 0 && y + {by} < h && x + {bx} >= 0 && x + {bx} < w"
            lines.append(f"const float s{i} = {inside} ? 0.5f * v({by}, {bx}) + 0.125f * ({around}) : 0.0f;")
        else:
            inside = f"(y + {by} >= 0) & (y + {by} < h) & (x + {bx} >= 0) & (x + {bx} < w)"
            lines.append(f"s{i} = tl.where({inside}, 0.5 * v({by}, {bx}) + 0.125 * ({around}), 0.0)")
    last = "0.5{0} * s0 + 0.125{0} * (s1 + s2 + s3 + s4)"
    lines.append(f"return {last.format('f')};" if suffix == ".cu" else f"value = {last.format('')}")
    return "\n".join(lines)


_STEP_EAGER = """
def step(u):
    h, w = u.shape[1:]
    p = F.pad(u, (1, 1, 1, 1))
    return 0.5 * u + 0.125 * (p[:, :h, 1:-1] + p[:, 2:, 1:-1] + p[:, 1:-1, :w] + p[:, 1:-1, 2:])


return step(step(u))"""

_WEIGHTS = {
    ".cu": "float k[9];\n#pragma unroll\nfor (int i = 0; i < 9; i++) k[i] = weight[i];",
    ".py": "\n".join(f"k{i} = tl.load(weight_ptr + {i})" for i in range(9)),
}
_BILATERAL_EAGER = (
    "c = v(0, 0)\nabove = torch.zeros_like(u)\nbelow = torch.zeros_like(u)\n"
    "for dy in range(3):\n    for dx in range(3):\n"
    "        near = p[:, dy:dy + h, dx:dx + w]\n"
    "        weight = torch.exp(-0.5 * (near - c) ** 2 - 0.25 * (abs(dy - 1) + abs(dx - 1)))\n"
    "        above += weight * near\n        below += weight\nreturn above / below"
)


def _separable(taps: Sequence[float]) -> dict[str, dict[str, str]]:
    """Return the code for families that filter rows and columns separately: the radius and the taps."""
    listed = ", ".join(map(repr, taps))
    return {
        ".cu": {"reach": str(len(taps) // 2), "taps": ", ".join(f"{tap!r}f" for tap in taps)},
        ".py": {
            "reach": str(len(taps) // 2),
            "along": " + ".join(
                f"{tap!r} * fetch(plane_ptr, y + ({k}) * DOWN, x + ({k}) * (1 - DOWN), h, w, inside, 0)"
                for k, tap in enumerate(taps, start=-(len(taps) // 2))
            ),
            "taps": listed,
        },
    }


_laplace, _blur, _row = _linear(_LAPLACE), _linear(_BLUR), _linear(_ROW)

OPERATIONS = (
    PlaneStencil(
        "laplace2d",
        "out = u above + below + left + right - 4 u",
        *_laplace[:3],
        _eager("return v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1) - 4.0 * u"),
        flops=5,
        scale=_laplace[3],
    ),
    PlaneStencil(
        "stencil9",
        "out = sum over the 3 by 3 points around of weight[dy + 1, dx + 1] * u",
        lambda xp, v, weight: sum(weight[dy + 1, dx + 1] * v(dy, dx) for dy, dx in _BOX),
        "return " + " + ".join(f"k[{i}] * v({dy}, {dx})" for i, (dy, dx) in enumerate(_BOX)) + ";",
        "value = " + " + ".join(f"k{i} * v({dy}, {dx})" for i, (dy, dx) in enumerate(_BOX)),
        "return F.conv2d(u[:, None], weight[None, None], padding=1)[:, 0]",
        flops=9,
        second=Array("weight", "3, 3", "float32"),
        prepare=_WEIGHTS,
        scale=lambda xp, v, weight: sum(weight[dy + 1, dx + 1] * v(dy, dx) for dy, dx in _BOX),
    ),
    PlaneStencil(
        "heat2d_two_steps",
        "two time steps of u + 0.125 * (above + below + left + right - 4 u), where the edge stays zero",
        _heat,
        _heat_code(".cu"),
        _heat_code(".py"),
        _STEP_EAGER,
        flops=12,
        ry=2,
        rx=2,
        scale=_heat,
        more={
            ".cu": {"step": "return 0.5f * v(0, 0) + 0.125f * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1));"},
            ".py": {"step": _fetched("value = 0.5 * v(0, 0) + 0.125 * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1))")},
        },
    ),
    PlaneStencil(
        "stencil1d_radius4",
        "the eighth-order second derivative along each row, from nine points",
        *_row[:3],
        _eager(
            "return "
            + " + ".join(
                f"{_SECOND_DERIVATIVE[d]!r} * " + (f"(v(0, {-d}) + v(0, {d}))" if d else "u") for d in range(5)
            ),
            0,
            4,
        ),
        flops=9,
        ry=0,
        rx=4,
        scale=_row[3],
        timed=cases("n h w: 1 1 25165824; 1 24576 1000"),
    ),
    PlaneStencil(
        "sobel",
        "out = sqrt(gx^2 + gy^2) with the 3 by 3 Sobel derivatives gx and gy",
        lambda xp, v: xp.sqrt(
            sum(weight * v(*at) for at, weight in _GX.items()) ** 2
            + sum(weight * v(*at) for at, weight in _GY.items()) ** 2
        ),
        f"const float gx = {_sum(_GX)}, gy = {_sum(_GY)};\nreturn sqrtf(gx * gx + gy * gy);",
        f"gx = {_sum(_GX, '')}\ngy = {_sum(_GY, '')}\nvalue = tl.sqrt(gx * gx + gy * gy)",
        _eager(f"gx = {_sum(_GX, '')}\ngy = {_sum(_GY, '')}\nreturn torch.sqrt(gx * gx + gy * gy)", clamp=True),
        flops=10,
        outside=_CLAMP,
        scale=lambda xp, v: sum(abs(weight) * v(*at) for at, weight in (*_GX.items(), *_GY.items())),
    ),
    PlaneStencil(
        "gaussian_blur5",
        "out = sum over 5 by 5 points of b[dy] * b[dx] * u with b = (1, 4, 6, 4, 1) / 16",
        *_blur[:3],
        _eager(f"return {_sum(_BLUR, '')}", 2, 2, clamp=True),
        flops=10,
        ry=2,
        rx=2,
        outside=_CLAMP,
        scale=_blur[3],
        relative=3e-6,
        reason="25 terms, at most 25 roundings of 6e-8 in any order, relative to the sizes of all terms",
        more=_separable(_BINOMIAL),
    ),
    PlaneStencil(
        "game_of_life",
        "one generation: a cell lives if three neighbours do, or two and itself",
        _life,
        f"const int around = {' + '.join(f'v({dy}, {dx})' for dy, dx in _BOX if (dy, dx) != (0, 0))};\n"
        "return around == 3 || (around == 2 && v(0, 0));",
        f"around = {' + '.join(f'v({dy}, {dx}).to(tl.int32)' for dy, dx in _BOX if (dy, dx) != (0, 0))}\n"
        "value = ((around == 3) | ((around == 2) & (v(0, 0) != 0))).to(tl.uint8)",
        _eager(
            f"around = {' + '.join(f'v({dy}, {dx})' for dy, dx in _BOX if (dy, dx) != (0, 0))}\n"
            "return ((around == 3) | ((around == 2) & (u == 1))).to(torch.uint8)"
        ),
        flops=4,
        element="uint8",
        relative=0.0,
        reason="integers are exact",
        timed=cases("n h w: 1 8192 12288; 384 500 509"),
    ),
    PlaneStencil(
        "wave2d_step",
        "out = 2 u - previous + 0.25 * (above + below + left + right - 4 u)",
        lambda xp, v, previous: (
            2.0 * v(0, 0) - previous + 0.25 * sum(weight * v(*at) for at, weight in _LAPLACE.items())
        ),
        "return v(0, 0) - previous[at] + 0.25f * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1));",
        "value = v(0, 0) - tl.load(previous_ptr + at, mask=inside) + 0.25 * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1))",
        _eager("return 2.0 * u - previous + 0.25 * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1) - 4.0 * u)"),
        flops=6,
        second=Array("previous", "n, h, w", "float32"),
        scale=lambda xp, v, previous: 3.0 * v(0, 0) + previous + sum(0.25 * v(*at) for at in _CROSS),
    ),
    PlaneStencil(
        "median3x3",
        "out = the median of the 3 by 3 points around",
        lambda xp, v: xp.sort(_stacked(xp, v), axis=-1)[..., 4],
        _median("fminf", "fmaxf", "float ", ";") + "\nreturn p4;",
        _median("tl.minimum", "tl.maximum", "", "") + "\nvalue = p4",
        _eager(
            "return torch.stack([p[:, dy:dy + h, dx:dx + w] for dy in range(3) for dx in range(3)], -1)"
            ".median(-1).values",
            clamp=True,
        ),
        flops=8,
        outside=_CLAMP,
        relative=0.0,
        absolute=0.0,
        reason="a median is one of its inputs, so nothing is rounded",
        timed=cases("n h w: 1 4096 4096; 256 250 254"),
    ),
    PlaneStencil(
        "bilateral3x3",
        "out = the mean of the 3 by 3 points around, weighted by exp(-(u[near] - u)^2 / 2 - (|dy| + |dx|) / 4)",
        _bilateral,
        "const float c = v(0, 0);\nfloat above = 0.0f, below = 0.0f;\n"
        "#pragma unroll\nfor (int dy = -1; dy <= 1; dy++)\n"
        "#pragma unroll\n    for (int dx = -1; dx <= 1; dx++) {\n"
        "        const float near = v(dy, dx), apart = near - c;\n"
        "        const float weight = expf(-0.5f * apart * apart - 0.25f * (dy * dy + dx * dx));\n"
        "        above += weight * near;\n        below += weight;\n    }\nreturn above / below;",
        "c = v(0, 0)\nabove = c * 1.0\nbelow = tl.full(c.shape, 1.0, tl.float32)\n"
        + "\n".join(
            f"near = v({dy}, {dx})\nweight = tl.exp(-0.5 * (near - c) * (near - c) - {0.25 * (abs(dy) + abs(dx))})\n"
            "above += weight * near\nbelow += weight"
            for dy, dx in _BOX
            if (dy, dx) != (0, 0)
        )
        + "\nvalue = above / below",
        _eager(_BILATERAL_EAGER, clamp=True),
        flops=40,
        outside=_CLAMP,
        scale=_largest,
        relative=4e-6,
        reason="nine weights good to some 3e-7 each (the exponent is rounded too) and twenty roundings of 6e-8,"
        " relative to the largest value around",
    ),
)
