"""Evidence about conditions of the goal, on a drawn form: what is left to do, in which letters, in which place."""

from __future__ import annotations

import math

import pytest
from drawing import FIELD, GOAL, SUBMIT, form

from presage_gui import Action, History, Step
from presage_gui.critics.evidence.conditions import conditions, ordinals
from presage_gui.critics.evidence.situation import Situation, field_of
from presage_gui.critics.wording import Wording
from presage_gui.history import Effect, Entry
from presage_gui.sight.scene import Viewer

EMPTY, READY, FILLED = form(), form(focused=True), form("Jerald")
FOCUS = Step(Action.parse({"kind": "click", "at": list(FIELD.middle)}), "Click the text field")
TYPE = Step(Action.parse("type('Jerald')"), 'Type "Jerald" into the text field')
DONE = History((Entry(FOCUS, EMPTY, READY, Effect.EXPECTED), Entry(TYPE, READY, FILLED, Effect.EXPECTED)))
SEND = Step(Action.parse({"kind": "click", "at": list(SUBMIT.middle)}), 'Click the "Submit" button')


@pytest.fixture(scope="module")
def viewer() -> Viewer:
    return Viewer()


def test_a_form_that_is_sent_too_early_lacks_what_the_goal_asks_for(viewer: Viewer) -> None:
    early = conditions(Situation.of(viewer, GOAL, History(), EMPTY, SEND))
    late = conditions(Situation.of(viewer, GOAL, DONE, FILLED, SEND))
    assert early["n_ends_kinds"] == 1
    assert early["n_ends_open"] == 1
    assert late["n_ends_kinds"] == late["n_ends_open"] == late["n_short"] == 0


@pytest.mark.parametrize(("goal", "text", "fits"), [
    ('Type "Anna" in all lower case letters', "anna", 1.0), ('Type "Anna" in all lower case letters', "Anna", 0.0),
    ('Enter "Anna" and press Submit', "ANNA", 0.0), ('Enter "Anna" and press Submit', "Anna", 1.0),
])  # fmt: skip
def test_letters_are_as_the_goal_wants_them(viewer: Viewer, goal: str, text: str, fits: float) -> None:
    step = Step(Action.parse(f"type({text!r})"))
    assert conditions(Situation.of(viewer, goal, History(), READY, step))["v_case_fits"] == fits


def test_a_value_belongs_to_the_field_that_the_goal_names_beside_it(viewer: Viewer) -> None:
    goal = "Search for movies directed by Price from year 1986."

    def seen(text: str, field: str) -> float:
        step = Step(Action.parse(f"type({text!r})"), f'Type "{text}" into the {field} field')
        return conditions(Situation.of(viewer, goal, History(), READY, step)).get("v_label_other", math.nan)

    assert seen("Price", "Director") == 0
    assert seen("1986", "Director") == 1
    assert seen("1986", "Year") == 0


def test_ordinals_and_names_of_fields() -> None:
    assert ordinals(Wording("Open the 12th mail and the fourth one")) == (12, 4)
    assert field_of("Put the cursor into the to field") == "to"
    assert field_of("Put the cursor into the text field") == ""
