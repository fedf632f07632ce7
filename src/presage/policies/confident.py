"""The `confident` policy: trust forecasts whose confidence is high enough."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import get_args

from presage.core.errors import PresageError
from presage.core.forecast import Confidence, Forecast
from presage.policies.base import NO_FORECAST, Action, Decision, Policy, Standing


class Confident(Policy):
    """Trusts a forecast whose confidence is above `level`, and measures the rest. Confidence that the kernel fails
    counts, too."""

    def __init__(self, level: float = 0.8, kind: Confidence = "max_probability") -> None:
        if not 0 <= level <= 1:
            raise PresageError(f"a level of confidence lies from 0 to 1; level cannot be {level}")
        if kind not in get_args(Confidence):
            raise PresageError(f"there is no confidence '{kind}'; kind can be: {', '.join(get_args(Confidence))}")
        self.level, self.kind = level, kind

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [NO_FORECAST if forecast is None else self._decision(forecast) for forecast in forecasts]

    def _decision(self, forecast: Forecast) -> Decision:
        fails, works = forecast.p_fail, (1 - forecast.p_fail) * forecast.confidence(self.kind)
        if max(fails, works) <= self.level:
            return Decision(Action.MEASURE, f"confidence {max(fails, works):.2f} is not above {self.level:.2f}")
        of_what = " that it fails" if fails > works else ""
        return Decision(Action.TRUST, f"confidence {max(fails, works):.2f}{of_what} is above {self.level:.2f}")
