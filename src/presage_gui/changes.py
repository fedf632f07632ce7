"""Changes between two screens, without spontaneous ones: carets, the pointer, animations, clocks.

`Watcher.idle` learns where a screen changes spontaneously, from pairs of frames without an action in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from presage_gui.action import POINTING, Action, Kind, Point
from presage_gui.history import Effect, Entry
from presage_gui.reading import Reader, fell_elsewhere
from presage_gui.screen import Box, Screen
from presage_gui.step import Step

Mask = npt.NDArray[np.bool_]
_LEAST = 8
"""A pixel has changed when a channel differs by more than this."""
_JOIN = 6
"""Changed pixels closer than this to each other, in pixels, belong to one region."""
_CARET = (3, 6, 40)
"""The maximum width, minimum height and maximum height of a caret, in pixels."""
_POINTER = 32
"""The maximum width and height of the pointer's image, in pixels."""
_NEAR = 28
"""A change within this many pixels of a scroll or drag point belongs to that action."""
_RING = 8
"""If a click gave a field the focus, the field's focus ring is at most this many pixels from the click."""
_REACH = 160
"""Typed text and the caret appear within this many pixels of the click into the field. Large, as fields are wide."""
_FIELD_WORDS = frozenset(("field", "box", "textbox", "cursor", "focus", "input", "area"))
_VERBS: dict[str, tuple[Kind, ...]] = {
    "click": (Kind.CLICK, Kind.DOUBLE),
    "press": (Kind.CLICK, Kind.DOUBLE, Kind.KEY),
    "type": (Kind.TYPE,),
    "enter": (Kind.TYPE, Kind.KEY),
    "scroll": (Kind.SCROLL, Kind.KEY),
    "drag": (Kind.DRAG,),
}
"""The kinds of action that the first verb of an intent can stand for."""
_LINE = 12
"""A caret belongs to a click that is at most this many pixels above or below the caret's centre."""
_PAGE = 0.2
"""If more than this share of the screen changes, the change counts as another page or a dialog."""


def difference(before: Screen, after: Screen) -> Mask:
    """Return a mask of the pixels that differ. If the sizes differ, all pixels do."""
    if before.size != after.size:
        return np.ones((after.height, after.width), dtype=np.bool_)
    apart = np.abs(before.pixels.astype(np.int16) - after.pixels.astype(np.int16))
    return np.asarray((apart > _LEAST).any(axis=2))


def regions(mask: Mask) -> list[Box]:
    """Return the bounding boxes of the changed regions, the largest first. Close changes are merged."""
    if not mask.any():
        return []
    near = ndimage.binary_dilation(mask, iterations=_JOIN // 2)
    labels, _ = ndimage.label(near)
    found = []
    for place in ndimage.find_objects(np.where(mask, labels, 0)):
        if place is not None:
            rows, columns = place
            found.append(Box(columns.start, rows.start, columns.stop, rows.stop))
    return sorted(found, key=lambda box: -box.area)


@dataclass
class Watcher:
    """Compares the screens of one episode."""

    moving: list[Box] = field(default_factory=list)
    """Regions that change spontaneously."""
    reader: Reader | None = None
    """Reads text from pixels. With a reader, clicks that hit another element than the intent names are reported."""

    def idle(self, first: Screen, second: Screen) -> None:
        """Learn from two frames with no action in between: the regions that differ change spontaneously."""
        if first.size != second.size:
            return
        for box in regions(difference(first, second)):
            if not _is_caret(box) and box.area < _PAGE * first.width * first.height:
                grown = box.grown(4).within(first.width, first.height)
                if not any(_inside(grown, known) for known in self.moving):
                    self.moving.append(grown)

    def changed(self, before: Screen, after: Screen, was: Point | None = None, now: Point | None = None) -> list[Box]:
        """Return the regions that an action changed. `was`, `now`: the pointer's position before and after it."""
        mask = difference(before, after)
        if before.size == after.size and was and now:
            _forget_pointer(mask, before, after, was, now)
        boxes = regions(mask)
        return [box for box in boxes if not any(_inside(box, known) for known in self.moving)]

    def entry(self, step: Step, before: Screen, after: Screen, last: Sequence[Entry] = ()) -> Entry:
        """Return the history entry of a step: what it changed, and whether that was expected of such a step."""
        was = next((each.step.action.at for each in reversed(last) if each.step.action.at), None)
        boxes = self.changed(before, after, was, step.action.to or step.action.at or was)
        focus = next((each.step.action.at for each in reversed(last) if each.step.action.kind in POINTING), None)
        effect, note = judge(step, boxes, after.size, focus)
        if effect is Effect.EXPECTED and self.reader and (fell := fell_elsewhere(self.reader, before, step)):
            effect, note = Effect.OTHER, f"{note}; {fell}"
        return Entry(step, before, after, effect, tuple(boxes), note)


def judge(step: Step, boxes: Sequence[Box], size: tuple[int, int], focus: Point | None) -> tuple[Effect, str]:
    """Return whether these changes are expected of the step, and a description of them.

    `focus`: the point of the last click; typed text should appear there. A click may change anything on the screen.
    But if its intent names a field, a caret or a focus ring must appear there; otherwise, a caret alone is unexpected.
    """
    action = step.action
    seen = [box for box in boxes if not _is_caret(box)]
    if not boxes or (not seen and action.kind not in POINTING):
        return Effect.NOTHING, "nothing changed"
    share = sum(box.area for box in seen) / (size[0] * size[1])
    where = ", ".join(_words(box) for box in seen[:3]) or "a caret"
    if share > _PAGE:
        where = f"{share:.0%} of the screen: another page or a dialog"
    if surprise := _surprise(step, boxes, seen, focus):
        return Effect.OTHER, f"changed: {where}; {surprise}"
    return Effect.EXPECTED, f"changed: {where}"


def _surprise(step: Step, boxes: Sequence[Box], seen: Sequence[Box], focus: Point | None) -> str:
    """Return a reason to think that the step did not do what its intent says, or an empty string."""
    action, at = step.action, step.action.at
    if other := unlike_intent(step):
        return other
    if action.kind is Kind.TYPE and focus and all(_distance(box, focus) > _REACH for box in seen):
        return "far from the field that was clicked"
    if action.kind is Kind.DRAG and at and action.to:
        ends = (at, action.to)
        return "" if any(_distance(box, end) <= _NEAR for box in boxes for end in ends) else "far from the drag"
    if action.kind is Kind.SCROLL and at and all(_distance(box, at) > _NEAR for box in seen):
        return "far from what was scrolled"
    if action.kind is Kind.CLICK and at:
        return _surprising_click(step, at, boxes, seen)
    return ""


def _surprising_click(step: Step, at: Point, boxes: Sequence[Box], seen: Sequence[Box]) -> str:
    if not step.intent:
        return ""
    carets = [box for box in boxes if _is_caret(box)]
    in_line = any(abs(box.middle[1] - at.y) <= _LINE for box in carets)
    if _means_field(step.intent):
        seen_caret = any(_distance(box, at) <= _REACH for box in carets)
        return (
            ""
            if seen_caret or any(_distance(box, at) <= _RING for box in boxes)
            else "no caret is seen where the field is meant to be"
        )
    return "a field has the focus, and none was meant" if in_line and not seen else ""


def unlike_intent(step: Step) -> str:
    """Return how an action contradicts its intent, judged by the words alone, or an empty string.

    >>> unlike_intent(Step(Action.parse("type('Ad')"), 'Type "Ada" into the field'))
    'another text was typed than was meant'
    """
    action, said = step.action, step.intent.lower()
    if "ctrl+" in said and action.kind is not Kind.KEY:
        return f"the action is to {action.kind.value.replace('_', ' ')}, and keys were meant"
    verb = next((word for word in re.findall(r"[a-z]+", said) if word in _VERBS), "")
    if verb and action.kind not in _VERBS[verb]:
        return f"the action is to {action.kind.value.replace('_', ' ')}, and that was not meant"
    quoted = re.findall(r'"([^"]+)"', step.intent)
    if action.kind is Kind.TYPE and len(quoted) == 1 and quoted[0] != action.text:
        return "another text was typed than was meant"
    if (
        action.kind is Kind.SCROLL
        and action.dy
        and ("scroll down" in said, "scroll up" in said)
        == (
            action.dy < 0,
            action.dy > 0,
        )
    ):
        return "it was scrolled the other way"
    return ""


def _means_field(intent: str) -> bool:
    """Whether an intent is about a text field."""
    return bool(set(re.findall(r"[a-z]+", intent.lower())) & _FIELD_WORDS)


def loop_of_no_effect(entries: Sequence[Entry], least: int = 2) -> int:
    """Return how many times in a row the last step was carried out without effect; 0 if fewer than `least` times.

    Steps count as the same if their actions are `same`.
    """
    count = 0
    for entry in reversed(entries):
        if entry.effect is not Effect.NOTHING or not same(entry.step.action, entries[-1].step.action):
            break
        count += 1
    return count if count >= least else 0


def same(a: Action, b: Action) -> bool:
    """Whether two actions are the same. Their points may differ by up to 4 pixels in x and y."""
    for one, other in ((a.at, b.at), (a.to, b.to)):
        if one and other and (abs(one.x - other.x) > 4 or abs(one.y - other.y) > 4):
            return False
    return all(
        getattr(a, name) == getattr(b, name) for name in ("kind", "text", "keys", "dx", "dy", "seconds", "success")
    )


def _is_caret(box: Box) -> bool:
    widest, low, high = _CARET
    return box.width <= widest and low <= box.height <= high


def _inside(box: Box, other: Box) -> bool:
    grown = other.grown(3)
    return grown.left <= box.left and box.right <= grown.right and grown.top <= box.top and box.bottom <= grown.bottom


def _forget_pointer(mask: Mask, before: Screen, after: Screen, was: Point, now: Point) -> None:
    """Remove the pointer's image from the mask, at its old and its new position."""
    height, width = mask.shape
    (x0, y0), (x1, y1) = (int(was.x) - 4, int(was.y) - 4), (int(now.x) - 4, int(now.y) - 4)
    if (x0, y0) == (x1, y1) or min(x0, y0, x1, y1) < 0:
        return
    w, h = min(_POINTER, width - max(x0, x1)), min(_POINTER, height - max(y0, y1))
    if w < 4 or h < 4:
        return
    old, new = before.pixels[y0 : y0 + h, x0 : x0 + w], after.pixels[y1 : y1 + h, x1 : x1 + w]
    drawn = mask[y0 : y0 + h, x0 : x0 + w] & mask[y1 : y1 + h, x1 : x1 + w]
    same = drawn & (old == new).all(axis=2)
    left = mask[y0 : y0 + h, x0 : x0 + w]
    if same.sum() >= 12 and same.sum() >= 0.7 * left.sum():
        mask[y0 : y0 + h, x0 : x0 + w] &= ~same
        mask[y1 : y1 + h, x1 : x1 + w] &= ~same


def _distance(box: Box, point: Point) -> float:
    across = max(box.left - point.x, 0, point.x - box.right)
    down = max(box.top - point.y, 0, point.y - box.bottom)
    return float(np.hypot(across, down))


def _words(box: Box) -> str:
    return f"{box.width:.0f} × {box.height:.0f} pixels at {box.left:.0f}, {box.top:.0f}"
