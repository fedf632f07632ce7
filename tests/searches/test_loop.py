"""The loop: what it finds, what it spends, and that an interruption anywhere changes nothing."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from presage import (
    Candidate,
    Effort,
    Forecast,
    Forecaster,
    Ground,
    Kernel,
    Measurement,
    Node,
    Prediction,
    PresageError,
    Problem,
    Proposer,
    Recording,
    StaticReport,
    Status,
    Strategy,
    Task,
)
from presage.devices.base import Progress
from presage.devices.recorded import RecordedDevice
from presage.forecasters.blend import BlendForecaster
from presage.forecasters.surrogate import SurrogateForecaster
from presage.llm.cost import Cost
from presage.searches import forecasting, measuring, registry, spending, words
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts, Session
from presage.searches.state import State
from presage.store import store as store_module
from presage.store.store import Event, Store

MakeParts = Callable[..., Parts]


def finish(folder: Path, parts: Parts, budget: Budget, batch: int = 8, seed: int = 0) -> Search:
    with Store(folder) as store:
        search = Search(store, parts, budget, batch, seed)
        search.run()
        return search


def events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """What happened, without what differs between two runs of the same thing: processes and times."""
    with Store(folder, writes=False) as store:
        told = [(event.kind, event.payload) for event in store.events() if event.kind != "session"]
    for _, payload in told:
        payload.pop("seconds", None)
        payload.get("spent", {}).pop("device_seconds", None)
        payload.get("spent", {}).pop("wall_seconds", None)
    return told


def of_kind(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [payload for name, payload in events(folder) if name == kind]


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


# -- stopping early ---------------------------------------------------------------------------------------------------


def stop_early(
    folder: Path, parts: Parts, budget: int = 64, until: float | None = 0.05, batch: int = 60
) -> dict[str, Any]:
    with Store(folder) as store:
        Search(store, parts, Budget(budget), batch, until=until).run()
    (finished,) = of_kind(folder, "finished")
    return finished


@pytest.fixture
def sure(knowing: Any) -> Any:
    return type("Sure", (knowing,), {"is_sure": lambda self, task: True})


def test_a_search_ends_when_nothing_left_is_likely_to_win(folder: Path, make_parts: MakeParts, sure: Any) -> None:
    finished = stop_early(folder, make_parts(sure(0.05), "risk"))
    assert finished["spent"]["measurements"] < 40
    assert finished["why"].startswith("stopped early, since the chance that any of the ")
    assert finished["best"]["speedup"] == pytest.approx(4.0, rel=0.05)
    stop, looked = finished["early_stop"], of_kind(folder, "looked")
    assert stop["stopped"]
    assert stop["chance"] <= 0.05
    assert all(each["quiet"] or each["chance"] > 0.05 for each in looked)
    measured = len(of_kind(folder, "measured"))
    assert stop["left"] == 60 - measured
    assert measured > 8
    assert stop["saved"] == 64 - finished["spent"]["measurements"] > 24
    assert words.early_stop(finished) == f"yes, {stop['saved']} of 64 measurements were not needed"
    assert words.missed(finished, 0.05).startswith("probably nothing: the chance that any of the ")


@pytest.mark.parametrize(
    ("forecaster", "policy", "until", "budget", "why"),
    [
        ("sure", "risk", None, 40, "it was not asked for"),
        ("knowing", "risk", 0.05, 40, "nothing shows that these forecasts can be relied on for it"),
        ("sure", "risk", 0.05, 8, "there were no more than 8 measurements"),
        ("wide", "risk", 0.05, 40, "the chance that any of the "),
    ],
)
def test_where_the_promise_cannot_be_kept_it_goes_on_and_says_why(
    folder: Path, make_parts: MakeParts, knowing: Any, sure: Any,
    forecaster: str, policy: str, until: float | None, budget: int, why: str,
) -> None:  # fmt: skip
    made = {"sure": sure(0.05), "knowing": knowing(0.05), "wide": sure(2.0)}[forecaster]
    finished = stop_early(folder, make_parts(made, policy), budget, until)
    assert finished["spent"]["measurements"] == budget
    assert not finished["early_stop"]["stopped"]
    assert finished["early_stop"]["why_not"].startswith(why)


def test_where_more_can_be_proposed_it_looks_at_some_of_that_first(
    folder: Path, make_parts: MakeParts, sure: Any
) -> None:
    """Ten candidates a step of 60: after the last measurement, new ones are proposed and forecast, and not measured."""
    finished = stop_early(folder, make_parts(sure(0.05), "risk"), batch=10)
    assert finished["early_stop"]["stopped"]
    assert finished["best"]["speedup"] == pytest.approx(4.0, rel=0.05)
    with Store(folder, writes=False) as store:
        kinds = [event.kind for event in store.events()]
    last = len(kinds) - kinds[::-1].index("measured")
    assert kinds[last:].count("looked") == of_kind(folder, "looked")[-1]["quiet"] == 3


def test_forecasts_that_were_too_sure_are_stretched_before_they_are_believed(
    folder: Path, make_parts: MakeParts, sure: Any
) -> None:
    """They claim a tenth of their true width: what was measured gives that away."""

    class Boasting(sure):  # type: ignore[misc]
        def _one(self, candidate: Candidate) -> Prediction:
            forecast = super()._one(candidate).forecast
            middle = forecast.quantile(0.5)
            ends = [middle - 0.04, middle + 0.04]
            return Prediction(Forecast.from_quantiles([0.16, 0.84], ends, forecast.p_fail))

    honest = stop_early(folder, make_parts(sure(0.4), "risk"))
    boasting = stop_early(folder.with_name("boasting"), make_parts(Boasting(0.4), "risk"))
    assert max(told.get("surprise") or 0 for told in of_kind(folder.with_name("boasting"), "measured")) > 2
    assert boasting["spent"]["measurements"] >= honest["spent"]["measurements"] > 20


def test_one_that_stops_early_goes_on_as_if_it_had_not_been_interrupted(
    tmp_path: Path, make_parts: MakeParts, sure: Any
) -> None:
    whole = stop_early(tmp_path / "whole", make_parts(sure(0.05), "risk"))
    for _ in range(200):
        with Store(tmp_path / "cut") as store:
            search = Search(store, make_parts(sure(0.05), "risk"), Budget(64), 60, watch=stopping_after(2), until=0.05)
            try:
                search.run()
            except InterruptionError:
                continue
            break
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    assert whole["early_stop"]["stopped"]


def test_one_that_sees_the_whole_space_goes_on_as_if_it_had_not_been_interrupted(
    tmp_path: Path, make_parts: MakeParts
) -> None:
    """The surrogate learns from one measurement to the next; what it must know again is kept with the forecasts."""
    with Store(tmp_path / "whole") as store:
        Search(store, make_parts(SurrogateForecaster(), "risk"), Budget(30), 8).run()
    proposed = of_kind(tmp_path / "whole", "proposed")
    assert len(proposed[0]["candidates"]) > 40, "all at once"
    assert all(len(each["hopes"]) <= 1 for each in of_kind(tmp_path / "whole", "forecast"))
    for _ in range(200):
        with Store(tmp_path / "cut") as store:
            search = Search(store, make_parts(SurrogateForecaster(), "risk"), Budget(30), 8, watch=stopping_after(7))
            try:
                search.run()
            except InterruptionError:
                continue
            break
    assert events(tmp_path / "cut") == events(tmp_path / "whole")


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


# -- budgets ----------------------------------------------------------------------------------------------------------


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


# -- going on ---------------------------------------------------------------------------------------------------------


class InterruptionError(Exception):
    pass


def stopping_after(count: int) -> Callable[[Event, State], None]:
    seen = itertools.count(1)

    def watch(event: Event, state: State) -> None:
        if next(seen) == count:
            raise InterruptionError

    return watch


def interrupted(folder: Path, make: Callable[[], Parts], budget: Budget, batch: int) -> Iterator[int]:
    """Run it one event at a time, each in a process of its own as it were; count them."""
    for number in itertools.count(1):
        with Store(folder) as store:
            try:
                Search(store, make(), budget, batch, watch=stopping_after(2)).run()
            except InterruptionError:
                yield number
            else:
                return


@pytest.mark.parametrize(
    ("policy", "strategy", "budget"), [("always", "islands", 12), ("topk", "puct", 12), ("risk", "puct", 24)]
)
def test_a_search_interrupted_after_every_event_ends_as_one_that_was_not(
    tmp_path: Path, make_parts: MakeParts, knowing: Any, policy: str, strategy: str, budget: int
) -> None:
    forecasters = []

    def make() -> Parts:
        forecasters.append(knowing())
        return make_parts(forecasters[-1], policy, strategy)

    finish(tmp_path / "whole", make(), Budget(budget), batch=12)
    whole = forecasters.pop()
    count = len(list(interrupted(tmp_path / "cut", make, Budget(budget), batch=12)))
    assert count > 20
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    asked = [hash for forecaster in forecasters for hash in forecaster.asked]
    assert asked == whole.asked


def test_a_blend_goes_on_with_the_weights_it_had(tmp_path: Path, make_parts: MakeParts, knowing: Any) -> None:
    class Wrong(Forecaster):
        def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
            return [Prediction(Forecast((3.0, 4.0), (0.0, 1.0))) for _ in candidates]

    def make() -> Parts:
        return make_parts(BlendForecaster({"knowing": knowing(), "wrong": Wrong()}))

    finish(tmp_path / "whole", make(), Budget(24), batch=12)
    assert len(list(interrupted(tmp_path / "cut", make, Budget(24), batch=12))) > 20
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    *_, last = of_kind(tmp_path / "whole", "forecast")
    knowing_weight, wrong_weight = last["memory"]["speed"]
    assert knowing_weight > 10 * wrong_weight


def test_what_a_language_model_wrote_is_paid_once(tmp_path: Path, make_parts: MakeParts, draws: Any) -> None:
    calls: list[str] = []

    class Counted(Proposer):
        def __init__(self, ground: Ground) -> None:
            super().__init__(ground)
            self._inner = draws(ground, Cost(10))

        def propose(self, parent: Any, others: Any, count: Any, known: Any, rng: Any) -> Any:
            calls.append(parent.measured.kernel.hash)
            return self._inner.propose(parent, others, count, known, rng)

        def spent(self) -> Cost:
            return Cost(10)

    list(interrupted(tmp_path / "cut", lambda: make_parts(proposer=Counted), Budget(10), 4))
    with Store(tmp_path / "cut") as store:
        proposed = len(list(store.events("proposed")))
    assert len(calls) == proposed


def test_a_proposer_is_told_what_failed_and_why(folder: Path, make_parts: MakeParts, draws: Any) -> None:
    told: list[list[Any]] = []

    class Listening(Proposer):
        def __init__(self, ground: Ground) -> None:
            super().__init__(ground)
            self._inner = draws(ground)

        def propose(self, parent: Any, others: Any, count: Any, known: Any, rng: Any) -> Any:
            told.append([other for other in others if other.value is None])
            return self._inner.propose(parent, others, count, known, rng)

    finish(folder, make_parts(proposer=Listening, forecaster=None), Budget(60), 8)
    failures = [each for those in told for each in those]
    assert failures
    assert {(each.measured.status, each.reason) for each in failures} == {("wrong_result", "y[0] is 1, not 2")}


def test_a_finished_search_has_nothing_more_to_do(folder: Path, make_parts: MakeParts) -> None:
    finish(folder, make_parts(), Budget(12))
    before = events(folder)
    finish(folder, make_parts(), Budget(12))
    assert events(folder) == before


def test_the_seed_decides(tmp_path: Path, make_parts: MakeParts) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finish(tmp_path / name, make_parts(), Budget(12), seed=seed)
    assert events(tmp_path / "a") == events(tmp_path / "b")
    assert events(tmp_path / "a") != events(tmp_path / "c")
