"""Group quantisation: each group of numbers is divided by a scale that its largest absolute value determines."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import Facts, Operation

_NAIVE = """\
__device__ {type} encode(float v) {{ return {encode}; }}

extern "C" __global__ void {entry}({arguments}) {{
    __shared__ float part[256];
    const int g = blockIdx.x, t = threadIdx.x, width = {width};
    const float *from = x + (size_t)g * width;
    float largest = 1e-10f;
    for (int i = t; i < width; i += 256) largest = fmaxf(largest, fabsf(from[i]));
    part[t] = largest;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {{
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();
    }}
    const float scale = part[0] / {limit};
    for (int i = t; i < width; i += 256) codes[(size_t)g * width + i] = encode(from[i] / scale);
    if (t == 0) scales[g] = scale;
}}"""
_INT8_TRITON = "tl.floor(tl.minimum(tl.maximum(v, -127.0), 127.0) + 0.5).to(tl.int8)"


class GroupQuantisation(Operation):
    """Quantises x in `groups` groups of `width` contiguous numbers: scale = max(largest absolute value, 1e-10) / limit,
    and x / scale is rounded to int8 (limit 127) or to float8_e4m3fn (limit 448)."""

    _flops = 2
    _tolerance = Tolerance(
        1.0,
        "what is allowed is the magnitude: half a step of an integer and 1e-3, for float8 half of its last of three"
        " bits, 2^-4, with 2^-10 near zero, and 1e-6 of a scale for two roundings in float32",
    )

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        shape: str,
        scales: str,
        groups: str,
        width: str,
        dtype: str,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        self._groups, self._width, self._dtype = groups, width, dtype
        self.inputs = (Array("x", shape),)
        self.outputs = (Array("codes", shape, dtype), Array("scales", scales))

    @property
    def _limit(self) -> float:
        return 127.0 if self._dtype == "int8" else 448.0

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Return the unrounded codes, as rounding a tie in either direction is correct, and the scales."""
        (x,) = inputs
        codes, scales = (self.shape(array, case) for array in self.outputs)
        groups = xp.reshape(x, (*scales, -1))
        scale = xp.clip(xp.max(xp.abs(groups), axis=-1), 1e-10, xp.inf) / self._limit
        quotients = xp.clip(groups / scale[..., None], -self._limit, self._limit)
        return xp.reshape(quotients, codes), scale

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        codes, scales = expected
        if self._dtype == "int8":
            return xp.zeros_like(codes) + 0.501, 1e-6 * scales
        return 0.0635 * xp.abs(codes) + 0.00099, 1e-6 * scales

    def code(self, suffix: str) -> Mapping[str, str]:
        single = self._dtype == "int8"
        if suffix == ".py":
            kind = "int8" if single else "float8_e4m3fn"
            codes, scales = (array.shape for array in self.outputs)
            first, second = self.scalars
            names = f"{first}, {second} = x.shape" if second in self.inputs[0].shape.split(", ") else ""
            return {
                "arguments": "x",
                "body": self._eager,
                "group_unpack": names or f"{first}, {second} = x.shape[0], x.shape[1] // 128",
                "group_codes": f"torch.empty(({codes}), dtype=torch.{kind}, device=x.device)",
                "group_scales": f"torch.empty(({scales},), dtype=torch.float32, device=x.device)",
                "group_count": self._groups,
                "group_width": self._width,
                "limit": str(self._limit),
                "encode": _INT8_TRITON if single else "v.to(tl.float8e4nv)",
            }
        integer = "(signed char)__float2int_rn(fminf(fmaxf(v, -127.0f), 127.0f))"
        kind = self.c_type(self.outputs[0])
        given = {
            "entry": self.name,
            "include": "" if single else "#include <cuda_fp8.h>",
            "type": kind,
            "group_arguments": self.c_arguments(),
            "group_names": ", ".join(self.scalars),
            "group_count": self._groups,
            "group_width": self._width,
            "limit": f"{self._limit}f",
            "encode": integer if single else "__nv_fp8_e4m3(v)",
            "naive_grid": self._groups,
        }
        named = {"arguments": given["group_arguments"], "width": self._width}
        return {**given, "naive": _NAIVE.format(**given, **named)}


_ROWS = cases("rows cols: 8192 4096; 100000 300")
_ROW_CHECKS = cases(
    "rows cols: 1 1; 1 1031 large; 131 1 tiny; 7 9 zeros; 37 251 outliers; 70 64 normal; 9 4100 large; 260 33 normal"
)
_EAGER_ROWS = """\
scales = x.abs().amax(-1).clamp(min=1e-10) / {limit}
return {code}, scales"""

OPERATIONS = (
    GroupQuantisation(
        "per_row_quant_int8",
        "scales[r] = max(1e-10, max over c of |x[r, c]|) / 127 and codes[r, c] = x[r, c] / scales[r], rounded to int8",
        shape="rows, cols",
        scales="rows",
        groups="rows",
        width="cols",
        dtype="int8",
        eager=_EAGER_ROWS.format(limit="127.0", code="(x / scales[:, None]).round().clamp(-127, 127).to(torch.int8)"),
        timed=_ROWS,
        checks=_ROW_CHECKS,
        draw=(120, 300),
    ),
    GroupQuantisation(
        "per_row_quant_fp8",
        "scales[r] = max(1e-10, max over c of |x[r, c]|) / 448 and codes[r, c] = x[r, c] / scales[r] as float8_e4m3fn",
        shape="rows, cols",
        scales="rows",
        groups="rows",
        width="cols",
        dtype="float8_e4m3fn",
        eager=_EAGER_ROWS.format(
            limit="448.0", code="(x / scales[:, None]).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)"
        ),
        timed=_ROWS,
        checks=_ROW_CHECKS,
        draw=(120, 300),
    ),
    GroupQuantisation(
        "per_token_group_quant_fp8",
        "every 128 neighbours of a row: scale = max(1e-10, largest |x|) / 448, codes = x / scale as float8_e4m3fn",
        shape="tokens, 128 * blocks",
        scales="tokens, blocks",
        groups="tokens * blocks",
        width="128",
        dtype="float8_e4m3fn",
        eager=(
            "groups = x.view(x.shape[0], -1, 128)\n"
            "scales = groups.abs().amax(-1).clamp(min=1e-10) / 448.0\n"
            "codes = (groups / scales[..., None]).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)\n"
            "return codes.view(x.shape), scales"
        ),
        timed=cases("tokens blocks: 4096 56; 60000 3"),
        checks=cases(
            "tokens blocks: 1 1; 1 33 large; 131 1 tiny; 7 9 zeros; 37 5 outliers; 70 4 normal; 9 31 large; 101 2 equal"
        ),
        draw=(60, 9),
    ),
)
