"""Medians with honest intervals: distribution-free for one kernel, paired bootstrap for a ratio of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Interval(NamedTuple):
    """An estimate with the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        return (self.high - self.low) / (2 * self.value) if self.value else math.inf


def median_interval(samples: Sequence[float] | np.ndarray, confidence: float = 0.95) -> Interval:
    """The median and its order-statistic interval, which assumes nothing about the distribution.

    samples: shape (n,), n >= 1. Under six samples no pair of order statistics covers 95 %; the interval is
    then infinite, so that no rule of the form "stop when it is narrow" can stop on it.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    Interval(value=3.5, low=1.0, high=6.0)
    >>> median_interval([1.0, 2.0])
    Interval(value=1.5, low=-inf, high=inf)
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    n = ordered.size
    if n == 0:
        raise ValueError("the median of no samples is undefined")
    middle = float(np.median(ordered))
    rank = _interval_rank(n, confidence)
    if rank == 0:
        return Interval(middle, -math.inf, math.inf)
    return Interval(middle, float(ordered[rank - 1]), float(ordered[n - rank]))


def _interval_rank(n: int, confidence: float) -> int:
    """The largest k with P(X_(k) <= median <= X_(n+1-k)) >= confidence, X ~ Binomial(n, 1/2); 0 if there is none."""
    tail = (1 - confidence) / 2
    log_half = n * math.log(0.5)
    cumulative, k = 0.0, 0
    while k <= n // 2:
        log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + log_half
        cumulative += math.exp(log_term)
        if cumulative > tail:
            return k
        k += 1
    return k


def speedup_interval(
    anchor: Sequence[npt.ArrayLike],
    candidate: Sequence[npt.ArrayLike],
    *,
    paired: bool = True,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """S = anchor time / candidate time, the geometric mean over cases, with a bootstrap interval.

    anchor, candidate: one array of shape (samples,) per case. Paired: element i of both was taken in the same round, so
    that what the machine did to one it did to the other. Else the two were measured apart, and are resampled apart.

    >>> speedup_interval([np.full(8, 4.0)], [np.full(8, 2.0)])
    Interval(value=2.0, low=2.0, high=2.0)
    >>> speedup_interval([[4.0, 4.0, 4.4]], [[2.0, 2.0]], paired=False).value
    2.0
    """
    if not anchor or len(anchor) != len(candidate):
        raise ValueError("a speedup needs the same, non-empty set of cases on both sides")
    rng = np.random.default_rng(seed)
    point, draws = 0.0, np.zeros(resamples)
    for one, other in zip(anchor, candidate, strict=True):
        a, c = (np.log(np.asarray(samples, dtype=np.float64)) for samples in (one, other))
        for sign, logs in ((1, a[: len(c)] - c[: len(a)]),) if paired else ((1, a), (-1, c)):
            point += sign * float(np.median(logs))
            draws += sign * np.median(logs[rng.integers(0, len(logs), size=(resamples, len(logs)))], axis=1)
    low, high = np.quantile(draws / len(anchor), [0.025, 0.975])
    return Interval(math.exp(point / len(anchor)), math.exp(float(low)), math.exp(float(high)))
