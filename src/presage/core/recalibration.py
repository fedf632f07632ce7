"""Recalibration of probabilities from observed outcomes.

There are two maps. `Scaling` is linear in log-odds; it needs few outcomes and, with a prior, can be learned online.
`Isotonic` is any non-decreasing map; it needs hundreds of outcomes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_EDGE = 1e-4
"""Probabilities are clamped to this distance from 0 and 1, where log-odds are infinite."""


def log_odds(probability: npt.ArrayLike) -> Floats:
    """ln(p / (1 - p)), with p clamped to a range that a finite sample can distinguish from 0 and 1.

    >>> log_odds([0.5, 0.0]).round(2).tolist()
    [0.0, -9.21]
    """
    p = np.clip(np.asarray(probability, dtype=np.float64), _EDGE, 1 - _EDGE)
    return np.asarray(np.log(p / (1 - p)))


def from_log_odds(odds: npt.ArrayLike) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(np.asarray(odds, dtype=np.float64), -30, 30))))


def at_base_rate(probability: npt.ArrayLike, known: float, wanted: float) -> Floats:
    """Adjust probabilities from a population with the base rate `known` to one with the base rate `wanted`. Raises
    ValueError unless both lie between 0 and 1.

    >>> at_base_rate([0.5], known=0.5, wanted=0.9).round(3).tolist()
    [0.9]
    """
    if not (0 < known < 1 and 0 < wanted < 1):
        raise ValueError(f"a base rate lies between 0 and 1, not {known} or {wanted}")
    return from_log_odds(log_odds(probability) + float(log_odds(wanted) - log_odds(known)))


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


@dataclass(frozen=True)
class Isotonic:
    """A non-decreasing map: linear between points, constant beyond the ends."""

    points: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, probability: npt.ArrayLike) -> Floats:
        return np.asarray(np.interp(np.asarray(probability, dtype=np.float64), self.points, self.values))

    @classmethod
    def fit(cls, probability: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Isotonic:
        """Fit the non-decreasing map with the least squared error (pool adjacent violators). Each pool becomes one
        point at its mean, with one success and one failure added, so that no pool claims certainty.

        >>> Isotonic.fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]).values
        (0.3333333333333333, 0.5, 0.6666666666666666)
        """
        x, y, w = _checked(probability, outcome, weight)
        x = from_log_odds(x)
        order = np.argsort(x, kind="stable")
        pools: list[list[float]] = []  # weight, weight · x, weight · y
        for i in order:
            pools.append([w[i], w[i] * x[i], w[i] * y[i]])
            while len(pools) > 1 and pools[-2][2] * pools[-1][0] >= pools[-1][2] * pools[-2][0]:
                last = pools.pop()
                pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
        points = [wx / total for total, wx, _ in pools]
        values = np.maximum.accumulate([(wy + 1) / (total + 2) for total, _, wy in pools])
        return cls(tuple(points), tuple(values.tolist()))


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
