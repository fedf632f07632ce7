"""The `Right` class: a correct step in some state, and the range of equally correct ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from presage_gui.action import Action, Kind
from presage_gui.screen import Box


@dataclass(frozen=True)
class Right:
    """A correct next step, and the range of equally correct ones."""

    action: Action
    name: str
    """The name of the element. Empty if it has none."""
    role: str
    boxes: tuple[Box, ...] = ()
    """The boxes where a click or scroll must be, or a drag must start."""
    to_box: Box | None = None
    """Where a drag must end."""
    to_name: str = ""
    most: float = 0.0
    """How far the element can still scroll, in pixels."""
    then: str = ""
    """For a click that gives a field the focus: the text to type next."""

    def allows(self, action: Action, box_decides: bool = True) -> bool:
        """Whether an action does the same as this step.

        With `box_decides` false, the position of a click or of a drag's start is not checked: the page decides it."""
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
                return (
                    same_way
                    and self._starts(action)
                    and min(abs(action.dy), self.most) <= max(1.6 * abs(self.action.dy), 30)
                )
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
