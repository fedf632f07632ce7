"""Row losses: one number per row, computed from a statistic of its elements.

Each entry of `OPERATIONS` gives the statistic, the oracle, the PyTorch code, and the expression of the loss in C (`s`
is the statistic's total) and in Triton.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Formula
from presage_catalogue.softmax_losses.rows import (
    EXPONENTIALS,
    EXPONENTIALS_AND_SUM,
    RowOperation,
    Statistic,
    total,
)

_FINISHED = """
// The loss of a row, given its total.
FUNCTION float finished(const Arguments *a, State s, Row row, int r) {
    return RESULT;
}
"""


class RowLoss(RowOperation):
    """loss[r] = f(statistic of row r of the inputs)."""

    _draw = (130, (40, 1000))
    timed = {
        "cpu": cases("rows cols: 1024 512; 32 16384"),
        "gpu": cases("rows cols: 131072 256; 512 65536"),
    }
    # The `equal` case is short: sums of equal terms are rounded in the same direction again and again.
    checks = cases(
        "rows cols: 1 1; 5 1 large; 1 10007 normal; 67 251 large; 33 516 outliers; 131 17 tiny; 13 31 equal;"
        " 3 2049 zeros"
    )

    def __init__(
        self,
        *row: Any,
        c: str,
        triton: str,
        reason: str = "adding n terms one by one in float32 is off by about 0.3 * sqrt(n) * 2^-24 of their sum, and"
        " three times that in the worst of many rows; a term is good to a few 2^-24; inputs rounded to 11 bits are off"
        " by some 3e-4 a term, which shows in short rows",
        **more: Any,
    ) -> None:
        super().__init__(*row, output="loss", output_shape="rows", **more)
        self._c, self._triton, self._reason = c, triton, reason

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, drawn = sampler.xp, super().make_inputs(case, sampler)
        if self.name == "kl_divergence":
            return tuple(_log_softmax(xp, x) for x in drawn)
        if self.name == "bce_with_logits":
            return drawn[0], 1.0 / (1.0 + xp.exp(-xp.clip(drawn[1], -80.0, 80.0)))
        if self.name == "hinge_loss":
            return drawn[0], xp.where(drawn[1] < 0.0, drawn[1] * 0.0 - 1.0, drawn[1] * 0.0 + 1.0)
        return drawn

    def tolerance(self, case: Case) -> Tolerance:
        if hasattr(self, "_tolerance"):
            return self._tolerance
        return Tolerance(2e-6 + 2.0**-24 * math.sqrt(case.dims["cols"]), self._reason)

    def flops(self, case: Case) -> int:
        return super().flops(case) * case.dims["cols"]

    def _finish(self, cuda: bool) -> str:
        return _FINISHED.replace("RESULT", self._c)

    def _given_c(self, cuda: bool) -> Mapping[str, str]:
        return {
            **super()._given_c(cuda),
            "loss": self._out,
            "finish_c": f"{self._out}[r] = finished(&a, s, row, r);",
            "finish_naive": "s = block_total<256>(s);\n"
            f"if (threadIdx.x == 0) {self._out}[r] = finished(&a, s, row, r);",
        }

    def _triton_apply(self) -> Mapping[str, str]:
        return {"finish": self._triton}


def _log_softmax(xp: ModuleType, x: Any) -> Any:
    x = x - xp.max(x, axis=-1, keepdims=True)
    return x - xp.log(xp.sum(xp.exp(x), axis=-1, keepdims=True))


def _kl_terms(xp: ModuleType, p: Any, q: Any) -> Any:
    return xp.exp(p) * (p - q)


def _bce_terms(xp: ModuleType, x: Any, t: Any) -> Any:
    return xp.clip(x, 0.0, math.inf) - x * t + xp.log(1.0 + xp.exp(-xp.abs(x)))


def _hinge_terms(xp: ModuleType, x: Any, t: Any) -> Any:
    return xp.clip(1.0 - x * t, 0.0, math.inf)


SMOOTHING = 0.1


def _terms(xp: ModuleType, x: Any, labels: Any) -> tuple[Any, Any]:
    """Return each row's log-sum-exp and the logit of its label."""
    top = xp.max(x, axis=-1, keepdims=True)
    normaliser = top + xp.log(xp.sum(xp.exp(x - top), axis=-1, keepdims=True))
    chosen = xp.take_along_axis(x, xp.reshape(labels, (-1, 1)), axis=-1)
    return normaliser[:, 0], chosen[:, 0]


def _cross_entropy(xp: ModuleType, x: Any, labels: Any) -> Any:
    normaliser, chosen = _terms(xp, x, labels)
    return normaliser - chosen


def _smoothed(xp: ModuleType, x: Any, labels: Any) -> Any:
    normaliser, chosen = _terms(xp, x, labels)
    return normaliser - (1.0 - SMOOTHING) * chosen - SMOOTHING * xp.mean(x, axis=-1)


def _logarithm_scale(xp: ModuleType, x: Any, labels: Any) -> Any:
    # The 1 is for the logarithm: a relative error of the sum becomes an absolute error of its logarithm.
    return 1.0 + sum(term**2 for term in _terms(xp, x, labels))


OPERATIONS = (
    RowLoss(
        "cross_entropy",
        "loss[r] = log(sum over c of exp(logits[r, c])) - logits[r, targets[r]], without overflow",
        EXPONENTIALS.of("logits"),
        _cross_entropy,
        'torch.nn.functional.cross_entropy(logits, targets, reduction="none")',
        reads="logits",
        labels="targets",
        c="s.largest + logf(s.sum) - a->logits[(size_t)r * a->cols + row.label]",
        triton="largest + tl.log(sum) - tl.load(logits_ptr + row * cols + label, mask=row < rows, other=0.0)",
        flops=2,
        scale=lambda xp, logits, targets: xp.sqrt(_logarithm_scale(xp, logits, targets)),
        tolerance=Tolerance(
            4e-6,
            "one by one in float32, the sum of 32000 exponentials is off by about 2e-6 and its logarithm by as much,"
            " beside terms of about 11; logits rounded to 11 bits are off by about 2e-4",
        ),
        timed={"cpu": cases("rows cols: 1024 1024; 64 32000"), "gpu": cases("rows cols: 8192 4096; 2048 32000")},
        checks=cases(
            "rows cols: 1 1; 3 1 large; 1 4097 normal; 67 251 large; 17 1000 equal; 33 129 outliers; 131 15 tiny"
        ),
        draw=(130, (40, 3000)),
        draw_styles=("normal", "large", "outliers"),
    ),
    RowLoss(
        "kl_divergence",
        "loss[r] = sum over c of exp(p[r, c]) * (p[r, c] - q[r, c]), for log-probabilities p and q",
        total("EXP(p) * (p - q)", "tl.exp(p) * (p - q)"),
        lambda xp, p, q: xp.sum(_kl_terms(xp, p, q), axis=-1),
        'torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(dim=-1)',
        reads="p q",
        c="s.sum",
        triton="sum",
        flops=4,
        # Each term's error is relative to the term, the sum's error is relative to the sum.
        scale=lambda xp, p, q: xp.sqrt(
            xp.sum((xp.exp(p) * (xp.abs(p) + xp.abs(q))) ** 2, axis=-1)
            + xp.sum(xp.abs(_kl_terms(xp, p, q)), axis=-1) ** 2
        ),
    ),
    RowLoss(
        "mse_loss",
        "loss[r] = mean over c of (x[r, c] - t[r, c])^2",
        total("(x - t) * (x - t)", "(x - t) * (x - t)"),
        lambda xp, x, t: xp.mean((x - t) ** 2, axis=-1),
        'torch.nn.functional.mse_loss(x, t, reduction="none").mean(dim=-1)',
        reads="x t",
        c="s.sum / a->cols",
        triton="sum / cols",
        flops=3,
        scale=lambda xp, x, t: xp.mean((x - t) ** 2, axis=-1),
        gpu="32768 1024; 1024 32768",
    ),
    RowLoss(
        "bce_with_logits",
        "loss[r] = mean over c of the binary cross-entropy of logit x[r, c] against the probability t[r, c]",
        total(
            "fmaxf(x, 0.0f) - x * t + log1pf(EXP(-fabsf(x)))",
            "tl.maximum(x, 0.0) - x * t + tl.log(1.0 + tl.exp(-tl.abs(x)))",
        ),
        lambda xp, x, t: xp.mean(_bce_terms(xp, x, t), axis=-1),
        'torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(dim=-1)',
        reads="x t",
        c="s.sum / a->cols",
        triton="sum / cols",
        flops=7,
        scale=lambda xp, x, t: xp.mean(0.5 + xp.abs(x), axis=-1),
    ),
    RowLoss(
        "hinge_loss",
        "loss[r] = mean over c of max(0, 1 - x[r, c] * t[r, c]), for targets t of 1 or -1",
        total("fmaxf(0.0f, 1.0f - x * t)", "tl.maximum(0.0, 1.0 - x * t)"),
        lambda xp, x, t: xp.mean(_hinge_terms(xp, x, t), axis=-1),
        "torch.clamp(1.0 - x * t, min=0.0).mean(dim=-1)",
        reads="x t",
        c="s.sum / a->cols",
        triton="sum / cols",
        flops=4,
        scale=lambda xp, x, t: xp.mean(0.5 + xp.abs(x), axis=-1),
        gpu="262144 128; 2048 16384",
    ),
    RowLoss(
        "label_smoothed_cross_entropy",
        f"loss[r] = log(sum over c of exp(x[r, c])) - {1 - SMOOTHING} * x[r, labels[r]] - {SMOOTHING} * mean of x[r],"
        " without overflow",
        EXPONENTIALS_AND_SUM,
        _smoothed,
        f'torch.nn.functional.cross_entropy(x, labels, reduction="none", label_smoothing={SMOOTHING})',
        labels="labels",
        c=f"s.largest + logf(s.sum) - {1 - SMOOTHING}f * a->x[(size_t)r * a->cols + row.label] -"
        f" {SMOOTHING}f * s.plain / a->cols",
        triton=f"largest + tl.log(sum) - {SMOOTHING} * plain / cols"
        f" - {1 - SMOOTHING} * tl.load(x_ptr + row * cols + label, mask=row < rows, other=0.0)",
        flops=3,
        scale=lambda xp, x, labels: xp.sqrt(
            _logarithm_scale(xp, x, labels) + xp.mean(x, axis=-1) ** 2 + (SMOOTHING * xp.mean(xp.abs(x), axis=-1)) ** 2
        ),
        gpu="32768 1000; 512 128256",
    ),
)
