"""What a search may spend, and that it never spends more."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from searching import MakeParts, finish, of_kind

from presage import (
    Effort,
    Ground,
    Kernel,
    Measurement,
    Node,
    PresageError,
    Problem,
    Proposer,
    Recording,
    StaticReport,
    Strategy,
)
from presage.devices.base import Progress
from presage.devices.recorded import RecordedDevice
from presage.llm.cost import Cost
from presage.searches import measuring, spending
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.store import store as store_module
from presage.store.store import Store


@pytest.mark.parametrize("budget", [2, 3, 7, 8, 9, 17, 33])
def test_measurements_are_spent_and_never_exceeded(folder: Path, make_parts: MakeParts, budget: int) -> None:
    search = finish(folder, make_parts(), Budget(budget), batch=5)
    assert search.state.spent.measurements == budget
    with Store(folder) as store:
        assert len(list(store.measured())) == budget


class Clock:
    """A time that passes only when somebody says so."""

    def __init__(self) -> None:
        self.now = 1e9

    def time(self) -> float:
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (spending, measuring, store_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.mark.parametrize("limit", ["device_seconds", "wall_seconds"])
@pytest.mark.parametrize("seconds", [40.0, 95.0, 300.0])
def test_time_is_never_exceeded(
    folder: Path, make_parts: MakeParts, toy: Recording, clock: Clock, limit: str, seconds: float
) -> None:
    timeouts = []

    class Slow(RecordedDevice):
        def measure(
            self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
        ) -> list[Measurement]:
            clock.now += 7.0 * len(kernels)
            timeouts.append(effort.timeout * effort.processes * len(kernels))
            return super().measure(problem, kernels, effort, progress)

    budget = Budget(None, **{limit: seconds})
    start = clock.now
    search = finish(folder, make_parts(device=Slow(toy)), budget)
    assert seconds - 14 <= clock.now - start <= seconds
    assert getattr(search.session.spending.spent(), limit) == clock.now - start
    assert all(timeout <= seconds for timeout in timeouts)
    assert bool(of_kind(folder, "finals")) == (seconds > 56)  # the anchor and one more fit into a quarter
    assert search.state.finished
    assert search.state.finished["why"].startswith(f"the budget of {seconds:g} seconds")


def test_compiling_ends_with_the_time(
    folder: Path, make_parts: MakeParts, knowing: Any, toy: Recording, clock: Clock
) -> None:
    compiled: list[int] = []

    class Compiling(RecordedDevice):
        def reports(
            self, problem: Problem, kernels: Sequence[Kernel], seconds: float = 60.0
        ) -> list[tuple[StaticReport, ...]]:
            compiled.append(len(kernels))
            clock.now += min(7.0, seconds) * len(kernels)
            assert seconds <= 60
            return [()] * len(kernels)

    start = clock.now
    search = finish(folder, make_parts(knowing(), device=Compiling(toy)), Budget(None, wall_seconds=30.0), batch=60)
    assert clock.now - start <= 30 + 7 * max(compiled[1:])
    assert sum(compiled) < 60
    assert search.state.finished
    assert search.state.finished["why"] == "the budget of 30 seconds is spent"


def test_the_time_before_the_first_event_counts(folder: Path, make_parts: MakeParts, clock: Clock) -> None:
    with Store(folder) as store:
        assert Search(store, make_parts(), Budget(8), 4, getting_ready=3.0).session.spending.spent().wall_seconds == 3.0


@pytest.mark.parametrize("forecast", [True, False])
def test_a_strategy_that_names_no_parents_ends_the_search(
    folder: Path, make_parts: MakeParts, knowing: Any, forecast: bool
) -> None:
    class Silent(Strategy):
        def ask(self, count: int, rng: random.Random) -> Sequence[int]:
            return [] if self.told > 1 else [0] * count

        def tell(self, node: Node) -> None:
            self.told = getattr(self, "told", 0) + 1

    parts = replace(make_parts(knowing() if forecast else None), strategy=Silent())
    search = finish(folder, parts, Budget(64), batch=4)
    assert search.state.finished
    assert search.state.finished["why"] == "the strategy named no kernel to go on from"
    assert search.state.spent.measurements > 2, "what was undecided is still decided on, and there are finals"


@pytest.mark.parametrize("who", ["proposer", "forecaster"])
def test_nobody_is_waited_for_beyond_the_time(
    folder: Path, make_parts: MakeParts, knowing: Any, draws: Any, clock: Clock, who: str
) -> None:
    """Such as a language model that takes its time: the finalists still have theirs."""

    class Slow(Proposer):
        def __init__(self, ground: Ground) -> None:
            super().__init__(ground)
            self._inner = draws(ground)

        def propose(self, *asked: Any) -> Any:
            clock.now += min(500.0, self.seconds) if who == "proposer" else 0
            return self._inner.propose(*asked)

    class Pondering(knowing):  # type: ignore[misc]
        def forecast(self, *asked: Any) -> Any:
            clock.now += min(500.0, self.seconds) if who == "forecaster" else 0
            return super().forecast(*asked)

    start = clock.now
    search = finish(folder, make_parts(Pondering(), proposer=Slow), Budget(None, wall_seconds=800.0))
    assert 500 < clock.now - start <= 800
    assert search.state.finished


def test_the_time_of_killed_processes_counts(folder: Path, make_parts: MakeParts, clock: Clock) -> None:
    with Store(folder) as store:
        Search(store, make_parts(), Budget(8), 4)
        clock.now += 5.0
        store.append("begun", {"configuration": {}})
        clock.now += 100.0  # nobody worked on it
    with Store(folder) as store:
        store.last_alive = 0.0
        spent = Search(store, make_parts(), Budget(8), 4).session.spending.spent
        assert spent().wall_seconds == 5.0
        clock.now += 2.0
        assert spent().wall_seconds == 7.0
        last_alive = clock.now + 1.0
    with Store(folder) as store:
        store.last_alive = last_alive  # it lived for a while after its last event
        assert Search(store, make_parts(), Budget(8), 4).session.spending.spent().wall_seconds == 8.0


@pytest.mark.parametrize(("limit", "cost"), [("tokens", Cost(30, 0.0)), ("dollars", Cost(1, 30.0))])
def test_language_models_are_not_asked_beyond_the_budget(
    folder: Path, make_parts: MakeParts, draws: Any, knowing: Any, limit: str, cost: Cost
) -> None:
    parts = make_parts(knowing(cost=cost), "topk", proposer=lambda ground: draws(ground, cost))
    search = finish(folder, parts, Budget(64, **{limit: 200}), batch=4)
    assert getattr(search.state.spent, limit) == 180
    assert search.state.finished
    assert search.state.finished["why"] == f"the budget of 200 {limit} is spent"


def test_what_was_proposed_is_still_measured_when_the_tokens_are_spent(
    folder: Path, make_parts: MakeParts, draws: Any
) -> None:
    parts = make_parts(proposer=lambda ground: draws(ground, Cost(30)))
    search = finish(folder, parts, Budget(64, tokens=45), batch=4)
    assert search.state.spent.tokens == 30
    assert len(of_kind(folder, "measured")) == 5


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"measurements": 1}, "2 measurements or more"),
        ({"measurements": 0}, "must be a positive number, not 0"),
        ({"tokens": -1}, "the budget of tokens must be a positive number, not -1"),
        ({"measurements": None, "tokens": 5}, "a search needs an end"),
        ({"wall_seconds": math.nan}, "the budget of seconds must be a positive number, not nan"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(limits: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        Budget(**limits)
