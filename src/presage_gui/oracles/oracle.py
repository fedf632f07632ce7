"""Oracle: the steps that are right now, read from the tree of a MiniWoB++ page. Critics never see it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from presage_gui.action import Action, Kind, Point
from presage_gui.environments.miniwob import SIZE, MiniWob
from presage_gui.screen import Box

_SPREAD = 0.6
"""Clicks fall in the middle so many tenths of an element."""


@dataclass(frozen=True)
class Right:
    """One step that is right now, and what else would be as right."""

    action: Action
    name: str
    """What the element is called; empty where it has no name."""
    role: str
    boxes: tuple[Box, ...] = ()
    """Where a click must fall, or a drag must start."""
    to_box: Box | None = None
    """Where a drag must end."""
    to_name: str = ""
    most: float = 0.0
    """How far a scroll can go."""
    then: str = ""
    """Of a click that gives a field the focus: what is typed next."""

    def allows(self, action: Action, box_decides: bool = True) -> bool:
        """Whether this action does the same. Where a click must fall may be decided elsewhere, by the page itself."""
        if action.kind is not self.action.kind:
            return False
        match action.kind:
            case Kind.TYPE | Kind.ANSWER:
                return action.text == self.action.text
            case Kind.KEY:
                return action.keys == self.action.keys
            case Kind.WAIT | Kind.TERMINATE:
                return action.success == self.action.success
            case Kind.SCROLL:
                same_way = action.dy * self.action.dy > 0 and not action.dx
                return same_way and self._starts(action) and min(abs(action.dy), self.most) <= max(1.6 * abs(self.action.dy), 30)
        starts = self._starts(action) or not box_decides
        if action.kind is not Kind.DRAG or not starts:
            return starts
        return bool(action.to and self.to_box and self.to_box.holds(action.to.x, action.to.y))

    def _starts(self, action: Action) -> bool:
        return bool(action.at and any(box.holds(action.at.x, action.at.y) for box in self.boxes))

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action.to_json(), "name": self.name, "role": self.role,
            "boxes": [[round(edge, 1) for edge in box.to_json()] for box in self.boxes],
            "to_box": self.to_box and [round(edge, 1) for edge in self.to_box.to_json()],
            "to_name": self.to_name, "most": self.most, "then": self.then,
        }  # fmt: skip

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Right:
        to_box = Box(*kept["to_box"]) if kept["to_box"] else None
        boxes = tuple(Box(*box) for box in kept["boxes"])
        return cls(
            Action.parse(kept["action"]), kept["name"], kept["role"], boxes, to_box,
            kept["to_name"], kept["most"], kept["then"],
        )  # fmt: skip


@dataclass(frozen=True)
class Element:
    """Something that is seen on the page."""

    box: Box
    name: str
    role: str
    tag: str
    value: str = ""


@dataclass
class Oracle:
    """Reads the page of an environment."""

    environment: MiniWob
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def ready(self) -> None:
        """After each reset: the page is a new one."""
        page = self.environment.page
        page.evaluate(_library())
        page.evaluate("([width, height]) => { presage.width = width; presage.height = height }", list(SIZE))

    @property
    def known(self) -> bool:
        """Whether there is an oracle for this task."""
        return bool(self.environment.page.evaluate("task => task in presage.oracles", self.environment.task))

    def right(self) -> list[Right]:
        """The steps that are right now, the preferred one first; none where the task is over or cannot be saved."""
        u, v = self.rng.random(), self.rng.random()
        told = self.environment.page.evaluate(
            "([task, u, v, spread]) => presage.next(task, u, v, spread)", [self.environment.task, u, v, _SPREAD]
        )
        return [_right(each) for each in told["steps"]]

    def allows(self, rights: list[Right], action: Action) -> bool:
        """Whether an action is one of the right ones; of clicks, the page itself says what they hit."""
        if action.kind in (Kind.CLICK, Kind.DRAG) and action.at:
            index = self.environment.page.evaluate(
                "([x, y, kind]) => presage.hit(x, y, kind)", [action.at.x, action.at.y, str(action.kind)]
            )
            same_kind = [each for each in rights if each.action.kind is action.kind]
            return index >= 0 and any(each.allows(action, box_decides=False) for each in same_kind)
        return any(each.allows(action) for each in rights)

    def elements(self) -> list[Element]:
        found = self.environment.page.evaluate("() => presage.elements()")
        return [Element(Box(*each["box"]), each["name"], each["role"], each["tag"], str(each["value"])) for each in found]


def _right(told: Mapping[str, Any]) -> Right:
    kind = Kind(told["kind"])
    at, to = told.get("at"), told.get("to")
    fields: dict[str, Any] = {"at": Point(*at)} if at else {}
    if kind is Kind.DRAG:
        fields["to"] = Point(*to)
    elif kind is Kind.TYPE:
        fields["text"] = told["text"]
    elif kind is Kind.KEY:
        fields["keys"] = tuple(told["keys"])
    elif kind is Kind.SCROLL:
        fields["dy"] = told["dy"]
    elif kind is Kind.WAIT:
        fields["seconds"] = told["seconds"]
    to_box = Box(*told["toBox"]) if told.get("toBox") else None
    boxes = tuple(Box(*box) for box in told.get("boxes", ()))
    action = Action(kind, **fields)
    return Right(
        action, told["name"], told["role"], boxes, to_box,
        told.get("toName", ""), told.get("most", 0.0), told.get("then", ""),
    )  # fmt: skip


@cache
def _library() -> str:
    here = Path(__file__).parent
    names = ("library", *sorted(file.stem for file in here.glob("*.js") if file.stem != "library"))
    return "() => {" + "\n".join((here / f"{name}.js").read_text() for name in names) + "}"
