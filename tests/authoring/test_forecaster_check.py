"""Each mistake that an author of a forecaster can make is found and named."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from presage import Candidate, Forecast, Forecaster, Prediction, Task
from presage.authoring import forecaster_check
from presage.authoring.finding import Verdict
from presage.forecasters import registry
from presage.forecasters.uniform import NOTHING_KNOWN


@pytest.mark.parametrize("name", ["uniform", "roofline", "learned", "surrogate", "forest"])
def test_forecasters_of_ours_pass(name: str) -> None:
    assert forecaster_check.failures(registry.get(name)) == []


class Fair(Forecaster):
    """Says the same of all, but for what a subclass changes."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(NOTHING_KNOWN) for _ in candidates]


class Short(Fair):
    def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
        return [Prediction(NOTHING_KNOWN)]


class Numbers(Fair):
    def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
        return [1.5 for _ in candidates]


class Reader(Fair):
    """Reads comments."""

    def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
        middles = [len(each.kernel.source) / 1000 for each in candidates]
        return [Prediction(Forecast.from_quantiles([0.1, 0.9], [m, m + 1])) for m in middles]


class Crashing(Fair):
    def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
        return [Prediction(NOTHING_KNOWN) for _ in candidates if task.neighbours[0]]


@pytest.mark.parametrize(
    ("forecaster", "said"),
    [
        (Short(), "forecasts with nothing measured: it gave 1 predictions for 8 candidates"),
        (Numbers(), "forecasts with nothing measured: it gave a float; return Prediction(forecast)"),
        (Reader(), "comments: comments in the source change the forecast; read kernel.normalised"),
        (Crashing(), "forecasts with nothing measured: IndexError: list index out of range (test_forecaster_check.py"),
    ],
)
def test_a_mistake_is_named(forecaster: Forecaster, said: str) -> None:
    found = forecaster_check.failures(forecaster)
    assert any(each.startswith(said) for each in found), found


def test_what_may_be_meant_is_a_warning() -> None:
    class Silent(Fair):
        def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
            return [Prediction(None) for _ in candidates]

    class Moody(Fair):
        def forecast(self, task, candidates):  # type: ignore[no-untyped-def]
            p_fail = rng.random()
            return [Prediction(Forecast.from_quantiles([0.1, 0.9], [0, 1], p_fail)) for _ in candidates]

    rng = random.Random(0)
    silent, moody = (list(forecaster_check.check(each)) for each in (Silent(), Moody()))
    assert "all will be measured" in silent[0].said
    assert {each.rule for each in moody if each.verdict is Verdict.WARNING} == {"asked again"}
