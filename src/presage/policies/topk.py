"""The `topk` policy: measure the k candidates of each batch with the largest expected improvement."""

from __future__ import annotations

import random
from collections.abc import Sequence

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.policies.base import NO_FORECAST, Action, Decision, Policy, Standing


class TopK(Policy):
    """Measures the k candidates of a batch with the largest expected improvement, and all candidates without a
    forecast."""

    def __init__(self, k: int = 2) -> None:
        if k < 1:
            raise PresageError(f"topk measures 1 candidate or more of a batch, not {k}; set k")
        self.k, self.least = k, 2 * k

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        improvements = {
            place: (forecast.expected_improvement(standing.best), forecast.mean())
            for place, forecast in enumerate(forecasts)
            if forecast is not None
        }
        # The mean breaks ties, such as between candidates with no expected improvement.
        order = sorted(improvements, key=improvements.__getitem__, reverse=True)
        ranks = {place: rank for rank, place in enumerate(order, start=1)}
        return [
            self._decision(ranks[place], len(order), improvements[place][0]) if place in ranks else NO_FORECAST
            for place in range(len(forecasts))
        ]

    def _decision(self, rank: int, of: int, improvement: float) -> Decision:
        action = Action.MEASURE if rank <= self.k else Action.TRUST
        reason = f"{rank} of {of} by expected improvement, {improvement:.3g} octaves; the best {self.k} are measured"
        return Decision(action, reason)
