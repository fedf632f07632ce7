"""The `Scene` class: a screen as lines of text, boxes and elements. Lines that repeat the goal are kept apart."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from presage_gui.screen import Box, Screen
from presage_gui.sight.boxes import Surface, find_boxes, is_field, is_small_square, surface_at
from presage_gui.sight.matching import contained, likeness, tokens
from presage_gui.sight.text import Line, Reader

_TIGHT = 14.0
"""A box belongs to a line of text if the box's area is at most this many times the line's area."""
_GAP = 14.0
"""The maximum distance between a check box and its label, in pixels."""
_MARKS = "O0oQ□○口日回◎●☑☐✓√"
"""The characters that text recognition returns for check boxes and radio buttons."""


@dataclass(frozen=True)
class Element:
    """A possible target: a label with its box, a check box with its label, a field, or a shape without text."""

    name: str
    area: Box
    """The area in which a click hits the element."""
    kind: str
    """`text`, `button`, `check`, `field` or `shape`."""
    text_box: Box | None = None


@dataclass(frozen=True)
class Match:
    """An occurrence of a phrase on the screen."""

    score: float
    area: Box
    element: Element


@dataclass(frozen=True)
class Scene:
    """The text, the boxes and the elements of one screen."""

    screen: Screen
    lines: tuple[Line, ...]
    banner: tuple[Line, ...]
    """Lines that repeat the goal. They are not elements."""
    boxes: tuple[Box, ...]
    elements: tuple[Element, ...]
    _surfaces: dict[tuple[int, int], Surface] = field(default_factory=dict, repr=False, compare=False)

    def element_at(self, x: float, y: float) -> Element | None:
        """Return the smallest element at a point, or None."""
        there = [each for each in self.elements if each.area.holds(x, y)]
        return min(there, key=lambda each: each.area.area, default=None)

    def surface(self, x: float, y: float) -> Surface:
        key = int(x), int(y)
        if key not in self._surfaces:
            self._surfaces[key] = surface_at(self.screen.pixels, x, y)
        return self._surfaces[key]

    def find(self, phrase: str, least: float = 0.5) -> list[Match]:
        """Return the occurrences of a phrase, as a whole label or as words of a line, the best first."""
        wanted = len(tokens(phrase))
        matches = []
        for element in self.elements:
            if not element.name or wanted == 0:
                continue
            score = likeness(phrase, element.name)
            if score >= least:
                matches.append(Match(score, element.area, element))
            if element.kind == "text" and len(tokens(element.name)) > wanted and score < 1:
                matches += self._inside(phrase, wanted, element, least)
        return sorted(matches, key=lambda match: -match.score)

    def _inside(self, phrase: str, wanted: int, element: Element, least: float) -> list[Match]:
        line = next((line for line in self.lines if line.box == element.text_box), None)
        if line is None:
            return []
        words = [word for word in line.words if tokens(word.text)]
        found = []
        for start in range(len(words) - wanted + 1):
            run = words[start : start + wanted]
            score = likeness(phrase, " ".join(word.text for word in run))
            if score >= max(least, 0.75):
                area = Box(run[0].box.left, line.box.top, run[-1].box.right, line.box.bottom)
                found.append(Match(0.98 * score, area, element))
        return found


class Viewer:
    """Makes scenes from screens, with a cache of the last 64."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader or Reader()
        self._kept: OrderedDict[tuple[str, str], Scene] = OrderedDict()

    def look(self, screen: Screen, goal: str) -> Scene:
        key = screen.digest, goal
        scene = self._kept.get(key)
        if scene is None:
            scene = self._kept[key] = _scene(screen, self._reader.read(screen), goal)
            if len(self._kept) > 64:
                self._kept.popitem(last=False)
        return scene


def _scene(screen: Screen, lines: Sequence[Line], goal: str) -> Scene:
    readable = tuple(line for line in lines if line.is_readable)
    banner = _banner(readable, goal)
    boxes = _without_letters(find_boxes(screen.pixels), readable)
    rest = [line for line in readable if line not in banner]
    return Scene(screen, readable, banner, tuple(boxes), tuple(_elements(screen, rest, boxes, banner)))


def _without_letters(boxes: Sequence[Box], lines: Sequence[Line]) -> list[Box]:
    """Return the boxes that are not parts of letters. A small box inside a line of text is part of a letter, unless it
    is a square at the start of the line."""

    def is_letter(box: Box) -> bool:
        x, y = box.middle
        for line in lines:
            if line.box.holds(x, y) and box.height <= 0.9 * line.box.height and box.width <= 0.5 * line.box.width:
                starts = line.words and x < line.words[0].box.left + 2 and is_small_square(box)
                return not (starts or (is_small_square(box) and x < line.box.left + 14))
        return False

    return [box for box in boxes if not is_letter(box)]


def _banner(lines: Sequence[Line], goal: str) -> tuple[Line, ...]:
    """Return the lines that together repeat the goal, or none if they cover less than half of it."""
    wanted = tokens(goal)
    if len(wanted) < 2:
        return ()
    flat = " ".join(wanted)
    found: list[Line] = []
    for line in lines:
        said = tokens(line.text)
        if not said:
            continue
        near = any(abs(line.box.top - other.box.bottom) < line.box.height for other in found)
        repeats = len(said) >= 2 and contained(" ".join(said), flat) >= 0.85 and (len(said) >= 3 or near or not found)
        if repeats or (near and len(said) == 1 and said[0] == wanted[-1]):
            found.append(line)
    covered = sum(len(tokens(line.text)) for line in found)
    return tuple(found) if covered >= 0.5 * len(wanted) else ()


def _elements(screen: Screen, lines: Sequence[Line], boxes: Sequence[Box], banner: Sequence[Line]) -> list[Element]:
    elements: list[Element] = []
    used: set[Box] = set()
    checks = [box for box in boxes if is_small_square(box)]
    for line in lines:
        text = line.text
        check = _check_of(line, checks)
        if check is not None:
            used.add(check)
            whole = Box(check.left, min(check.top, line.box.top), line.box.right, max(check.bottom, line.box.bottom))
            elements.append(Element(_without_mark(text, line.box, check), whole, "check", line.box))
            continue
        frame = _frame_of(line, boxes, lines)
        if frame is None:
            elements.append(Element(text, line.box.grown(1), "text", line.box))
        else:
            used.add(frame)
            kind = "field" if is_field(screen.pixels, frame) and _is_at_left(line, frame) else "button"
            name = text if kind == "button" else _name_of_field(frame, lines) or text
            elements.append(Element(name, frame, kind, line.box))
    for box in boxes:
        if box in used or any(box.holds(*line.box.middle) for line in banner):
            continue
        inside = [line for line in lines if box.holds(*line.box.middle)]
        if not inside and is_field(screen.pixels, box):
            elements.append(Element(_name_of_field(box, lines), box, "field"))
        elif not inside:
            elements.append(Element("", box, "check" if is_small_square(box) else "shape"))
        elif len(inside) <= 6 and is_field(screen.pixels, box):
            elements.append(Element("", box, "field"))
    return elements


def _check_of(line: Line, checks: Sequence[Box]) -> Box | None:
    first = line.words[0].box.left if line.words else line.box.left
    for check in checks:
        y = check.middle[1]
        if line.box.top - 3 <= y <= line.box.bottom + 3 and -_GAP <= first - check.right <= _GAP and check.left < first:
            return check
    return None


def _without_mark(text: str, box: Box, check: Box) -> str:
    """Return a label without its first letter if that letter is a misread check box."""
    return text[1:].strip() if box.left < check.right - 4 and text[0] in _MARKS and len(text) > 1 else text


def _frame_of(line: Line, boxes: Sequence[Box], lines: Sequence[Line]) -> Box | None:
    """Return the smallest box around a line if the box holds only this line and fits it closely, or None."""
    for box in boxes:
        if box.holds(*line.box.middle) and box.width >= 0.8 * line.box.width and box.height >= 0.7 * line.box.height:
            alone = sum(box.holds(*other.box.middle) for other in lines) == 1
            return box if alone and box.area <= _TIGHT * line.box.area else None
    return None


def _is_at_left(line: Line, frame: Box) -> bool:
    return line.box.left - frame.left < 0.5 * (frame.right - line.box.right) or line.box.width > 0.9 * frame.width


def _name_of_field(box: Box, lines: Sequence[Line]) -> str:
    """Return the nearest text to the left of a field or above it, or an empty string."""
    best, name = 45.0, ""
    for line in lines:
        y = line.box.middle[1]
        left = box.left - line.box.right
        above = box.top - line.box.bottom
        if box.top - 4 <= y <= box.bottom + 4 and -4 <= left < best:
            best, name = left, line.text
        elif line.box.left < box.right and line.box.right > box.left and -6 <= above < min(best, 20):
            best, name = above, line.text
    return name


def distance_to(box: Box, x: float, y: float) -> float:
    """Return the distance in pixels from a point to a box, 0 inside the box."""
    return math.hypot(max(box.left - x, 0, x - box.right), max(box.top - y, 0, y - box.bottom))
