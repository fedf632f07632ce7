"""Guard: a gate with a promise. Of the bad steps that agents propose, at most a share is let through.

The engine's `risk` policy keeps it. A bad step is to it what a winner is in a search: what must not be passed over
unseen. It trusts where bad steps have ranked lower so far, and learns from every outcome that comes back.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

from presage import Forecast, PresageError, Standing
from presage.policies.base import Action as Verb
from presage.policies.base import Decision
from presage.policies.risk import Risk
from presage_gui.critic import Verdict
from presage_gui.deciding import Decided, Gate
from presage_gui.episode import Choice

_STANDING = Standing(best=0.0, measured=0, left=None)
_BAD, _GOOD = 1.0, -1.0
"""What a bad and a good step are on the policy's scale, where more than 0 is what must be seen."""
_STRICTER = 4.0
"""Of irreversible steps so many times fewer bad ones may pass."""
_AUDIT = 0.02
CALIBRATION = Path(__file__).parent / "critics" / "models" / "calibration.json"
"""What the pixels critic said of steps in tasks that its weights had not seen, and whether they were right."""


class Guard(Gate):
    """`alpha`: the share of bad steps that may pass. Before it trusts anything it must know verdicts with their
    outcomes; `calibration` gives it some, by default those of the `pixels` critic."""

    def __init__(self, alpha: float = 0.1, calibration: list[tuple[float, bool]] | None = None, seed: int = 0) -> None:
        if not 0 < alpha < 1:
            raise PresageError(f"the share of bad steps that may pass lies between 0 and 1, not {alpha:g}")
        self._usual = Risk(alpha=alpha, audit=_AUDIT, near=0)
        self._strict = Risk(alpha=alpha / _STRICTER, audit=_AUDIT, near=0)
        self._rng = random.Random(seed)
        for probability, good in _shipped() if calibration is None else calibration:
            for policy in (self._usual, self._strict):
                _tell(policy, _forecast(probability), Decision(Verb.MEASURE, ""), good)

    def decide(self, verdict: Verdict) -> Decided:
        if verdict.failed:
            return Decided(Choice.ASK, "the critic could not judge it, so a person decides")
        if verdict.abstains:
            sure = Choice.ASK if verdict.irreversible else Choice.TRUST
            return Decided(sure, "the critic cannot judge it")
        policy = self._strict if verdict.irreversible else self._usual
        decision = policy.decide([_forecast(verdict.probability)], _STANDING, self._rng)[0]
        if decision.action is Verb.TRUST:
            return Decided(Choice.TRUST, f"right with probability {verdict.probability:.2f}; bad steps rank lower")
        if decision.action is Verb.AUDIT:
            return Decided(Choice.ASK, "it would pass, and a person looks at a few of those")
        if verdict.irreversible or verdict.probability >= 0.5:
            return Decided(Choice.ASK, f"right with probability {verdict.probability:.2f}, which is not enough to pass")
        return Decided(Choice.REVISE, f"right with probability {verdict.probability:.2f} only")

    def observe(self, verdict: Verdict, good: bool) -> None:
        if not (verdict.failed or verdict.abstains):
            policy = self._strict if verdict.irreversible else self._usual
            _tell(policy, _forecast(verdict.probability), Decision(Verb.MEASURE, ""), good)


def _forecast(probability: float) -> Forecast:
    """On the policy's scale: above 0 with the probability that the step is bad."""
    return Forecast((-1.0, 0.0, 0.5, 1.0), (0.0, probability, probability, 1.0))


def _tell(policy: Risk, forecast: Forecast, decision: Decision, good: bool) -> None:
    policy.observe(forecast, decision, _STANDING, _GOOD if good else _BAD)


@cache
def _shipped() -> tuple[tuple[float, bool], ...]:
    return tuple((float(said), bool(good)) for said, good in json.loads(CALIBRATION.read_text()))
