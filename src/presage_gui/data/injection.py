"""Error injection: turn right steps into wrong ones, in one or more ways for each of the twelve error classes.

The injectors do not label the steps. The oracle judges each resulting step: a click that was moved and still hits its
target is good.
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
    """A step as an agent proposes it. `action` may be text, as it may be malformed."""

    action: str | Action
    intent: str
    error: ErrorClass | None = None
    """The error class that was injected. None for a right step."""


@dataclass
class Situation:
    """The input of an injector."""

    goal: str
    right: Sequence[Right]
    elements: Sequence[Element]
    size: tuple[int, int]
    rng: random.Random
    done: Sequence[Right] = field(default=())
    """The right steps that were carried out, in order."""
    missed: Right | None = None
    """The right step that the last wrong step replaced. None if it has been carried out since."""
    missed_step: Proposed | None = None
    """The wrong step that was carried out instead of `missed`."""
    covered: Right | None = None
    """The step that would be right if the page were not busy."""
    over: bool = False

    @property
    def first(self) -> Right | None:
        return self.right[0] if self.right else None

    def others(self) -> list[Element]:
        """Return the elements that no right step touches and that have a name or a specific role."""
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
    """Return a right step with an intent in an agent's words."""
    return Proposed(right.action, intent(right.action, right.name, right.role, s.rng, right.to_name))


def grounding(s: Situation) -> Proposed | None:
    """Keep the intent and move the click 4 to 40 pixels past the element's edge."""
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
    """Type before the field has the focus, click what is not scrolled into view yet, or submit before any step."""
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
    """Use another element or text than the goal asks for, with an intent that matches the action."""
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
    """End too early, give up, or answer without a question. In a finished task, report that it cannot be done."""
    if s.over:
        action = Action(Kind.TERMINATE, success=False)
    else:
        answer = Action(Kind.ANSWER, text=s.rng.choice(_texts(s.goal)))
        action = s.rng.choice(
            [Action(Kind.TERMINATE), Action(Kind.TERMINATE), Action(Kind.TERMINATE, success=False), answer]
        )
    return Proposed(action, intent(action, "", "", s.rng), ErrorClass.ENDING)


def constraint(s: Situation) -> Proposed | None:
    """Submit while a part is still to be done, or type a variant of the text that breaks a condition."""
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
    """Return coordinates off the screen or in the wrong unit, or a call that cannot be parsed."""
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
    """After a wrong step, continue as if it had worked, or repeat it."""
    if not s.missed or not s.missed_step or s.over:
        return None
    if s.rng.random() < 0.5 and isinstance(s.missed_step.action, Action):
        return Proposed(s.missed_step.action, s.missed_step.intent, ErrorClass.OBSERVATION)
    if s.missed.role in FIELDS and s.missed.action.kind is Kind.CLICK:
        action = Action(Kind.TYPE, text=s.missed.then or s.rng.choice(_texts(s.goal)))
        return Proposed(action, intent(action, s.missed.name, s.missed.role, s.rng), ErrorClass.OBSERVATION)
    return _submitted(s, ErrorClass.OBSERVATION)


def detour(s: Situation) -> Proposed | None:
    """Repeat a step that is done, or do something unrelated to the goal."""
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
    """End a drag elsewhere, or scroll in the other direction or too far."""
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
    """Click with an intent that names an element that is not on the screen."""
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
    """Act while the page is busy, or wait when it is not."""
    if s.covered:
        return replace(good(s, s.covered), error=ErrorClass.TIMING)
    if s.over or (s.first and s.first.action.kind is Kind.WAIT):
        return None
    action = Action(Kind.WAIT, seconds=s.rng.choice((1, 2, 5)))
    return Proposed(action, intent(action, "", "", s.rng), ErrorClass.TIMING)


def disagreement(s: Situation) -> Proposed | None:
    """Keep the right intent with an action that does something else."""
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
    """Return texts that an agent might type: the goal's quotes and its words of more than four letters."""
    quoted = [part for part in goal.split('"')[1::2] if part.strip()]
    return quoted + [word.strip('".,!?') for word in goal.split() if len(word) > 4 and word.strip('".,!?')] or ["text"]


def _mistyped(text: str, rng: random.Random) -> str:
    """Return the text with one typing error: a letter dropped, doubled, swapped or added."""
    if len(text) < 2:
        return text + "x"
    i = rng.randrange(len(text) - 1)
    slips = [text[:i] + text[i + 1 :], text[: i + 1] + text[i:], text[:i] + text[i + 1] + text[i] + text[i + 2 :]]
    changed = [slip for slip in slips if slip != text]
    return rng.choice(changed) if changed else text + text[-1]


def _anywhere(box: Box, rng: random.Random) -> Point:
    """Return a random point in the middle half of a box."""
    return Point(
        round(box.left + box.width * rng.uniform(0.25, 0.75)), round(box.top + box.height * rng.uniform(0.25, 0.75))
    )


def _inside(point: Point, size: tuple[int, int]) -> Point:
    return Point(round(min(max(point.x, 1), size[0] - 2)), round(min(max(point.y, 1), size[1] - 2)))


def _overlap(a: Box, b: Box) -> bool:
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
