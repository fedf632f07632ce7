"""Acquisitions score the candidates of a search. The search decides on the candidates with the highest scores first.

A search has more candidates than it can measure. In each step it forecasts candidates again, scores each forecast, and
asks the policy about the best few. The others stay undecided.
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist
from typing import Any

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.plugins.group import ACQUISITIONS
from presage.searches.base import Acquisition

DEFAULT = "expected_improvement"
names = ACQUISITIONS.names
_FAILED = -64.0
"""The log2 S that stands for a failure when candidates are compared."""


class ExpectedImprovement(Acquisition):
    """Prefers the largest expected gain over the best kernel. The gain is in octaves. A candidate that does not
    beat the best gains 0."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return forecast.expected_improvement(best)


class Mean(Acquisition):
    """Prefers the largest expected speedup. A failure counts as 0. Does not explore."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return (1 - forecast.p_fail) * 2 ** forecast.mean()


class UpperBound(Acquisition):
    """Prefers the largest speedup that is still likely: a quantile of the forecast. The quantile's level is that of
    `beta` standard deviations above the mean of a normal distribution: for 2, 97.7 %. A larger beta explores more."""

    def __init__(self, beta: float = 1.0) -> None:
        if not 0 <= beta < math.inf:
            raise PresageError(f"beta, how optimistic the bound is, is 0 or more, not {beta}")
        self.beta = beta
        self._level = NormalDist().cdf(beta)

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return _outcome(forecast, self._level)


class Thompson(Acquisition):
    """Draws one outcome of each candidate from its forecast, and prefers the largest outcome."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return _outcome(forecast, rng.random())


def _outcome(forecast: Forecast, level: float) -> float:
    """The quantile of log2 S at this level, where a kernel that fails counts as slower than any that works.

    >>> forecast = Forecast.from_quantiles([0.25, 0.75], [-1.0, 1.0], p_fail=0.5)
    >>> _outcome(forecast, 0.4), _outcome(forecast, 0.875)
    (-64.0, 1.0)
    """
    if level <= forecast.p_fail:
        return _FAILED
    return forecast.quantile(min(1.0, (level - forecast.p_fail) / (1 - forecast.p_fail)))


def get(spec: str = DEFAULT, **settings: Any) -> Acquisition:
    """Return a new acquisition, such as `upper_bound:beta=2`. Raises PresageError for an unknown name or a wrong
    setting."""
    acquisition: Acquisition = ACQUISITIONS.make(spec, **settings)
    return acquisition
