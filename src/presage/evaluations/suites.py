"""The suites that read outcomes. Each returns named metrics with intervals, resampled by operation, and curves.

A metric over rows is the mean over all forecasts; a metric within operations is the mean over operations. A missing
forecast counts against the forecaster in every score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from presage.core import scoring
from presage.core.scale import BINS
from presage.core.statistics import Interval
from presage.evaluations.outcomes import Outcomes

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Metric = Interval | Mapping[str, Interval]

SHARES = ("0.02", "0.05", "0.10", "0.20")
"""Shares of a pool that are measured: the keys of the recovery metrics."""
_FEWER = 200
"""The number of resamples for metrics that sort all rows for each resample."""
_CURVE_SHARES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_CURVE_POINTS = 200


@dataclass(frozen=True)
class Findings:
    """The results of a suite: metrics by name, and curves by name as x and y."""

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    curves: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)


def accuracy(outcomes: Outcomes) -> Findings:
    """Scores of the bins' probabilities over kernels that work: exact, within_one, rps, half_brier and nll; and
    missing, the share of forecasts that are missing."""
    ok = outcomes.where(outcomes.ok)
    bins = ok.bins

    def scored(score: Callable[[Floats, Rows], float]) -> Interval:
        return _over_rows(ok, lambda rows: score(ok.probabilities[rows], bins[rows]))

    scores = (scoring.exact, scoring.within_one, scoring.rps, scoring.half_brier, scoring.nll)
    metrics = {score.__name__: scored(score) for score in scores}
    metrics["missing"] = _over_rows(outcomes, lambda rows: float(outcomes.missing[rows].mean()))
    return Findings(metrics)


def calibration(outcomes: Outcomes) -> Findings:
    """Calibration over kernels that work: ece of the likeliest bin; coverage_90 of the interval from the 5 % to the
    95 % quantile; and width_90, the mean width of this interval in octaves, without missing forecasts."""
    ok = outcomes.where(outcomes.ok)
    claimed, correct = _claimed(ok), scoring.hits(ok.probabilities, ok.bins)
    ece = scoring.bootstrap(lambda rows: scoring.ece(claimed[rows], correct[rows]), ok.operation)
    coverage = _over_rows(ok, lambda rows: scoring.interval_coverage(ok.low[rows], ok.high[rows], ok.truth[rows]))
    given = ok.where(~ok.missing)
    width = _over_rows(given, lambda rows: _mean((given.high - given.low)[rows]))
    curve = scoring.reliability_curve(claimed, correct)
    return Findings(
        {"ece": ece, "coverage_90": coverage, "width_90": width}, {"reliability": (curve.confidence, curve.accuracy)}
    )


def ranking(outcomes: Outcomes) -> Findings:
    """The value of choosing by forecasts, against the seed and within each operation. spearman: over kernels that work.
    recovery: how much slower than the pool's best the best kernel is among the share with the highest score.
    recovery_random: the same for as many kernels drawn at random. recovery_vs_random: the ratio of the two. A kernel
    that fails counts as the pool's slowest."""
    pool = outcomes.where(outcomes.seeded)
    ok = pool.where(pool.ok)
    metrics: dict[str, Metric] = {"spearman": _over_operations(scoring.spearman(ok.mean, ok.truth, ok.operation))}
    losses = {share: pool_losses(pool, float(share)) for share in SHARES}
    metrics["recovery"] = {share: _over_operations(ours) for share, (ours, _) in losses.items()}
    metrics["recovery_random"] = {share: _over_operations(random) for share, (_, random) in losses.items()}
    metrics["recovery_vs_random"] = {share: _ratio(ours, random) for share, (ours, random) in losses.items()}
    shares = np.array(_CURVE_SHARES)
    drawn = [pool_losses(pool, share) for share in _CURVE_SHARES]
    curves = {
        "recovery": (shares, np.array([_mean(ours) for ours, _ in drawn])),
        "recovery_random": (shares, np.array([_mean(random) for _, random in drawn])),
    }
    return Findings(metrics, curves)


def selective(outcomes: Outcomes) -> Findings:
    """Selective prediction over kernels that work: error rates of the most confident forecasts. Metrics: aurc;
    excess_aurc, above the ideal order; and accuracy_at_50, the exact-bin accuracy of the more confident half."""
    ok = outcomes.where(outcomes.ok)
    confidence, error = ok.confidence, 1 - scoring.hits(ok.probabilities, ok.bins)

    def bootstrap(metric: Callable[[Floats, Floats], float]) -> Interval:
        return scoring.bootstrap(lambda rows: metric(confidence[rows], error[rows]), ok.operation, resamples=_FEWER)

    metrics = {
        "aurc": bootstrap(scoring.aurc),
        "excess_aurc": bootstrap(scoring.excess_aurc),
        "accuracy_at_50": bootstrap(_accuracy_of_half),
    }
    curve = scoring.risk_coverage(confidence, error)
    every = np.unique(np.linspace(0, curve.coverage.size - 1, _CURVE_POINTS).astype(int)) if error.size else slice(0)
    return Findings(metrics, {"risk_coverage": (curve.coverage[every], curve.risk[every])})


def failures(outcomes: Outcomes) -> Findings:
    """The metric failure_auroc: how often a kernel that fails has a higher p_fail than one that works. A missing
    forecast counts as wrong."""
    pool = outcomes.where(outcomes.seeded)
    failed = np.isnan(pool.truth)
    p_fail = np.where(np.isnan(pool.p_fail), np.where(failed, -1.0, 2.0), pool.p_fail)
    auroc = scoring.bootstrap(lambda rows: scoring.auroc(p_fail[rows], failed[rows]), pool.operation, resamples=_FEWER)
    return Findings({"failure_auroc": auroc})


SUITES: Mapping[str, Callable[[Outcomes], Findings]] = {
    suite.__name__: suite for suite in (accuracy, calibration, ranking, selective, failures)
}


# --- The parts ----------------------------------------------------------------------------------------------------


def _over_rows(outcomes: Outcomes, mean: Callable[[Rows], float]) -> Interval:
    """The mean over all rows, computed from the mean over each operation's rows. Whole operations are resampled."""
    numbers, count = np.unique(outcomes.operation, return_counts=True)
    total = np.array([mean(np.flatnonzero(outcomes.operation == number)) for number in numbers]) * count
    return scoring.bootstrap(lambda drawn: float(total[drawn].sum() / count[drawn].sum()), np.arange(count.size))


def _over_operations(values: Floats) -> Interval:
    """The mean over the operations for which the metric is defined."""
    defined = values[~np.isnan(values)]
    return scoring.bootstrap(lambda drawn: _mean(defined[drawn]), np.arange(defined.size))


def _ratio(ours: Floats, random: Floats) -> Interval:
    """The mean loss divided by the mean loss of a random choice; NaN if a random choice loses nothing."""

    def ratio(drawn: Rows) -> float:
        total = float(random[drawn].sum())
        return float(ours[drawn].sum()) / total if total > 0 else math.nan

    return scoring.bootstrap(ratio, np.arange(ours.size))


def pool_losses(pool: Outcomes, share: float) -> tuple[Floats, Floats]:
    """Per operation, the loss of choosing a share of the pool by score, and that of choosing as many at random."""
    ours, random = [], []
    for number in np.unique(pool.operation[pool.ok]):
        rows = pool.operation == number
        S = np.exp2(np.where(np.isnan(pool.truth[rows]), np.nanmin(pool.truth[rows]), pool.truth[rows]))
        k, one = chosen(share, S.size), np.zeros(S.size)
        ours.append(float(scoring.top_k_regret(pool.score[rows], S, one, k)[0]))
        random.append(float(scoring.random_k_regret(S, one, k)[0]))
    return np.array(ours), np.array(random)


def chosen(share: float, size: int) -> int:
    """The number of kernels in a share of a pool: rounded up, and at least 1.

    >>> chosen(0.02, 90), chosen(0.1, 90), chosen(0.02, 10)
    (2, 9, 1)
    """
    return max(1, math.ceil(round(share * size, 9)))


def _claimed(ok: Outcomes) -> Floats:
    """The confidence of each forecast for the calibration; a missing forecast counts with that of a uniform guess."""
    return np.where(ok.missing, 1 / BINS, ok.confidence)


def _accuracy_of_half(confidence: Floats, error: Floats) -> float:
    if not error.size:
        return math.nan
    return 1 - float(scoring.risk_coverage(confidence, error).risk[math.ceil(error.size / 2) - 1])


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else math.nan
