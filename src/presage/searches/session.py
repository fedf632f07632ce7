"""Session: a run that is open in this process, with everything that its stages share. Opening it replays the stored
events."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from presage.core.errors import PresageError
from presage.devices.base import Device
from presage.devices.emulation.rehearser import Rehearser
from presage.forecasters.base import Candidate, Forecaster
from presage.kernels.kernel import Kernel
from presage.llm.cost import Allowance
from presage.policies.base import Policy
from presage.problems.base import Problem
from presage.proposers.base import Ground, Proposer
from presage.searches.acquisition import ExpectedImprovement
from presage.searches.base import Acquisition, Strategy
from presage.searches.briefing import Briefing
from presage.searches.budget import Budget
from presage.searches.listeners import Listeners
from presage.searches.spending import Spending
from presage.searches.state import State
from presage.store.store import Event, Store

Watch = Callable[[Event, State], None]
"""Called after each event, with the event and the state."""


@dataclass(frozen=True)
class Parts:
    """The parts of a search."""

    problem: Problem
    device: Device
    anchor: Kernel
    proposer: Callable[[Ground], Proposer]
    """A function that makes the proposer. Called once the anchor has been measured."""
    strategy: Strategy
    policy: Policy
    forecaster: Forecaster | None = None
    """None: there are no forecasts, so everything is measured."""
    acquisition: Acquisition = ExpectedImprovement()  # noqa: RUF009  it has no state
    rehearser: Rehearser | None = None
    """Runs candidates on the CPU before they are measured; None: no rehearsal."""
    seconds: float | None = None
    """The longest time to time one case of a kernel, in seconds, if the user sets it."""


class Session:
    """The store, the state of its events, and the listeners."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        budget: Budget,
        seed: int = 0,
        watch: Watch | None = None,
        getting_ready: float = 0.0,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        """getting_ready: the seconds that this process has already spent on the run; they count as wall time.
        limits: the limits that are larger than before, by name.

        Raises PresageError if the run was begun on other hardware."""
        self.store, self.parts, self.budget, self.seed, self._watch = store, parts, budget, seed, watch
        self.state = State()
        self.under_way: dict[str, float] = {}
        """The kernels that a pool is measuring: the most seconds that each may take, by hash."""
        self.spending = Spending(budget, self.state, self.under_way)
        self.briefing = Briefing(store, self.state, parts.problem, parts.device)
        self.fresh: dict[str, Kernel] = {}
        """Kernels that this process has proposed and not yet forecast, by hash; a cache for the store."""
        self.view: dict[str, Candidate] = {}
        """All undecided candidates, by hash, if the forecaster sees all of them."""
        self._listeners = Listeners(parts.strategy, parts.policy, parts.forecaster)
        self._resume(getting_ready, limits or {})

    def _resume(self, getting_ready: float, limits: Mapping[str, Any]) -> None:
        state = self.state
        with _no_collecting():
            for event in self.store.events():
                self._listeners.replay(event, state)
        self._refuse_other_hardware()
        self.parts.device.resume(self.store.measured())
        if not state.finished or limits:
            lived = state.spent.wall_seconds + getting_ready
            if state.session_start and not state.finished:
                lived += max(0.0, max(state.last_time, self.store.last_alive) - state.session_start)
            told = {"pid": os.getpid(), "lived": lived, "notes": self._doubts()}
            told |= {"model": self.parts.device.model} if self.parts.device.model else {}
            self.append("session", told | ({"limits": dict(limits)} if limits else {}))

    def _refuse_other_hardware(self) -> None:
        """Raise PresageError if the run was begun on other hardware, whose times are not comparable."""
        was, now = self.state.model, self.parts.device.model
        if was and now and was != now:
            raise PresageError(
                f"this run was begun on {was}, and {self.parts.device.name} is {now} here; speedups over an anchor that"
                " was measured elsewhere mean nothing: go on there, or name another folder with --run"
            )

    def _doubts(self) -> list[str]:
        """Notes for the user before anything is measured."""
        device, parts = self.parts.device, self.parts
        notes = [*device.notes, *parts.problem.notes.values()]
        if device.kind != "gpu" or device.hardware or not parts.forecaster or not parts.problem.inputs:
            return notes
        return [*notes, f"nothing is known of the GPU of {device.name}: forecasts do without its peaks and its limits"]

    def append(self, kind: str, payload: Mapping[str, Any], **kept: Any) -> None:
        """Store an event, apply it, and call the watch."""
        event = self.store.append(kind, payload, **kept)
        self._listeners.apply(event, self.state)
        if self._watch:
            self._watch(event, self.state)

    def chance(self, step: int, stage: str) -> random.Random:
        """The random generator of a stage of a step."""
        return random.Random(f"{self.seed}/{step}/{stage}")

    @cached_property
    def proposer(self) -> Proposer:
        return self.parts.proposer(Ground(self.parts.problem, self.parts.device, self.briefing.anchor))

    def close(self) -> None:
        """Close what the session made for itself: its proposer."""
        if "proposer" in self.__dict__:
            self.proposer.close()

    def can_propose(self) -> bool:
        return self.spending.can_pay("proposed", self.proposer)

    def allowance(self) -> Allowance:
        """What is left for language models. The most that the requests may cost is stored before each request, so that
        a resumed run counts them after a kill."""
        return self.spending.allowance(lambda t, d: self.append("asking", {"tokens": t, "dollars": d}))


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Switch the garbage collector off while events are replayed. Replaying makes no reference cycles, and the
    collector would take a third of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
