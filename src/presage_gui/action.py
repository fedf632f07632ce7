"""The `Action` class: one input to a screen, such as a click or a scroll. Its fields are validated on construction.

An action is written as JSON (`{"kind": "click", "at": [120, 33]}`) or as a call (`click(120, 33)`). `Action.parse`
reads both forms. An invalid action raises `ActionError`, whose message says what is wrong.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from presage import PresageError
from presage_gui.keys import KeyNameError, parse_keys


class ActionError(PresageError):
    """An action that cannot be read or carried out."""


class Kind(StrEnum):
    CLICK = "click"
    DOUBLE = "double_click"
    RIGHT = "right_click"
    TYPE = "type"
    KEY = "key"
    SCROLL = "scroll"
    DRAG = "drag"
    WAIT = "wait"
    ANSWER = "answer"
    TERMINATE = "terminate"


POINTING = (Kind.CLICK, Kind.DOUBLE, Kind.RIGHT)
ENDING = (Kind.ANSWER, Kind.TERMINATE)


class Space(StrEnum):
    """The unit of coordinates."""

    PIXELS = "pixels"
    UNIT = "unit"
    """Fractions of the width and the height, 0 to 1."""
    THOUSANDTHS = "thousandths"
    """Thousandths of the width and the height, 0 to 1000. Many vision models answer in this unit."""


@dataclass(frozen=True)
class Point:
    """A position on a screen, with the unit of its coordinates.

    >>> Point(500, 250, Space.THOUSANDTHS).on((200, 400))
    Point(x=100.0, y=100.0, space=<Space.PIXELS: 'pixels'>)
    """

    x: float
    y: float
    space: Space = Space.PIXELS

    def on(self, size: tuple[int, int]) -> Point:
        """Return the same point in pixels of a screen of this (width, height)."""
        if self.space is Space.PIXELS:
            return self
        whole = 1.0 if self.space is Space.UNIT else 1000.0
        return Point(self.x / whole * size[0], self.y / whole * size[1])


NEEDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLICK: ("at",),
    Kind.DOUBLE: ("at",),
    Kind.RIGHT: ("at",),
    Kind.TYPE: ("text",),
    Kind.KEY: ("keys",),
    Kind.SCROLL: ("at", "dx", "dy"),
    Kind.DRAG: ("at", "to"),
    Kind.WAIT: ("seconds",),
    Kind.ANSWER: ("text",),
    Kind.TERMINATE: ("success",),
}
"""The fields of each kind, in the order of a call's arguments. All other fields keep their defaults."""
OPTIONAL = {"at": (Kind.SCROLL,), "dx": (Kind.SCROLL,), "success": (Kind.TERMINATE,), "seconds": (Kind.WAIT,)}
"""Fields that may be omitted, with the kinds that may omit them."""
LONGEST_WAIT = 60.0
LONGEST_TEXT = 10_000


@dataclass(frozen=True)
class Action:
    """One input to a screen. `NEEDS` lists the fields of each kind.

    >>> Action.parse("click(120, 33)")
    Action(click at 120, 33)
    >>> Action.parse('{"kind": "drag", "at": [0.1, 0.2], "to": [0.5, 0.2], "space": "unit"}').on((200, 100))
    Action(drag from 20, 20 to 100, 20)
    """

    kind: Kind
    at: Point | None = None
    to: Point | None = None
    """The end point of a drag."""
    text: str = ""
    """The text to type, or the answer."""
    keys: tuple[str, ...] = ()
    """One key chord: modifiers first, then at most one other key."""
    dx: float = 0.0
    dy: float = 0.0
    """Pixels to scroll by. Down (`dy`) and right (`dx`) are positive."""
    seconds: float = 1.0
    success: bool = True
    """For `terminate`: True if the agent says that the task is done, False if it says that the task cannot be done."""

    def __post_init__(self) -> None:
        wanted = NEEDS[self.kind]
        for name in ("at", "to", "text", "keys"):
            given = getattr(self, name)
            if name in wanted and not given and self.kind not in OPTIONAL.get(name, ()):
                raise ActionError(f"{self.kind} needs '{name}': {_EXAMPLES[self.kind]}")
            if name not in wanted and given:
                raise ActionError(f"{self.kind} takes no '{name}': {_EXAMPLES[self.kind]}")
        for name in ("dx", "dy", "seconds"):
            if not math.isfinite(getattr(self, name)):
                raise ActionError(f"'{name}' of {self.kind} must be a number, not {getattr(self, name)}")
        for point in (self.at, self.to):
            if point and not (math.isfinite(point.x) and math.isfinite(point.y)):
                raise ActionError(f"coordinates must be numbers, not {point.x}, {point.y}")
        if len(self.text) > LONGEST_TEXT:
            raise ActionError(f"a text has at most {LONGEST_TEXT} characters, not {len(self.text)}")
        if self.kind is Kind.SCROLL and not (self.dx or self.dy):
            raise ActionError("a scroll by 0, 0 does nothing; give 'dx' or 'dy' in pixels")
        if not 0 <= self.seconds <= LONGEST_WAIT:
            raise ActionError(f"a wait takes 0 to {LONGEST_WAIT:g} seconds, not {self.seconds:g}")
        try:
            object.__setattr__(self, "keys", parse_keys(self.keys))
        except KeyNameError as error:
            raise ActionError(str(error)) from None

    def on(self, size: tuple[int, int]) -> Action:
        """Return the action with pixel coordinates for a screen of this (width, height).

        Raises ActionError for a point outside the screen.
        """
        moved = {name: point.on(size) for name in ("at", "to") if (point := getattr(self, name))}
        for point in moved.values():
            if not (0 <= point.x < size[0] and 0 <= point.y < size[1]):
                place = f"{point.x:g}, {point.y:g}"
                raise ActionError(f"{place} is not on the screen, which is {size[0]} × {size[1]} pixels")
        return replace(self, **moved) if moved else self

    def __repr__(self) -> str:
        return f"Action({self.words})"

    @property
    def words(self) -> str:
        """The action in a few words, for people.

        >>> Action(Kind.KEY, keys=("ctrl", "a")).words, Action(Kind.SCROLL, dy=-120).words
        ('press ctrl+a', 'scroll up by 120')
        """
        match self.kind:
            case Kind.TYPE | Kind.ANSWER:
                return f"{self.kind} {self.text!r}"
            case Kind.KEY:
                return f"press {'+'.join(self.keys)}"
            case Kind.SCROLL:
                ways = [
                    f"{('down', 'up')[self.dy < 0]} by {abs(self.dy):g}" if self.dy else "",
                    f"{('right', 'left')[self.dx < 0]} by {abs(self.dx):g}" if self.dx else "",
                ]
                return " ".join(
                    ["scroll", " and ".join(filter(None, ways)), *([f"at {_place(self.at)}"] * bool(self.at))]
                )
            case Kind.DRAG:
                return f"drag from {_place(self.at)} to {_place(self.to)}"
            case Kind.WAIT:
                return f"wait {self.seconds:g} s"
            case Kind.TERMINATE:
                return "end the task: " + ("done" if self.success else "it cannot be done")
        return f"{self.kind.value.replace('_', '-')} at {_place(self.at)}"

    @property
    def call(self) -> str:
        """The action as a call. `parse` reads the call back if the coordinates are pixels.

        >>> Action.parse("type('a b')").call
        "type('a b')"
        """
        values: dict[str, list[Any]] = {
            "at": [_number(self.at.x), _number(self.at.y)] if self.at else [],
            "to": [_number(self.to.x), _number(self.to.y)] if self.to else [],
            "text": [self.text],
            "keys": ["+".join(self.keys)],
            "seconds": [_number(self.seconds)],
            "success": [self.success],
        }
        if self.kind is Kind.SCROLL:
            return f"scroll({', '.join(map(str, [_number(self.dx), _number(self.dy), *values['at']]))})"
        arguments = [repr(value) for name in NEEDS[self.kind] for value in values[name]]
        return f"{self.kind}({', '.join(arguments)})"

    def to_json(self) -> dict[str, Any]:
        """Return the action as JSON data, with only the fields of its kind."""
        wanted = NEEDS[self.kind]
        kept: dict[str, Any] = {"kind": str(self.kind)}
        kept.update(
            {name: [_number(point.x), _number(point.y)] for name in ("at", "to") if (point := getattr(self, name))}
        )
        if self.at and self.at.space is not Space.PIXELS:
            kept["space"] = str(self.at.space)
        kept.update(
            {name: getattr(self, name) for name in ("text", "dx", "dy", "seconds", "success") if name in wanted}
        )
        return kept | ({"keys": list(self.keys)} if self.keys else {})

    @classmethod
    def parse(cls, said: str | Mapping[str, Any]) -> Action:
        """Read an action from JSON or from a call. Raises ActionError, which says what is wrong, for anything else."""
        if isinstance(said, Mapping):
            return _from_fields(said)
        text = said.strip()
        if not text:
            raise ActionError(f"there is no action; write one such as {_EXAMPLES[Kind.CLICK]}")
        if text.startswith("{"):
            try:
                fields = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise ActionError(f"this is not JSON: {error}") from None
            return _from_fields(fields)
        return _from_call(text)


_EXAMPLES = {
    Kind.CLICK: "click(120, 33)",
    Kind.DOUBLE: "double_click(120, 33)",
    Kind.RIGHT: "right_click(120, 33)",
    Kind.TYPE: "type('text')",
    Kind.KEY: "key('ctrl+a')",
    Kind.SCROLL: "scroll(0, 120), or scroll(0, 120, x, y)",
    Kind.DRAG: "drag(10, 20, 110, 20)",
    Kind.WAIT: "wait(1)",
    Kind.ANSWER: "answer('text')",
    Kind.TERMINATE: "terminate(True)",
}
_ALIASES = {
    "double": "double_click", "doubleclick": "double_click", "dblclick": "double_click", "left_click": "click",
    "right": "right_click", "rightclick": "right_click", "type_text": "type", "write": "type", "press": "key",
    "hotkey": "key", "done": "terminate", "finish": "terminate", "sleep": "wait",
}  # fmt: skip


def _kind(name: object) -> Kind:
    try:
        word = str(name).strip().lower()
        return Kind(_ALIASES.get(word, word))
    except ValueError:
        raise ActionError(f"there is no action {str(name)[:40]!r}; there are: {', '.join(Kind)}") from None


def _from_fields(fields: Mapping[str, Any]) -> Action:
    if not isinstance(fields, Mapping) or "kind" not in fields:
        raise ActionError(f"an action is an object with a 'kind', one of: {', '.join(Kind)}")
    kind = _kind(fields["kind"])
    surplus = sorted(map(str, fields.keys() - {"kind", "space", *NEEDS[kind]}))
    if surplus:
        raise ActionError(f"{kind} has no field {surplus[0][:40]!r}; it has: {', '.join(NEEDS[kind])}")
    try:
        space = Space(fields.get("space", "pixels"))
    except ValueError:
        raise ActionError(f"there is no space {fields['space']!r}; there are: {', '.join(Space)}") from None
    given = {name: fields[name] for name in NEEDS[kind] if fields.get(name) is not None}
    return Action(kind, **{name: _field(kind, name, value, space) for name, value in given.items()})


def _field(kind: Kind, name: str, value: Any, space: Space) -> Any:
    if name in ("at", "to"):
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
            raise ActionError(f"'{name}' of {kind} is a place [x, y], not {str(value)[:40]}")
        x, y = (_coordinate(each, kind, name) for each in value)
        return Point(x, y, space)
    if name in ("dx", "dy", "seconds"):
        return _coordinate(value, kind, name)
    if name == "text":
        if not isinstance(value, str):
            raise ActionError(f"'text' of {kind} must be a string, not {str(value)[:40]}")
        return value
    if name == "keys":
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
            raise ActionError(f"'keys' are names of keys, not {str(value)[:40]}")
        return tuple(value)
    if not isinstance(value, bool):
        raise ActionError(f"'success' is true or false, not {str(value)[:40]}")
    return value


def _coordinate(value: Any, kind: Kind, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ActionError(f"'{name}' of {kind} must be a number, not {str(value)[:40]!r}")
    try:
        return float(value)
    except OverflowError:
        raise ActionError(f"'{name}' of {kind} is too large") from None


def _from_call(text: str) -> Action:
    wrong = ActionError(f"cannot read the action {text[:60]!r}; write one such as {_EXAMPLES[Kind.CLICK]}")
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise wrong from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise wrong
    kind = _kind(node.func.id)
    try:
        values = [ast.literal_eval(each) for each in node.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise wrong from None
    fields = _positions(kind, values)
    if twice := sorted(fields.keys() & named.keys()):
        raise ActionError(f"'{twice[0]}' of {kind} is given twice")
    return _from_fields({"kind": kind, **fields, **named})


def _positions(kind: Kind, values: list[Any]) -> dict[str, Any]:
    """Map the positional arguments of a call to fields."""
    order = {Kind.SCROLL: ("dx", "dy", "at")}.get(kind, NEEDS[kind])
    fields: dict[str, Any] = {}
    left = list(values)
    if kind is Kind.KEY and len(left) > 1:
        return {"keys": left}
    for name in order:
        if not left:
            break
        if name in ("at", "to") and not isinstance(left[0], list | tuple):
            fields[name], left = left[:2], left[2:]
        else:
            fields[name], left = left[0], left[1:]
    if left:
        raise ActionError(f"{kind} has too many values: {_EXAMPLES[kind]}")
    return fields


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() else round(value, 4)


def _place(point: Point | None) -> str:
    if point is None:
        return "nowhere"
    unit = "" if point.space is Space.PIXELS else f" {point.space}"
    return f"{_number(point.x)}, {_number(point.y)}{unit}"
