"""The `Oracle` class: reads the correct next steps from the DOM of a MiniWoB++ page. Critics never see them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from presage_gui.action import Action, Kind, Point
from presage_gui.environments.miniwob import SIZE, MiniWob
from presage_gui.oracles.element import Element
from presage_gui.oracles.right import Right
from presage_gui.screen import Box

_SPREAD = 0.6
"""Clicks fall within this central share of an element's width and height."""


@dataclass
class Oracle:
    """Finds the correct next steps on an environment's page. `rng` chooses where in an element a click falls."""

    environment: MiniWob
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def ready(self) -> None:
        """Load the oracle's JavaScript into the page. Needed after each reset, which loads a new page."""
        page = self.environment.page
        page.evaluate(_library())
        page.evaluate("([width, height]) => { presage.width = width; presage.height = height }", list(SIZE))

    @property
    def known(self) -> bool:
        """Whether there is an oracle for this task."""
        return bool(self.environment.page.evaluate("task => task in presage.oracles", self.environment.task))

    def right(self) -> list[Right]:
        """Return the correct steps, the preferred one first. Empty if the task is over or can no longer succeed."""
        if not self.environment.page.evaluate("'presage' in window"):
            self.ready()
        u, v = self.rng.random(), self.rng.random()
        told = self.environment.page.evaluate(
            "([task, u, v, spread]) => presage.next(task, u, v, spread)", [self.environment.task, u, v, _SPREAD]
        )
        return [_right(each) for each in told["steps"]]

    def allows(self, rights: list[Right], action: Action) -> bool:
        """Whether an action is one of the correct steps. For clicks and drags, the page says which element is hit."""
        if action.kind in (Kind.CLICK, Kind.DRAG) and action.at:
            index = self.environment.page.evaluate(
                "([x, y, kind]) => presage.hit(x, y, kind)", [action.at.x, action.at.y, str(action.kind)]
            )
            same_kind = [each for each in rights if each.action.kind is action.kind]
            return index >= 0 and any(each.allows(action, box_decides=False) for each in same_kind)
        return any(each.allows(action) for each in rights)

    def elements(self) -> list[Element]:
        found = self.environment.page.evaluate("() => presage.elements()")
        return [
            Element(Box(*each["box"]), each["name"], each["role"], each["tag"], str(each["value"])) for each in found
        ]


def _right(told: Mapping[str, Any]) -> Right:
    kind = Kind(told["kind"])
    at = told.get("at")
    fields: dict[str, Any] = {"at": Point(*at)} if at else {}
    if kind is Kind.DRAG:
        fields["to"] = Point(*told["to"])
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
