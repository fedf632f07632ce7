"""What a run ended with, in words: a newcomer understands them, and they are true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from presage.searches import words


def ended(trusted: int = 0, promoted: int = 0, most: int | None = 0, likely: float = 0.0, **others: Any) -> Any:
    missed = {"trusted": trusted, "promoted": promoted, "most": most, "likely": likely}
    return {"missed": missed, "early_stop": None, **others}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (ended(), "nothing: nothing was left unmeasured on a forecast's word"),
        (ended(39, 39), "nothing: all 39 kernels whose forecasts were trusted were measured later"),
        (
            ended(39, 37, most=1),
            "probably nothing: 2 forecasts were trusted and not checked; at most 1 of these kernels would have beaten"
            " the best of that time by more than 5 % (95 %)",
        ),
        (
            ended(90, 27, most=7, likely=1.8),
            "perhaps 2: 63 forecasts were trusted and not checked; at most 7 of these kernels would have beaten the"
            " best of that time by more than 5 % (95 %)",
        ),
        (
            ended(100, 99, most=0),
            "nothing: 1 forecast was trusted and not checked; by what was measured, none of these kernels would have"
            " beaten the best of that time by more than 5 % (95 %)",
        ),
        (
            ended(3, 0, most=None),
            "not known: 3 forecasts were trusted and not checked, and this policy does not watch what that costs",
        ),
        (
            ended(early_stop={"stopped": True, "why_not": "", "left": 45, "chance": 0.0213}),
            "probably nothing: the chance that any of the 45 kernels not measured is more than 5 % faster than the best"
            " is 2.1 %",
        ),
        (
            ended(early_stop={"stopped": True, "why_not": "", "left": 1, "chance": 0.0}),
            "probably nothing: the chance that the one kernel not measured is more than 5 % faster than the best is"
            " below 0.1 %",
        ),
    ],
)
def test_what_was_missed(told: Any, said: str) -> None:
    assert words.missed(told, 0.05) == said


def test_what_is_broken_is_no_decision() -> None:
    counts = {"trust": 0, "measure": 12, "audit": 0}
    assert words.decisions({"decisions": counts, "broken": 0}) == "0 trust, 12 measure, 0 audit"
    told = words.decisions({"decisions": counts, "broken": 3})
    assert told == "0 trust, 12 measure, 0 audit; 3 broken: did not compile, or could not launch"


def best(S: float, low: float, high: float) -> dict[str, Any]:
    return {"kernel": "this", "speedup": S, "low": low, "high": high}


@pytest.mark.parametrize(
    ("low", "high", "wide"),
    [(2.0, 2.0, ""), (1.85, 2.15, ""), (1.5, 2.1, "is ±25 % wide"), (1.9, 19.2, "is ±860 % wide"),
     (1.0, math.inf, "has no end")],
)  # fmt: skip
def test_an_interval_that_says_little_is_warned_of_with_what_to_do(low: float, high: float, wide: str) -> None:
    notes = words.notes({"best": best(2.0, low, high)})
    assert len(notes) == bool(wide)
    assert all(f"the interval {wide}: the machine was too busy" in each and "presage measure" in each for each in notes)


def test_a_recording_cannot_be_measured_again() -> None:
    (said,) = words.notes({"best": best(2.0, 1.5, 2.1), "optimum": {"rank": 1}})
    assert said.startswith("the interval is ±25 % wide: the recorded samples are too few or too noisy")
    assert "again" not in said


@pytest.mark.parametrize(
    ("favourite", "said"),
    [
        (None, None),
        ({"kernel": "this", "name": "a.c", "alone": 8.9, "again": 8.87}, None),
        (
            {"kernel": "this", "name": "a.c", "alone": 16.9, "again": 8.87},
            "measured alone it was 16.9x; this number is from the last measurement, beside the anchor",
        ),
        (
            {"kernel": "that", "name": "b.c", "alone": 16.9, "again": 7.1},
            "measured alone, b.c was the fastest, 16.9x; again, beside the anchor, it was 7.1x and this one faster",
        ),
        (
            {"kernel": "that", "name": "b.c", "alone": 16.9, "again": None},
            "measured alone, b.c was the fastest, 16.9x; again, beside the anchor, it failed",
        ),
    ],
)
def test_what_the_finals_changed_is_said(favourite: dict[str, Any] | None, said: str | None) -> None:
    assert words.notes({"best": best(8.87, 8.8, 8.9), "favourite": favourite}) == ([said] if said else [])


def test_a_result_that_was_not_replayed_is_no_secret() -> None:
    sharp = best(2.0, 1.99, 2.01)
    assert words.notes({"best": sharp | {"believed": "replay", "not_replayed": ""}}) == []
    (said,) = words.notes({"best": sharp | {"believed": "worker", "not_replayed": "it calls a library"}})
    assert "not replayed" in said
    assert said.endswith("it calls a library")
