"""The `random` policy: measure at a given rate and ignore the forecasts. A baseline for policies with the same rate."""

from __future__ import annotations

import random
from collections.abc import Sequence

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.policies.base import NO_FORECAST, Action, Decision, Policy, Standing


class Random(Policy):
    """Measures each candidate with the probability `rate`, whatever its forecast."""

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 < rate <= 1:
            raise PresageError(f"a rate of measuring lies above 0 and up to 1; rate cannot be {rate}")
        self.rate = rate

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [NO_FORECAST if forecast is None else self._decision(rng) for forecast in forecasts]

    def _decision(self, rng: random.Random) -> Decision:
        measured = rng.random() < self.rate
        drawn = "drawn" if measured else "not drawn"
        return Decision(Action.MEASURE if measured else Action.TRUST, f"{drawn} at a rate of {self.rate:.2f}")
