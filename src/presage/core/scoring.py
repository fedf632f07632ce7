"""The metrics: accuracy of forecasts, calibration of their confidence, and the cost of choosing kernels by them.

Every metric is a pure function of arrays. n is the number of forecasts, B the number of bins, G the number of groups.
A missing forecast is a row of NaN (or a NaN score). It is scored as uniform, is never correct and is the least
confident. Metrics of empty arrays are NaN. Ties are averaged over all orders, in closed form, so no metric depends on
the order of rows. Metrics within groups return one value per group, in the order of np.unique(groups); the caller
averages them. All metrics raise ValueError for arrays of wrong shape or range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from presage.core.statistics import Interval

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_EXACT_FLIPS = 12
NLL_FLOOR = 1e-6
"""The lower clamp of a probability in `nll`. The worst value of `nll` is therefore 13.8."""


# --- Probabilities of bins: probabilities (n, B), truth (n,) with 0-based bins ------------------------------------


def half_brier(probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """½ Σ_b (p_b - [b = truth])², averaged over forecasts. 0 is best, 1 worst.

    >>> round(half_brier([[0, 0, .05, .15, .5, .2, .1, 0]], [4]), 6)
    0.1625
    """
    p, t, _ = _forecasts(probabilities, truth)
    return _mean(np.sum((p - _one_hot(t, p)) ** 2, axis=1) / 2)


def rps(probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Σ_b (P_b - [b >= truth])² / (B - 1), where P is the cumulative p, averaged over forecasts. 0 is best, 1 worst.

    >>> round(rps([[0, 0, .05, .15, .5, .2, .1, 0]], [4]), 6)
    0.020357
    """
    p, t, _ = _forecasts(probabilities, truth)
    gap = np.cumsum(p - _one_hot(t, p), axis=1)[:, :-1]
    return _mean(np.sum(gap**2, axis=1) / (p.shape[1] - 1))


def nll(probabilities: npt.ArrayLike, truth: npt.ArrayLike, floor: float = NLL_FLOOR) -> float:
    """-ln max(p_truth, floor), averaged over forecasts. 0 is best.

    >>> round(nll([[0, 0, .05, .15, .5, .2, .1, 0]], [4]), 6)
    0.693147
    """
    p, t, _ = _forecasts(probabilities, truth)
    return _mean(-np.log(np.maximum(p[np.arange(t.size), t], floor)))


def exact(probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The share of forecasts whose likeliest bin is the true bin. Of m equally likely bins, each counts 1 / m.

    >>> exact([[.5, .5, 0], [0, 1, 0]], [0, 1])
    0.75
    """
    return _mean(hits(probabilities, truth, within=0))


def within_one(probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The share of forecasts whose likeliest bin is the true bin or its neighbour; ties as in `exact`.

    >>> within_one([[1, 0, 0], [1, 0, 0]], [1, 2])
    0.5
    """
    return _mean(hits(probabilities, truth, within=1))


def hits(probabilities: npt.ArrayLike, truth: npt.ArrayLike, within: int = 0) -> Floats:
    """The correctness of each forecast, shape (n,): the share of its likeliest bins at most `within` bins off."""
    p, t, missing = _forecasts(probabilities, truth)
    likeliest = p == p.max(axis=1, keepdims=True)
    near = np.abs(np.arange(p.shape[1]) - t[:, None]) <= within
    share = np.sum(likeliest & near, axis=1) / np.sum(likeliest, axis=1)
    return np.where(missing, 0.0, share)


# --- Confidence: confidence (n,) in [0, 1], correct (n,) in [0, 1], loss (n,) -------------------------------------


class Reliability(NamedTuple):
    """The mean confidence, the accuracy and the share of forecasts (weight) of each non-empty bin of confidence, each
    (bins,)."""

    confidence: Floats
    accuracy: Floats
    weight: Floats


Binning = Literal["equal_width", "equal_mass"]


def reliability_curve(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: int = 10, binning: Binning = "equal_width"
) -> Reliability:
    """Return confidence against accuracy per bin. A missing confidence or correctness counts as 0.

    equal_width: bins (i/bins, (i+1)/bins], with 0 in the first. equal_mass: bins of equal count along the sorted
    confidence. Equal confidences share their mean accuracy, so a bin boundary among them does not depend on row order.

    >>> [v.tolist() for v in reliability_curve([.2, .9, .9, .9], [0, 1, 1, 1], bins=2)]
    [[0.2, 0.9], [0.0, 1.0], [0.25, 0.75]]
    """
    c, y = _pair(confidence, correct)
    if bins < 1:
        raise ValueError(f"at least one bin is needed, not {bins}")
    c, y = np.where(np.isnan(c), 0.0, c), np.where(np.isnan(c), 0.0, y)
    if not (np.all((c >= 0) & (c <= 1)) and np.all((y >= 0) & (y <= 1))):
        raise ValueError("confidence and correctness must lie in [0, 1]")
    if binning == "equal_width":
        which = np.searchsorted(np.arange(1, bins) / bins, c, side="left")
    elif binning == "equal_mass":
        which = np.empty(c.size, dtype=np.intp)
        which[np.argsort(c, kind="stable")] = np.arange(c.size) * bins // max(c.size, 1)
        y = _tie_means(c, y)
    else:
        raise ValueError(f"unknown binning {binning!r}: equal_width or equal_mass")
    count = np.bincount(which, minlength=bins)
    full = count > 0
    total = [np.bincount(which, weights=v, minlength=bins)[full] / count[full] for v in (c, y)]
    return Reliability(total[0], total[1], count[full] / max(c.size, 1))


def ece(confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: int = 10, binning: Binning = "equal_width") -> float:
    """Expected calibration error: Σ_bins weight |accuracy - confidence|.

    >>> round(ece([.2, .9, .9, .9], [0, 1, 1, 1], bins=2), 6)
    0.125
    """
    curve = reliability_curve(confidence, correct, bins, binning)
    if curve.weight.size == 0:
        return math.nan
    return float(np.sum(curve.weight * np.abs(curve.accuracy - curve.confidence)))


class RiskCoverage(NamedTuple):
    """The mean loss (risk) of the most confident share of forecasts, for each share (coverage) 1/n, 2/n .. 1; each
    (n,)."""

    coverage: Floats
    risk: Floats


def risk_coverage(confidence: npt.ArrayLike, loss: npt.ArrayLike) -> RiskCoverage:
    """The expected risk at each coverage, averaged over all orders of equally confident forecasts. Missing confidences
    come last.

    >>> risk_coverage([.9, .5, .5], [0, 1, 0]).risk.tolist()
    [0.0, 0.25, 0.3333333333333333]
    """
    c, y = _pair(confidence, loss)
    if np.any(np.isnan(y)):
        raise ValueError("a loss is missing: score a missing forecast before ranking it")
    c = _missing_last(c)
    order = np.argsort(-c, kind="stable")
    taken = np.arange(1, c.size + 1)
    return RiskCoverage(taken / max(c.size, 1), np.cumsum(_tie_means(c, y)[order]) / taken)


def aurc(confidence: npt.ArrayLike, loss: npt.ArrayLike) -> float:
    """The area under the risk-coverage curve: the mean risk over all n coverages.

    A constant confidence, which carries no information, gives the overall risk.

    >>> aurc([.5, .5, .5, .5], [0, 1, 0, 1])
    0.5
    """
    return _mean(risk_coverage(confidence, loss).risk)


def excess_aurc(confidence: npt.ArrayLike, loss: npt.ArrayLike) -> float:
    """The excess of `aurc` over that of the ideal confidence, which ranks by the loss itself. 0 is best.

    >>> excess_aurc([.9, .1], [0, 1]), excess_aurc([.1, .9], [0, 1])
    (0.0, 0.5)
    """
    return aurc(confidence, loss) - aurc(-np.asarray(loss, dtype=np.float64), loss)


def auroc(score: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """P(score of a positive > score of a negative), where ties count half. NaN unless both kinds occur.

    >>> auroc([.9, .5, .5, .1], [True, True, False, False])
    0.875
    """
    s, y = _pair(score, positive)
    is_one = y != 0
    ones = int(np.count_nonzero(is_one))
    zeros = y.size - ones
    if ones == 0 or zeros == 0:
        return math.nan
    return float((_ranks(_missing_last(s))[is_one].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def interval_coverage(low: npt.ArrayLike, high: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The share of truths with low <= truth <= high, all (n,). A missing interval counts as a miss.

    >>> interval_coverage([0, 0], [1, 1], [.5, 2])
    0.5
    """
    lows, t = _pair(low, truth)
    highs, _ = _pair(high, truth)
    return _mean((lows <= t) & (t <= highs))


# --- Choosing within groups: predicted (n,), speedups (n,) > 0, groups (n,) -> (G,) -------------------------------


def top_k_regret(predicted: npt.ArrayLike, speedups: npt.ArrayLike, groups: npt.ArrayLike, k: int) -> Floats:
    """How much slower the best of the k predicted best is than the group's best: best S / best S found - 1.

    Ties in the prediction are averaged over all orders.

    >>> top_k_regret([3, 2, 1], [1.0, 2.0, 4.0], ["a", "a", "a"], k=2).tolist()
    [1.0]
    """
    return _choose(predicted, speedups, groups, k, lambda found, best: best / found - 1)


def top_k_recovery(predicted: npt.ArrayLike, speedups: npt.ArrayLike, groups: npt.ArrayLike, k: int) -> Floats:
    """The probability that the k predicted best contain the group's best, averaged over all orders of ties.

    >>> top_k_recovery([1, 1, 0], [1.0, 2.0, 1.5], ["a", "a", "a"], k=1).tolist()
    [0.5]
    """
    return _choose(predicted, speedups, groups, k, lambda found, best: np.asarray(found >= best, dtype=np.float64))


def random_k_regret(speedups: npt.ArrayLike, groups: npt.ArrayLike, k: int) -> Floats:
    """The expected `top_k_regret` of k kernels drawn at random. This equals that of a constant prediction.

    >>> random_k_regret([1.0, 2.0], ["a", "a"], k=1).tolist()
    [0.5]
    """
    return top_k_regret(np.zeros(np.shape(speedups)), speedups, groups, k)


def spearman(predicted: npt.ArrayLike, truth: npt.ArrayLike, groups: npt.ArrayLike) -> Floats:
    """The rank correlation in each group. Ties have average ranks; missing predictions rank lowest.

    A constant prediction gives 0. A constant truth gives NaN, because there is nothing to rank.

    >>> spearman([1, 2, 3, 5, 5], [1, 2, 3, 1, 2], ["a", "a", "a", "b", "b"]).tolist()
    [1.0, 0.0]
    """
    p, t = _pair(predicted, truth)
    p = _missing_last(p)
    return np.array([_rank_correlation(p[rows], t[rows]) for rows in _rows_by_group(groups, t.size)], dtype=np.float64)


# --- Intervals ----------------------------------------------------------------------------------------------------


def bootstrap(
    metric: Callable[[Rows], float], groups: npt.ArrayLike, *, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Return a metric with its 95 % percentile interval. Whole groups (operations) are resampled, because the errors of
    one operation's rows are correlated.

    metric: a function from row numbers, of any length and with repeats, to a value. groups: (n,), the operation of each
    row. For a metric within groups, compute the metric once per group and pass the mean of its values at the rows;
    otherwise a group that is drawn twice would be ranked as one group. Resamples with a NaN metric are left out. With
    fewer than two groups the interval is infinite.

    >>> x = np.array([1.0, 3.0, 1.0, 3.0])
    >>> bootstrap(lambda rows: float(x[rows].mean()), ["a", "a", "b", "b"])
    Interval(value=2.0, low=2.0, high=2.0)
    """
    n = np.asarray(groups).size
    if n == 0:
        return Interval(math.nan, math.nan, math.nan)
    members = _rows_by_group(groups, n)
    value = metric(np.arange(n))
    if len(members) < 2:
        return Interval(value, -math.inf, math.inf)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(members), size=(resamples, len(members)))
    draws = np.array([metric(np.concatenate([members[g] for g in row])) for row in drawn], dtype=np.float64)
    draws = draws[~np.isnan(draws)]
    if draws.size == 0:
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def sign_flip_p(differences: npt.ArrayLike, *, flips: int = 9999, seed: int = 0) -> float:
    """The two-sided p-value of the sum of paired differences (G,) under random sign flips: the probability that the sum
    is at least as far from 0 when each difference has a random sign. Exact for up to 12 differences; beyond that
    estimated from `flips` random flips. NaN without differences.

    >>> sign_flip_p([1.0] * 6), sign_flip_p([1.0, -1.0])
    (0.03125, 1.0)
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.size == 0:
        return math.nan
    if d.size <= _EXACT_FLIPS:
        signs = 1 - 2 * (np.arange(2**d.size)[:, None] >> np.arange(d.size) & 1)
    else:
        signs = np.random.default_rng(seed).choice([-1, 1], size=(flips, d.size))
        signs = np.vstack([signs, np.ones(d.size)])  # the observed signs count, too
    far = np.abs(d.sum()) * (1 - 1e-12)
    return float(np.mean(np.abs(signs @ d) >= far))


# --- The parts ----------------------------------------------------------------------------------------------------


def _forecasts(probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Rows, npt.NDArray[np.bool_]]:
    """Check the arrays. Return probabilities (n, B) with missing rows made uniform, true bins (n,), and which rows were
    missing (n,)."""
    t = np.asarray(truth)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.size == 0 and t.size == 0:
        p = p.reshape(0, p.shape[1] if p.ndim == 2 and p.shape[1] > 1 else 2)
    if p.ndim != 2 or p.shape[1] < 2 or t.shape != p.shape[:1]:
        raise ValueError(f"probabilities (n, bins) and truth (n,) do not fit: {p.shape} and {t.shape}")
    if not np.all((t >= 0) & (t < p.shape[1]) & (t == np.floor(t))):
        raise ValueError(f"a true bin must be a whole number from 0 to {p.shape[1] - 1}")
    missing = np.asarray(np.isnan(p).any(axis=1))
    p = np.where(missing[:, None], 1 / p.shape[1], p)
    if not (np.all(p >= 0) and np.all(np.abs(p.sum(axis=1) - 1) < 1e-6)):
        raise ValueError("each row of probabilities must be non-negative and sum to 1")
    return p, t.astype(np.intp), missing


def _one_hot(truth: Rows, like: Floats) -> Floats:
    return np.asarray(truth[:, None] == np.arange(like.shape[1]), dtype=np.float64)


def _pair(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"two arrays of one length are needed, not {a.shape} and {b.shape}")
    return a, b


def _mean(values: npt.NDArray[np.float64] | npt.NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else math.nan


def _missing_last(scores: Floats) -> Floats:
    return np.where(np.isnan(scores), -np.inf, scores)


def _ties(keys: Floats) -> tuple[Rows, Rows]:
    """Return the tie that each key belongs to (n,), numbered from the smallest key, and the size of each tie."""
    _, tie, count = np.unique(keys, return_inverse=True, return_counts=True)
    return tie.reshape(-1), count


def _tie_means(keys: Floats, values: Floats) -> Floats:
    """Replace each value by the mean over equal keys, which is its expectation over all orders of these keys."""
    tie, count = _ties(keys)
    return np.asarray((np.bincount(tie, weights=values, minlength=count.size) / count)[tie], dtype=np.float64)


def _ranks(keys: Floats) -> Floats:
    """Ranks from 1. Equal keys share their average rank."""
    tie, count = _ties(keys)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[tie], dtype=np.float64)


def _rank_correlation(predicted: Floats, truth: Floats) -> float:
    a, b = _ranks(predicted), _ranks(truth)
    a, b = a - a.mean(), b - b.mean()
    if not b.any():
        return math.nan
    return float(a @ b / math.sqrt((a @ a) * (b @ b))) if a.any() else 0.0


def _rows_by_group(groups: npt.ArrayLike, n: int) -> list[Rows]:
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups must name the group of each of {n} rows, not have shape {labels.shape}")
    _, which = np.unique(labels, return_inverse=True)
    return [np.flatnonzero(which == g) for g in range(which.max() + 1)] if n else []


def _choose(
    predicted: npt.ArrayLike,
    speedups: npt.ArrayLike,
    groups: npt.ArrayLike,
    k: int,
    value: Callable[[Floats, float], Floats],
) -> Floats:
    """The expectation of value(best S among the k predicted best, best S) in each group."""
    p, S = _pair(predicted, speedups)
    if k < 1:
        raise ValueError(f"at least one must be chosen, not {k}")
    if not np.all((S > 0) & np.isfinite(S)):
        raise ValueError("speedups must be positive and finite")
    p = _missing_last(p)
    chosen = []
    for rows in _rows_by_group(groups, S.size):
        found, weight = _best_found(p[rows], S[rows], min(k, rows.size))
        chosen.append(float(weight @ value(found, float(S[rows].max()))))
    return np.array(chosen, dtype=np.float64)


def _best_found(predicted: Floats, S: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the possible values of the best S among the k predicted best, and the probability of each.

    Kernels predicted above the k-th prediction are always included. Another r are drawn from the t kernels tied with
    it. With the tied kernels sorted by S from the best, the j-th (from 0) is the best one drawn with probability
    C(t-1-j, r-1) / C(t, r).
    """
    last = np.sort(predicted)[-k]
    sure, tied = S[predicted > last], np.sort(S[predicted == last])[::-1]
    t, r = tied.size, k - sure.size
    j = np.arange(t - r)
    weight = r / t * np.cumprod(np.concatenate(([1.0], (t - r - j) / (t - 1 - j))))
    return np.maximum(tied[: t - r + 1], sure.max(initial=0.0)), weight
