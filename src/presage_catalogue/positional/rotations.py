"""Rotary embeddings: rotate pairs of features by an angle that depends on the position."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Operation

_LOAD_HALVES = """\
const Pack<{type}, N> low = *(const Pack<{type}, N> *)(row + k), high = *(const Pack<{type}, N> *)(row + half_dim + k);
#pragma unroll
for (int i = 0; i < N; i++) a[i] = (float)low.at[i], b[i] = (float)high.at[i];"""
_STORE_HALVES = """\
Pack<{type}, N> low, high;
#pragma unroll
for (int i = 0; i < N; i++) low.at[i] = ({type})a[i], high.at[i] = ({type})b[i];
*(Pack<{type}, N> *)(row + k) = low;
*(Pack<{type}, N> *)(row + half_dim + k) = high;"""
_LOAD_NEIGHBOURS = """\
const Pack<{type}, 2 * N> both = *(const Pack<{type}, 2 * N> *)(row + 2 * k);
#pragma unroll
for (int i = 0; i < N; i++) a[i] = (float)both.at[2 * i], b[i] = (float)both.at[2 * i + 1];"""
_STORE_NEIGHBOURS = """\
Pack<{type}, 2 * N> both;
#pragma unroll
for (int i = 0; i < N; i++) both.at[2 * i] = ({type})a[i], both.at[2 * i + 1] = ({type})b[i];
*(Pack<{type}, 2 * N> *)(row + 2 * k) = both;"""
_NAIVE = """\
extern "C" __global__ void {entry}({arguments}) {{
    const int i = blockIdx.x * 256 + threadIdx.x, k = i % half_dim, r = i / half_dim, s = r / heads % seq;
    if (r >= batch * seq * heads) return;
    const size_t first = (size_t)r * 2 * half_dim + {first}, second = (size_t)r * 2 * half_dim + {second};
    const float a = (float)x[first], b = (float)x[second];
    const float cosine = cosines[s * half_dim + k], sine = sines[s * half_dim + k];
    y[first] = ({type})(a * cosine - b * sine);
    y[second] = ({type})(b * cosine + a * sine);
}}"""


class Rotation(Operation):
    """Rotates x[b, s, h] in pairs: (a, b) becomes (a cos - b sin, b cos + a sin). A pair is the k-th feature of the
    first half and the k-th of the second half, or two neighbouring features."""

    adds_up = False
    draw_styles = ("normal", "large", "tiny")
    _draw = (3, 40, 8, 40)
    _flops = 3
    timed = {"gpu": cases("batch seq heads half_dim: 4 2048 32 64; 64 200 24 25")}
    checks = cases(
        "batch seq heads half_dim: 1 1 1 1; 1 131 3 1 large; 2 1 7 33 tiny; 1 5 1 9; 2 17 5 64 normal;"
        " 1 129 3 50 outliers; 3 8 12 20 large"
    )

    def __init__(self, name: str, summary: str, *, neighbours: bool = False, dtype: str = "float32") -> None:
        super().__init__(name, summary)
        self._neighbours, self._dtype = neighbours, dtype
        shape = "batch, seq, heads, 2 * half_dim"
        table = "seq, half_dim"
        self.inputs = (Array("x", shape, dtype), Array("cosines", table), Array("sines", table))
        self.outputs = (Array("y", shape, dtype),)
        split = "x[..., 0::2], x[..., 1::2]" if self._neighbours else "x.chunk(2, -1)"
        joined = "torch.stack((turned_a, turned_b), -1).flatten(-2)"
        joined = joined if self._neighbours else "torch.cat((turned_a, turned_b), -1)"
        body = (
            f"a, b = {split}",
            "cosine, sine = cosines[None, :, None, :], sines[None, :, None, :]",
            "turned_a, turned_b = a * cosine - b * sine, b * cosine + a * sine",
            f"return {joined}" + (".half()" if self._dtype == "float16" else ""),
        )
        self._eager = "\n".join(body)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """Draw x in the case's style. The angles are those of a rotary embedding in every style."""
        xp, (_, seq, _, half_dim) = sampler.xp, case.dims.values()
        x = sampler.values(self.shape(self.inputs[0], case), self._dtype)
        places = xp.arange(seq, dtype=xp.float64, device=x.device)[:, None]
        pairs = xp.arange(half_dim, dtype=xp.float64, device=x.device)[None, :]
        angles = places * xp.exp(-pairs * (9.210340371976184 / half_dim))
        return x, xp.astype(xp.cos(angles), xp.float32), xp.astype(xp.sin(angles), xp.float32)

    def _split(self, xp: ModuleType, case: Case, x: Any) -> tuple[Any, Any]:
        batch, seq, heads, half_dim = case.dims.values()
        if self._neighbours:
            x = xp.reshape(x, (batch, seq, heads, half_dim, 2))
            return x[..., 0], x[..., 1]
        return x[..., :half_dim], x[..., half_dim:]

    def _join(self, xp: ModuleType, case: Case, a: Any, b: Any) -> Any:
        batch, seq, heads, half_dim = case.dims.values()
        if self._neighbours:
            return xp.reshape(xp.stack((a, b), -1), (batch, seq, heads, 2 * half_dim))
        return xp.concat((a, b), axis=-1)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        x, cosines, sines = inputs
        a, b = self._split(xp, case, x)
        cosines, sines = cosines[None, :, None, :], sines[None, :, None, :]
        return (self._join(xp, case, a * cosines - b * sines, b * cosines + a * sines),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        x, cosines, sines = (xp.abs(each) for each in inputs)
        a, b = self._split(xp, case, x)
        cosines, sines = cosines[None, :, None, :], sines[None, :, None, :]
        return (self._join(xp, case, a * cosines + b * sines, b * cosines + a * sines),)

    def tolerance(self, case: Case) -> Tolerance:
        if self._dtype == "float16":
            return Tolerance(
                5.5e-4, "the result is rounded to 11 bits, 4.9e-4 at most, after products in float32", absolute=6e-8
            )
        return Tolerance(5e-7, "three roundings in float32, each of 6e-8 of the products; cosines in halves: 2e-4")

    def code(self, suffix: str) -> Mapping[str, str]:
        first, second = ("2 * k", "2 * k + 1") if self._neighbours else ("k", "half_dim + k")
        if suffix == ".py":
            return {"arguments": "x, cosines, sines", "body": self._eager, "first": first, "second": second}
        kind, arguments = self.c_type(self.inputs[0]), self.c_arguments()
        load, store = (_LOAD_NEIGHBOURS, _STORE_NEIGHBOURS) if self._neighbours else (_LOAD_HALVES, _STORE_HALVES)
        return {
            "entry": self.name,
            "include": "#include <cuda_fp16.h>",
            "naive_grid": "cdiv(batch * seq * heads * half_dim, 256)",
            "naive": _NAIVE.format(entry=self.name, arguments=arguments, first=first, second=second, type=kind),
            "pair_arguments": arguments,
            "type": kind,
            "load": load.format(type=kind),
            "store": store.format(type=kind),
        }


OPERATIONS = (
    Rotation("rope", "y = x with features k and half_dim + k of each head turned by the angle of position and k"),
    Rotation(
        "rope_interleaved",
        "y = x with features 2 k and 2 k + 1 of each head turned by the angle of position and k",
        neighbours=True,
    ),
    Rotation(
        "rope_half",
        "y = x in half precision with features k and half_dim + k of each head turned by the angle of position and k",
        dtype="float16",
    ),
)
