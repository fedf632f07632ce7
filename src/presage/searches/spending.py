"""Spending: what a run has spent of its budget until this moment, and what may still be spent on what."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from presage.forecasters.base import Forecaster
from presage.llm.cost import Allowance
from presage.proposers.base import Proposer
from presage.searches.budget import Amounts, Budget
from presage.searches.state import State

_SECONDS = ("device_seconds", "wall_seconds")
_MODELS = ("tokens", "dollars")


@dataclass(frozen=True)
class Spending:
    """The state holds what was spent at its last event; wall time is counted up to now."""

    budget: Budget
    state: State
    under_way: Mapping[str, float] = field(default_factory=dict)
    """What a pool is measuring: the most seconds that each kernel may take, by hash."""

    def spent(self) -> Amounts:
        """What has been spent until now."""
        lived = self.state.spent.wall_seconds + time.time() - self.state.session_start
        return replace(self.state.spent, wall_seconds=lived)

    def measurements_left(self) -> int | None:
        """How many measurements may still be begun before the finalists'; None without a limit."""
        if self.budget.measurements is None:
            return None
        begun = self.state.spent.measurements + len(self.under_way)
        return max(0, self.budget.measurements - self.budget.reserve - begun)

    def seconds_left(self) -> float:
        """How long the device may still be kept."""
        spent = self.spent()
        return min(self.budget.left(name, spent) for name in _SECONDS)

    def wall_left(self) -> float:
        """How long others may be waited for, so that the finalists can still be measured."""
        spent = self.spent()
        mean = spent.device_seconds / spent.measurements
        return self.budget.left("wall_seconds", spent) - self.budget.reserved_seconds("wall_seconds", mean)

    def out_of_time(self) -> str | None:
        """Which limit in seconds does not cover another measurement, in words; None where all do."""
        spent = self.spent()
        mean = spent.device_seconds / spent.measurements
        for name in _SECONDS:
            left = self.budget.left(name, spent)
            if left <= 0 or left < mean + self.budget.reserved_seconds(name, mean):
                return self.budget.describe(name)
        return None

    def out_of_models(self) -> str:
        """Which limit on language models is spent, or nearest to that, in words."""
        spent = self.spent()
        return self.budget.describe(min(_MODELS, key=lambda name: self.budget.left(name, spent)))

    def can_pay(self, question: str, asker: Proposer | Forecaster) -> bool:
        """Whether what is left may cover a question. A part that is paid checks each of its requests itself; any other
        is taken to cost as much as its dearest answer so far."""
        if question in self.state.short:
            return False
        dearest, spent = self.state.dearest.get(question, Amounts()), self.spent()
        if asker.is_paid:
            dearest = Amounts()
        left = {name: self.budget.left(name, spent) for name in _MODELS}
        return all(amount > 0 and amount >= getattr(dearest, name) for name, amount in left.items())

    def allowance(self, asking: Callable[[int, float], None]) -> Allowance:
        """What is left for language models; `asking` is called before each request with the most that all of them may
        have cost so far."""
        spent = self.spent()
        tokens, dollars = (self.budget.left(name, spent) for name in _MODELS)
        return Allowance(tokens, dollars, asking)
