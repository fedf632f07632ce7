"""The `blend` critic: pools the verdicts of several critics, and learns from outcomes how much to weight each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from presage import PresageError
from presage.core.recalibration import from_log_odds, log_odds
from presage_gui.critic import Critic, Verdict
from presage_gui.history import History
from presage_gui.reading import Reader
from presage_gui.screen import Screen
from presage_gui.step import Step

MEMBERS = ("pixels", "vlm")
_DOUBT = 0.02
"""This share of every likelihood is that of a fair coin, so that one wrong verdict cannot reduce a weight to zero."""
_FORGET = 0.02
"""After each outcome the weights move by this share towards equal weights."""


class Blend(Critic):
    """The weighted mean of the members' log-odds. Members that abstain or fail are left out of the mean. A failed
    member makes the blend fail only if no other member can judge, or if the step is irreversible."""

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Any]) -> Blend:
        """Make the blend of the critics in `blend:A,B`, or of the default `MEMBERS`. `get` makes a critic by name."""
        return cls({name: get(name) for name in (text.split(",") if text else MEMBERS)})

    def __init__(self, members: dict[str, Critic]) -> None:
        if len(members) < 2:
            raise PresageError("a blend needs two or more critics; write --critic blend:pixels,vlm")
        self._members = members
        self._weights = np.full(len(members), 1 / len(members))

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member when all of them judge."""
        return dict(zip(self._members, self._weights.tolist(), strict=True))

    @property
    def reader(self) -> Reader | None:
        return next((member.reader for member in self._members.values() if member.reader), None)

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        said = [member.check(goal, history, screen, step) for member in self._members.values()]
        irreversible = any(verdict.irreversible for verdict in said)
        words = {f"said_{name}": verdict.probability for name, verdict in zip(self._members, said, strict=True)}
        able = [i for i, verdict in enumerate(said) if not (verdict.abstains or verdict.failed)]
        failed = any(verdict.failed for verdict in said)
        if not able:
            why = "; ".join(verdict.explanation for verdict in said if verdict.explanation)
            return Verdict(0.5, None, why, abstains=True, irreversible=irreversible, failed=failed, evidence=words)
        shares = self._weights[able] / self._weights[able].sum()
        probability = float(from_log_odds(shares @ log_odds([said[i].probability for i in able])))
        nearest = min((said[i] for i in able), key=lambda verdict: abs(verdict.probability - probability))
        fix = next((verdict.fix for verdict in said if verdict.fix), None)
        doubted = probability < 0.5
        counted = {f"weight_{list(self._members)[i]}": float(share) for i, share in zip(able, shares, strict=True)}
        return replace(
            nearest,
            probability=probability,
            error=nearest.error if doubted else None,
            explanation=nearest.explanation if doubted else "",
            fix=fix if doubted else None,
            irreversible=irreversible,
            failed=failed and irreversible,
            evidence=words | counted,
        )

    def observe(self, verdict: Verdict, good: bool) -> None:
        """Multiply each member's weight by the probability that it gave to the outcome."""
        for i, name in enumerate(self._members):
            if f"weight_{name}" in verdict.evidence:
                said = verdict.evidence[f"said_{name}"] if good else 1 - verdict.evidence[f"said_{name}"]
                self._weights[i] *= (1 - _DOUBT) * said + _DOUBT / 2
        self._weights /= self._weights.sum()
        self._weights = (1 - _FORGET) * self._weights + _FORGET / len(self._weights)

    def close(self) -> None:
        for member in self._members.values():
            member.close()
