"""The `always` policy: trust no forecast and measure everything. It is the baseline for the other policies."""

from __future__ import annotations

import random
from collections.abc import Sequence

from presage.core.forecast import Forecast
from presage.policies.base import Action, Decision, Policy, Standing


class Always(Policy):
    """Measures every candidate."""

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [Decision(Action.MEASURE, "every candidate is measured")] * len(forecasts)
