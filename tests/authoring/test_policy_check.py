"""Each mistake that an author of a policy can make is found and named."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from presage import Action, Decision, Forecast, Policy, Standing
from presage.authoring import policy_check
from presage.authoring.finding import Verdict
from presage.plugins.group import POLICIES

MEASURE, TRUST = Decision(Action.MEASURE, "it may be fast"), Decision(Action.TRUST, "it is slow")


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_of_ours_passes(name: str) -> None:
    findings = list(policy_check.check(POLICIES.load(name)))
    assert {finding.verdict for finding in findings} == {Verdict.OK}
    assert [finding.rule for finding in findings][:4] == ["decisions", "no forecast", "chance", "restart"]


class Rule(Policy):
    """Measures everything, but for what a subclass changes."""

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [MEASURE for _ in forecasts]


class Short(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return [MEASURE for _ in forecasts[1:]]


class Words(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return ["measure" for _ in forecasts]


class Silent(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return [Decision(Action.MEASURE, "") for _ in forecasts]


class Trusting(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return [TRUST if forecast is None else MEASURE for forecast in forecasts]


class Dicing(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return [NO if forecast and random.random() < 0.5 else MEASURE for forecast in forecasts]


NO = TRUST


class Counting(Rule):
    """Learns in `decide`, which is not called again after a restart."""

    def __init__(self) -> None:
        self.batches = 0

    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        self.batches += 1
        return [TRUST if forecast and self.batches > 12 else MEASURE for forecast in forecasts]


class Crashing(Rule):
    def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
        return [MEASURE if forecast.mean() else TRUST for forecast in forecasts]


class Careless(Rule):
    def __init__(self, k: int = 1) -> None:
        if k < 0:
            raise ValueError("k < 0")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Short, "decisions: it gave 0 decisions for 1 forecasts; return a list with one for each"),
        (Words, "decisions: it gave 'measure'; return Decision(Action.TRUST, 'why')"),
        (Silent, "decisions: a decision to measure has no reason"),
        (Trusting, "no forecast: it would trust a kernel without a forecast; measure it"),
        (Dicing, "chance: two policies that were told the same decided otherwise; take all chance from `rng`"),
        (Counting, "restart: after a restart it decides otherwise: `decide` keeps something"),
        (
            Crashing,
            "no forecast: AttributeError: 'NoneType' object has no attribute 'mean' (test_policy_check.py, line",
        ),
        (Careless, "settings: k=-1e+09 ends in ValueError: k < 0; raise presage.PresageError"),
    ],
)
def test_a_mistake_is_named(make: type[Policy], said: str) -> None:
    assert any(each.startswith(said) for each in policy_check.failures(make)), policy_check.failures(make)


def test_what_may_be_meant_is_a_warning() -> None:
    class Never(Policy):
        def __init__(self, level: float = 0.5) -> None:
            self.level = level

        def decide(self, forecasts, standing, rng):  # type: ignore[no-untyped-def]
            return [MEASURE if forecast is None else TRUST for forecast in forecasts]

    warnings = [each.said for each in policy_check.check(Never) if each.verdict is Verdict.WARNING]
    assert "it never measures" in warnings[0]
    assert warnings[1].startswith("level=nan is taken")
    assert policy_check.failures(Never) == []
