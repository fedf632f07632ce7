"""History: what counts as a change, what does not, and how steps fold into macro-actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from presage_gui import Action, Box, Effect, History, Screen, Step
from presage_gui.changes import Watcher, loop_of_no_effect, same
from presage_gui.macros import fold, told

SIZE = (200, 160)


def screen(*boxes: Box, ground: int = 255) -> Screen:
    """A plain screen with filled boxes."""
    pixels = np.full((SIZE[1], SIZE[0], 3), ground, dtype=np.uint8)
    for box in boxes:
        pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = 40
    return Screen(pixels)


def step(call: str, intent: str = "") -> Step:
    return Step(Action.parse(call), intent)


CARET = Box(60, 40, 62, 54)
CLOCK = Box(160, 4, 196, 16)
TICK = Box(50, 50, 62, 62)


@pytest.mark.parametrize(
    ("doing", "before", "after", "effect"),
    [
        ("click(55, 55)", [], [], Effect.NOTHING),
        ("click(55, 55)", [], [TICK], Effect.EXPECTED),
        ("type('x')", [], [CARET], Effect.NOTHING),  # a caret blinks by itself
        ("key('tab')", [CARET], [], Effect.NOTHING),
        ("scroll(0, 50, 100, 80)", [], [Box(20, 60, 180, 100)], Effect.EXPECTED),
        ("drag(20, 100, 120, 100)", [Box(15, 95, 25, 105)], [Box(115, 95, 125, 105)], Effect.EXPECTED),
        ("drag(20, 100, 120, 100)", [], [Box(170, 20, 180, 30)], Effect.OTHER),
    ],
)
def test_effects(doing: str, before: list[Box], after: list[Box], effect: Effect) -> None:
    assert Watcher().entry(step(doing), screen(*before), screen(*after)).effect is effect


def test_what_moves_by_itself_is_no_change() -> None:
    watcher = Watcher()
    entry = watcher.entry(step("click(20, 20)"), screen(), screen(CLOCK))
    assert entry.effect is not Effect.NOTHING  # nobody knows yet that there is a clock
    watcher.idle(screen(), screen(CLOCK))
    assert watcher.entry(step("click(20, 20)"), screen(), screen(CLOCK)).effect is Effect.NOTHING
    both = watcher.entry(step("click(55, 55)"), screen(), screen(CLOCK, TICK))
    assert both.effect is Effect.EXPECTED
    assert [round(box.left) for box in both.changed] == [50]


def test_the_pointer_is_no_change() -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 200, (18, 12, 3)).astype(np.uint8)

    def pointed(x: int, y: int) -> Screen:
        pixels = screen().pixels.copy()
        pixels[y : y + 18, x : x + 12] = picture
        return Screen(pixels)

    first = Watcher().entry(step("click(20, 30)"), screen(), screen(TICK))
    moved = Watcher().entry(step("click(120, 90)"), pointed(20, 30), pointed(120, 90), [first])
    assert moved.effect is Effect.NOTHING


def test_a_surprise_is_named() -> None:
    focus = Watcher().entry(step("click(60, 50)", "Click the text field"), screen(), screen(CARET))
    assert focus.effect is Effect.EXPECTED
    elsewhere = Watcher().entry(step("click(60, 50)", "Press the OK button"), screen(), screen(CARET))
    assert elsewhere.effect is Effect.OTHER
    assert "none was meant" in elsewhere.note


@dataclass(frozen=True)
class Label:
    text: str
    box: Box


class Reads:
    """Two buttons, Save and Clear, wherever it looks."""

    def read(self, screen: Screen) -> Sequence[Label]:
        return [Label("Save", Box(20, 100, 60, 116)), Label("Clear", Box(120, 100, 160, 116))]


@pytest.mark.parametrize(
    ("doing", "intent", "effect"),
    [
        ("click(40, 108)", "Click the Save button", Effect.EXPECTED),
        ("click(140, 108)", "Click the Save button", Effect.OTHER),
        ("click(90, 130)", 'Press "Save"', Effect.OTHER),  # beside
        ("click(90, 108)", 'Press "Save"', Effect.EXPECTED),  # nothing is between: buttons are wide
        ("click(140, 108)", "Click the Undo button", Effect.EXPECTED),  # nobody can tell where that is
        ("click(140, 108)", "", Effect.EXPECTED),
    ],
)
def test_who_can_read_names_clicks_that_fell_elsewhere(doing: str, intent: str, effect: Effect) -> None:
    entry = Watcher(reader=Reads()).entry(step(doing, intent), screen(), screen(TICK))
    assert entry.effect is effect
    assert ("'Save' is elsewhere" in entry.note) == (effect is Effect.OTHER)


@pytest.mark.parametrize(
    ("one", "other"),
    [("drag(5, 5, 50, 5)", "drag(5, 5, 5, 50)"), ("wait(1)", "wait(5)"), ("terminate(True)", "terminate(False)")],
)
def test_actions_are_the_same_only_in_all_their_parts(one: str, other: str) -> None:
    assert same(Action.parse(one), Action.parse(one))
    assert not same(Action.parse(one), Action.parse(other))


def test_sizes_may_change() -> None:
    small = Screen(np.zeros((50, 60, 3), dtype=np.uint8))
    assert Watcher().entry(step("click(5, 5)"), screen(), small).effect is Effect.EXPECTED


def test_steps_fold_into_macro_actions_with_their_evidence() -> None:
    watcher, history = Watcher(), History()
    written = Box(60, 40, 110, 54)
    history += watcher.entry(step("click(60, 47)", "Click the Name field"), screen(), screen(CARET), history)
    history += watcher.entry(step("type('Ada')"), screen(CARET), screen(written), history)
    history += watcher.entry(step("click(20, 140)", "Click Save"), screen(written), screen(written), history)
    history += watcher.entry(step("click(21, 140)", "Click Save"), screen(written), screen(written), history)
    macros = fold(history)
    assert [len(each.entries) for each in macros] == [2, 2]
    assert macros[0].line.startswith("1–2. typed 'Ada' after: Click the Name field → changed")
    assert macros[1].effect is Effect.NOTHING
    assert macros[0].entries[1].after == screen(written)
    assert loop_of_no_effect(history) == 2
    assert told(history).endswith("carried out 2 times and had no effect: do something else.")
