"""Row losses: one number for every row, made from a statistic of its elements."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.softmax_losses.rows import EXPONENTIALS_AND_SUM, Formula, RowOperation, Statistic, total

_FINISHED = """
// The loss of a row, given its total.
FUNCTION float finished(const Arguments *a, State s, Row row, int r) {
    return RESULT;
}
"""


class RowLoss(RowOperation):
    """loss[r] = f(statistic of the rows r of the inputs). The formula is given for C, with `s` for the total, and for
    Triton."""

    timed = {
        "cpu": (Case({"rows": 1024, "cols": 512}), Case({"rows": 32, "cols": 16384})),
        "gpu": (Case({"rows": 131072, "cols": 256}), Case({"rows": 512, "cols": 65536})),
    }
    # Sums of equal terms round the same way again and again, so the `equal` case is short.
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 5, "cols": 1}, values="large"),
        Case({"rows": 1, "cols": 10007}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 33, "cols": 516}, values="outliers"),
        Case({"rows": 131, "cols": 17}, values="tiny"),
        Case({"rows": 13, "cols": 31}, values="equal"),
        Case({"rows": 3, "cols": 2049}, values="zeros"),
    )

    def __init__(
        self,
        name: str,
        summary: str,
        statistic: Statistic,
        oracle: Formula,
        eager: str,
        *,
        c: str,
        triton: str,
        flops: int,
        scale: Formula,
        reason: str = "adding n terms one by one in float32 is off by about 0.3 * sqrt(n) * 2^-24 of their sum, and"
        " three times that in the worst of many rows; a term is good to a few 2^-24; inputs rounded to 11 bits are off"
        " by some 3e-4 a term, which shows in short rows",
        gpu: tuple[tuple[int, int], tuple[int, int]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(name, summary, statistic, oracle, eager, output="loss", output_shape="rows", **more)
        self._c, self._triton, self._flops, self._scale, self._reason = c, triton, flops, scale, reason
        if gpu:
            timed = tuple(Case({"rows": rows, "cols": cols}) for rows, cols in gpu)
            self.timed = {**type(self).timed, "gpu": timed}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, drawn = sampler.xp, super().make_inputs(case, sampler)
        if self.name == "kl_divergence":
            return tuple(_log_softmax(xp, x) for x in drawn)
        if self.name == "bce_with_logits":
            return drawn[0], 1.0 / (1.0 + xp.exp(-xp.clip(drawn[1], -80.0, 80.0)))
        if self.name == "hinge_loss":
            return drawn[0], xp.where(drawn[1] < 0.0, drawn[1] * 0.0 - 1.0, drawn[1] * 0.0 + 1.0)
        return drawn

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return (self._scale(xp, *inputs),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(2e-6 + 2.0**-24 * math.sqrt(case.dims["cols"]), self._reason)

    def flops(self, case: Case) -> int:
        return self._flops * case.dims["rows"] * case.dims["cols"]

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 1000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))

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


def _smoothed_terms(xp: ModuleType, x: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Each row's log of the sum of exponentials, its label's logit, and the mean of its logits."""
    top = xp.max(x, axis=-1, keepdims=True)
    normaliser = top + xp.log(xp.sum(xp.exp(x - top), axis=-1, keepdims=True))
    chosen = xp.take_along_axis(x, xp.reshape(labels, (-1, 1)), axis=-1)
    return normaliser[:, 0], chosen[:, 0], xp.mean(x, axis=-1)


def _smoothed(xp: ModuleType, x: Any, labels: Any) -> Any:
    normaliser, chosen, mean = _smoothed_terms(xp, x, labels)
    return normaliser - (1.0 - SMOOTHING) * chosen - SMOOTHING * mean


OPERATIONS = (
    RowLoss(
        "kl_divergence",
        "loss[r] = sum over c of exp(p[r, c]) * (p[r, c] - q[r, c]), for log-probabilities p and q",
        total("EXP(p) * (p - q)", "tl.exp(p) * (p - q)"),
        lambda xp, p, q: xp.sum(_kl_terms(xp, p, q), axis=-1),
        'torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(dim=-1)',
        inputs="p q",
        c="s.sum",
        triton="sum",
        flops=4,
        # Single terms are off by their own size, the sum by its own.
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
        inputs="x t",
        c="s.sum / a->cols",
        triton="sum / cols",
        flops=3,
        scale=lambda xp, x, t: xp.mean((x - t) ** 2, axis=-1),
        gpu=((32768, 1024), (1024, 32768)),
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
        inputs="x t",
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
        inputs="x t",
        c="s.sum / a->cols",
        triton="sum / cols",
        flops=4,
        scale=lambda xp, x, t: xp.mean(0.5 + xp.abs(x), axis=-1),
        gpu=((262144, 128), (2048, 16384)),
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
        # The 1 stands for the logarithm: a relative error of the sum becomes an absolute one of its logarithm.
        scale=lambda xp, x, labels: xp.sqrt(
            1.0
            + sum(term**2 for term in _smoothed_terms(xp, x, labels))
            + (SMOOTHING * xp.mean(xp.abs(x), axis=-1)) ** 2
        ),
        gpu=((32768, 1000), (512, 128256)),
    ),
)
