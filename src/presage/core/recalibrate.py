"""Making forecasts honest after the fact: each recalibration is fitted on measured kernels, then applied to new ones.

A missing forecast (NaN) teaches nothing and stays missing. n is the number of forecasts, B the number of bins.
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


@dataclass(frozen=True)
class Temperature:
    """Bin probabilities raised to 1 / T and renormalised: T > 1 softens a forecaster that is too sure."""

    T: float

    @classmethod
    def fit(cls, probabilities: npt.ArrayLike, truth: npt.ArrayLike) -> Temperature:
        """The T in [0.01, 100] of least negative log-likelihood; probabilities (n, B), truth (n,) 0-based bins.

        The likelihood is concave in 1 / T, so its slope has one root, found by bisection. A probability under 1e-6
        counts as 1e-6. Uniform forecasts, which no temperature changes, give T = 1.

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
        """Recalibrated probabilities, shape (n, B); the order of the bins' probabilities stays."""
        return _softmax(_logs(np.asarray(probabilities, dtype=np.float64)) / self.T)


def _logs(probabilities: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probabilities, _FLOOR)))


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Isotonic:
    """Confidence replaced by the accuracy it had: the non-decreasing curve of least squared error."""

    confidence: tuple[float, ...]
    """The distinct confidences seen, increasing."""
    accuracy: tuple[float, ...]
    """The fitted accuracy at each, non-decreasing."""

    @classmethod
    def fit(cls, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> Isotonic:
        """From confidence (n,) and correctness (n,), by pooling adjacent violators.

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
        """Recalibrated confidence (n,): linear between the confidences seen, constant beyond them."""
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


def conformal_quantile(scores: npt.ArrayLike, alpha: float) -> float:
    """The ⌈(n + 1)(1 - alpha)⌉-th smallest of n scores: a new one exceeds it with probability at most alpha.

    Infinite when n is too small to promise that.

    >>> conformal_quantile(range(1, 20), 0.1), conformal_quantile(range(1, 9), 0.1)
    (18.0, inf)
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    # Rounded first, so that 10 × (1 - 0.1) is 9 and no hair more.
    rank = math.ceil(round((ordered.size + 1) * (1 - alpha), 9))
    if rank > ordered.size:
        return math.inf
    return float(ordered[rank - 1]) if rank > 0 else 0.0


@dataclass(frozen=True)
class Conformal:
    """Intervals prediction ± factor × width that hold at least 1 - alpha of the truths, whatever the distribution."""

    factor: float

    @classmethod
    def fit(
        cls, prediction: npt.ArrayLike, width: npt.ArrayLike, truth: npt.ArrayLike, alpha: float = 0.1
    ) -> Conformal:
        """From forecasts not used in training: prediction, width > 0 and truth, each (n,), 0 < alpha < 1.

        >>> Conformal.fit([0.0] * 4, [1.0, 2.0, 1.0, 1.0], [1.0, 4.0, -3.0, 4.0], alpha=0.4).factor
        3.0
        """
        _check_alpha(alpha)
        m, w, t = (np.asarray(v, dtype=np.float64) for v in (prediction, width, truth))
        if m.ndim != 1 or not m.shape == w.shape == t.shape:
            raise ValueError(f"prediction, width and truth need one length, not {m.shape}, {w.shape} and {t.shape}")
        known = ~(np.isnan(m) | np.isnan(w))
        if not np.all(w[known] > 0):
            raise ValueError("a width must be positive")
        if np.any(np.isnan(t)):
            raise ValueError("a truth is missing")
        return cls(conformal_quantile(np.abs(t - m)[known] / w[known], alpha))

    def apply(self, prediction: npt.ArrayLike, width: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The lower and upper ends of the intervals, each (n,)."""
        m, reach = np.asarray(prediction, dtype=np.float64), self.factor * np.asarray(width, dtype=np.float64)
        return m - reach, m + reach


class AdaptiveConformal:
    """The online form, for a world that drifts: after each truth, alpha_t moves by gamma (alpha - [missed]).

    Over T steps the share of misses is within (1 + gamma) / (gamma T) of alpha, whatever the data do (Gibbs and
    Candès, 2021), as long as no truth equals its prediction exactly. Ask `interval`, then tell `update`.

    >>> online = AdaptiveConformal(alpha=0.5, gamma=0.1)
    >>> online.interval(0.0, 1.0), online.update(0.0, 1.0, 3.0), online.alpha_t
    ((-inf, inf), False, 0.55)
    """

    def __init__(self, alpha: float = 0.1, gamma: float = 0.02, window: int = 1000) -> None:
        _check_alpha(alpha)
        if not gamma > 0 or window < 1:
            raise ValueError(f"gamma and window must be positive, not {gamma} and {window}")
        self.alpha = self.alpha_t = alpha
        self.gamma = gamma
        self._scores: deque[float] = deque(maxlen=window)

    def interval(self, prediction: float, width: float) -> tuple[float, float]:
        """The interval for the next truth, from the last `window` scores: everything while alpha_t <= 0."""
        if not width > 0:
            raise ValueError(f"a width must be positive, not {width}")
        reach = width * conformal_quantile(list(self._scores), self.alpha_t)
        return prediction - reach, prediction + reach

    def update(self, prediction: float, width: float, truth: float) -> bool:
        """Learn from one truth; returns whether the interval missed it."""
        if math.isnan(prediction) or math.isnan(truth):
            raise ValueError(f"nothing can be learned from prediction {prediction} and truth {truth}")
        low, high = self.interval(prediction, width)
        missed = not low <= truth <= high
        self.alpha_t += self.gamma * (self.alpha - missed)
        self._scores.append(abs(truth - prediction) / width)
        return missed


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
