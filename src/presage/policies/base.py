"""Policy: the small base class. Decides, per candidate, whether a forecast is trusted or the device is asked."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from presage.core.forecast import Forecast


class Action(StrEnum):
    TRUST = "trust"
    """Believe the forecast; the device is not asked."""
    MEASURE = "measure"
    AUDIT = "audit"
    """Measure although the forecast would have been trusted, to keep the policy honest."""


@dataclass(frozen=True)
class Decision:
    """What to do with one candidate, and why, in a sentence for people."""

    action: Action
    reason: str
    chance: float = 0.0
    """The probability with which it would have been trusted, of a policy that draws."""


NO_FORECAST = Decision(Action.MEASURE, "there is no forecast, so it is measured")


@dataclass(frozen=True)
class Standing:
    """Where a search stands when it decides."""

    best: float
    """log2 S of the best kernel measured so far; 0 while that is the anchor."""
    measured: int
    """How many measurements have been made."""
    left: int | None
    """How many may still be made; None without a limit."""


class Policy(ABC):
    """Decides on batches of candidates, and learns from what is measured.

    Its name on the command line is its entry point's. A policy is rebuilt on resuming by telling it the same things in
    the same order, so all chance comes from `rng`.
    """

    least = 1
    """How many candidates it needs to see at a time."""
    alpha: float | None = None
    """With what chance a search may leave a winner behind; None where the policy promises nothing of that."""
    delta = 0.0
    """A winner is faster than the best by more than this share."""

    @abstractmethod
    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        """One decision per forecast, in their order. Where there is no forecast, measure."""

    def observe(  # noqa: B027  most policies do not learn
        self, forecast: Forecast | None, decision: Decision, standing: Standing, log2_S: float | None
    ) -> None:
        """What came of a candidate that was measured or audited: log2 S, or None for one that failed. `standing` is the
        one in which it was decided on."""

    def observe_trusted(self, best: float, log2_S: float | None) -> None:  # noqa: B027  most policies do not learn
        """What came of a candidate that was trusted when the best had this log2 S, and was measured after all."""

    def missed(self, unmeasured: int) -> dict[str, float] | None:
        """Of all winners so far, the share that was trusted and is not measured to this day: `rate`, and its 95 %
        interval, `low` and `high`; `likely` and `most`: how many these are, and can be. `unmeasured`: how many
        candidates were trusted and are not measured. None where a policy does not watch it."""
        return None
