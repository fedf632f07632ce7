"""Spending: what a run has spent of its budget up to now, and what it may still spend."""

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
    """Combines the amounts in the state, which are as of the last event, with the wall time up to now."""

    budget: Budget
    state: State
    under_way: Mapping[str, float] = field(default_factory=dict)
    """The kernels that a pool is measuring: the most seconds that each may take, by hash."""

    def spent(self) -> Amounts:
        """The amounts spent up to now."""
        lived = self.state.spent.wall_seconds + time.time() - self.state.session_start
        return replace(self.state.spent, wall_seconds=lived)

    def measurements_left(self) -> int | None:
        """How many measurements may still be started, not counting those reserved for the finals; None without a
        limit."""
        if self.budget.measurements is None:
            return None
        begun = self.state.spent.measurements + len(self.under_way)
        return max(0, self.budget.measurements - self.budget.reserve - begun)

    def seconds_left(self) -> float:
        """The seconds for which the device may still be used."""
        spent = self.spent()
        return min(self.budget.left(name, spent) for name in _SECONDS)

    def wall_left(self) -> float:
        """The seconds that the search may still spend waiting, such as for a language model or a pool, and leave enough
        time to measure the finalists."""
        spent = self.spent()
        mean = spent.device_seconds / spent.measurements
        return self.budget.left("wall_seconds", spent) - self.budget.reserved_seconds("wall_seconds", mean)

    def out_of_time(self) -> str | None:
        """The limit in seconds that does not cover another measurement, in words; None if all limits do."""
        spent = self.spent()
        mean = spent.device_seconds / spent.measurements
        for name in _SECONDS:
            left = self.budget.left(name, spent)
            if left <= 0 or left < mean + self.budget.reserved_seconds(name, mean):
                return self.budget.describe(name)
        return None

    def out_of_models(self) -> str:
        """The limit on tokens or dollars that is spent, or nearest to being spent, in words."""
        spent = self.spent()
        return self.budget.describe(min(_MODELS, key=lambda name: self.budget.left(name, spent)))

    def can_pay(self, question: str, asker: Proposer | Forecaster) -> bool:
        """Whether the budget may cover another question. `question` is the kind of event, `asker` the part that asks.
        A paid part checks each of its requests itself. Any other part is assumed to cost as much as its most expensive
        answer so far."""
        if question in self.state.short:
            return False
        dearest, spent = self.state.dearest.get(question, Amounts()), self.spent()
        if asker.is_paid:
            dearest = Amounts()
        left = {name: self.budget.left(name, spent) for name in _MODELS}
        return all(amount > 0 and amount >= getattr(dearest, name) for name, amount in left.items())

    def allowance(self, asking: Callable[[int, float], None]) -> Allowance:
        """What is left for language models. `asking` is called before each request with the most tokens and dollars
        that all requests may have cost so far."""
        spent = self.spent()
        tokens, dollars = (self.budget.left(name, spent) for name in _MODELS)
        return Allowance(tokens, dollars, asking)
