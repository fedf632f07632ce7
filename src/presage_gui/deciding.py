"""Gates: decide from the critic's verdict whether to trust a step, send it back for revision, or ask a person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from presage import PresageError
from presage_gui.critic import Verdict
from presage_gui.episode import Choice


@dataclass(frozen=True)
class Decided:
    """A choice, and its reason as a sentence for people."""

    choice: Choice
    reason: str


class Gate(ABC):
    """Decides on one step at a time. A gate may learn from the outcomes of the steps that it trusted."""

    @abstractmethod
    def decide(self, verdict: Verdict) -> Decided:
        """Return the decision on a step with this verdict."""

    def observe(self, verdict: Verdict, good: bool) -> None:  # noqa: B027  most gates do not learn
        """Learn whether a step with this verdict was good."""


class Threshold(Gate):
    """Trusts a step whose probability is at least `least`. An irreversible step needs `strict`, or a person decides."""

    def __init__(self, least: float = 0.5, strict: float = 0.8) -> None:
        if not 0 <= least <= strict <= 1:
            raise PresageError(f"thresholds rise from 0 to 1: least {least:g}, strict {strict:g}")
        self.least, self.strict = least, strict

    def decide(self, verdict: Verdict) -> Decided:
        if verdict.failed:
            return Decided(Choice.ASK, "the critic could not judge it, so a person decides")
        if verdict.irreversible and (verdict.abstains or verdict.probability < self.strict):
            return Decided(Choice.ASK, "it cannot be undone, and the critic is not sure enough")
        if verdict.abstains:
            return Decided(Choice.TRUST, "the critic cannot judge it")
        if verdict.probability >= self.least:
            return Decided(Choice.TRUST, f"right with probability {verdict.probability:.2f}")
        return Decided(Choice.REVISE, f"right with probability {verdict.probability:.2f} only")


class Pass(Gate):
    """Trusts every step, as an agent without a critic does."""

    def decide(self, verdict: Verdict) -> Decided:
        return Decided(Choice.TRUST, "everything passes")
