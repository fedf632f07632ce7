"""The `uniform` baseline: the forecast without any knowledge. A forecaster that does not beat it has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence

from presage.core.forecast import Forecast
from presage.core.scale import BINS
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task

NOTHING_KNOWN = Forecast.from_bins([1 / BINS] * BINS, p_fail=0.5)


class UniformForecaster(Forecaster):
    """Gives every speedup the same chance, and failure 50 %."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(NOTHING_KNOWN) for _ in candidates]
