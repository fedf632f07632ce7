"""Recalibration of bin probabilities and of confidences: fit on measured kernels, then apply to new forecasts.

Missing forecasts (NaN) are ignored in the fit and stay missing. n is the number of forecasts, B the number of bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FLOOR = 1e-6
_HOTTEST = 100.0


@dataclass(frozen=True)
class Temperature:
    """Raises bin probabilities to the power 1 / T and normalises them. T > 1 softens an overconfident forecaster."""

    T: float

    @classmethod
    def fit(cls, probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> Temperature:
        """Return the T in [0.01, 100] with the least negative log-likelihood.

        probabilities: (n, B). truth: (n,), 0-based bins. The log-likelihood is concave in 1 / T, so its slope has one
        root, which is found by bisection. Probabilities below 1e-6 count as 1e-6. Uniform forecasts, which no
        temperature changes, give T = 1. Raises ValueError for invalid arrays, or if there are no forecasts.

        >>> round(Temperature.fit([[.8, .2]] * 3, [0, 0, 1]).T, 6)
        2.0
        """
        p, t = np.asarray(probabilities, dtype=np.float64), np.asarray(truth)
        if p.ndim != 2 or t.shape != p.shape[:1]:
            raise ValueError(f"probabilities (n, bins) and truth (n,) do not fit: {p.shape} and {t.shape}")
        if not np.all((t >= 0) & (t < p.shape[1])):
            raise ValueError(f"a true bin must lie from 0 to {p.shape[1] - 1}")
        known = ~np.isnan(p).any(axis=1)
        logs, t = _logs(p[known]), t[known].astype(np.intp)
        if t.size == 0:
            raise ValueError("a temperature cannot be fitted to no forecasts")
        if np.ptp(logs, axis=1).max() < 1e-9:
            return cls(1.0)
        target = float(logs[np.arange(t.size), t].mean())
        cold, hot = -math.log(_HOTTEST), math.log(_HOTTEST)
        for _ in range(60):
            middle = (cold + hot) / 2
            expected = float(np.sum(_softmax(logs / math.exp(middle)) * logs, axis=1).mean())
            cold, hot = (middle, hot) if expected > target else (cold, middle)
        return cls(math.exp((cold + hot) / 2))

    def apply(self, probabilities: npt.ArrayLike) -> Floats:
        """Return recalibrated probabilities, shape (n, B). The order of the bins by probability does not change."""
        return _softmax(_logs(np.asarray(probabilities, dtype=np.float64)) / self.T)


def _logs(probabilities: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probabilities, _FLOOR)))


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Isotonic:
    """Replaces confidence by the accuracy observed at that confidence: the non-decreasing least-squares fit."""

    confidence: tuple[float, ...]
    """The distinct confidences seen, increasing."""
    accuracy: tuple[float, ...]
    """The fitted accuracy at each confidence, non-decreasing."""

    @classmethod
    def fit(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Isotonic:
        """Fit to confidence (n,) and correctness (n,) by the pool-adjacent-violators algorithm. Raises ValueError for
        invalid arrays, or if there are no forecasts.

        >>> Isotonic.fit([.1, .2, .3], [0, 1, 0]).accuracy
        (0.0, 0.5, 0.5)
        """
        c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
        if c.ndim != 1 or c.shape != y.shape:
            raise ValueError(f"confidence and correctness need one length, not {c.shape} and {y.shape}")
        c, y = c[~np.isnan(c)], y[~np.isnan(c)]
        if np.any(np.isnan(y)):
            raise ValueError("whether a forecast was correct is missing")
        if c.size == 0:
            raise ValueError("isotonic regression cannot be fitted to no forecasts")
        distinct, which, count = np.unique(c, return_inverse=True, return_counts=True)
        means = np.bincount(which, weights=y) / count
        return cls(tuple(distinct.tolist()), tuple(_pool_adjacent_violators(means, count).tolist()))

    def apply(self, confidence: npt.ArrayLike) -> Floats:
        """Return recalibrated confidence (n,): linear between the confidences seen, constant beyond them."""
        return np.asarray(np.interp(np.asarray(confidence, dtype=np.float64), self.confidence, self.accuracy))


def _pool_adjacent_violators(values: Floats, weights: npt.NDArray[np.intp]) -> Floats:
    """The non-decreasing sequence nearest to values (m,) in weighted squared error."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, length = value, float(weight), 1
        while blocks and blocks[-1][0] >= mean:
            m, w, n = blocks.pop()
            mean, mass, length = (m * w + mean * mass) / (w + mass), w + mass, n + length
        blocks.append((mean, mass, length))
    return np.repeat([b[0] for b in blocks], [b[2] for b in blocks])
