"""The `risk` policy: it holds its bound with forecasters good and bad, and says truly how well it did."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from sweeps import others_in_sweeps

from presage import Action, Decision, Forecast, Standing
from presage.policies.risk import Risk, Winner

LEVELS, NORMAL = (0.05, 0.25, 0.5, 0.75, 0.95), np.array([-1.645, -0.674, 0.0, 0.674, 1.645])
MARGIN = math.log2(1.05)

FORECASTERS: dict[str, Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, float]]] = {
    "good": lambda truth, rng: (truth + rng.normal(0, 0.35, truth.size), 0.35),
    "useless": lambda truth, rng: (rng.permutation(truth), 1.0),
    "overconfident": lambda truth, rng: (truth + rng.normal(0, 0.7, truth.size), 0.07),
    "pessimistic": lambda truth, rng: (truth - 1 + rng.normal(0, 0.35, truth.size), 0.35),
    "inverted": lambda truth, rng: (-truth, 0.35),
    "constant": lambda truth, rng: (np.zeros(truth.size), 1.0),
}


@dataclass
class Run:
    """A search of which everything is known, also of what it passed over."""

    policy: Risk
    winners: int = 0
    passed_over: int = 0
    actions: Counter[Action] = field(default_factory=Counter)
    told: list[tuple[Forecast, Decision, Standing, float | None]] = field(default_factory=list)
    trusted: list[tuple[float, float, float | None, bool]] = field(default_factory=list)
    """The mean of each forecast, the best at that time, what is true, and whether that wins."""

    def promote(self, share: float) -> None:
        """Measure the most promising of the trusted after all, as a search does when nothing new comes."""
        self.trusted.sort(key=lambda each: each[0], reverse=True)
        later = round(share * len(self.trusted))
        for _, best, truth, _ in self.trusted[:later]:
            self.policy.observe_trusted(best, truth)
        self.trusted = self.trusted[later:]

    @property
    def rate(self) -> float:
        """The share of winners that is not measured."""
        return sum(wins for *_, wins in self.trusted) / self.winners if self.winners else 0.0


def replay(policy: Risk, kind: str, seed: int, candidates: int = 160) -> Run:
    numbers, rng, run = np.random.default_rng(seed), random.Random(seed), Run(policy)
    quick = numbers.random(candidates) < 0.3
    truth = np.where(quick, numbers.normal(0.3, 0.4, candidates), numbers.normal(-1, 1, candidates))
    centres, width = FORECASTERS[kind](truth, numbers)
    fails = numbers.random(candidates) < 0.1
    best = 0.0
    for start in range(0, candidates, 8):
        batch = range(start, min(start + 8, candidates))
        standing = Standing(best, sum(run.actions.values()), None)
        forecasts = [Forecast.from_quantiles(LEVELS, centres[i] + width * NORMAL, 0.1) for i in batch]
        decisions = policy.decide(forecasts, standing, rng)
        for i, forecast, decision in zip(batch, forecasts, decisions, strict=True):
            wins = not fails[i] and truth[i] > standing.best + MARGIN
            run.winners += wins
            run.actions[decision.action] += 1
            if decision.action is Action.TRUST:
                run.passed_over += wins
                run.trusted.append((forecast.mean(), standing.best, None if fails[i] else float(truth[i]), wins))
                continue
            told = (forecast, decision, standing, None if fails[i] else float(truth[i]))
            run.told.append(told)
            policy.observe(*told)
            best = max(best, truth[i]) if not fails[i] else best
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", others_in_sweeps({kind: kind for kind in FORECASTERS}, "good", "overconfident", "inverted")
)
def test_the_bound_holds_whatever_the_forecaster(kind: str) -> None:
    runs = [replay(Risk(alpha=0.1), kind, seed) for seed in range(40)]
    winners = sum(run.winners for run in runs)
    assert sum(run.passed_over for run in runs) <= 0.1 * winners
    for share in (0.0, 0.5):
        for run in runs:
            run.promote(share)
        told = [run.policy.missed(len(run.trusted)) for run in runs]
        assert all(0 <= each["low"] <= each["rate"] <= each["high"] <= 1 for each in told)
        held = sum(each["low"] <= run.rate <= each["high"] for run, each in zip(runs, told, strict=True))
        assert held >= 0.9 * len(runs)
    trusted = sum(run.actions[Action.TRUST] for run in runs) / (40 * 160)
    if kind in ("good", "pessimistic"):
        assert trusted > 0.25  # an honest order saves much, however wrong its numbers are
    if kind in ("inverted", "constant"):
        assert trusted < 0.02


def test_nothing_is_trusted_before_anything_is_known() -> None:
    slow = Forecast.from_bins([0, 1, 0, 0, 0, 0, 0, 0])
    policy = Risk(alpha=0.9)
    for decision in policy.decide([slow] * 20, Standing(0.0, 1, None), random.Random(0)):
        assert decision.action is Action.MEASURE
        assert decision.reason.endswith("0 measurements and 0 winners are too few to trust anything")
    assert policy.missed(0) == {"rate": 0.0, "low": 0.0, "high": 0.0, "likely": 0.0, "most": 0}


def winner(weight: float = 1.0, real: bool = True) -> Winner:
    return Winner(Forecast.from_bins([1] * 8), 0.0, weight, real)


def test_trust_is_what_conformal_prediction_allows() -> None:
    policy = Risk(alpha=0.05, audit=0.1)
    assert policy._chances([]) == [0.0]
    assert policy._chances([winner()] * 8) == pytest.approx([0.4] + [0.0] * 8)
    # Of 40 winners two may be passed over: all but the audits below the lowest, most of those up to the third.
    assert policy._chances([winner()] * 40) == pytest.approx([0.9, 0.9, 0.2] + [0.0] * 38)
    # One that was seen by luck stands for several, which are dearer to pass over and allow more.
    assert policy._chances([winner(4.0), *[winner()] * 20]) == pytest.approx([0.9, 0.075] + [0.0] * 20)


def test_near_winners_open_what_real_winners_do_not_forbid() -> None:
    policy = Risk(alpha=0.05, audit=0.1)
    near = [winner(real=False)] * 40
    assert policy._chances(near)[:3] == pytest.approx([0.9, 0.9, 0.2])
    assert policy._chances([winner(), *near])[:3] == pytest.approx([0.9, 0.0, 0.0])
    assert policy._chances([near[0], winner(), *near])[:3] == pytest.approx([0.9, 0.9, 0.0])


def test_decisions_depend_only_on_what_was_observed() -> None:
    """A search that resumes tells outcomes and no decisions, and goes on as if nothing had happened."""
    live = replay(Risk(alpha=0.2), "good", seed=5, candidates=240)
    assert live.actions[Action.TRUST] > 20
    resumed = Risk(alpha=0.2)
    for told in live.told:
        resumed.observe(*told)
    assert resumed.missed(20) == live.policy.missed(20)
    forecasts = [Forecast.from_quantiles(LEVELS, centre + 0.35 * NORMAL) for centre in np.linspace(-3, 3, 30)]
    standing = Standing(1.0, 500, 10)
    again = [policy.decide(forecasts, standing, random.Random(1)) for policy in (live.policy, resumed)]
    assert again[0] == again[1]
    assert {decision.action for decision in again[0]} >= {Action.TRUST, Action.MEASURE}


def test_audits_are_a_share_of_what_could_be_trusted() -> None:
    policy = Risk(alpha=0.5, audit=0.25)
    live = replay(policy, "good", seed=1, candidates=400)
    shares = live.actions[Action.AUDIT] / (live.actions[Action.AUDIT] + live.actions[Action.TRUST])
    assert shares == pytest.approx(0.25, abs=0.08)


def test_a_winner_that_could_have_been_trusted_makes_the_policy_stricter() -> None:
    def forecast(centre: float) -> Forecast:
        return Forecast.from_quantiles(LEVELS, centre + 0.1 * NORMAL)

    policy, decision = Risk(alpha=0.1), Decision(Action.AUDIT, "")
    for number in range(30):  # winners and losers are both forecast as such
        standing = Standing(float(number), number, None)
        policy.observe(forecast(number + 1.0), decision, standing, number + 1.0)
        policy.observe(forecast(-2 + number / 100), decision, standing, -2.0)
    slow, standing = [forecast(-1.9)] * 50, Standing(30.0, 60, None)
    before = policy.missed(50)
    decided = policy.decide(slow, standing, random.Random(0))
    assert {d.action for d in decided} >= {Action.TRUST, Action.AUDIT}
    audit = next(d for d in decided if d.action is Action.AUDIT)
    policy.observe(slow[0], audit, standing, 31.0)
    assert policy.alpha_now < policy.alpha
    after = policy.missed(50)
    assert after["rate"] > before["rate"]
    assert after["high"] > after["rate"] > after["low"]
    decided = policy.decide(slow, Standing(31.0, 61, None), random.Random(0))
    assert {d.action for d in decided} == {Action.MEASURE}
    assert "the next may rank there" in decided[0].reason


def test_reasons_have_the_numbers_in_them() -> None:
    policy = Risk(alpha=0.3)
    live = replay(policy, "good", seed=2)
    reasons = {decision.action: decision.reason for _, decision, _, _ in live.told}
    assert "% likely to win by more than 5%, in the lowest" in reasons[Action.MEASURE]
    assert reasons[Action.AUDIT].endswith("it would be trusted, and is measured to check that")


def test_winners_without_a_forecast_are_counted() -> None:
    policy = Risk()
    policy.observe(None, Decision(Action.MEASURE, ""), Standing(0.0, 1, None), 1.0)
    policy.observe(None, Decision(Action.MEASURE, ""), Standing(0.0, 1, None), None)
    assert policy.missed(0)["rate"] == 0.0


def test_what_was_measured_after_all_is_known_and_only_the_rest_is_uncertain() -> None:
    """Of 39 that were trusted 37 were measured later, and none had won: of two, one may have."""
    policy = Risk()
    policy.observe(None, Decision(Action.MEASURE, ""), Standing(0.0, 1, None), 1.0)
    highs = []
    for measured in range(40):
        told = policy.missed(39 - measured)
        assert told["low"] == told["rate"] == 0.0
        assert told["most"] <= 39 - measured
        highs.append(told["high"])
        policy.observe_trusted(0.5, 0.2)
    assert highs == sorted(highs, reverse=True)
    assert policy_at(37)["most"] == 1
    assert highs[37] == 0.5, "one winner is known, and one may not be"
    assert highs[39] == 0.0


def policy_at(promoted: int, trusted: int = 39) -> dict[str, float]:
    policy = Risk()
    for _ in range(promoted):
        policy.observe_trusted(0.5, 0.2)
    return policy.missed(trusted - promoted)


def test_a_winner_that_was_trusted_and_measured_later_was_passed_over_for_a_while_only() -> None:
    policy = Risk(alpha=0.1)
    policy.observe_trusted(0.5, 2.0)
    policy.observe_trusted(0.5, None)
    assert policy.alpha_now < policy.alpha
    told = policy.missed(0)
    assert (told["rate"], told["high"], told["most"]) == (0.0, 0.0, 0)
    assert policy.missed(3)["most"] == 3, "where one of two has won, others may"


def test_the_upper_end_is_exact_where_the_order_says_nothing() -> None:
    """Draw which of a hundred are measured, whatever they are worth: of the rest no more win than is said."""
    rng = np.random.default_rng(0)
    for winners in (1, 4, 20):
        held = 0
        for _ in range(400):
            wins = rng.permutation(100) < winners
            policy = Risk()
            for each in wins[:30]:
                policy.observe_trusted(0.0, 1.0 if each else 0.0)
            held += wins[30:].sum() <= policy.missed(70)["most"]
        assert held >= 0.96 * 400
