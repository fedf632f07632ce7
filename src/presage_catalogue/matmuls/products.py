"""Matrix products with different memory layouts, element types and epilogues.

Each entry of `OPERATIONS` gives the PyTorch code, the timed cases and, unless it is a plain product of `a` and `b`, its
form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.maps import gelu
from presage_catalogue.operation import C_TYPES, Facts, Formula, Operation


IN_FLOAT32 = """\
# float32 products in float32: TF32 keeps only 10 bits of the mantissa. Sums of float16 products in float32, too.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False"""


@dataclass(frozen=True)
class Form:
    """c[i, j] = finish(sum over p of left[i, p] * right[p, j], ...) with one or two right factors; i, j, p in m, n, k.

    `left_along_k`, `right_along_k`: whether the terms of one sum are contiguous in memory, as they are in a row-major
    left factor and in a transposed right factor. `c` and `triton` are the code that finishes a sum v (and u, the second
    one).
    """

    rights: tuple[str, ...] = ("b",)
    extras: tuple[str, ...] = ()
    left_along_k: bool = True
    right_along_k: bool = False
    c: str = "return v;"
    triton: str = ""
    m: str = "m"
    batched: bool = False
    long_sums: bool = True
    """Whether the sums are long enough that split-k can be worthwhile."""
    serves: tuple[str, ...] = ()
    """Further families that apply to this form besides the common ones, by the name of their placeholder."""


_FLOAT_TUNABLES = """\
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: where PRECISION != 'tf32' or (STAGES == 3 and WARPS == 4 and BK == 32)"""
_HALF_TUNABLES = """\
# presage: tune ACCUMULATE = float32, float16
# presage: where ACCUMULATE == 'float32' or (STAGES == 3 and WARPS == 4 and BK == 64)"""


HALF_CHECKS = cases(
    "m n k: 1 1 1; 3 301 77 normal; 67 131 261 normal; 13 17 531; 5 33 23 equal; 136 72 64 normal; 31 7 129 zeros"
)


class Product(Operation):
    """A matrix product, optionally with an epilogue on each sum."""

    torch_imports = IN_FLOAT32
    inputs = (Array("a", "m, k"), Array("b", "k, n"))
    outputs = (Array("c", "m, n"),)
    # No `equal` case has k over 30: the rounding errors of equal terms add up beyond the tolerance's random walk.
    checks = cases(
        "m n k: 1 1 1; 1 301 77 normal; 259 1 5 large; 67 131 261 outliers; 13 17 531 tiny; 5 33 23 equal;"
        " 132 68 64 normal; 31 7 129 zeros"
    )
    _draw = (150, 150, 500)

    def __init__(
        self,
        name: str,
        summary: str,
        eager: str,
        timed: tuple[Case, ...] | Mapping[str, tuple[Case, ...]],
        /,
        *,
        form: Form | None = None,
        rounded: Formula = lambda xp, out, *rest: xp.abs(out),
        extra: int = 0,
        share: float = 1.0,
        **facts: Unpack[Facts],
    ) -> None:
        """`oracle`: computes an element from its sums and the extra inputs. `scale`: the magnitude of an element's
        error, from the sums, the root sums of squares of their terms, and the extra inputs. `rounded`: for a float16
        result, the magnitude of the values that are rounded to float16, from the result, the sums and the extra inputs.
        `extra`: the number of additional roundings in the epilogue. `share`: the share of the m * n * k multiplications
        that every algorithm needs."""
        facts.setdefault("oracle", lambda xp, v: v)
        facts.setdefault("scale", lambda xp, v, root: root)
        facts["eager"], facts["timed"] = eager, timed
        super().__init__(name, summary, **facts)
        self._form, self._rounded, self._extra, self._share = form or Form(), rounded, extra, share
        self._half = self.dtype(self.outputs[0], self.checks[0]) == "float16"
        if self._half:
            self.draw_styles = ("normal", "uniform")

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        made = []
        for array in self.inputs:
            shape, dtype = self.shape(array, case), self.dtype(array, case)
            if dtype == "int8":
                made.append(sampler.integers(shape, -127, 128, "int8"))
            elif array.name == "scale":
                drawn = sampler.xp.abs(sampler.values(shape, "float32", "uniform"))
                made.append(drawn * 0.01 + 0.001)
            else:
                made.append(sampler.values(shape, dtype))
        return tuple(made)

    def _sums(self, xp: ModuleType, inputs: tuple[Any, ...], squared: bool) -> list[Any]:
        arrays = {array.name: x for array, x in zip(self.inputs, inputs, strict=True)}
        left = xp.astype(inputs[0], xp.float64)
        left = left if self._form.left_along_k else xp.permute_dims(left, (1, 0))
        sums = []
        for name in self._form.rights:
            right = xp.astype(arrays[name], xp.float64)
            right = xp.permute_dims(right, (1, 0)) if self._form.right_along_k else right
            sums.append(xp.sqrt(xp.matmul(left * left, right * right)) if squared else xp.matmul(left, right))
        return sums

    def _extras(self, inputs: tuple[Any, ...]) -> list[Any]:
        return [x for array, x in zip(self.inputs, inputs, strict=True) if array.name in self._form.extras]

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._oracle(xp, *self._sums(xp, inputs, False), *self._extras(inputs)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        sums, roots = self._sums(xp, inputs, False), self._sums(xp, inputs, True)
        assert self._scale
        size = self._scale(xp, *sums, *roots, *self._extras(inputs))
        if not self._half:
            return (size,)
        rounded = self._rounded(xp, expected[0], *sums, *self._extras(inputs))
        return (rounded + size * self._drift(case) / _HALF_STEP,)

    def _drift(self, case: Case) -> float:
        return 2.0**-24 * (16 * math.sqrt(case.dims["k"]) + self._extra)

    def tolerance(self, case: Case) -> Tolerance:
        if self._half:
            return Tolerance(
                _HALF_STEP,
                "results are rounded to 11 bits, by 2^-11 with a little room, and a sum of k terms in float32 is off by"
                " up to 16 * sqrt(k) * 2^-24 of its terms' root of squares; a sum in float16 is off by 2^-11 of that",
                absolute=2.0**-24,
            )
        return Tolerance(
            self._drift(case),
            "k roundings of 2^-24 in a running sum grow like sqrt(k); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count. Strassen's 7/8 per level halves it at the fifth, which never pays here."""
        return int(self._products(case) * self._share)

    def textbook_flops(self, case: Case) -> int:
        return int(2 * self._products(case))

    def _products(self, case: Case) -> int:
        sizes = case.dims
        return sizes.get("batch", 1) * sizes[self._form.m] * sizes["n"] * sizes["k"] * len(self._form.rights)

    def code(self, suffix: str) -> Mapping[str, str]:
        """Return the code for the placeholders of the room's families."""
        if suffix == ".c":
            return {}
        form, case = self._form, self.checks[0]
        types = {array.name: self.dtype(array, case) for array in (*self.inputs, *self.outputs)}
        left = self.inputs[0].name
        common = {
            "m": form.m,
            "left": left,
            "factors": str(len(form.rights)),
            "rights": ", ".join(form.rights),
            "batches": "batch" if form.batched else "1",
            **{place: "" for place in form.serves},
        }
        half = types[left] == "float16"
        common["tensor_half" if half else "tensor_tf32"] = ""
        if form.long_sums:
            common["long_sums"] = ""
        if suffix == ".py":
            return {**common, **self._triton_places(half, types)}
        pointers = self.pointers()
        extras = [pointer for pointer, array in zip(pointers, self.inputs, strict=False) if array.name in form.extras]
        return {
            **common,
            "summary": self.summary,
            "entry": self.name,
            "arguments": self.c_arguments(),
            "left_type": C_TYPES[types[left]],
            "right_type": C_TYPES[types[form.rights[0]]],
            "out_type": C_TYPES[types[self.outputs[0].name]],
            "left_along_k": str(int(form.left_along_k)),
            "right_along_k": str(int(form.right_along_k)),
            "finish": form.c,
            "extra_parameters": "".join(f", {pointer}" for pointer in extras),
            "out": self.outputs[0].name,
            "extra_arguments": "".join(f", {name}" for name in form.extras),
            "select": f"{left} += t * m * k;\n{form.rights[0]} += t * k * n;\nc += t * m * n;" if form.batched else "",
        }

    def _triton_places(self, half: bool, types: Mapping[str, str]) -> dict[str, str]:
        form, left, out = self._form, self.inputs[0].name, self.outputs[0].name
        shape = ["m", "k"] if form.left_along_k else ["k", "m"]
        right = ["n", "k"] if form.right_along_k else ["k", "n"]
        sums = ["total", "second"][: len(form.rights)]
        cast = ".to(tl.float16)" if types[form.rights[0]] == "int8" else ""
        dot = "tl.dot(a, b, out_dtype=DOT_TYPE)" if half else "tl.dot(a, b, input_precision=PRECISION)"
        place = "col * k + down_k" if form.right_along_k else "down_k * n + col"
        multiply = []
        for name, total in zip(form.rights, sums, strict=True):
            load = f"tl.load({name}_ptr + {place}, mask=(down_k < end) & (col < n), other=0){cast}"
            multiply += [f"b = {load}", f"{total} += {dot}"]
        batch = ["batch"] if form.batched else []
        outer = ", ".join(part.strip() for part in self.outputs[0].shape.split(","))
        return {
            "ins": ", ".join(self.ins),
            "pointers": ", ".join(f"{name}_ptr" for name in self.ins),
            "out_pointer": f"{out}_ptr",
            "empty": f"torch.empty(({outer},), dtype=torch.{types[out]}, device={left}.device)",
            "sizes": "\n".join(
                [
                    f"{', '.join([*batch, *shape])} = {left}.shape",
                    f"n = {form.rights[0]}.shape[{right.index('n') + len(batch)}]",
                ]
            ),
            "select": f"{left}_ptr += t * m * k\n{form.rights[0]}_ptr += t * k * n\n{out}_ptr += t * m * n"
            if form.batched
            else "",
            "zeros": "\n".join(f"{total} = tl.zeros([BM, BN], tl.float32)" for total in sums),
            "left_at": "row * k + across_k" if form.left_along_k else "across_k * m + row",
            "multiply": "\n".join(multiply),
            "last": sums[-1],
            "finish": form.triton,
            "precision": _HALF_TUNABLES if half else _FLOAT_TUNABLES,
            "constant": "DOT_TYPE: tl.constexpr" if half else "PRECISION: tl.constexpr",
            "passed": "DOT_TYPE=getattr(tl, ACCUMULATE)" if half else "PRECISION=PRECISION",
            "depths": "64, 32, 128" if half else "16, 32",
            **({} if form.batched else {"tile_start": ""}),
        }


_HALF_STEP = 1.02 * 2.0**-11

_GELU = "return 0.5f * x * (1.0f + erff(x * 0.70710678f));"
_BIAS = Array("bias", "n")
_FACTORS = (Array("a", "m, k"), Array("b", "k, n"))
_HALF_FACTORS = (Array("a", "m, k", "float16"), Array("b", "k, n", "float16"))
_HALF_OUT = (Array("c", "m, n", "float16"),)
_ADD_BIAS = "total += tl.load(bias_ptr + col, mask=col < n, other=0.0)"
_SILU = "total = total / (1.0 + tl.exp(-total))"


def _silu(xp: ModuleType, x: Any) -> Any:
    return x * 0.5 * (1.0 + xp.tanh(0.5 * x))


def _biased(
    name: str, summary: str, eager: str, timed: tuple[Case, ...], c: str, triton: str, oracle: Formula
) -> Product:
    return Product(
        name,
        summary,
        eager,
        timed,
        form=Form(extras=("bias",), c=c, triton=f"{_ADD_BIAS}\n{triton}".strip()),
        inputs=(*_FACTORS, _BIAS),
        oracle=lambda xp, v, bias: oracle(xp, v + bias),
        scale=lambda xp, v, root, bias: 1.2 * (root + xp.abs(bias) + 0.25 * xp.abs(v + bias)),
        extra=8,
    )


OPERATIONS = (
    Product(
        "matmul",
        "c[i, j] = sum over p of a[i, p] * b[p, j]; all matrices are row-major",
        "torch.matmul(a, b)",
        {
            "cpu": cases("m n k: 384 384 384; 1024 64 512"),
            "gpu": cases("m n k: 4096 4096 4096; 8192 1024 2048; 64 8192 4096"),
        },
        checks=cases(
            "m n k: 1 1 1; 1 301 77 normal; 259 1 1 large; 67 131 521 outliers; 13 17 1031 tiny; 5 33 23 equal;"
            " 31 7 129 zeros"
        ),
        draw=(150, 150, 700),
    ),
    Product(
        "batched_matmul",
        "c[t, i, j] = sum over p of a[t, i, p] * b[t, p, j], for each t of the batch; all row-major",
        "torch.bmm(a, b)",
        {
            "cpu": cases("batch m n k: 64 64 64 64; 8 128 128 256"),
            "gpu": cases("batch m n k: 512 128 128 128; 64 1024 64 1024; 8192 32 32 64"),
        },
        form=Form(batched=True, long_sums=False),
        inputs=(Array("a", "batch, m, k"), Array("b", "batch, k, n")),
        outputs=(Array("c", "batch, m, n"),),
        checks=cases(
            "batch m n k: 1 1 1 1; 5 1 67 33 normal; 3 71 1 129 large; 2 37 53 401 outliers; 33 9 17 1 tiny;"
            " 7 13 35 19 equal; 1 65 131 257 normal"
        ),
        draw=(9, 90, 90, 300),
    ),
    _biased(
        "matmul_bias",
        "c[i, j] = bias[j] + sum over p of a[i, p] * b[p, j]",
        "torch.addmm(bias, a, b)",
        cases("m n k: 2048 2048 1024; 128 4096 4096"),
        "return v + bias[j];",
        "",
        lambda xp, x: x,
    ),
    _biased(
        "matmul_bias_relu",
        "c[i, j] = max(0, bias[j] + sum over p of a[i, p] * b[p, j])",
        "torch.relu(torch.addmm(bias, a, b))",
        cases("m n k: 4096 1024 1024; 256 8192 1024"),
        "return fmaxf(v + bias[j], 0.0f);",
        "total = tl.maximum(total, 0.0)",
        lambda xp, x: xp.maximum(x, 0.0),
    ),
    _biased(
        "matmul_bias_gelu",
        "c[i, j] = gelu(bias[j] + sum over p of a[i, p] * b[p, j]), with gelu(x) = x / 2 (1 + erf(x / sqrt(2)))",
        "torch.nn.functional.gelu(torch.addmm(bias, a, b))",
        cases("m n k: 1024 4096 1024; 8192 512 512"),
        f"const float x = v + bias[j];\n{_GELU}",
        "total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))",
        gelu,
    ),
    Product(
        "matmul_add_residual",
        "c[i, j] = residual[i, j] + sum over p of a[i, p] * b[p, j]",
        "torch.addmm(residual, a, b)",
        cases("m n k: 1024 1024 4096; 8192 2048 256"),
        form=Form(
            extras=("residual",),
            c="return v + residual[(size_t)i * n + j];",
            triton="total += tl.load(residual_ptr + row * n + col, mask=(row < m) & (col < n), other=0.0)",
        ),
        inputs=(*_FACTORS, Array("residual", "m, n")),
        oracle=lambda xp, v, residual: v + residual,
        scale=lambda xp, v, root, residual: root + xp.abs(residual),
        extra=4,
    ),
    Product(
        "matmul_at_b",
        "c[i, j] = sum over p of a[p, i] * b[p, j]: the left factor is stored transposed",
        "torch.matmul(a.t(), b)",
        cases("m n k: 2048 1024 2048; 256 256 32768"),
        form=Form(left_along_k=False),
        inputs=(Array("a", "k, m"), Array("b", "k, n")),
    ),
    Product(
        "matmul_a_bt",
        "c[i, j] = sum over p of a[i, p] * b[j, p]: the right factor is stored transposed, as a layer's weights are",
        "torch.matmul(a, b.t())",
        cases("m n k: 1024 4096 1024; 64 16384 2048"),
        form=Form(right_along_k=True),
        inputs=(Array("a", "m, k"), Array("b", "n, k")),
    ),
    Product(
        "skinny_matmul",
        "c[i, j] = sum over p of a[i, p] * b[p, j], for at most 16 rows of a",
        "torch.matmul(a, b)",
        cases("m n k: 8 8192 8192; 16 28672 2048"),
        form=Form(serves=("few_rows",)),
        checks=cases(
            "m n k: 1 1 1; 1 301 277 normal; 16 1 5 large; 16 131 261 outliers; 13 17 1031 tiny; 5 33 23 equal;"
            " 8 260 512 normal; 3 7 129 zeros"
        ),
        draw=(16, 400, 900),
    ),
    Product(
        "tall_skinny_matmul",
        "c[i, j] = sum over p of a[i, p] * b[p, j], for many rows and at most 64 columns and terms",
        "torch.matmul(a, b)",
        cases("m n k: 524288 32 64; 1048576 8 32"),
        form=Form(long_sums=False, serves=("few_columns",)),
        checks=cases(
            "m n k: 1 1 1; 1031 3 7 normal; 259 1 5 large; 517 31 61 outliers; 2051 9 64 tiny; 65 33 23 equal;"
            " 600 64 32 normal; 310 7 12 zeros"
        ),
        draw=(2000, 64, 64),
    ),
    Product(
        "low_rank_matmul",
        "c[i, j] = sum over p of a[i, p] * b[p, j], for at most 16 terms",
        "torch.matmul(a, b)",
        cases("m n k: 8192 4096 4; 4096 16384 16"),
        form=Form(long_sums=False, serves=("few_terms",)),
        checks=cases(
            "m n k: 1 1 1; 1 301 7 normal; 259 1 1 large; 167 131 16 outliers; 13 1017 11 tiny; 105 33 13 equal;"
            " 132 260 4 normal; 31 7 12 zeros"
        ),
        draw=(400, 400, 16),
    ),
    Product(
        "gram_matrix",
        "c[i, j] = sum over p of a[p, i] * a[p, j]: all products of two columns of a",
        "torch.matmul(a.t(), a)",
        cases("n k: 2048 2048; 512 32768"),
        form=Form(rights=("a",), left_along_k=False, m="n", serves=("symmetric",)),
        inputs=(Array("a", "k, n"),),
        outputs=(Array("c", "n, n"),),
        # On the diagonal all terms have the same sign, so the partial sums grow to the full sum.
        scale=lambda xp, v, root: root + 0.1 * xp.abs(v),
        checks=cases(
            "n k: 1 1; 3 301 normal; 131 1 large; 67 261 outliers; 17 531 tiny; 33 23 equal; 132 64 normal;"
            " 31 129 zeros"
        ),
        draw=(150, 500),
        share=0.5,
    ),
    Product(
        "matmul_half",
        "c[i, j] = sum over p of a[i, p] * b[p, j], added up in float32; all matrices are float16",
        "torch.matmul(a, b)",
        cases("m n k: 4096 2048 2048; 128 8192 4096"),
        inputs=_HALF_FACTORS,
        outputs=_HALF_OUT,
        checks=HALF_CHECKS,
    ),
    Product(
        "matmul_half_bias_silu",
        "c[i, j] = silu(bias[j] + sum over p of a[i, p] * b[p, j]), added up in float32; all arrays are float16",
        "torch.nn.functional.silu(torch.addmm(bias, a, b))",
        cases("m n k: 2048 4096 1024; 16384 512 1024"),
        form=Form(
            extras=("bias",),
            c="const float x = v + number(bias[j]);\nreturn x / (1.0f + expf(-x));",
            triton=f"{_ADD_BIAS}\n{_SILU}",
        ),
        inputs=(*_HALF_FACTORS, Array("bias", "n", "float16")),
        outputs=_HALF_OUT,
        oracle=lambda xp, v, bias: _silu(xp, v + bias),
        scale=lambda xp, v, root, bias: 1.2 * (root + xp.abs(bias)),
        # PyTorch rounds the sum to float16 before it applies the function, whose slope is at most 1.1.
        rounded=lambda xp, out, v, bias: xp.abs(out) + 1.1 * xp.abs(v + bias),
        checks=HALF_CHECKS,
        extra=8,
    ),
    Product(
        "matmul_int8_weights",
        "c[i, j] = scale[j] * sum over p of a[i, p] * b[p, j]; a and c are float16, b has 8-bit integers",
        "(torch.matmul(a, b.half()).float() * scale).half()",
        cases("m n k: 16 8192 8192; 1024 4096 2048"),
        form=Form(
            extras=("scale",),
            c="return v * scale[j];",
            triton="total *= tl.load(scale_ptr + col, mask=col < n, other=0.0)",
            serves=("few_rows",),
        ),
        inputs=(Array("a", "m, k", "float16"), Array("b", "k, n", "int8"), Array("scale", "n", "float32")),
        outputs=_HALF_OUT,
        oracle=lambda xp, v, scale: v * scale,
        scale=lambda xp, v, root, scale: root * scale,
        # PyTorch rounds the sum to float16 before it applies the scale.
        rounded=lambda xp, out, v, scale: 2.0 * xp.abs(out),
        checks=HALF_CHECKS,
        extra=4,
    ),
    Product(
        "swiglu_matmul",
        "c[i, j] = silu(sum over p of a[i, p] * b[p, j]) * (sum over p of a[i, p] * d[p, j])",
        "torch.nn.functional.silu(torch.matmul(a, b)) * torch.matmul(a, d)",
        cases("m n k: 1024 2816 1024; 64 11264 2048"),
        form=Form(rights=("b", "d"), c="return v / (1.0f + expf(-v)) * u;", triton=f"{_SILU}\ntotal *= second"),
        inputs=(*_FACTORS, Array("d", "k, n")),
        oracle=lambda xp, v, u: _silu(xp, v) * u,
        scale=lambda xp, v, u, root, other: (
            1.2 * root * xp.abs(u) + xp.abs(_silu(xp, v)) * other + 0.5 * xp.abs(v * u) + 1e-6 * root * other
        ),
        extra=16,
    ),
)
