"""A search on several devices at once: they are kept busy, budgets hold, and what is lost is measured elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presage import Candidate, Effort, Kernel, Measured, PresageError, Problem, Recording, Status, Task
from presage.devices.pool import LOSSES, Outcome, Pool
from presage.devices.recorded import RecordedDevice
from presage.forecasters.surrogate import SurrogateForecaster
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.store.store import Event, Store

MakeParts = Callable[..., Parts]


class Several(Pool, RecordedDevice):
    """A recorded device that answers out of order, each time for the seconds that it says, and loses what it is told to
    lose."""

    def __init__(self, recording: Recording, lanes: int, seed: int = 0, seconds: float = 1.0) -> None:
        super().__init__(recording)
        self._lanes, self._rng, self._seconds = lanes, random.Random(seed), seconds
        self.under_way: list[tuple[Problem, Kernel, Effort]] = []
        self.most = 0
        self.begun: Counter[str] = Counter()
        self.losing: Callable[[Kernel], bool] = lambda kernel: False
        self.is_silent = False

    @property
    def lanes(self) -> int:
        return self._lanes

    def submit(self, problem: Problem, kernel: Kernel, effort: Effort, foreign: bool = True, losses: int = 0) -> None:
        assert kernel.hash not in [each.hash for _, each, _ in self.under_way]
        self.under_way.append((problem, kernel, effort))
        self.begun[kernel.hash] += 1
        self.most = max(self.most, len(self.under_way))

    def collect(self, seconds: float = 1e9) -> Outcome | None:
        assert self.under_way
        if seconds == 0 or self.is_silent:  # a result comes when it is waited for
            return None
        problem, kernel, effort = self.under_way.pop(self._rng.randrange(len(self.under_way)))
        took = min(self._seconds, effort.timeout)
        if self.losing(kernel):
            return Outcome(problem, kernel, None, took, "the host has gone")
        (measurement,) = self.measure(problem, [kernel], effort, lambda doing, share: None)
        return Outcome(problem, kernel, measurement, took)

    def cancel(self) -> list[Outcome]:
        given_up = [Outcome(problem, kernel, None, 0.5) for problem, kernel, _ in self.under_way]
        self.under_way.clear()
        return given_up


@pytest.fixture
def several(device: RecordedDevice) -> Callable[..., Several]:
    def make(lanes: int = 8, **settings: Any) -> Several:
        made = Several(device.recording, lanes, **settings)
        made._rows = device._rows
        return made

    return make


def finish(folder: Path, parts: Parts, budget: Budget, watch: Any = None, batch: int = 8) -> Search:
    with Store(folder) as store:
        search = Search(store, parts, budget, batch, watch=watch)
        search.run()
        return search


def measured(folder: Path) -> list[str]:
    with Store(folder, writes=False) as store:
        return [event.payload["kernel"] for event in store.events("measured")]


@pytest.mark.parametrize("forecaster", [None, "knowing", "surrogate"])
def test_all_devices_are_kept_busy_within_the_budget(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several], knowing: Any, forecaster: str | None
) -> None:
    pool = several(lanes=8)
    budget = Budget(40)
    known = {"knowing": knowing, "surrogate": SurrogateForecaster}.get(str(forecaster), lambda: None)()

    def watch(event: Event, state: Any) -> None:
        under_way = len(pool.under_way)
        assert state.spent.measurements + under_way <= 40 - (budget.reserve if state.finals is None else 0)

    search = finish(folder, make_parts(known, device=pool), budget, watch)
    assert search.state.finished
    assert search.state.finished["best"]["speedup"] == pytest.approx(4.0, rel=0.1)
    assert pool.most == 8
    assert max(Counter(measured(folder)).values()) == 1
    assert set(pool.begun.values()) == {1}


def test_a_lost_measurement_is_made_again(folder: Path, make_parts: MakeParts, several: Callable[..., Several]) -> None:
    pool = several()
    pool.losing = lambda kernel: pool.begun[kernel.hash] == 1
    search = finish(folder, make_parts(device=pool), Budget(24))
    assert search.state.finished
    assert len(measured(folder)) + search.state.finished["spent"]["measurements"] - 24 == 20
    assert set(pool.begun.values()) == {2}
    assert not search.state.counts["failed"] or search.state.best_value > 0


def test_a_kernel_that_takes_its_worker_with_it_each_time_is_given_up(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several]
) -> None:
    pool = several()
    pool.losing = lambda kernel: kernel.values["B"] == 3
    finish(folder, make_parts(device=pool), Budget(60))
    with Store(folder, writes=False) as store:
        told = [event.payload for event in store.events("measured")]
        lost = Counter(event.payload["kernel"] for event in store.events("lost"))
    faults = {each["kernel"]: each["reason"] for each in told if each["status"] == Status.DEVICE_FAULT}
    assert faults
    assert faults.keys() == lost.keys()
    assert set(lost.values()) == {LOSSES}
    assert all("the host has gone" in reason for reason in faults.values())


@pytest.mark.parametrize("after", [7, 29])
def test_what_was_under_way_when_a_run_was_killed_is_measured_once_it_goes_on(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several], after: int
) -> None:
    events = 0

    def stop(event: Event, state: Any) -> None:
        nonlocal events
        events += 1
        if events == after:
            raise KeyboardInterrupt

    first, second = several(), several(seed=1)
    with pytest.raises(KeyboardInterrupt):
        finish(folder, make_parts(SurrogateForecaster(), device=first), Budget(24), stop)
    assert not first.under_way
    finish(folder, make_parts(SurrogateForecaster(), device=second), Budget(24))
    assert max(Counter(measured(folder)).values()) == 1
    assert len(measured(folder)) == 20


def test_device_seconds_count_while_they_are_spent(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several]
) -> None:
    pool = several(lanes=16, seconds=60.0)
    search = finish(folder, make_parts(device=pool), Budget(None, device_seconds=500.0))
    assert pool.most + 1 >= 8
    assert search.state.spent.device_seconds <= 500.0
    assert pool.most * 60.0 <= 500.0


def test_a_silent_pool_is_left_when_the_time_is_up(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several]
) -> None:
    pool = several()
    pool.is_silent = True
    search = finish(folder, make_parts(device=pool), Budget(64, wall_seconds=0.5))
    assert search.state.finished
    assert search.state.finished["why"] == "the budget of 0.5 seconds is spent"
    with Store(folder, writes=False) as store:
        assert all(event.payload["cancelled"] for event in store.events("lost"))
    assert search.state.spent.measurements == 1


def test_a_run_does_not_go_on_with_other_hardware(
    folder: Path, make_parts: MakeParts, several: Callable[..., Several], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Several, "model", "NVIDIA H200")
    with pytest.raises(KeyboardInterrupt):
        finish(folder, make_parts(device=several()), Budget(40), _stop_after_anchor)
    monkeypatch.setattr(Several, "model", "NVIDIA A100")
    with pytest.raises(PresageError, match="was begun on NVIDIA H200"):
        finish(folder, make_parts(device=several()), Budget(40))


def _stop_after_anchor(event: Event, state: Any) -> None:
    if event.kind == "measured":
        raise KeyboardInterrupt


def test_the_surrogate_looks_elsewhere_while_its_favourites_are_measured(
    device: RecordedDevice,
) -> None:
    rows = list(device.rows("toy").values())
    problem, anchor = device.problem("toy"), device.anchor(device.problem("toy"))
    assert anchor is not None
    timed = {row.hash: Measured(row.kernel, (), {"n=1": row.cases[0].median.value}) for row in rows if row.cases}
    told = [timed[hash] for hash in sorted(timed)[:12]]
    left = {hash: Candidate(each.kernel) for hash, each in timed.items() if each not in told}
    forecaster = SurrogateForecaster()
    alone = Task(problem, timed[anchor.hash], None, told)
    first, second, *_ = forecaster.favourites(alone, left, 8)
    beside = Task(problem, timed[anchor.hash], None, told, pending=[left.pop(first)])
    ranked = forecaster.favourites(beside, left, len(left))
    plain = forecaster.favourites(alone, left, len(left))
    assert ranked != plain
    assert forecaster.forecast(beside, [left[second]]) == forecaster.forecast(alone, [left[second]])
