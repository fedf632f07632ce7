"""Positional biases: add a number that depends only on an element's position."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import Facts, Operation

_NAIVE = """\
__device__ float term(int r, int c, {sizes}) {{
    {plain}
}}

extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x, width = {cols};
    if (i < {rows} * width) y[i] = x[i] + term(i / width, i % width, {names});
}}"""


class PlaceBias(Operation):
    """y[r, c] = x[r, c] + term(r, c). All dimensions except the last are flattened to rows. `term` is C code that uses
    the tunables FORM (how constants are computed) and ANGLE (the type in which positions are multiplied)."""

    draw_styles = ("normal", "large", "tiny")

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        rows: str,
        plain: str,
        term: str,
        triton: str,
        reason: str,
        table_rows: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        facts["tolerance"] = Tolerance(2e-6, reason)
        super().__init__(name, summary, **facts)
        dims = ", ".join(self.scalars)
        self.inputs, self.outputs = (Array("x", dims),), (Array("y", dims),)
        self._rows, self._cols, self._table_rows = rows, self.scalars[-1], table_rows
        self._plain, self._term, self._triton = plain, term, triton

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (x + self._oracle(xp, case.dims, x)[0],)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        (x,) = inputs
        return (xp.abs(x) + self._oracle(xp, case.dims, x)[1],)

    def code(self, suffix: str) -> Mapping[str, str]:
        names = ", ".join(self.scalars)
        if suffix == ".py":
            return {
                "arguments": "x",
                "body": self._eager,
                "sizes": names,
                "unpack": f"{names} = x.shape",
                "term": self._triton,
                "rows": self._rows,
                "cols": self._cols,
            }
        given = {
            "entry": self.name,
            "include": "",
            "arguments": self.c_arguments(),
            "names": names,
            "sizes": self.c_sizes,
            "rows": self._rows,
            "cols": self._cols,
            "naive_grid": f"cdiv({self._rows} * {self._cols}, 256)",
            "term": self._term,
        }
        given["naive"] = _NAIVE.format(plain=self._plain.replace("\n", "\n    "), **given)
        return {**given, "table_rows": self._table_rows} if self._table_rows else given


def _sinusoid(xp: ModuleType, dims: Mapping[str, int], x: Any) -> tuple[Any, Any]:
    _, seq, dim = dims.values()
    column = xp.arange(dim, dtype=xp.float64, device=x.device)
    even = xp.floor(column / 2) * 2
    angle = xp.arange(seq, dtype=xp.float64, device=x.device)[:, None] * xp.exp(-even * (9.210340371976184 / dim))
    return xp.where(column[None, :] == even[None, :], xp.sin(angle), xp.cos(angle))[None], 1.0 + angle[None]


def _alibi(xp: ModuleType, dims: Mapping[str, int], x: Any) -> tuple[Any, Any]:
    heads, queries, keys = dims.values()
    head, query, key = (xp.arange(size, dtype=xp.float64, device=x.device) for size in (heads, queries, keys))
    slope = xp.exp((head + 1) * (-8 * 0.6931471805599453 / heads))
    term = slope[:, None, None] * (key[None, None, :] - query[None, :, None])
    return term, xp.abs(term)


OPERATIONS = (
    PlaceBias(
        "sinusoidal_add",
        "y[b, s, c] = x[b, s, c] + sin(a) for even c, cos(a) for odd c, with a = s / 10000^(2 floor(c / 2) / dim)",
        rows="batch * seq",
        plain=(
            "const float angle = (float)(r % seq) * powf(10000.0f, -(float)(c / 2 * 2) / dim);\n"
            "return c % 2 ? cosf(angle) : sinf(angle);"
        ),
        term=(
            "const float share = -(float)(c / 2 * 2) / dim;\n"
            "const float rate = FORM == 0   ? powf(10000.0f, share)\n"
            "                   : FORM == 1 ? exp2f(share * 13.287712379549449f)\n"
            "                   : FORM == 2 ? __expf(share * 9.210340371976184f)\n"
            "                               : (float)exp((double)share * 9.210340371976184);\n"
            "const ANGLE angle = (ANGLE)(float)(r % seq) * (ANGLE)rate;\n"
            "if (FORM == 2) return c % 2 ? __cosf((float)angle) : __sinf((float)angle);\n"
            "return c % 2 ? (float)cos(angle) : (float)sin(angle);"
        ),
        triton=(
            "rate = tl.exp2((c // 2 * 2).to(tl.float32) / dim * -13.287712379549449)\n"
            "angle = (r % seq).to(tl.float32) * rate\n"
            "term = tl.where(c % 2 == 0, tl.sin(angle), tl.cos(angle))"
        ),
        eager=(
            "batch, seq, dim = x.shape\n"
            "even = torch.arange(0, dim, 2, device=x.device)\n"
            "angle = torch.arange(seq, device=x.device)[:, None] * torch.exp(even * (-9.210340371976184 / dim))\n"
            "return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, :dim]"
        ),
        oracle=_sinusoid,
        reason="the rate, found in float32, is off by some 5e-7 and so is the angle, of its own size; then roundings of"
        " 6e-8 of x and 1",
        timed=cases("batch seq dim: 8 2048 1024; 1000 77 260"),
        checks=cases(
            "batch seq dim: 1 1 1; 2 131 3 large; 3 1 33 tiny; 2 5 9; 2 65 64 normal; 1 129 131 outliers; 7 40 36 tiny"
        ),
        draw=(5, 100, 120),
        flops=1,
        table_rows="seq",
    ),
    PlaceBias(
        "alibi_bias",
        "y[h, i, j] = x[h, i, j] + 2^(-8 (h + 1) / heads) * (j - i)",
        rows="heads * queries",
        plain="return exp2f(-8.0f * (r / queries + 1) / heads) * (float)(c - r % queries);",
        term=(
            "const float share = -8.0f * (r / queries + 1) / heads;\n"
            "const float slope = FORM == 0   ? exp2f(share)\n"
            "                    : FORM == 1 ? powf(2.0f, share)\n"
            "                    : FORM == 2 ? __expf(share * 0.6931471805599453f)\n"
            "                                : (float)exp2((double)share);\n"
            "return (float)((ANGLE)slope * (ANGLE)(float)(c - r % queries));"
        ),
        triton=(
            "slope = tl.exp2((r // queries + 1).to(tl.float32) * -8.0 / heads)\n"
            "term = slope * (c - r % queries).to(tl.float32)"
        ),
        eager=(
            "heads, queries, keys = x.shape\n"
            "slope = torch.exp2(torch.arange(1, heads + 1, device=x.device) * (-8.0 / heads))\n"
            "distance = torch.arange(keys, device=x.device) - torch.arange(queries, device=x.device)[:, None]\n"
            "return x + slope[:, None, None] * distance"
        ),
        oracle=_alibi,
        reason="the slope is off by some 4e-7 for its exponent of up to 8, then roundings of 6e-8 of x and the term",
        timed=cases("heads queries keys: 16 1024 1024; 12 3000 500"),
        checks=cases(
            "heads queries keys: 1 1 1; 2 131 3 large; 3 1 33 tiny; 12 5 9; 8 65 64 normal; 1 129 131 outliers;"
            " 7 40 36 tiny"
        ),
        draw=(16, 60, 90),
        flops=2,
    ),
)
