"""Actions: both ways of writing them, and words for what is wrong with bad ones."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import PresageError
from presage_gui import Action, ActionError, Kind, Point, Space, Step
from presage_gui.keys import MODIFIERS, NAMED

PLACES = st.builds(Point, st.integers(0, 4000).map(float), st.integers(0, 4000).map(float))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
CHORDS = st.tuples(st.sampled_from(MODIFIERS), st.sampled_from([*NAMED, *"abc+9"]))
ACTIONS = st.one_of(
    st.builds(Action, st.sampled_from([Kind.CLICK, Kind.DOUBLE, Kind.RIGHT]), at=PLACES),
    st.builds(Action, st.just(Kind.DRAG), at=PLACES, to=PLACES),
    st.builds(Action, st.sampled_from([Kind.TYPE, Kind.ANSWER]), text=TEXTS),
    st.builds(Action, st.just(Kind.KEY), keys=CHORDS),
    st.builds(Action, st.just(Kind.SCROLL), at=st.none() | PLACES, dx=st.just(0.0), dy=st.integers(1, 500).map(float)),
    st.builds(Action, st.just(Kind.WAIT), seconds=st.integers(0, 60).map(float)),
    st.builds(Action, st.just(Kind.TERMINATE), success=st.booleans()),
)


@given(ACTIONS)
def test_an_action_is_read_back_as_it_was_written(action: Action) -> None:
    assert Action.parse(action.to_json()) == action
    assert Action.parse(action.call) == action
    assert Step.from_json(Step(action, "why").to_json()) == Step(action, "why")


@given(st.text(max_size=60) | st.dictionaries(st.text(max_size=6), st.none() | st.integers() | st.text(max_size=5)))
def test_anything_else_is_an_error_in_words(said: object) -> None:
    with suppress(ActionError):
        Action.parse(said)  # type: ignore[arg-type]
    assert issubclass(ActionError, PresageError)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("click(1, 2, 3)", "too many values"),
        ("click('Submit')", "is a place"),
        ("click(True, 2)", "must be a number"),
        ("click(1e999, 2)", "must be numbers"),
        ("press_button(1)", "there is no action 'press_button'; there are: click,"),
        ("key('submit')", "there is no key 'submit'"),
        ("key('a', 'b')", "a chord has one key"),
        ("type()", "type needs 'text'"),
        ("scroll(0, 0)", "does nothing"),
        ("wait(1000)", "0 to 60 seconds"),
        ("terminate('yes')", "true or false"),
        ("click(__import__('os'), 1)", "cannot read the action"),
        ('{"kind": "click", "at": [1, 2], "space": "inches"}', "there is no space 'inches'"),
        ('{"kind": "click", "at": [1, 2], "text": "x"}', "click has no field 'text'"),
        ("", "there is no action"),
    ],
)
def test_what_is_wrong_is_said(said: str, words: str) -> None:
    with pytest.raises(ActionError, match=words.replace("(", r"\(")):
        Action.parse(said)


def test_places_have_a_space_and_lie_on_the_screen() -> None:
    middle = Action(Kind.CLICK, at=Point(0.5, 0.5, Space.UNIT))
    assert middle.on((320, 200)).at == Point(160, 100)
    assert Action(Kind.CLICK, at=Point(500, 500, Space.THOUSANDTHS)).on((320, 200)).at == Point(160, 100)
    for x, y in ((320, 10), (10, 200), (-1, 0)):
        with pytest.raises(ActionError, match="not on the screen, which is 320 × 200"):
            Action(Kind.CLICK, at=Point(x, y)).on((320, 200))
    with pytest.raises(ActionError, match="numbers"):
        Action(Kind.CLICK, at=Point(math.nan, 1))
