"""Compare the text under a click with the element that the click's intent names.

Any object with a `read` method can be the reader of text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Protocol

from presage_gui.action import Kind, Point
from presage_gui.screen import Box, Screen
from presage_gui.step import Step


class Seen(Protocol):
    """A line of text and its position on the screen."""

    @property
    def text(self) -> str: ...

    @property
    def box(self) -> Box: ...


class Reader(Protocol):
    def read(self, screen: Screen) -> Sequence[Seen]: ...


_LEADING = re.compile(r"^(i will )?(click|press|select|focus|put the cursor into|hit)( on)?( the)? ", re.IGNORECASE)
_TRAILING = re.compile(
    r"( (button|link|tab|menu item|item|checkbox|radio button|section|label|option|cell|icon))?"
    r"( to focus it)?( to continue)?$",
    re.IGNORECASE,
)
_BESIDE = re.compile(r" (?:beside|at|from|of|for) (?!@)")
"""The text after this names the row, as in "Even beside 6" and "mail from Ada". Handles (`@ada`) are excluded: they
name posts, which are higher than rows."""
_FIELD = re.compile(r" (field|box|area)$", re.IGNORECASE)
_ALIKE = 0.75
_NEAR = 6
_ROW = 24
"""The maximum vertical distance between a field and its label, in pixels."""
_ABOVE, _BELOW = 10, 30
"""A row begins and ends this many pixels above and below the top of its label."""


def named(intent: str) -> str:
    """Return the name of the element that an intent is about, or an empty string if it cannot be determined.

    >>> named('I will click the button "Submit"'), named("Press the Save button"), named("Wait a moment")
    ('Submit', 'Save', '')
    """
    if quoted := re.findall(r'"([^"]+)"', intent):
        return quoted[0] if len(quoted) == 1 else ""
    if not (begun := _LEADING.match(intent)):
        return ""
    return _TRAILING.sub("", intent[begun.end() :]).strip()


def fell_elsewhere(reader: Reader, screen: Screen, step: Step) -> str:
    """Return a message if a click missed the element that its intent names and that element is seen elsewhere.

    Returns an empty string otherwise."""
    at, name = step.action.at, named(step.intent)
    if step.action.kind is not Kind.CLICK or not at or not name:
        return ""
    lines = reader.read(screen)
    under = [line for line in lines if line.box.grown(_NEAR).holds(at.x, at.y)]
    label = _FIELD.sub("", name)
    if label != name:
        labels = [line for line in lines if line.text.endswith(":") and _alike(label, line.text)]
        elsewhere = bool(labels) and all(_rows_between(line, at) > _ROW for line in labels)
    elif meant := [line for line in lines if _alike(name, line.text)]:
        beside = not under and any(_is_next_in_row(line, lines, at) for line in meant)
        elsewhere = not beside and not any(line in meant for line in under)
    else:
        rows = [line for line in lines if _alike(_BESIDE.split(name, maxsplit=1)[-1], line.text)]
        elsewhere = bool(rows) and not any(-_ABOVE <= at.y - line.box.top <= _BELOW for line in rows)
    if not elsewhere:
        return ""
    return f"the click fell {'on ' + repr(under[0].text[:30]) if under else 'beside'}, and {name[:30]!r} is elsewhere"


def _rows_between(line: Seen, at: Point) -> float:
    """Return the vertical distance in pixels between a line and a point."""
    return max(line.box.top - at.y, 0, at.y - line.box.bottom)


def _is_next_in_row(line: Seen, lines: Sequence[Seen], at: Point) -> bool:
    """Whether a point is in the row of a line with no text in between. Both are then on one wide button."""
    if _rows_between(line, at) > _NEAR:
        return False
    first, last = sorted((at.x, line.box.middle[0]))
    return not any(
        each is not line and _rows_between(each, at) <= 0 and first < each.box.middle[0] < last for each in lines
    )


def _alike(name: str, text: str) -> bool:
    a, b = (re.sub(r"\W+", "", each.lower()) for each in (name, text))
    if not a or not b:
        return False
    return a == b or SequenceMatcher(None, a, b).ratio() >= _ALIKE
