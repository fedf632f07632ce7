"""The loop: what it finds, and what becomes of its candidates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from searching import MakeParts, finish, interrupted, of_kind

from presage import (
    Candidate,
    Effort,
    Forecast,
    Forecaster,
    Kernel,
    Measurement,
    Prediction,
    PresageError,
    Problem,
    Proposal,
    Proposer,
    Recording,
    StaticReport,
    Status,
    Task,
)
from presage.devices.base import Progress
from presage.devices.recorded import RecordedDevice
from presage.llm.cost import Cost
from presage.searches import forecasting, registry, words
from presage.searches.budget import Budget
from presage.searches.session import Session
from presage.store.store import Store

# -- what it finds ----------------------------------------------------------------------------------------------------


def test_a_whole_search_finds_the_best_and_says_how_sure_it_is(folder: Path, make_parts: MakeParts) -> None:
    search = finish(folder, make_parts(), Budget(64))
    finished = search.state.finished
    assert finished is not None
    assert finished["best"]["speedup"] == pytest.approx(4.0, rel=0.05)
    assert finished["best"]["low"] < finished["best"]["speedup"] < finished["best"]["high"]
    nothing = {"rate": 0, "low": 0, "high": 0, "likely": 0, "most": 0, "trusted": 0, "promoted": 0}
    assert finished["missed"] == nothing
    assert finished["why"] in ("the budget of 64 measurements is spent", "nothing new was proposed any more")


def test_forecasts_save_measurements(folder: Path, make_parts: MakeParts, knowing: type[Forecaster]) -> None:
    search = finish(folder, make_parts(knowing(), "topk"), Budget(16), batch=32)
    assert search.state.finished
    assert search.state.finished["best"]["speedup"] == pytest.approx(4.0, rel=0.12)
    assert search.state.finished["decisions"]["trust"] > 10
    assert search.state.spent.measurements <= 16
    assert {search.state.finished["missed"][name] for name in ("rate", "low", "high", "most")} == {None}


@pytest.mark.parametrize("strategy", registry.names())
def test_every_strategy_drives_the_loop(folder: Path, make_parts: MakeParts, strategy: str) -> None:
    search = finish(folder, make_parts(strategy=strategy), Budget(24), batch=4)
    assert search.state.best_value > 0.5


def test_the_finalists_are_measured_again_beside_the_anchor(folder: Path, make_parts: MakeParts) -> None:
    search = finish(folder, make_parts(), Budget(32))
    (finals,) = of_kind(folder, "finals")
    kernels = [result["kernel"] for result in finals["results"]]
    measured = {told["kernel"]: told["value"] for told in of_kind(folder, "measured")}
    anchor = of_kind(folder, "measured")[0]["kernel"]
    ranked = sorted(measured, key=lambda hash: -math.inf if measured[hash] is None else measured[hash], reverse=True)
    assert kernels == [anchor, *[hash for hash in ranked if hash != anchor][:3]]
    assert search.state.finished
    winner = max(finals["results"], key=lambda result: result["value"])
    assert search.state.finished["best"]["kernel"] == winner["kernel"]
    assert search.state.finished["best"]["low"] == winner["low"]


def test_only_a_measured_kernel_can_be_the_result(folder: Path, make_parts: MakeParts, knowing: Any) -> None:
    search = finish(folder, make_parts(knowing(), "topk"), Budget(6), batch=60)
    assert search.state.has_trusted
    assert search.state.finished
    assert search.state.finished["best"]["kernel"] in [told["kernel"] for told in of_kind(folder, "measured")]


def test_a_search_that_finds_nothing_faster_ends_with_the_anchor(
    folder: Path, make_parts: MakeParts, toy: Recording
) -> None:
    parts = make_parts()
    best = parts.device.kernel(parts.problem, "toy.c@A=8,B=7")
    search = finish(folder, replace(parts, anchor=best), Budget(20))
    assert search.state.finished
    assert search.state.finished["best"]["kernel"] == best.hash
    assert search.state.finished["best"]["speedup"] == 1.0


def in_the_finals(toy: Recording, change: Callable[[list[Measurement]], list[Measurement]]) -> RecordedDevice:
    """A device whose measurements of several kernels at once, which are the finals', are changed so."""

    class Moody(RecordedDevice):
        def measure(
            self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
        ) -> list[Measurement]:
            measured = super().measure(problem, kernels, effort, progress)
            return measured if len(measured) == 1 else change(measured)

    return Moody(toy)


def failed(measurement: Measurement, status: Status) -> Measurement:
    return replace(measurement, status=status, reason="late", cases=())


def test_a_finalist_that_fails_at_the_end_is_not_the_result(
    folder: Path, make_parts: MakeParts, toy: Recording
) -> None:
    moody = in_the_finals(toy, lambda found: [found[0], failed(found[1], Status.WRONG_RESULT), *found[2:]])
    search = finish(folder, make_parts(device=moody), Budget(32))
    (finals,) = of_kind(folder, "finals")
    assert search.state.finished
    assert finals["results"][1]["status"] == "wrong_result"
    assert search.state.finished["best"]["kernel"] in [result["kernel"] for result in finals["results"][2:]]


@pytest.mark.parametrize(("first", "status"), [(0, Status.RUNTIME_ERROR), (1, Status.DEVICE_FAULT)])
def test_finals_that_fail_for_no_fault_of_the_kernels_cost_no_result(
    folder: Path, make_parts: MakeParts, toy: Recording, first: int, status: Status
) -> None:
    """The anchor fails, too, or the device says that it was its own fault."""
    busy = in_the_finals(toy, lambda found: [*found[:first], *(failed(each, status) for each in found[first:])])
    search = finish(folder, make_parts(device=busy), Budget(32))
    (finals,) = of_kind(folder, "finals")
    told = {each["kernel"]: each["value"] for each in of_kind(folder, "measured") if each["value"] is not None}
    assert search.state.finished
    best = search.state.finished["best"]
    assert best["kernel"] == max(told, key=lambda hash: told[hash]) == finals["results"][1]["kernel"]
    assert best["low"] <= best["speedup"] <= best["high"]
    assert best["speedup"] == pytest.approx(2 ** told[best["kernel"]], rel=0.05)


def test_the_policy_is_asked_about_the_most_hopeful_and_the_rest_stays_undecided(
    folder: Path, make_parts: MakeParts, knowing: Any
) -> None:
    search = finish(folder, make_parts(knowing()), Budget(20), batch=24)
    assert knowing.at_once == 4
    first, second = of_kind(folder, "decided")[:2]
    hopes = of_kind(folder, "forecast")[0]["hopes"]
    assert len(hopes) == 24
    ranked = sorted(hopes, key=lambda hash: hopes[hash], reverse=True)
    assert [hash for hash, _, _ in first["decisions"]] == ranked[:4]
    assert set(ranked[4:]) & {hash for hash, _, _ in second["decisions"]}, "what was left over may be next"
    assert search.state.undecided


@pytest.mark.parametrize(("compiles", "policy", "expected"), [(4, "risk", 4), (1, "risk", 1), (1, "topk", 4)])
def test_a_forecaster_that_changes_its_mind_decides_on_one_at_a_time_where_that_costs_no_time(
    folder: Path, make_parts: MakeParts, knowing: Any, toy: Recording, compiles: int, policy: str, expected: int
) -> None:
    class Learning(knowing):  # type: ignore[misc]
        at_once = 1

    class Compiling(RecordedDevice):
        at_once = compiles

    finish(folder, make_parts(Learning(), policy, device=Compiling(toy)), Budget(20), batch=24)
    assert len(of_kind(folder, "decided")[0]["decisions"]) == expected


def test_nobody_is_chosen_for_what_was_hoped_of_it_before_more_was_known(
    folder: Path, make_parts: MakeParts, knowing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All look alike until something is measured; few are forecast again as a matter of course."""

    class Learning(knowing):  # type: ignore[misc]
        at_once = 1

        def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
            if task.neighbours:
                return list(super().forecast(task, candidates))
            return [Prediction(Forecast.from_quantiles([0.1, 0.5, 0.9], [-1.0, 1.0, 9.0]))] * len(candidates)

    monkeypatch.setattr(forecasting, "AGAIN", 2)
    finish(folder, make_parts(Learning()), Budget(8), batch=24)
    first, second = of_kind(folder, "forecast")[:2]
    assert set(first["hopes"]) <= {
        *second["hopes"],
        *(hash for hash, _, _ in of_kind(folder, "decided")[0]["decisions"]),
    }
    ((chosen, _, _),) = of_kind(folder, "decided")[1]["decisions"]
    assert second["hopes"][chosen] == max(second["hopes"].values())
    # When time is up in the middle of that, it ends.
    answers = iter([True, True])
    predictions = forecasting.predictions

    def late(session: Session, *asked: Any) -> Any:
        return predictions(session, *asked) if next(answers, False) else ({}, Cost())

    monkeypatch.setattr(forecasting, "predictions", late)
    finish(folder.with_name("late"), make_parts(Learning()), Budget(8), batch=24)


def test_undecided_candidates_are_forecast_again_also_when_little_is_hoped_of_them(
    folder: Path, make_parts: MakeParts, knowing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More is known later."""
    monkeypatch.setattr(forecasting, "AGAIN", 4)
    finish(folder, make_parts(knowing()), Budget(40), batch=24)
    first, second = of_kind(folder, "forecast")[:2]
    decided = {hash for hash, _, _ in of_kind(folder, "decided")[0]["decisions"]}
    left = [hash for hash in first["hopes"] if hash not in decided]
    hopeful = sorted(left, key=lambda hash: first["hopes"][hash], reverse=True)[:4]
    assert set(second["hopes"]) & set(left) >= {*hopeful, *left[:4]}
    assert not set(left[:4]) <= set(hopeful)
    assert set(second["forecasts"]) <= set(second["hopes"])


# -- candidates -------------------------------------------------------------------------------------------------------


def test_no_kernel_is_measured_twice_and_duplicates_cost_nothing(folder: Path, make_parts: MakeParts) -> None:
    search = finish(folder, make_parts(), Budget(40))
    measured = [told["kernel"] for told in of_kind(folder, "measured")]
    assert max(Counter(measured).values()) == 1
    assert search.state.counts["duplicates"] > 0
    assert search.state.spent.measurements == 40


def test_failed_kernels_take_no_slot(folder: Path, make_parts: MakeParts) -> None:
    search = finish(folder, make_parts(), Budget(60))
    failed = {told["kernel"] for told in of_kind(folder, "measured") if told["value"] is None}
    assert failed
    assert not failed & set(search.state.hashes)


def test_trusted_kernels_enter_the_archive_with_what_is_expected_unless_they_are_expected_to_fail(
    folder: Path, make_parts: MakeParts, knowing: Any
) -> None:
    search = finish(folder, make_parts(knowing(), "topk"), Budget(80), batch=60)
    state = search.state
    forecasts = {hash: kept for told in of_kind(folder, "forecast") for hash, kept in told["forecasts"].items()}
    decisions = [decision for told in of_kind(folder, "decided") for decision in told["decisions"]]
    trusted = {hash: forecasts[hash] for hash, action, _ in decisions if action == "trust"}
    likely = {hash for hash, kept in trusted.items() if kept["p_fail"] < 0.5}
    assert likely
    assert len(likely) < len(trusted)
    archive = {hash: id for id, hash in enumerate(state.hashes)}
    assert likely <= archive.keys()
    assert not (trusted.keys() - likely) & archive.keys()
    for hash in likely:
        if not state.is_measured[archive[hash]]:
            assert state.values[archive[hash]] == Forecast.from_json(trusted[hash]).mean()


def test_when_nothing_new_comes_what_was_trusted_is_measured(folder: Path, make_parts: MakeParts, knowing: Any) -> None:
    search = finish(folder, make_parts(knowing(), "topk"), Budget(64), batch=60)
    assert of_kind(folder, "promoted")
    assert search.state.finished
    assert search.state.finished["why"] == "nothing new was proposed any more"
    assert all(search.state.is_measured)
    assert len(search.state.hashes) == 55
    assert max(Counter(told["kernel"] for told in of_kind(folder, "measured")).values()) == 1


def test_a_kernel_that_does_not_compile_is_neither_forecast_nor_measured(
    folder: Path, make_parts: MakeParts, toy: Recording, knowing: Any
) -> None:
    class Compiling(RecordedDevice):
        def reports(
            self, problem: Problem, kernels: Sequence[Kernel], seconds: float = 60.0
        ) -> list[tuple[StaticReport, ...]]:
            bad = StaticReport("h200", "sm_90", "compile_error", "c", error="line 3: no\nmore")
            return [(bad,) if kernel.values["A"] == 2 else () for kernel in kernels]

    forecaster = knowing()
    search = finish(folder, make_parts(forecaster, "topk", device=Compiling(toy)), Budget(16), batch=60)
    with Store(folder) as store:
        bad = {hash for hash, name in store.names().items() if "A=2," in name}
        assert len(bad) == 10
        assert store.reports(min(bad))[0].status == "compile_error"
    assert not bad & set(forecaster.asked)
    assert not bad & {told["kernel"] for told in of_kind(folder, "measured")}
    assert not bad & set(search.state.hashes)
    assert {why for told in of_kind(folder, "forecast") for why in told["broken"].values()} == {
        "it does not compile: line 3: no"
    }
    assert not bad & {hash for told in of_kind(folder, "decided") for hash, _, _ in told["decisions"]}


class Refusing(RecordedDevice):
    """Kernels with A=2 do not compile."""

    def reports(self, problem: Problem, kernels: Sequence[Kernel]) -> list[tuple[StaticReport, ...]]:
        bad = StaticReport("h200", "sm_90", "compile_error", "c", error="line 3: no")
        return [(bad,) if kernel.values["A"] == 2 else () for kernel in kernels]


@pytest.mark.parametrize("policy", ["always", "topk", "risk"])
@pytest.mark.parametrize("forecasts", [False, True])
def test_what_cannot_work_is_counted_as_broken_and_not_as_trusted(
    folder: Path, make_parts: MakeParts, toy: Recording, knowing: Any, policy: str, forecasts: bool
) -> None:
    parts = make_parts(knowing() if forecasts else None, policy, device=Refusing(toy))
    finished = finish(folder, parts, Budget(40), batch=60).state.finished
    assert finished
    assert finished["broken"] == 10
    decided = [action for told in of_kind(folder, "decided") for _, action, _ in told["decisions"]]
    assert finished["decisions"] == {action: decided.count(action) for action in ("trust", "measure", "audit")}
    assert forecasts or finished["decisions"]["trust"] == finished["missed"]["trusted"] == 0


def test_what_was_trusted_and_measured_later_is_known(folder: Path, make_parts: MakeParts, knowing: Any) -> None:
    """The policy hears whether it had won when it was trusted; where all is measured in the end, nothing is missed."""
    parts = make_parts(knowing(width=0.02), "topk")
    heard: list[tuple[float, float | None]] = []
    parts.policy.observe_trusted = lambda best, log2_S: heard.append((best, log2_S))  # type: ignore[method-assign]
    finish(folder, parts, Budget(66), batch=60)
    bests = {
        hash: told["standing"]["best"]
        for told in of_kind(folder, "decided")
        for hash, action, _ in told["decisions"]
        if action == "trust"
    }
    later = [told for told in of_kind(folder, "measured") if told["kernel"] in bests]
    assert heard == [(bests[told["kernel"]], told["value"]) for told in later]
    assert later
    (finished,) = of_kind(folder, "finished")
    assert finished["missed"]["promoted"] == len(later) < finished["missed"]["trusted"], "some were expected to fail"


def test_the_number_of_the_best_ones_measurement_is_told(folder: Path, make_parts: MakeParts, knowing: Any) -> None:
    finish(folder, make_parts(knowing(), "topk"), Budget(64), batch=60)
    (finished,) = of_kind(folder, "finished")
    order = [told["kernel"] for told in of_kind(folder, "measured")]
    assert order[finished["best"]["found_at"] - 1] == finished["best"]["kernel"]


@pytest.mark.parametrize("again", [1.5, 3.9, None])
def test_what_the_finals_changed_is_kept(
    folder: Path, make_parts: MakeParts, toy: Recording, again: float | None
) -> None:
    class Moody(RecordedDevice):
        """Measured alone, one kernel seems to be twice as fast as the best."""

        def measure(
            self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
        ) -> list[Measurement]:
            measured = super().measure(problem, kernels, effort, progress)
            return [self._distorted(each, len(kernels) > 1) for each in measured]

        def _distorted(self, measured: Measurement, together: bool) -> Measurement:
            if measured.kernel.values != {"A": 8, "B": 6}:
                return measured
            if together and again is None:
                return replace(measured, status=Status.WRONG_RESULT, reason="y[0]", cases=())
            wanted = again if together else 8.0
            cases = [
                replace(case, samples_ns=tuple(1e6 / (wanted or 1) for _ in case.samples_ns)) for case in measured.cases
            ]
            return replace(measured, cases=tuple(cases))

    finish(folder, make_parts(device=Moody(toy)), Budget(64))
    (finished,) = of_kind(folder, "finished")
    assert finished["favourite"]["name"] == "toy.c@A=8,B=6"
    assert finished["favourite"]["alone"] == pytest.approx(8.0, rel=0.1)
    assert finished["favourite"]["again"] == (again and pytest.approx(again, rel=0.1))
    assert finished["best"]["kernel"] != finished["favourite"]["kernel"]
    (note,) = words.notes(finished)
    assert note.startswith("measured alone, toy.c@A=8,B=6 was the fastest, ")
    assert note.endswith(
        "it failed" if again is None else f"it was {finished['favourite']['again']:.3g}x and this one faster"
    )


def test_an_anchor_that_fails_is_an_error(folder: Path, make_parts: MakeParts) -> None:
    parts = make_parts()
    broken = parts.device.kernel(parts.problem, "toy.c@A=32,B=1")
    with pytest.raises(PresageError, match=r"the anchor toy.c@A=32,B=1 is wrong_result: y\[0\] is 1"):
        finish(folder, replace(parts, anchor=broken), Budget(8))


def test_a_fault_of_the_machine_teaches_the_policy_nothing(folder: Path, make_parts: MakeParts, toy: Recording) -> None:
    class Faulty(RecordedDevice):
        def measure(
            self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
        ) -> list[Measurement]:
            measured = super().measure(problem, kernels, effort, progress)
            ok = measured[0].kernel.values["A"] != 4
            return measured if ok else [replace(measured[0], status=Status.DEVICE_FAULT, reason="hot", cases=())]

    parts = make_parts(device=Faulty(toy))
    observed: list[float | None] = []
    parts.policy.observe = lambda f, d, s, log2_S: observed.append(log2_S)  # type: ignore[method-assign]
    search = finish(folder, parts, Budget(64))
    faults = [told for told in of_kind(folder, "measured") if told["status"] == "device_fault"]
    assert faults
    assert len(observed) == len(of_kind(folder, "measured")) - len(faults) - 1
    assert search.state.spent.measurements <= 64


def test_without_a_limit_of_time_the_device_gets_all_chosen_kernels_at_once(
    folder: Path, make_parts: MakeParts, toy: Recording
) -> None:
    given: list[int] = []

    class Counting(RecordedDevice):
        def measure_each(self, work: Iterable[tuple[Problem, Kernel]], *effort: Any) -> Iterator[Measurement]:
            pairs = list(work)
            given.append(len(pairs))
            return super().measure_each(pairs, *effort)

    search = finish(folder, make_parts(device=Counting(toy), policy="always"), Budget(18), batch=4)
    assert given == [4, 4, 4, 2]
    assert search.state.spent.measurements == 18


def test_a_proposer_is_told_how_long_nothing_better_came_also_when_the_search_goes_on(
    tmp_path: Path, make_parts: MakeParts, draws: type[Proposer]
) -> None:
    told: list[int] = []

    class Listens(draws):  # type: ignore[valid-type, misc]
        def propose(self, *asked: Any) -> list[Proposal]:
            told.append(self.fruitless)
            return super().propose(*asked)

    finish(tmp_path / "whole", make_parts(proposer=Listens), Budget(40))
    whole = told.copy()
    assert whole[0] == 0
    assert 0 in whole[1:]
    assert max(whole) > 12
    told.clear()
    for _ in interrupted(tmp_path / "cut", lambda: make_parts(proposer=Listens), Budget(40), 8, after=3):
        pass
    assert list(dict.fromkeys(told)) == list(dict.fromkeys(whole))
