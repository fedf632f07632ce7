"""Policies: what each promises, what it refuses, and that no forecast always means measuring."""

from __future__ import annotations

import random

import pytest

from presage import Action, Forecast, PresageError, Standing
from presage.policies import registry

START = Standing(best=0.0, measured=1, left=None)
SURE_SLOW = Forecast.from_bins([0, 1, 0, 0, 0, 0, 0, 0])
SURE_FAST = Forecast.from_bins([0, 0, 0, 0, 0, 0, 1, 0])
UNSURE = Forecast.from_bins([1] * 8)
FAILS = Forecast.from_bins([1] * 8, p_fail=0.95)


def actions(name: str, forecasts: list[Forecast | None], seed: int = 0, **settings: object) -> str:
    """The decisions' first letters."""
    policy = registry.get(name, **settings)
    decisions = policy.decide(forecasts, START, random.Random(seed))
    assert all(decision.reason.isprintable() and decision.reason for decision in decisions)
    return "".join(decision.action[0] for decision in decisions)


def test_policies_have_names() -> None:
    assert {"always", "confident", "random", "risk", "topk"} <= {*registry.names()}
    assert registry.DEFAULT in registry.names()
    with pytest.raises(PresageError, match=r"no policy 'rsik'; there are: .*always, .*confident"):
        registry.get("rsik")
    with pytest.raises(PresageError, match="topk has no setting 'rate'; it has: k"):
        registry.get("topk", rate=0.5)
    with pytest.raises(PresageError, match="always has no setting 'k'; it has: none"):
        registry.get("always", k=1)


@pytest.mark.parametrize("name", registry.names())
def test_no_forecast_means_measure(name: str) -> None:
    assert actions(name, [None] * 6) == "m" * 6
    assert actions(name, []) == ""


@pytest.mark.parametrize("name", registry.names())
def test_decisions_are_repeatable(name: str) -> None:
    forecasts = [SURE_SLOW, None, SURE_FAST, UNSURE, FAILS] * 4
    assert actions(name, forecasts, seed=3) == actions(name, forecasts, seed=3)


def test_always_measures_everything() -> None:
    assert actions("always", [SURE_SLOW, FAILS, None]) == "mmm"


def test_topk_measures_the_best_of_a_batch() -> None:
    assert actions("topk", [UNSURE, SURE_SLOW, SURE_FAST, FAILS], k=2) == "mtmt"
    assert actions("topk", [UNSURE, None, SURE_FAST], k=1) == "tmm"
    assert actions("topk", [SURE_SLOW, FAILS], k=5) == "mm"


def test_topk_goes_by_expected_improvement_over_the_best_and_not_by_the_mean() -> None:
    steady = Forecast((0.4, 0.6), (0.0, 1.0))
    daring = Forecast((-2.0, 2.0), (0.0, 1.0))
    policy = registry.get("topk", k=1)
    for best, measured in ((-1.0, 0), (0.9, 1)):
        decisions = policy.decide([steady, daring], Standing(best, 1, None), random.Random(0))
        assert [d.action for d in decisions].index(Action.MEASURE) == measured


def test_topk_breaks_ties_by_the_mean() -> None:
    assert actions("topk", [SURE_SLOW, Forecast.from_bins([0, 0, 1, 0, 0, 0, 0, 0])], k=1) == "tm"


def test_confident_trusts_above_its_level() -> None:
    assert actions("confident", [SURE_SLOW, SURE_FAST, UNSURE, FAILS]) == "ttmt"
    assert actions("confident", [UNSURE], level=0.1) == "t"
    assert actions("confident", [SURE_SLOW], level=1.0) == "m"
    assert actions("confident", [Forecast.from_bins([0, 1, 0, 0, 0, 0, 0, 0], p_fail=0.5)]) == "m"
    assert actions("confident", [SURE_SLOW], level=0.5, kind="entropy") == "t"
    assert actions("confident", [SURE_SLOW], level=0.9, kind="width") == "m"


def test_random_measures_at_its_rate() -> None:
    decided = actions("random", [UNSURE] * 4000, rate=0.3)
    assert decided.count("m") == pytest.approx(1200, abs=100)
    assert set(actions("random", [UNSURE] * 50, rate=1.0)) == {"m"}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("topk", {"k": 0}, "set k"),
        ("confident", {"level": 1.5}, "level cannot be 1.5"),
        ("confident", {"kind": "mood"}, "kind can be: max_probability, entropy, width"),
        ("random", {"rate": 0.0}, "rate cannot be 0.0"),
        ("risk", {"alpha": 0.0}, "alpha"),
        ("risk", {"delta": -0.1}, "delta"),
        ("risk", {"audit": 1.0}, "audit"),
        ("risk", {"near": -1}, "near"),
    ],
)
def test_bad_settings_are_explained(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(PresageError, match=message):
        registry.get(name, **settings)


def test_only_risk_watches_what_it_passes_over() -> None:
    watching = [name for name in registry.names() if registry.get(name).missed(0) is not None]
    assert watching == ["risk"]
