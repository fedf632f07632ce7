"""The base class Policy. A policy decides, for each candidate, whether to trust its forecast or to measure it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from presage.core.forecast import Forecast


class Action(StrEnum):
    TRUST = "trust"
    """Believe the forecast and do not measure the kernel."""
    MEASURE = "measure"
    AUDIT = "audit"
    """Measure although the forecast would have been trusted, to check the policy's trust."""


@dataclass(frozen=True)
class Decision:
    """What to do with one candidate, and why."""

    action: Action
    reason: str
    """One sentence for the user."""
    chance: float = 0.0
    """The probability with which the candidate would have been trusted. 0 if the policy does not decide at random."""


NO_FORECAST = Decision(Action.MEASURE, "there is no forecast, so it is measured")


@dataclass(frozen=True)
class Standing:
    """The progress of a search at the time of a decision."""

    best: float
    """log2 S of the best kernel measured so far; 0 while the anchor is the best."""
    measured: int
    """The number of measurements made so far."""
    left: int | None
    """The number of measurements that may still be made; None without a limit."""


class Policy(ABC):
    """Decides on batches of candidates, and learns from the measurements.

    The name of a policy on the command line is the name of its entry point. When a run resumes, the policy is rebuilt:
    the search makes the same `observe` calls in the same order. A policy must therefore take all randomness from `rng`.
    """

    least = 1
    """The number of candidates that `decide` needs at a time, at least."""
    alpha: float | None = None
    """The accepted probability that a search leaves a winner behind; None if the policy makes no such promise."""
    delta = 0.0
    """A winner is faster than the best kernel by more than this share (0.05 for 5 %)."""

    @abstractmethod
    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        """Decide on a batch of candidates.

        forecasts: one per candidate; None for a candidate without a forecast, which should be measured.
        standing: the progress of the search.
        rng: the only source of randomness.

        Returns one Decision per forecast, in their order."""

    def observe(  # noqa: B027  most policies do not learn
        self, forecast: Forecast | None, decision: Decision, standing: Standing, log2_S: float | None
    ) -> None:
        """Learn the result of a candidate that was measured or audited.

        decision, standing: the decision on this candidate, and the standing in which it was made.
        log2_S: the measured log2 S; None for a kernel that failed."""

    def observe_trusted(self, best: float, log2_S: float | None) -> None:  # noqa: B027  most policies do not learn
        """Learn the result of a candidate that was trusted and has been measured after all.

        best: log2 S of the best kernel when the candidate was trusted.
        log2_S: the measured log2 S; None for a kernel that failed."""

    def missed(self, unmeasured: int) -> dict[str, float] | None:
        """Estimate the share of all winners so far that were trusted and have not been measured.

        unmeasured: the number of candidates that were trusted and have not been measured.

        Returns the share as `rate` with its 95 % interval `low` and `high`, and the number of such winners: `likely`
        is the estimate and `most` the upper limit. Returns None if the policy does not track this."""
        return None
