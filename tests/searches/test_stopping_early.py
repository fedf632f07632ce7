"""A search that ends when nothing left is likely to win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from searching import MakeParts, events, interrupted, of_kind

from presage import (
    Candidate,
    Forecast,
    Kernel,
    Prediction,
    Problem,
)
from presage.devices.rehearsal import Rehearsal
from presage.searches import words
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.store.store import Store


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
    assert words.early_stop(stop) == f"it stopped early: {stop['saved']} of 64 measurements were not needed"
    assert words.missed(finished, 0.05).startswith("probably nothing: the chance that any of the ")


def test_what_a_rehearsal_found_wrong_is_nothing_that_is_left(folder: Path, make_parts: MakeParts, sure: Any) -> None:
    """The fastest by far, by their forecasts, are found wrong on the CPU."""

    class FindsWrong:
        def rehearse(self, problem: Problem, kernels: Sequence[Kernel], seconds: float) -> list[Rehearsal]:
            return [Rehearsal("wrong" if kernel.values["A"] == 8 else "right", "y[0]") for kernel in kernels]

    parts = replace(make_parts(sure(0.05), "risk"), rehearser=FindsWrong())  # type: ignore[arg-type]
    finished = stop_early(folder, parts)
    assert finished["broken"] == 10
    assert finished["early_stop"]["stopped"]
    assert finished["early_stop"]["left"] == 50 - len(of_kind(folder, "measured"))


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
    assert words.early_stop(finished["early_stop"]).startswith(f"it did not stop early: {why}" if until else "")


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
    list(interrupted(tmp_path / "cut", lambda: make_parts(sure(0.05), "risk"), Budget(64), 60, until=0.05))
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    assert whole["early_stop"]["stopped"]
