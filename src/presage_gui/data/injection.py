"""Errors put into right steps: one way or several for each of the twelve classes.

Nothing here says whether a step is wrong: the oracle does, of the step as it came out. A click that was moved and
still falls on what is meant is good.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from presage_gui.action import Action, Kind, Point
from presage_gui.critic import ErrorClass
from presage_gui.data.words import FIELDS, intent
from presage_gui.oracles.element import Element
from presage_gui.oracles.right import Right
from presage_gui.screen import Box


@dataclass(frozen=True)
class Proposed:
    """A step as an agent words it; `action` is text, since it may be malformed."""

    action: str | Action
    intent: str
    error: ErrorClass | None = None
    """The class that it was made for; None for a right step."""


@dataclass
class Situation:
    """What an injector knows."""

    goal: str
    right: Sequence[Right]
    elements: Sequence[Element]
    size: tuple[int, int]
    rng: random.Random
    done: Sequence[Right] = field(default=())
    """The right steps that were carried out, the last one last."""
    missed: Right | None = None
    """What the last step was meant to be, if it was wrong and is not mended."""
    missed_step: Proposed | None = None
    covered: Right | None = None
    """The step that would be right, if the page were not busy."""
    over: bool = False

    @property
    def first(self) -> Right | None:
        return self.right[0] if self.right else None

    def others(self) -> list[Element]:
        """Elements that no right step touches, with a name or a role of their own."""
        touched = [box for each in self.right for box in each.boxes]
        free = [e for e in self.elements if e.role != "element" or e.name]
        return [e for e in free if not any(_overlap(e.box, box) for box in touched)]


Injector = Callable[[Situation], Proposed | None]
ABSENT = (
    "Continue", "Settings", "Log out", "Help", "Download", "Next page", "Sign up", "Advanced options", "Refresh",
    "Save as", "Share", "Print", "Home", "Upload", "Confirm order", "Accept all", "Profile", "Add to cart",
)  # fmt: skip
SUBMITTING = ("submit", "search", "go!", "book", "create", "send", "ok", "login", "next")


def good(s: Situation, right: Right) -> Proposed:
    """A right step in the agent's words."""
    return Proposed(right.action, intent(right.action, right.name, right.role, s.rng, right.to_name))


def grounding(s: Situation) -> Proposed | None:
    """The intent is right and the place is not: near misses, mostly."""
    right = s.first
    if not right or right.action.kind is not Kind.CLICK or not right.boxes:
        return None
    box, at = max(right.boxes, key=lambda each: each.area), right.action.at
    assert at
    away = s.rng.choice((4, 7, 10, 15, 25, 40))
    side = s.rng.choice("lrtb")
    x = {"l": box.left - away, "r": box.right + away}.get(side, at.x)
    y = {"t": box.top - away, "b": box.bottom + away}.get(side, at.y)
    return _moved(s, right, Point(round(x), round(y)), ErrorClass.GROUNDING)


def prerequisite(s: Situation) -> Proposed | None:
    """Typing before the field has the focus; submitting before anything is done; what is not in view yet."""
    right = s.first
    if not right or s.over:
        return None
    if right.action.kind is Kind.CLICK and right.role in FIELDS:
        action = Action(Kind.TYPE, text=right.then or s.rng.choice(_texts(s.goal)))
        return Proposed(action, intent(action, right.name, right.role, s.rng), ErrorClass.PREREQUISITE)
    if right.action.kind is Kind.SCROLL and right.boxes and right.name:
        action = Action(Kind.CLICK, at=_anywhere(right.boxes[0], s.rng))
        return Proposed(action, intent(action, right.name, "", s.rng), ErrorClass.PREREQUISITE)
    if not s.done:
        return _submitted(s, ErrorClass.PREREQUISITE)
    return None


def meaning(s: Situation) -> Proposed | None:
    """Another element or text than the goal asks for, with an intent that says so."""
    right = s.first
    if not right:
        return None
    if right.action.kind is Kind.TYPE:
        others = [text for text in _texts(s.goal) if text.lower() != right.action.text.lower()]
        return _typed(s, right, others, ErrorClass.MEANING)
    same = [e for e in s.others() if e.role == right.role and e.name != right.name]
    named = same or [e for e in s.others() if e.name and e.role != "element"]
    return _on(s, s.rng.choice(named), ErrorClass.MEANING) if named else None


def ending(s: Situation) -> Proposed | None:
    """Ending too early, giving up, or an answer where none is asked for; after the end, not ending."""
    if s.over:
        action = Action(Kind.TERMINATE, success=False)
    else:
        answer = Action(Kind.ANSWER, text=s.rng.choice(_texts(s.goal)))
        action = s.rng.choice(
            [Action(Kind.TERMINATE), Action(Kind.TERMINATE), Action(Kind.TERMINATE, success=False), answer]
        )
    return Proposed(action, intent(action, "", "", s.rng), ErrorClass.ENDING)


def constraint(s: Situation) -> Proposed | None:
    """Submitting when a part is still to be done; a text that leaves out a condition."""
    right = s.first
    if not right or s.over:
        return None
    if right.action.kind is Kind.TYPE:
        text = right.action.text
        ways = [
            text.swapcase(),
            text.lower(),
            text.upper(),
            text[: max(1, len(text) // 2)],
            f"{text} {text[:3]}",
            text.strip(" ."),
        ]
        changed = [way for way in ways if way != text and way]
        return _typed(s, right, changed, ErrorClass.CONSTRAINT)
    return _submitted(s, ErrorClass.CONSTRAINT) if s.done else None


def malformed(s: Situation) -> Proposed | None:
    """Coordinates off the screen or in another space than they say; calls that cannot be read."""
    right = s.first
    if not right:
        return None
    said = intent(right.action, right.name, right.role, s.rng, right.to_name)
    at, (width, height) = right.action.at, s.size
    if at and s.rng.random() < 0.75:
        places = [
            Point(at.x + width, at.y), Point(at.x, at.y + height), Point(-at.x - 5, at.y),
            Point(round(at.x / width, 3), round(at.y / height, 3)), Point(width + 1, height + 1),
            Point(round(at.x / width * 1000), round(at.y / height * 1000)),
        ]  # fmt: skip
        return Proposed(replace(right.action, at=s.rng.choice(places)), said, ErrorClass.MALFORMED)
    calls = [
        "click()",
        f"click({right.name or 'button'!r})",
        "key('submit')",
        "type()",
        "press_button(1)",
        "scroll(0, 0)",
        "{",
    ]
    return Proposed(s.rng.choice(calls), said, ErrorClass.MALFORMED)


def observation(s: Situation) -> Proposed | None:
    """Going on as if the last step had worked, or doing again what had no effect."""
    if not s.missed or not s.missed_step or s.over:
        return None
    if s.rng.random() < 0.5 and isinstance(s.missed_step.action, Action):
        return Proposed(s.missed_step.action, s.missed_step.intent, ErrorClass.OBSERVATION)
    if s.missed.role in FIELDS and s.missed.action.kind is Kind.CLICK:
        action = Action(Kind.TYPE, text=s.missed.then or s.rng.choice(_texts(s.goal)))
        return Proposed(action, intent(action, s.missed.name, s.missed.role, s.rng), ErrorClass.OBSERVATION)
    return _submitted(s, ErrorClass.OBSERVATION)


def detour(s: Situation) -> Proposed | None:
    """What is done already, done again; something that has nothing to do with the goal."""
    if s.done and s.rng.random() < 0.6:
        last = s.rng.choice(s.done[-2:])
        return replace(good(s, last), error=ErrorClass.DETOUR)
    if s.rng.random() < 0.3:
        action = Action(Kind.KEY, keys=(s.rng.choice(("escape", "tab", "f5", "home")),))
        return Proposed(action, intent(action, "", "", s.rng), ErrorClass.DETOUR)
    if s.rng.random() < 0.3:
        action = Action(Kind.SCROLL, at=Point(s.size[0] // 4, s.size[1] // 3), dy=s.rng.choice((-120, 120, 240)))
        return Proposed(action, intent(action, "", "", s.rng), ErrorClass.DETOUR)
    idle = [e for e in s.others() if e.role in ("element", "label", "cell", "item") and e.name]
    return _on(s, s.rng.choice(idle), ErrorClass.DETOUR) if idle else None


def parameter(s: Situation) -> Proposed | None:
    """A drag that ends elsewhere, a scroll that goes the other way."""
    right = s.first
    if not right or right.action.kind not in (Kind.DRAG, Kind.SCROLL):
        return None
    said = intent(right.action, right.name, right.role, s.rng, right.to_name)
    action, at, to = right.action, right.action.at, right.action.to
    if action.kind is Kind.SCROLL:
        dy = s.rng.choice((-action.dy, -120 if action.dy > 0 else 120, action.dy * 12))
        return Proposed(replace(action, dy=dy), said, ErrorClass.PARAMETER)
    assert at
    assert to
    dx, dy = to.x - at.x, to.y - at.y
    ends = [
        Point(at.x - dx, at.y - dy), Point(at.x + dx * 2.2, at.y + dy * 2.2), Point(at.x + dx * 0.4, at.y + dy * 0.4),
        Point(to.x + s.rng.choice((-30, 30)), to.y + s.rng.choice((-25, 25))), Point(at.x + dy, at.y - dx),
    ]  # fmt: skip
    end = s.rng.choice(ends)
    return Proposed(replace(action, to=_inside(end, s.size)), said, ErrorClass.PARAMETER)


def hallucinated(s: Situation) -> Proposed | None:
    """An element that is not on the screen."""
    seen = " ".join(e.name.lower() for e in s.elements) + s.goal.lower()
    absent = [name for name in ABSENT if name.lower() not in seen]
    area = (
        s.rng.choice(s.elements).box
        if s.elements and s.rng.random() < 0.5
        else Box(5, 60, s.size[0] / 2, s.size[1] - 110)
    )
    action = Action(Kind.CLICK, at=_anywhere(area, s.rng))
    role = s.rng.choice(("button", "link", "menu item", "tab", "icon"))
    return Proposed(action, intent(action, s.rng.choice(absent), role, s.rng), ErrorClass.HALLUCINATED)


def timing(s: Situation) -> Proposed | None:
    """Acting while the page is busy, waiting when it is not."""
    if s.covered:
        return replace(good(s, s.covered), error=ErrorClass.TIMING)
    if s.over or (s.first and s.first.action.kind is Kind.WAIT):
        return None
    action = Action(Kind.WAIT, seconds=s.rng.choice((1, 2, 5)))
    return Proposed(action, intent(action, "", "", s.rng), ErrorClass.TIMING)


def disagreement(s: Situation) -> Proposed | None:
    """The intent is right, the action does something else."""
    right = s.first
    if not right:
        return None
    said = intent(right.action, right.name, right.role, s.rng, right.to_name)
    if right.action.kind is Kind.TYPE:
        text = _mistyped(right.action.text, s.rng)
        return Proposed(Action(Kind.TYPE, text=text), said, ErrorClass.DISAGREEMENT) if text else None
    others = [e for e in s.others() if e.role != "element" or e.name]
    if right.action.kind is Kind.CLICK and s.rng.random() < 0.2:
        action = s.rng.choice([
            Action(Kind.RIGHT, at=right.action.at), Action(Kind.SCROLL, at=right.action.at, dy=120),
            Action(Kind.TYPE, text=right.name or "text"),
        ])  # fmt: skip
        return Proposed(action, said, ErrorClass.DISAGREEMENT)
    if not others:
        return None
    return replace(_on(s, s.rng.choice(others), ErrorClass.DISAGREEMENT), intent=said)


INJECTORS: dict[ErrorClass, Injector] = {
    ErrorClass.GROUNDING: grounding, ErrorClass.PREREQUISITE: prerequisite, ErrorClass.MEANING: meaning,
    ErrorClass.ENDING: ending, ErrorClass.CONSTRAINT: constraint, ErrorClass.MALFORMED: malformed,
    ErrorClass.OBSERVATION: observation, ErrorClass.DETOUR: detour, ErrorClass.PARAMETER: parameter,
    ErrorClass.HALLUCINATED: hallucinated, ErrorClass.TIMING: timing, ErrorClass.DISAGREEMENT: disagreement,
}  # fmt: skip


def _typed(s: Situation, right: Right, texts: Sequence[str], error: ErrorClass) -> Proposed | None:
    if not texts:
        return None
    action = Action(Kind.TYPE, text=s.rng.choice(texts))
    return Proposed(action, intent(action, right.name, right.role, s.rng), error)


def _submitted(s: Situation, error: ErrorClass) -> Proposed | None:
    buttons = [e for e in s.others() if e.name.lower().startswith(SUBMITTING) and e.role in ("button", "element")]
    return _on(s, s.rng.choice(buttons), error) if buttons else None


def _on(s: Situation, element: Element, error: ErrorClass) -> Proposed:
    action = Action(Kind.CLICK, at=_anywhere(element.box, s.rng))
    return Proposed(action, intent(action, element.name, element.role, s.rng), error)


def _moved(s: Situation, right: Right, to: Point, error: ErrorClass) -> Proposed:
    said = intent(right.action, right.name, right.role, s.rng)
    return Proposed(Action(right.action.kind, at=_inside(to, s.size)), said, error)


def _texts(goal: str) -> list[str]:
    """Texts that an agent might type: what the goal quotes, and its longer words."""
    quoted = [part for part in goal.split('"')[1::2] if part.strip()]
    return quoted + [word.strip('".,!?') for word in goal.split() if len(word) > 4 and word.strip('".,!?')] or ["text"]


def _mistyped(text: str, rng: random.Random) -> str:
    """The text with one slip of a finger; empty where it is too short for one."""
    if len(text) < 2:
        return text + "x"
    i = rng.randrange(len(text) - 1)
    slips = [text[:i] + text[i + 1 :], text[: i + 1] + text[i:], text[:i] + text[i + 1] + text[i] + text[i + 2 :]]
    changed = [slip for slip in slips if slip != text]
    return rng.choice(changed) if changed else text + text[-1]


def _anywhere(box: Box, rng: random.Random) -> Point:
    """A place in the middle half of a box."""
    return Point(
        round(box.left + box.width * rng.uniform(0.25, 0.75)), round(box.top + box.height * rng.uniform(0.25, 0.75))
    )


def _inside(point: Point, size: tuple[int, int]) -> Point:
    return Point(round(min(max(point.x, 1), size[0] - 2)), round(min(max(point.y, 1), size[1] - 2)))


def _overlap(a: Box, b: Box) -> bool:
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
