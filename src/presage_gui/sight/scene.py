"""Scene: a screen as text, boxes and the elements that they make up. The goal's own text on the screen is apart."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from presage_gui.screen import Box, Screen
from presage_gui.sight.boxes import Surface, find_boxes, is_field, is_small_square, surface_at
from presage_gui.sight.matching import contained, likeness, tokens
from presage_gui.sight.text import Line, Reader

_TIGHT = 14.0
"""A box is that of a line when its area is at most so many times the line's."""
_GAP = 14.0
"""Pixels between a check box and its label at most."""
_MARKS = "O0oQ□○口日回◎●☑☐✓√"
"""What check boxes and radio buttons are read as."""


@dataclass(frozen=True)
class Element:
    """Something that may be meant: a label with its box, a check box with its label, a field, a shape with no word."""

    name: str
    area: Box
    """Where a click means it."""
    kind: str
    """text, button, check, field or shape."""
    text_box: Box | None = None


@dataclass(frozen=True)
class Match:
    """Where a phrase is found."""

    score: float
    area: Box
    element: Element


@dataclass(frozen=True)
class Scene:
    """What is seen."""

    screen: Screen
    lines: tuple[Line, ...]
    banner: tuple[Line, ...]
    """Lines that repeat the goal: they are no elements."""
    boxes: tuple[Box, ...]
    elements: tuple[Element, ...]
    _surfaces: dict[tuple[int, int], Surface] = field(default_factory=dict, repr=False, compare=False)

    def element_at(self, x: float, y: float) -> Element | None:
        """The smallest element there."""
        there = [each for each in self.elements if each.area.holds(x, y)]
        return min(there, key=lambda each: each.area.area, default=None)

    def box_at(self, x: float, y: float) -> Box | None:
        return next((box for box in self.boxes if box.holds(x, y)), None)

    def line_at(self, x: float, y: float) -> Line | None:
        return next((line for line in self.lines if line.box.holds(x, y)), None)

    def surface(self, x: float, y: float) -> Surface:
        key = int(x), int(y)
        if key not in self._surfaces:
            self._surfaces[key] = surface_at(self.screen.pixels, x, y)
        return self._surfaces[key]

    def find(self, phrase: str, least: float = 0.5) -> list[Match]:
        """Where a phrase is, as a whole label or as words of a line; the best first."""
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

    @cached_property
    def is_empty(self) -> bool:
        return not self.elements


class Viewer:
    """Makes scenes of screens, and keeps the last ones."""

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
    """Boxes that are not parts of letters: small ones inside a line are, unless they are squares at its start."""

    def is_letter(box: Box) -> bool:
        x, y = box.middle
        for line in lines:
            if line.box.holds(x, y) and box.height <= 0.9 * line.box.height and box.width <= 0.5 * line.box.width:
                starts = line.words and x < line.words[0].box.left + 2 and is_small_square(box)
                return not (starts or (is_small_square(box) and x < line.box.left + 14))
        return False

    return [box for box in boxes if not is_letter(box)]


def _banner(lines: Sequence[Line], goal: str) -> tuple[Line, ...]:
    """The lines that spell out the goal, one after the other."""
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
    """A label without the letter that its check box was read as."""
    return text[1:].strip() if box.left < check.right - 4 and text[0] in _MARKS and len(text) > 1 else text


def _frame_of(line: Line, boxes: Sequence[Box], lines: Sequence[Line]) -> Box | None:
    """The smallest box around this line alone."""
    for box in boxes:
        if box.holds(*line.box.middle) and box.width >= 0.8 * line.box.width and box.height >= 0.7 * line.box.height:
            alone = sum(box.holds(*other.box.middle) for other in lines) == 1
            return box if alone and box.area <= _TIGHT * line.box.area else None
    return None


def _is_at_left(line: Line, frame: Box) -> bool:
    return line.box.left - frame.left < 0.5 * (frame.right - line.box.right) or line.box.width > 0.9 * frame.width


def _name_of_field(box: Box, lines: Sequence[Line]) -> str:
    """The label of a field: to its left, else above, the nearest."""
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
    """Pixels from a place to a box; 0 inside."""
    return math.hypot(max(box.left - x, 0, x - box.right), max(box.top - y, 0, y - box.bottom))
