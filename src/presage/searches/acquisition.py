"""Acquisitions: they score candidates, and a search decides on those that score highest first.

A search has more candidates than it can measure. After every measurement it forecasts candidates again, scores each
forecast, and asks the policy about the best few. The others wait.
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
"""log2 S of a kernel that fails, where it is compared with those that work."""


class ExpectedImprovement(Acquisition):
    """Prefers the largest expected gain over the best. The gain is in octaves, and 0 for one that does not beat it."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return forecast.expected_improvement(best)


class Mean(Acquisition):
    """Prefers the largest expected speedup. A failure counts 0. It explores nothing."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return (1 - forecast.p_fail) * 2 ** forecast.mean()


class UpperBound(Acquisition):
    """Prefers the largest speedup that is still likely. This is the quantile that lies `beta` standard deviations above
    the median of a normal distribution: for 2, the 97.7 % quantile. A larger beta explores more."""

    def __init__(self, beta: float = 1.0) -> None:
        if not 0 <= beta < math.inf:
            raise PresageError(f"beta, how optimistic the bound is, is 0 or more, not {beta}")
        self.beta = beta
        self._level = NormalDist().cdf(beta)

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return _outcome(forecast, self._level)


class Thompson(Acquisition):
    """Draws one outcome of each candidate from its forecast, and prefers the largest."""

    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return _outcome(forecast, rng.random())


def _outcome(forecast: Forecast, level: float) -> float:
    """The quantile of log2 S at this level, where a kernel that fails is slower than any that works.

    >>> forecast = Forecast.from_quantiles([0.25, 0.75], [-1.0, 1.0], p_fail=0.5)
    >>> _outcome(forecast, 0.4), _outcome(forecast, 0.875)
    (-64.0, 1.0)
    """
    if level <= forecast.p_fail:
        return _FAILED
    return forecast.quantile(min(1.0, (level - forecast.p_fail) / (1 - forecast.p_fail)))


def get(spec: str = DEFAULT, **settings: Any) -> Acquisition:
    """A new acquisition of this name with these settings, such as `upper_bound:beta=2`, or a PresageError that says
    what there is."""
    acquisition: Acquisition = ACQUISITIONS.make(spec, **settings)
    return acquisition
