"""Row maps: each output element depends on the same input element and on a statistic of its row.

Each entry of `OPERATIONS` gives the statistic, the oracle, the PyTorch code, and the expression of an element in C,
where `s` is the statistic's total after `settle`, and in Triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Formula
from presage_catalogue.softmax_losses.rows import EXPONENTIALS, RowOperation, Statistic, total

_MAPPED_C = """
FUNCTION State settled(State s) {
    SETTLE
    return s;
}

FUNCTION float result(const Arguments *a, size_t at, State s, Row row, int c) {
    if (c >= row.extent) return 0.0f;
    $unpack$
    return RESULT;
}
"""

_MAPPED_CUDA = """
FUNCTION State settled(State s) {
    SETTLE
    return s;
}

// What the outputs of N neighbours are, given their row's total.
template <int N> FUNCTION Pack<N> mapped(const Group<N> &g, const State &s, const Row &row, int first) {
    Pack<N> out;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int c = first + i;
        $unpack$
        const float value = RESULT;
        out.at[i] = Element(MASKED && c >= row.extent ? 0.0f : value);
    }
    return out;
}
"""


class RowMap(RowOperation):
    """y[r, c] = f(x[r, c], statistic of x[r])."""

    draw_styles = ("normal", "large", "outliers")
    _draw = (60, 1500)
    timed = {
        "cpu": cases("rows cols: 1024 1024; 64 16384"),
        "gpu": cases("rows cols: 16384 1024; 768 32768"),
    }
    checks = cases("rows cols: 1 1; 3 1 large; 1 4097 normal; 67 251 large; 9 1000 equal; 33 129 outliers; 5 2052 tiny")

    def __init__(
        self,
        *row: Any,
        settle: tuple[str, str],
        c: str,
        triton: str,
        relative: float,
        reason: str,
        absolute: float = 1e-30,
        **more: Any,
    ) -> None:
        super().__init__(*row, **more)
        self._settle, self._c, self._triton = settle, c, triton
        self._relative, self._absolute, self._reason = relative, absolute, reason
        if self._element == "float16":
            self.timed = {"gpu": self.timed["gpu"]}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """Draw inputs. A backward pass gets the output of the forward pass: a softmax or its logarithm."""
        drawn = super().make_inputs(case, sampler)
        if len(self._ins) == 1:
            return drawn
        xp, (x, dy) = sampler.xp, drawn
        x = x - xp.max(x, axis=-1, keepdims=True)
        x = x - xp.log(xp.sum(xp.exp(x), axis=-1, keepdims=True))
        return (xp.exp(x) if self.name == "softmax_backward" else x), dy

    def tolerance(self, case: Case) -> Tolerance:
        # The gradient of a mean over the rows is divided by the number of rows.
        absolute = self._absolute / case.dims["rows"] if self._labels else self._absolute
        return Tolerance(self._relative, self._reason, absolute)

    def bytes(self, case: Case) -> int:
        if not self._extent:
            return super().bytes(case)
        rows, cols = case.dims["rows"], case.dims["cols"]
        whole, rest = divmod(rows, cols)
        seen = whole * cols * (cols + 1) // 2 + rest * (rest + 1) // 2
        return 4 * (seen + rows * cols)

    def flops(self, case: Case) -> int:
        return super().flops(case) // (2 if self._extent else 1)

    def _finish(self, cuda: bool) -> str:
        settle, _ = self._settle
        return (_MAPPED_CUDA if cuda else _MAPPED_C).replace("SETTLE", settle).replace("RESULT", self._c)

    def _given_c(self, cuda: bool) -> Mapping[str, str]:
        out = self._out
        return {
            **super()._given_c(cuda),
            "mapped": out,
            "finish_c": "const State total = settled(s);\n"
            f"for (int c = 0; c < cols; c++) {out}[start + c] = result(&a, start + c, total, row, c);",
            "finish_naive": "s = settled(block_total<256>(s));\n"
            f"Pack<1> *to = (Pack<1> *)({out} + (size_t)r * cols);\n"
            "for (int c = threadIdx.x; c < cols; c += 256) to[c] = mapped<1>(fetch<1>(a, r, c), s, row, c);",
        }

    def _triton_apply(self) -> Mapping[str, str]:
        return {"settle": self._settle[1], "apply": self._triton}


def _softmax(xp: ModuleType, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _normaliser(xp: ModuleType, x: Any) -> Any:
    """Return each row's log-sum-exp."""
    top = xp.max(x, axis=-1, keepdims=True)
    return top + xp.log(xp.sum(xp.exp(x - top), axis=-1, keepdims=True))


def _chosen(xp: ModuleType, x: Any, labels: Any) -> Any:
    """Return the one-hot encoding of the labels."""
    columns = xp.arange(x.shape[1], dtype=labels.dtype, device=labels.device)
    return xp.astype(columns[None, :] == labels[:, None], x.dtype)


def _causal(xp: ModuleType, x: Any) -> Any:
    rows, cols = x.shape
    r = xp.arange(rows, dtype=xp.int64, device=x.device)
    c = xp.arange(cols, dtype=xp.int64, device=x.device)
    seen = c[None, :] <= (r % cols)[:, None]
    return _softmax(xp, xp.where(seen, x, -xp.inf))


TEMPERATURE = 0.7
_INVERSE = ("s.sum = 1.0f / s.sum;", "sum = 1.0 / sum")
_WEIGHTS: dict[str, Any] = {
    "settle": _INVERSE,
    "c": "EXP(x - s.largest) * s.sum",
    "triton": "tl.exp(x - largest) * sum",
}
_LOGARITHM = ("s.largest += logf(s.sum);", "largest = largest + tl.log(sum)")
_SOFTMAX_ERRORS = (
    "float32 exp is good to 2 ulp, but rounding x - max costs |x - max| * 2^-24 relative (up to 1e-5 where the result"
    " is not negligible), and the sum adds about sqrt(cols) * 2^-24; values rounded to 11 bits are off by some 5e-4"
)

_GRADIENT: dict[str, Any] = {
    "settle": ("", "pass"),
    "reads": "y dy",
    "output": "dx",
    "flops": 4,
    "relative": 1e-5,
    "reason": "adding 32768 terms one by one in float32 is off by about 3e-6 of the sum of their sizes;"
    " inputs rounded to 11 bits are off by some 3e-4",
}

OPERATIONS = (
    RowMap(
        "softmax",
        "y[r, c] = exp(x[r, c]) / sum over c of exp(x[r, c]), for each row r, without overflow",
        EXPONENTIALS,
        _softmax,
        "torch.softmax(x, dim=-1)",
        **_WEIGHTS,
        flops=4,
        relative=2e-5,
        absolute=1e-9,
        reason="float32 exp is good to 2 ulp, but rounding x - max costs |x - max| * 2^-24 relative (up to 1e-5 where"
        " the result is not negligible), and the sum adds about sqrt(cols) * 2^-24",
        gpu="16384 1024; 1024 32768",
        checks=cases("rows cols: 1 1; 3 1 large; 1 4097 normal; 67 251 large; 17 1000 equal; 33 129 outliers"),
        draw=(130, 3000),
    ),
    RowMap(
        "log_softmax",
        "y[r, c] = x[r, c] - log(sum over c of exp(x[r, c])), without overflow",
        EXPONENTIALS,
        lambda xp, x: x - _normaliser(xp, x),
        "torch.log_softmax(x, dim=-1)",
        settle=_LOGARITHM,
        c="x - s.largest",
        triton="x - largest",
        flops=4,
        relative=4e-6,
        reason="one by one in float32, the sum of 32768 exponentials is off by about 2e-6 and its logarithm by as much,"
        " beside the rounding of terms of about 11; inputs rounded to 11 bits are off by about 2e-4",
        scale=lambda xp, x: xp.sqrt(1.0 + x**2 + _normaliser(xp, x) ** 2),
        gpu="32768 512; 1024 32000",
    ),
    RowMap(
        "softmax_temperature",
        f"y[r] = softmax(x[r] / {TEMPERATURE}) over each row, without overflow",
        EXPONENTIALS,
        lambda xp, x: _softmax(xp, x / TEMPERATURE),
        f"torch.softmax(x / {TEMPERATURE}, dim=-1)",
        **_WEIGHTS,
        scaled=f" * {1 / TEMPERATURE:.9f}f",
        flops=5,
        relative=2e-5,
        absolute=1e-9,
        reason=f"{_SOFTMAX_ERRORS}; the scaled x are rounded too, by 2^-24 of their size",
        scale=lambda xp, x: (
            _softmax(xp, x / TEMPERATURE) * (1.0 + 0.05 * xp.max(xp.abs(x / TEMPERATURE), axis=-1, keepdims=True))
        ),
        gpu="131072 256; 512 65536",
    ),
    RowMap(
        "softmax_causal",
        "y[r] = softmax over the columns c <= r % cols of x[r], and 0 in the others, without overflow",
        EXPONENTIALS,
        _causal,
        "torch.softmax(x.masked_fill(torch.arange(x.shape[1], device=x.device)[None, :]"
        ' > (torch.arange(x.shape[0], device=x.device) % x.shape[1])[:, None], float("-inf")), dim=-1)',
        settle=_INVERSE,
        c="EXP(x - s.largest) * s.sum",
        triton="tl.where(seen, tl.exp(x - largest) * sum, 0.0)",
        extent="r % a->cols + 1",
        extent_triton="(col <= row % cols)",
        flops=4,
        relative=2e-5,
        absolute=1e-9,
        reason=_SOFTMAX_ERRORS,
        gpu="32768 512; 8192 4096",
    ),
    RowMap(
        "softmax_float16",
        "y[r] = softmax(x[r]) over each row, of float16 to float16, without overflow",
        EXPONENTIALS,
        _softmax,
        "torch.softmax(x, dim=-1)",
        **_WEIGHTS,
        element="float16",
        flops=4,
        relative=6e-4,
        absolute=4e-8,
        reason="the result is rounded to 11 bits, by up to 4.9e-4, and to multiples of 6e-8 below 6e-5; a sum or a"
        " difference in float16 is off by more",
        gpu="32768 1024; 768 50304",
    ),
    RowMap(
        "softmax_backward",
        "dx[r, c] = y[r, c] * (dy[r, c] - sum over c of y[r, c] * dy[r, c]), the gradient of softmax",
        total("y * dy", "y * dy"),
        lambda xp, y, dy: y * (dy - xp.sum(y * dy, axis=-1, keepdims=True)),
        "torch.ops.aten._softmax_backward_data(dy, y, -1, torch.float32)",
        c="y * (dy - s.sum)",
        triton="y * (dy - sum)",
        **_GRADIENT,
        scale=lambda xp, y, dy: xp.abs(y) * (xp.abs(dy) + xp.sum(xp.abs(y * dy), axis=-1, keepdims=True)),
        gpu="16384 1024; 512 50304",
    ),
    RowMap(
        "log_softmax_backward",
        "dx[r, c] = dy[r, c] - exp(y[r, c]) * sum over c of dy[r, c], the gradient of log_softmax",
        total("dy", "dy"),
        lambda xp, y, dy: dy - xp.exp(y) * xp.sum(dy, axis=-1, keepdims=True),
        "torch.ops.aten._log_softmax_backward_data(dy, y, -1, torch.float32)",
        c="dy - EXP(y) * s.sum",
        triton="dy - tl.exp(y) * sum",
        **_GRADIENT,
        scale=lambda xp, y, dy: xp.abs(dy) + xp.exp(y) * xp.sum(xp.abs(dy), axis=-1, keepdims=True),
        gpu="65536 384; 256 128000",
    ),
    RowMap(
        "cross_entropy_backward",
        "dx[r, c] = (softmax(x[r])[c] - (1 if c == labels[r] else 0)) / rows, the gradient of the rows' mean"
        " cross-entropy by their logits x, without overflow",
        EXPONENTIALS,
        lambda xp, x, labels: (_softmax(xp, x) - _chosen(xp, x, labels)) / x.shape[0],
        "torch.softmax(x, dim=-1).scatter_add_(1, labels[:, None], x.new_full((x.shape[0], 1), -1.0)) / x.shape[0]",
        settle=_INVERSE,
        c="(EXP(x - s.largest) * s.sum - (c == row.label ? 1.0f : 0.0f)) * row.scale",
        triton="(tl.exp(x - largest) * sum - tl.where(col == label, 1.0, 0.0)) / rows",
        labels="labels",
        output="dx",
        flops=5,
        relative=2e-5,
        absolute=1e-9,
        reason=f"{_SOFTMAX_ERRORS}; relative to the softmax and to the 1 that is subtracted",
        scale=lambda xp, x, labels: (_softmax(xp, x) + _chosen(xp, x, labels)) / x.shape[0],
        gpu="1536 32000; 320 128256",
    ),
)
