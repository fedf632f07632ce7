"""Recalibration: maps fitted to what came of forecasts, and applied to further ones.

`Temperature` and `Isotonic` are fitted once, to the bins and the confidences of an evaluation. Missing forecasts (NaN)
are ignored in the fit and stay missing; n is the number of forecasts, B the number of bins. `Scaling` is linear in
log-odds; it needs few outcomes, and `Online` learns it as they come.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FLOOR = 1e-6
_HOTTEST = 100.0
_EDGE = 1e-4
"""Probabilities are clamped to this distance from 0 and 1, where log-odds are infinite."""


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


def log_odds(probability: npt.ArrayLike) -> Floats:
    """ln(p / (1 - p)), with p clamped to a range that a finite sample can distinguish from 0 and 1.

    >>> log_odds([0.5, 0.0]).round(2).tolist()
    [0.0, -9.21]
    """
    p = np.clip(np.asarray(probability, dtype=np.float64), _EDGE, 1 - _EDGE)
    return np.asarray(np.log(p / (1 - p)))


def from_log_odds(odds: npt.ArrayLike) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(np.asarray(odds, dtype=np.float64), -30, 30))))


@dataclass(frozen=True)
class Scaling:
    """The map log-odds → slope · log-odds + offset. With offset 0, the temperature is one over the slope."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, probability: npt.ArrayLike) -> Floats:
        return from_log_odds(self.slope * log_odds(probability) + self.offset)

    @classmethod
    def fit(
        cls,
        probability: npt.ArrayLike,
        outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        prior: float = 1.0,
    ) -> Scaling:
        """Return the scaling of maximum posterior likelihood.

        probability, outcome, weight: (n,); outcomes are 0 or 1. prior: how strongly the fit is pulled towards no
        change, in units of outcomes. Raises ValueError for invalid arrays.

        >>> said, came = [0.99] * 10, [1] * 6 + [0] * 4
        >>> round(float(Scaling.fit(said, came, prior=0.1)(0.99)), 2)
        0.6
        """
        x, y, w = _checked(probability, outcome, weight)
        start = np.array([1.0, 0.0])
        at = start.copy()
        columns = np.stack([x, np.ones_like(x)], axis=1)
        for _ in range(30):
            p = from_log_odds(columns @ at)
            slope = columns.T @ (w * (p - y)) + prior * (at - start)
            curvature = (columns * (w * p * (1 - p))[:, None]).T @ columns + prior * np.eye(2)
            step = np.linalg.solve(curvature, slope)
            at = at - step / max(1.0, float(np.abs(step).max()))
            if float(np.abs(step).max()) < 1e-9:
                break
        return cls(max(0.05, float(at[0])), float(at[1]))


class Online:
    """A scaling that is refitted after each outcome to the last `window` outcomes. Before the first, it is the
    identity."""

    def __init__(self, window: int = 256, prior: float = 20.0) -> None:
        self._seen: deque[tuple[float, bool]] = deque(maxlen=window)
        self._prior = prior
        self.scaling = Scaling()

    def observe(self, probability: float, outcome: bool) -> None:
        """Add an outcome and refit. `probability` is the forecast probability before this scaling."""
        self._seen.append((probability, outcome))
        said, came = zip(*self._seen, strict=True)
        self.scaling = Scaling.fit(said, came, prior=self._prior)

    def __call__(self, probability: float) -> float:
        return float(self.scaling(probability))


def _checked(
    probability: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Return log-odds, outcomes and weights, each (n,). Raises ValueError for invalid arrays."""
    p, y = np.asarray(probability, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    w = np.ones_like(p) if weight is None else np.asarray(weight, dtype=np.float64)
    if p.ndim != 1 or not p.shape == y.shape == w.shape or p.size == 0:
        raise ValueError(f"probabilities and outcomes must be as many, and some: {p.shape} and {y.shape}")
    if not (np.all((p >= 0) & (p <= 1)) and np.all((y == 0) | (y == 1)) and np.all(w >= 0)):
        raise ValueError("probabilities lie in [0, 1], outcomes are 0 or 1, weights are not negative")
    return log_odds(p), y, w
