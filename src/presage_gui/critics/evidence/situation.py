"""The `Situation` class: everything that a critic uses for one check, including the earlier steps and their effects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from presage_gui.action import POINTING, Action, Kind
from presage_gui.critics.wording import FILLERS, Wording, is_finishing
from presage_gui.history import Entry, History
from presage_gui.screen import Screen
from presage_gui.sight.boxes import ring
from presage_gui.sight.matching import contained, likeness, tokens
from presage_gui.sight.scene import Element, Scene, Viewer
from presage_gui.step import Step

_LOOKED_BACK = 12
"""The number of earlier steps that are considered."""
_ALIKE = 0.85


@dataclass(frozen=True)
class Past:
    """One earlier step, as far as its screens show it."""

    action: Action
    had_effect: bool
    name: str
    """The name of the element under the step's position. Empty if unknown."""
    kind: str
    """The kind of the element under the step's position, or "none"."""
    entry: Entry


@dataclass(frozen=True)
class Situation:
    """The goal, the past, the screen and the step."""

    goal: Wording
    intent: Wording
    step: Step
    action: Action
    """The step's action in pixels."""
    scene: Scene
    past: tuple[Past, ...]
    steps_before: int

    @classmethod
    def of(cls, viewer: Viewer, goal: str, history: History, screen: Screen, step: Step) -> Situation:
        """Make the situation of a step. Raises ActionError if the action cannot be carried out on this screen."""
        action = step.action.on(screen.size)
        scene = viewer.look(screen, goal)
        past = tuple(_past(viewer, goal, entry) for entry in history.entries[-_LOOKED_BACK:])
        return cls(Wording(goal), Wording(step.intent), step, action, scene, past, len(history))

    # -- what is meant ------------------------------------------------------------------------------------------------

    @cached_property
    def meant(self) -> str:
        """What the intent names: its first quote, or the intent without instruction words at its ends."""
        if self.intent.quoted:
            return self.intent.quoted[0]
        return core(self.intent.text) or field_of(self.intent.text)

    # -- what is done -------------------------------------------------------------------------------------------------

    @cached_property
    def typed(self) -> tuple[str, ...]:
        return tuple(each.action.text for each in self.past if each.action.kind is Kind.TYPE and each.had_effect)

    @cached_property
    def touched(self) -> tuple[str, ...]:
        """The names of the elements under earlier actions other than typing."""
        return tuple(each.name for each in self.past if each.name and each.action.kind is not Kind.TYPE)

    @cached_property
    def pending(self) -> tuple[str, ...]:
        """The phrases of the goal that no earlier step has typed or touched."""
        return tuple(phrase for phrase in self.goal.phrases if not self.is_done(phrase))

    def is_done(self, phrase: str) -> bool:
        if any(contained(phrase, text) >= _ALIKE or contained(text, phrase) >= _ALIKE for text in self.typed):
            return True
        return any(likeness(phrase, name) >= _ALIKE or contained(phrase, name) >= _ALIKE for name in self.touched)

    @cached_property
    def focused(self) -> Element | None:
        """The field or button with a focus ring, or None."""
        pixels = self.scene.screen.pixels
        fields = [(ring(pixels, each.area), each) for each in self.scene.elements if each.kind in ("field", "button")]
        best = max(fields, key=lambda pair: pair[0], default=(0.0, None))
        return best[1] if best[0] > 0.5 else None

    @cached_property
    def last(self) -> Past | None:
        return self.past[-1] if self.past else None

    @cached_property
    def fruitless(self) -> int:
        """The number of consecutive last steps that changed nothing."""
        count = 0
        for each in reversed(self.past):
            if each.had_effect:
                break
            count += 1
        return count

    @cached_property
    def has_finished(self) -> bool:
        """Whether the last step pressed a finishing button, such as Submit."""
        return bool(self.last and self.last.action.kind in POINTING and is_finishing(self.last.name))


def core(text: str) -> str:
    """Return a sentence without instruction words at its ends.

    >>> core("Click on the Book for $130 button to continue"), core("Put the cursor into the text field")
    ('book for $130', '')
    """
    words = tokens(text)
    ends = FILLERS | {"continue", "i", "will", "put", "cursor", "icon", "see", "rest", "visible", "until", "replace"}
    while words and words[0] in ends:
        words = words[1:]
    while words and words[-1] in ends:
        words = words[:-1]
    return " ".join(words)


def field_of(text: str) -> str:
    """Return the name of a field in an intent when the name is itself an instruction word, or an empty string.

    >>> field_of("Focus the to field"), field_of("Click the text field")
    ('to', '')
    """
    match = re.search(r"\bthe (\w+) field\b", text.casefold())
    return match[1] if match and match[1] not in ("text", "input", "first", "last", "next") else ""


def _past(viewer: Viewer, goal: str, entry: Entry) -> Past:
    action, before = entry.step.action, entry.before
    name, kind = "", "none"
    if action.at is not None:
        at = action.at.on(before.size)
        element = viewer.look(before, goal).element_at(at.x, at.y)
        if element is not None:
            name, kind = element.name, element.kind
    return Past(action, entry.before.digest != entry.after.digest, name, kind, entry)
