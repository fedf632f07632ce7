"""Listeners: pass the events of a run on to the strategy, the policy and the forecaster. They get the events in order,
while the run works and again when another process resumes it."""

from __future__ import annotations

from dataclasses import dataclass

from presage.core.forecast import Forecast
from presage.forecasters.base import Forecaster
from presage.policies.base import Policy
from presage.searches.base import Strategy
from presage.searches.state import FAULT, State, Waiting
from presage.store.store import Event


@dataclass(frozen=True)
class Listeners:
    """The parts that learn. What each is told follows from the event and the state, so the state does not depend on
    them."""

    strategy: Strategy
    policy: Policy
    forecaster: Forecaster | None = None

    def apply(self, event: Event, state: State) -> None:
        """Apply an event to the state, and tell the listeners what changed."""
        if event.kind == "measured":
            self._measured(event, state)
        elif event.kind == "decided":
            known = len(state.hashes)
            state.apply(event)
            for id in range(known, len(state.hashes)):  # kernels whose forecasts were trusted are new in the archive
                self.strategy.tell(state.node(id))
        else:
            state.apply(event)

    def replay(self, event: Event, state: State) -> None:
        """As `apply`, for an event of an earlier process. The strategy is also told which parents it chose, and the
        forecaster what it had learned."""
        if event.kind == "asked":
            self.strategy.visited(event.payload["parents"])
        elif event.kind == "forecast" and self.forecaster and "memory" in event.payload:
            self.forecaster.remember(event.payload["memory"])
        self.apply(event, state)

    def _measured(self, event: Event, state: State) -> None:
        told, known = event.payload, len(state.hashes)
        waited = state.waiting.get(told["kernel"])
        state.apply(event)
        if waited and told["status"] != FAULT:
            self._observe(waited, state, told["value"])
        if len(state.hashes) > known:
            self.strategy.tell(state.node(known))
        elif waited and waited.node is not None and told["value"] is not None:
            self.strategy.tell(state.node(waited.node))

    def _observe(self, waited: Waiting, state: State, value: float | None) -> None:
        """Tell the policy the result of a kernel that it decided on."""
        if waited.decision and waited.standing:
            forecast = Forecast.from_json(waited.forecast) if waited.forecast else None
            self.policy.observe(forecast, waited.decision, waited.standing, value)
        elif waited.node is not None:
            self.policy.observe_trusted(state.bars[waited.node], value)
