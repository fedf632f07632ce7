"""The `Guard` gate: lets through at most a given share of the bad steps that agents propose.

The guarantee comes from presage's `risk` policy. A bad step takes the role of a winner in a search: the policy must
not skip it. The policy trusts a verdict if bad steps have ranked lower so far, and learns from every outcome.
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
"""The values of a bad and a good step on the policy's scale. The policy must not skip values above 0."""
_STRICTER = 4.0
"""The permitted share of bad steps is this many times smaller for irreversible steps."""
_AUDIT = 0.02
CALIBRATION = Path(__file__).parent / "critics" / "models" / "calibration.json"
"""Pairs of the `pixels` critic's probability and whether the step was right, on tasks that its weights had not seen."""


class Guard(Gate):
    """Passes at most the share `alpha` of bad steps. It trusts no step before it knows verdicts with their outcomes;
    `calibration` supplies them as (probability, good), by default those of the `pixels` critic."""

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
    """Return the forecast on the policy's scale, where a step is bad above 0. `probability`: that the step is right."""
    return Forecast((-1.0, 0.0, 0.5, 1.0), (0.0, probability, probability, 1.0))


def _tell(policy: Risk, forecast: Forecast, decision: Decision, good: bool) -> None:
    policy.observe(forecast, decision, _STANDING, _GOOD if good else _BAD)


@cache
def _shipped() -> tuple[tuple[float, bool], ...]:
    return tuple((float(said), bool(good)) for said, good in json.loads(CALIBRATION.read_text()))
