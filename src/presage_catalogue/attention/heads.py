"""Attention over heads: variants of masks, of biases on the scores, and of the layout of keys and values."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Unpack

import numpy as np

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Formula, Operation

_STEP = 2.0**-24
_HALF = 2.0**13
"""The rounding step of float16 divided by that of float32."""

_CAUSAL = ("0", "i + keys - queries + 1")


def _count(case: Case) -> tuple[int, int]:
    return case.dims.get("queries", 1), case.dims["keys"]


class Attention(Operation):
    """out[h, i] = sum over j of softmax over j of (q[h, i] . k[h, j] / sqrt(dim) + bias(h, i, j)) * v[h, j].

    `sees` gives the begin and the end (exclusive) of the keys that query i sees, as expressions over i, keys, queries
    and the case's other sizes. Both must be non-decreasing in i. `bias` has code for the oracle, CUDA and Triton.
    """

    torch_imports = """\
# float32 products in float32: TF32 keeps only 10 bits of the mantissa.
torch.backends.cuda.matmul.allow_tf32 = False"""
    draw_styles = ("normal", "large", "uniform")
    checks = cases(
        "heads queries keys dim: 1 1 1 16; 3 17 17 64 normal; 2 63 130 32 large; 1 130 130 64 normal;"
        " 5 1 97 40 outliers; 2 33 65 24 equal; 1 64 128 64 large"
    )
    _eager = "torch.matmul(torch.softmax(scores, dim=-1), v)"

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        sees: tuple[str, str] = ("0", "keys"),
        bias: tuple[Formula, str, str] | None = None,
        grouped: bool = False,
        single: bool = False,
        dtype: str = "float32",
        mask: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, summary, **facts)
        rows = "heads, dim" if single else "heads, queries, dim"
        kept = "heads // group, keys, dim" if grouped else "heads, keys, dim"
        inputs = [Array("q", rows, dtype), Array("k", kept, dtype), Array("v", kept, dtype)]
        self.inputs = (*inputs, Array("slopes", "heads")) if bias else tuple(inputs)
        self.outputs = (Array("out", rows, dtype),)
        self._sees, self._bias, self._grouped, self._single = sees, bias, grouped, single
        self._half, self._eager = dtype == "float16", f"{mask}\nreturn {self._eager}"

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """Draw inputs whose scores have unit variance, or, in the `large` style, overflow a plain exp()."""
        style = case.values if case.values in ("zeros", "equal") else "normal"
        spread = 6.0 if case.values == "large" else 1.0
        made = []
        for array in self.inputs:
            shape, dtype = self.shape(array, case), self.dtype(array, case)
            if array.name == "slopes":
                made.append(sampler.xp.abs(sampler.values(shape, dtype, "uniform")) * 0.1 + 0.01)
            elif array.name == "v":
                half_style = "normal" if case.values in ("large", "outliers") else case.values
                made.append(sampler.values(shape, dtype, half_style if self._half else case.values))
            else:
                drawn = sampler.values(shape, "float32", style) * spread
                made.append(sampler.xp.astype(drawn, getattr(sampler.xp, dtype)))
        return tuple(made)

    def _scores(self, xp: ModuleType, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """Return the scores (-inf for unseen keys), the root sum of squares of each score's terms, and the values."""
        q, k, v = inputs[:3]
        queries, keys = _count(case)
        q = xp.reshape(q, (case.dims["heads"], queries, case.dims["dim"]))
        if self._grouped:
            k, v = (x[xp.asarray(self._kv_heads(case))] for x in (k, v))
        turned, scale = xp.permute_dims(k, (0, 2, 1)), 1.0 / math.sqrt(case.dims["dim"])
        scores = xp.matmul(q, turned) * scale
        roots = xp.sqrt(xp.matmul(q * q, turned * turned)) * scale
        seen = xp.reshape(xp.asarray(self._seen(case)), (1, queries, keys))
        if self._bias:
            scores = scores + self._bias[0](xp, case, *inputs[3:])
        if hasattr(scores, "device") and hasattr(seen, "to"):
            seen = seen.to(scores.device)
        return xp.where(seen, scores, -xp.inf), roots, v

    def _kv_heads(self, case: Case) -> Any:
        return np.arange(case.dims["heads"]) // case.dims["group"]

    def _seen(self, case: Case) -> Any:
        queries, keys = _count(case)
        names = {**case.dims, "queries": queries, "i": np.arange(queries)[:, None], "max": np.maximum}
        begin, end = (eval(each, {"__builtins__": {}}, names) for each in self._sees)
        j = np.arange(keys)[None, :]
        return np.broadcast_to((j >= begin) & (j < end), (queries, keys)).copy()

    def _weights(self, xp: ModuleType, scores: Any) -> Any:
        powers = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        scores, _, v = self._scores(xp, case, inputs)
        return (xp.reshape(xp.matmul(self._weights(xp, scores), v), self.shape(self.outputs[0], case)),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The expected error in steps of 2^-24: of the summation, and of the weights through errors in the scores."""
        scores, roots, v = self._scores(xp, case, inputs)
        weights = self._weights(xp, scores)
        out = xp.matmul(weights, v)
        terms = xp.sqrt(xp.matmul(weights * weights, v * v))
        sizes = xp.where(weights > 0, xp.abs(scores), 0.0)
        off = weights * ((4.0 * math.sqrt(case.dims["dim"]) + 8.0) * roots + 4.0 * sizes + 8.0)
        square = off * off
        spread = xp.matmul(square, v * v) - 2.0 * out * xp.matmul(square, v)
        spread = xp.sqrt(xp.abs(spread + out * out * xp.sum(square, axis=-1, keepdims=True)))
        size = (8.0 * math.sqrt(case.dims["keys"]) + 16.0) * (xp.abs(out) + terms) + 3.0 * spread
        if self._half:
            size = size + _HALF * (1.02 * xp.abs(out) + 3.0 * terms)
        return (xp.reshape(size, self.shape(self.outputs[0], case)),)

    def tolerance(self, case: Case) -> Tolerance:
        if self._half:
            return Tolerance(
                _STEP,
                "the result is rounded to 11 bits, and the weights may be before they meet the values: 2^-11 of the"
                " result and, in the worst of many, 3 * 2^-11 of the terms' root of squares; float32 adds little",
                absolute=2.0**-24,
            )
        return Tolerance(
            _STEP,
            "in steps of 2^-24: sums of `keys` terms drift by 8 sqrt(keys) of the terms' root of squares and a score by"
            " 4 sqrt(dim) of its own, which changes its weight by as much; numbers of 11 bits are off by 2^-12",
        )

    def flops(self, case: Case) -> int:
        """Half of the textbook count, which counts multiplications and additions of all visible (query, key) pairs."""
        return self.textbook_flops(case) // 2

    def textbook_flops(self, case: Case) -> int:
        return int(4 * case.dims["heads"] * case.dims["dim"] * int(self._seen(case).sum()))

    def draw_case(self, rng: random.Random) -> Case:
        heads, group = rng.randint(1, 4), rng.choice((1, 2, 3))
        queries = rng.randint(1, 90)
        sizes = {"heads": heads * group if self._grouped else heads, "group": group, "queries": queries}
        sizes["keys"] = rng.randint(1, 400) if self._single else queries + rng.choice((0, rng.randint(0, 90)))
        sizes |= {"dim": 8 * rng.randint(2, 8), "window": rng.randint(1, 70)}
        return Case({name: sizes[name] for name in self.scalars}, values=rng.choice(self.draw_styles))

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".c":
            return {}
        common = {
            "queries": "1" if self._single else "queries",
            "head": "head // (heads // groups)" if suffix == ".py" else "head / group" if self._grouped else "head",
        }
        if suffix == ".py":
            return {**common, **self._triton_places()}
        window = [name for name in self.scalars if name == "window"]
        return {
            **common,
            "summary": self.summary,
            "entry": self.name,
            "arguments": self.c_arguments(),
            "type": self.c_type(self.inputs[0]),
            "begin": self._sees[0],
            "end": self._sees[1],
            "bias": self._bias[1] if self._bias else "0.0f",
            "window_parameter": "".join(f", int {name}" for name in window),
            "slopes_parameter": ", const float *__restrict__ slopes" if self._bias else "",
            "range_arguments": "".join(f", {name}" for name in window),
            "bias_arguments": ", slopes" if self._bias else "",
        }

    def _triton_places(self) -> dict[str, str]:
        names = self.ins
        begin, end = (each.replace("max(", "tl.maximum(") for each in self._sees)
        passed = [*names, *self.parameters]
        return {
            "ins": ", ".join(passed),
            "pointers": ", ".join(f"{name}_ptr" for name in names),
            "parameters": "".join(f", {name}" for name in self.parameters),
            "tensors": ", ".join(names),
            "begin": begin,
            "end": end,
            "first": re.sub(r"\bi\b", "tl.program_id(0) * BM", begin),
            "stop": re.sub(r"\bi\b", "tl.program_id(0) * BM + BM - 1", end),
            "slope": "slope = tl.load(slopes_ptr + head)" if self._bias else "",
            "bias": self._bias[2] if self._bias else "",
            "type": "tl.float16" if self._half else "tl.float32",
            "precision": _HALF_TUNABLES if self._half else _FLOAT_TUNABLES,
            "dot": "" if self._half else ", input_precision=PRECISION",
            "sizes": "heads, dim = q.shape\nqueries = 1" if self._single else "heads, queries, dim = q.shape",
        }


_FLOAT_TUNABLES = """\
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: where PRECISION != 'tf32' or WARPS == 4"""
_HALF_TUNABLES = "# presage: tune PRECISION = ieee"


def _alibi(xp: ModuleType, case: Case, slopes: Any) -> Any:
    queries, keys = _count(case)
    distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)[None, :]
    there = xp.asarray(distance.astype(np.float64))
    if hasattr(slopes, "device") and hasattr(there, "to"):
        there = there.to(slopes.device)
    return -xp.reshape(slopes, (-1, 1, 1)) * there


_SCORES = "scores = torch.matmul(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5"
_TRIANGLE = "seen = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device).tril(k.shape[1] - q.shape[1])"
_HIDE = "scores = scores.masked_fill(~seen, float('-inf'))"

OPERATIONS = (
    Attention(
        "attention",
        "out[h, i] = sum over j of v[h, j] weighted by the softmax over j of q[h, i] . k[h, j] / sqrt(dim); dim is a"
        " multiple of 8 up to 64",
        timed=cases("heads queries keys dim: 32 1024 1024 64; 8 128 8192 32"),
        mask=_SCORES,
    ),
    Attention(
        "causal_attention",
        "out[h, i] = sum over j of v[h, j] weighted by the softmax of q[h, i] . k[h, j] / sqrt(dim) over the keys"
        " j <= i + keys - queries; dim is a multiple of 8 up to 64, and keys >= queries",
        timed=cases("heads queries keys dim: 32 1024 1024 64; 8 3072 3072 32"),
        sees=_CAUSAL,
        mask=f"{_SCORES}\n{_TRIANGLE}\n{_HIDE}",
    ),
    Attention(
        "attention_half",
        "out[h, i] = sum over j of v[h, j] weighted by the softmax over j of q[h, i] . k[h, j] / sqrt(dim), in float16"
        " with sums in float32; dim is a multiple of 8 up to 64",
        timed=cases("heads queries keys dim: 32 1024 1024 64; 8 256 8192 32"),
        dtype="float16",
        eager="torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    ),
    Attention(
        "decode_attention",
        "out[h] = sum over j of v[h, j] weighted by the softmax over j of q[h] . k[h, j] / sqrt(dim), one query for"
        " each head against a cache of keys and values; dim is a multiple of 8 up to 64",
        timed=cases("heads keys dim: 512 1024 64; 8 65536 64"),
        checks=cases(
            "heads keys dim: 1 1 16; 3 17 64 normal; 2 1030 32 large; 5 130 64 normal; 1 97 40 outliers;"
            " 2 65 24 equal; 7 256 64 large"
        ),
        single=True,
        eager="torch.matmul(torch.softmax(scores, dim=-1), v).squeeze(1)",
        mask="scores = torch.matmul(q.unsqueeze(1), k.transpose(1, 2)) * q.shape[-1] ** -0.5",
    ),
    Attention(
        "grouped_query_attention",
        "out[h, i] = sum over j of v[h // group, j] weighted by the softmax over j of q[h, i] . k[h // group, j] /"
        " sqrt(dim): each head of keys and values serves `group` heads of queries; dim is a multiple of 8 up to 64",
        timed=cases("heads group queries keys dim: 32 4 1024 1024 64; 64 8 16 8192 64"),
        checks=cases(
            "heads group queries keys dim: 1 1 1 1 16; 6 2 17 17 64 normal; 3 3 63 130 32 large;"
            " 2 2 130 130 64 normal; 4 2 1 97 40 outliers; 2 1 33 65 24 equal; 2 2 64 128 64 large"
        ),
        grouped=True,
        mask="k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], dim=0) for x in (k, v))\n" + _SCORES,
    ),
    Attention(
        "sliding_window_attention",
        "out[h, i] = sum over j of v[h, j] weighted by the softmax of q[h, i] . k[h, j] / sqrt(dim) over the"
        " `window` last keys j <= i + keys - queries; dim is a multiple of 8 up to 64, and keys >= queries",
        timed=cases("heads queries keys dim window: 16 4096 4096 64 256; 32 2048 2048 32 1024"),
        checks=cases(
            "heads queries keys dim window: 1 1 1 16 1; 3 17 17 64 5 normal; 2 63 130 32 40 large;"
            " 1 130 130 64 33 normal; 5 1 97 40 200 outliers; 2 33 65 24 16 equal; 1 64 128 64 64 large"
        ),
        sees=("max(i + keys - queries + 1 - window, 0)", "i + keys - queries + 1"),
        parameters=("window",),
        mask=f"{_SCORES}\n{_TRIANGLE}\nseen &= ~seen.tril(k.shape[1] - q.shape[1] - window)\n{_HIDE}",
    ),
    Attention(
        "alibi_attention",
        "out[h, i] = sum over j of v[h, j] weighted by the softmax of q[h, i] . k[h, j] / sqrt(dim) - slopes[h] *"
        " (i + keys - queries - j) over the keys j <= i + keys - queries; dim is a multiple of 8 up to 64,"
        " and keys >= queries",
        timed=cases("heads queries keys dim: 16 1024 1024 64; 32 512 2048 32"),
        sees=_CAUSAL,
        bias=(
            _alibi,
            "-slopes[head] * (float)(i + keys - queries - j)",
            "scores -= slope * (i + keys - queries - j).to(tl.float32)",
        ),
        mask="\n".join(
            (
                _SCORES,
                "distance = torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1]",
                "distance = distance - torch.arange(k.shape[1], device=q.device)",
                "scores = scores - slopes[:, None, None] * distance",
                "scores = scores.masked_fill(distance < 0, float('-inf'))",
            )
        ),
    ),
)
