"""Reading: what a click fell on, by the text that is seen there, against what its intent names.

Whoever can read text from pixels can be the reader; without one, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Protocol

from presage_gui.action import Kind
from presage_gui.screen import Box, Screen
from presage_gui.step import Step


class Seen(Protocol):
    """A line of text and where it is."""

    @property
    def text(self) -> str: ...

    @property
    def box(self) -> Box: ...


class Reader(Protocol):
    def read(self, screen: Screen) -> Sequence[Seen]: ...


_LEADING = re.compile(r"^(i will )?(click|press|select|focus|put the cursor into|hit)( on)?( the)? ", re.IGNORECASE)
_TRAILING = re.compile(
    r"( (button|link|tab|menu item|item|checkbox|radio button|section|label|option|cell|icon))?( to continue)?$",
    re.IGNORECASE,
)
_ALIKE = 0.75
_NEAR = 6
_APART = 14


def named(intent: str) -> str:
    """What an intent calls the thing that it is about; empty where that cannot be told.

    >>> named('I will click the button "Submit"'), named("Press the Save button"), named("Wait a moment")
    ('Submit', 'Save', '')
    """
    if quoted := re.findall(r'"([^"]+)"', intent):
        return quoted[0] if len(quoted) == 1 else ""
    if not (begun := _LEADING.match(intent)):
        return ""
    return _TRAILING.sub("", intent[begun.end() :]).strip()


def fell_elsewhere(reader: Reader, screen: Screen, step: Step) -> str:
    """How the text under a click differs from what is named, if that is seen elsewhere; empty where it does not."""
    at, name = step.action.at, named(step.intent)
    if step.action.kind is not Kind.CLICK or not at or len(name) < 2:
        return ""
    lines = reader.read(screen)
    under = [line for line in lines if line.box.grown(_NEAR).holds(at.x, at.y)]
    if any(_alike(name, line.text) for line in under):
        return ""
    meant = [line for line in lines if _alike(name, line.text) and not line.box.grown(_APART).holds(at.x, at.y)]
    # What the goal says stands on many screens, too: a single place is needed to say where it is.
    if not meant:
        return ""
    return f"the click fell {'on ' + repr(under[0].text[:30]) if under else 'beside'}, and {name[:30]!r} is elsewhere"


def _alike(name: str, text: str) -> bool:
    a, b = (re.sub(r"\W+", "", each.lower()) for each in (name, text))
    if not a or not b:
        return False
    return a == b or SequenceMatcher(None, a, b).ratio() >= _ALIKE
