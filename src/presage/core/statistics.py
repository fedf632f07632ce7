"""Medians and speedups with confidence intervals. The interval of a median is distribution-free; that of a speedup, if
there are enough samples.

A process may shift all times measured in it. Samples therefore come in parts, one for each process. With several
processes, the intervals are computed from the medians of the processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Quantiles of Student's t at 97.5 %, for 1, 2, … degrees of freedom."""
_ORDERED = 6
"""From this many samples on, the interval uses only their order. With fewer, it assumes that their logarithms are
normally distributed."""

Parts = Sequence[np.ndarray]
"""The samples of one case: one array of shape (n,) per process."""


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether both ends are finite. They are not if there were too few samples."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def relative_half_width(self) -> float:
        """Half the width of the interval as a share of the value; infinite if the value is 0."""
        return (self.high - self.low) / (2 * self.value) if self.value else math.inf


def median_interval(samples: Sequence[float] | np.ndarray, confidence: float = 0.95) -> Interval:
    """Return the median and its order-statistic interval, which assumes nothing about the distribution.

    samples: shape (n,), n >= 1. With fewer than six samples no pair of order statistics covers 95 %. The interval is
    then infinite, so that a rule of the form "stop when it is narrow" never stops on it. Raises ValueError for no
    samples.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    Interval(value=3.5, low=1.0, high=6.0)
    >>> median_interval([1.0, 2.0])
    Interval(value=1.5, low=-inf, high=inf)
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    n = ordered.size
    if n == 0:
        raise ValueError("the median of no samples is undefined")
    middle = float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)  # faster than np.median, which would sort again
    rank = _interval_rank(n, confidence)
    if rank == 0:
        return Interval(middle, -math.inf, math.inf)
    return Interval(middle, float(ordered[rank - 1]), float(ordered[n - rank]))


def median_of_processes(parts: Parts) -> Interval:
    """Return the geometric mean of the processes' medians with Student's interval; for one process, `median_interval`.

    >>> median_of_processes([np.full(8, 4.0), np.full(8, 4.0), np.full(8, 4.0)]).low
    4.0
    """
    if len(parts) == 1:
        return median_interval(parts[0])
    mean, error = _mean_of_medians([np.log(part) for part in parts])
    reach = _STUDENT[min(len(parts), len(_STUDENT) + 1) - 2] * error
    return Interval(*(math.exp(log) for log in (mean, mean - reach, mean + reach)))


def _mean_of_medians(parts: Parts) -> tuple[float, float]:
    """Return the mean of the parts' medians, and its standard error."""
    medians = [float(np.median(part)) for part in parts]
    return float(np.mean(medians)), float(np.std(medians, ddof=1)) / math.sqrt(len(medians))


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
    anchor: Sequence[Parts],
    candidate: Sequence[Parts],
    *,
    paired: bool = True,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return S = anchor time / candidate time, the geometric mean over cases, with its interval.

    anchor, candidate: the parts of each case. paired: whether element i of both was measured in the same round, so that
    disturbances of the machine affect both alike. If not, the two vary independently. A single sample, or a few equal
    samples, do not show how much the samples vary. The interval then extends from 0 to infinity. Raises ValueError
    unless both sides have the same number of cases, at least one.

    >>> speedup_interval([[np.array([4.0])]], [[np.array([2.0])]])
    Interval(value=2.0, low=0.0, high=inf)
    >>> speedup_interval([[np.full(8, 4.0)]], [[np.full(8, 2.0)]])
    Interval(value=2.0, low=2.0, high=2.0)
    >>> speedup_interval([[np.array([4.0, 4.0, 4.4])]], [[np.full(2, 2.0)]], paired=False).value
    2.0
    """
    if not anchor or len(anchor) != len(candidate):
        raise ValueError("a speedup needs the same, non-empty set of cases on both sides")
    rng = np.random.default_rng(seed)
    point, draws = 0.0, np.zeros(resamples)
    for one, other in zip(anchor, candidate, strict=True):
        a, c = ([np.log(part) for part in parts] for parts in (one, other))
        ratios = [x[: len(y)] - y[: len(x)] for x, y in zip(a, c, strict=False)]
        for sign, parts in ((1, ratios),) if paired else ((1, a), (-1, c)):
            middle, drawn = _plausible(parts, rng, resamples)
            point += sign * middle
            draws = draws + sign * drawn
    value = math.exp(point / len(anchor))
    if np.isnan(draws).any():
        return Interval(value, 0.0, math.inf)
    low, high = np.quantile(draws / len(anchor), [0.025, 0.975])
    return Interval(value, math.exp(float(low)), math.exp(float(high)))


def _plausible(parts: Parts, rng: np.random.Generator, count: int) -> tuple[float, np.ndarray]:
    """Return the median of the samples, and `count` random draws of where the true median may be. The draws are NaN if
    the samples do not show how much they vary. The second half of the draws mirrors the first, so that the intervals of
    a / b and b / a agree."""
    if len(parts) > 1:
        mean, error = _mean_of_medians(parts)
        return mean, mean + error * _student(len(parts) - 1, rng, count)
    (logs,) = parts
    n, middle = len(logs), float(np.median(logs))
    spread = float(np.std(logs, ddof=1)) if n > 1 else 0.0
    if n < _ORDERED and spread == 0.0:  # a few equal samples show the clock's resolution, not the kernel
        return middle, np.full(count, math.nan)
    # The standard error of the median of normal samples; for few samples, an upper bound.
    guessed = middle + spread * math.sqrt(math.pi / (2 * n)) * _student(n - 1, rng, count)
    return middle, guessed if n < _ORDERED else _between_ordered(np.sort(logs), guessed, rng)


def _between_ordered(ordered: np.ndarray, guessed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of where the true median may be. The number of samples below it is Binomial(n, 1/2) for every
    distribution. Beyond the outermost samples, the draw is taken from `guessed`."""
    n, count = len(ordered), len(guessed)
    throws, places = rng.binomial(n, 0.5, size=(count + 1) // 2), rng.random((count + 1) // 2)
    below = np.concatenate([throws, n - throws])[:count]
    place = np.concatenate([places, 1 - places])[:count]
    left, right = ordered[np.maximum(below - 1, 0)], ordered[np.minimum(below, n - 1)]
    inside = left + place * (right - left)
    outside = np.where(below == 0, np.minimum(ordered[0], guessed), np.maximum(ordered[-1], guessed))
    return np.asarray(np.where((below == 0) | (below == n), outside, inside))


def _student(freedom: int, rng: np.random.Generator, count: int) -> np.ndarray:
    drawn = rng.standard_t(freedom, size=(count + 1) // 2)
    return np.concatenate([drawn, -drawn])[:count]
