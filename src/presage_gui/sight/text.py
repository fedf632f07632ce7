"""Text recognition: finds the lines of text on a screen, reads them, and locates each word.

It runs two networks from the rapidocr wheel on one thread: a detector finds lines, a recogniser reads them. Two caches
save calls. Recognised lines are cached by the hash of their pixels. On a screen that is similar to a recent one, the
detector runs only on the regions that differ.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from presage import PresageError
from presage.core.errors import install
from presage_gui.screen import Box, Pixels, Screen

Floats = npt.NDArray[np.float32]

_HEIGHT = 48
"""The height of a line in the recogniser's input, in pixels."""
_STRIDE = 32
"""The detector's input is padded to multiples of this."""
_INK = 0.3
"""Pixels of the detector's probability map above this value belong to a line."""
_SURE = 0.5
"""A detected line is kept if the mean probability of its pixels is at least this."""
_GROW = 1.6
"""The detector marks the core of a line. Each side is moved outwards by area times this over perimeter."""
_LEAST = 4
"""The least height and width of a line, in pixels."""
_WIDEST = 2400
_KEPT_LINES, _KEPT_SCREENS = 20_000, 64
_READABLE = 0.6
"""A line whose letters have a lower mean probability counts as unreadable."""


@dataclass(frozen=True)
class Word:
    text: str
    box: Box


@dataclass(frozen=True)
class Line:
    """One recognised line of text."""

    text: str
    box: Box
    sure: float
    """The mean probability of the letters."""
    words: tuple[Word, ...] = ()

    @property
    def is_readable(self) -> bool:
        return self.sure >= _READABLE and any(letter.isalnum() for letter in self.text)


class Reader:
    """Reads screens, with caches of lines and screens. Not thread-safe."""

    def __init__(self) -> None:
        self._lines: OrderedDict[bytes, tuple[str, float, tuple[tuple[str, float, float], ...]]] = OrderedDict()
        self._screens: OrderedDict[str, tuple[Screen, tuple[Line, ...]]] = OrderedDict()

    def read(self, screen: Screen) -> tuple[Line, ...]:
        """Return all lines of text, from top to bottom."""
        known = self._screens.get(screen.digest)
        if known is not None:
            self._screens.move_to_end(screen.digest)
            return known[1]
        kept, regions = self._follow(screen)
        found = [box for region in regions for box in _find(screen, region)]
        lines = [*kept, *(self._line(screen, box) for box in found)]
        lines = sorted((line for line in lines if line.text), key=lambda line: (line.box.top, line.box.left))
        self._screens[screen.digest] = screen, tuple(lines)
        if len(self._screens) > _KEPT_SCREENS:
            self._screens.popitem(last=False)
        return tuple(lines)

    def _follow(self, screen: Screen) -> tuple[list[Line], list[Box]]:
        """Return the lines that can be reused from a recent screen, and the regions that must be searched for lines.

        Lines are reused where the pixels are unchanged. Without a similar recent screen, the whole screen is
        searched."""
        whole = _content(screen.pixels)
        best: tuple[float, list[Line], list[Box]] = (0.6 * whole.area, [], [whole])
        for earlier, lines in list(self._screens.values())[-4:]:
            if earlier.size != screen.size:
                continue
            regions = _differences(earlier.pixels, screen.pixels)
            regions, lines_left = _without_cut_lines(regions, lines, screen)
            cost = sum(region.area for region in regions)
            if cost < best[0]:
                best = cost, lines_left, regions
        return best[1], best[2]

    def _line(self, screen: Screen, box: Box) -> Line:
        crop = np.ascontiguousarray(screen.crop(box).pixels)
        key = hashlib.blake2b(repr(crop.shape).encode() + crop.tobytes(), digest_size=16).digest()
        read = self._lines.get(key)
        if read is None:
            read = self._lines[key] = _read(crop)
            if len(self._lines) > _KEPT_LINES:
                self._lines.popitem(last=False)
        text, sure, parts = read
        width = box.right - box.left
        words = tuple(
            Word(word, Box(box.left + start * width, box.top, box.left + end * width, box.bottom))
            for word, start, end in parts
        )
        return Line(text, box, sure, words)


def _content(pixels: Pixels) -> Box:
    """Return the part of the screen inside its blank margins."""
    rows = np.flatnonzero(np.any(pixels[:, 1:] != pixels[:, :-1], axis=(1, 2)))
    columns = np.flatnonzero(np.any(pixels[1:] != pixels[:-1], axis=(0, 2)))
    height, width = pixels.shape[:2]
    if not rows.size or not columns.size:
        return Box(0, 0, min(width, _STRIDE), min(height, _STRIDE))
    return Box(columns[0], rows[0], columns[-1] + 1, rows[-1] + 1).grown(8).within(width, height)


def _differences(before: Pixels, after: Pixels) -> list[Box]:
    """Return boxes around the regions that differ. Close regions are merged, and so are more than twelve."""
    import cv2

    changed = np.any(before != after, axis=2).astype(np.uint8)
    if not changed.any():
        return []
    spread = cv2.dilate(changed, np.ones((9, 25), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(spread)
    boxes = [Box(x, y, x + w, y + h) for x, y, w, h, _ in stats[1:count].tolist()]
    return boxes if len(boxes) <= 12 else [_around(boxes)]


def _around(boxes: Sequence[Box]) -> Box:
    return Box(
        min(box.left for box in boxes), min(box.top for box in boxes),
        max(box.right for box in boxes), max(box.bottom for box in boxes),
    )  # fmt: skip


def _overlap(a: Box, b: Box) -> bool:
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom


def _without_cut_lines(regions: list[Box], lines: Sequence[Line], screen: Screen) -> tuple[list[Box], list[Line]]:
    """Grow the regions until they cut no line. Return the regions, and the lines outside them."""
    left = list(lines)
    for _ in range(4):
        merged: list[Box] = []
        for region in regions:
            touched = [line.box for line in left if _overlap(line.box, region)]
            merged.append(_around([region, *touched]).within(screen.width, screen.height))
        left = [line for line in left if not any(_overlap(line.box, region) for region in merged)]
        regions = _disjoint(merged)
        if not any(_overlap(line.box, region) for line in left for region in regions):
            break
    return regions, [line for line in left if not any(_overlap(line.box, region) for region in regions)]


def _disjoint(boxes: Sequence[Box]) -> list[Box]:
    """Merge overlapping boxes until none overlap."""
    apart: list[Box] = []
    for box in boxes:
        near = [other for other in apart if _overlap(box, other)]
        apart = [other for other in apart if other not in near]
        apart.append(_around([box, *near]))
    return apart if len(apart) == len(boxes) else _disjoint(apart)


# -- The networks -----------------------------------------------------------------------------------------------------


def _models() -> Path:
    found = find_spec("rapidocr")
    if found is None or not found.submodule_search_locations:
        raise PresageError(f"reading screens needs rapidocr, whose wheel has the weights; {install('gui')}")
    return Path(next(iter(found.submodule_search_locations))) / "models"


@cache
def _session(part: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise PresageError(f"reading screens needs onnxruntime; {install('gui')}") from error
    files = sorted(_models().glob(f"*_{part}*.onnx"))
    if not files:
        raise PresageError(f"the installed rapidocr has no weights of its own; {install('gui')}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(files[0]), options, providers=["CPUExecutionProvider"])


@cache
def _alphabet() -> list[str]:
    """Return the character of each class of the recogniser. Class 0 is no character, the last class is a space."""
    letters = _session("rec").get_modelmeta().custom_metadata_map["character"].splitlines()
    return ["", *letters, " "]


def _run(part: str, image: Floats) -> Floats:
    session = _session(part)
    result: Floats = session.run(None, {session.get_inputs()[0].name: image})[0]
    return result


def _tensor(pixels: Pixels) -> Floats:
    """Return the pixels as the networks expect them: BGR from -1 to 1, shape (1, 3, height, width)."""
    bgr = pixels[:, :, ::-1].astype(np.float32)
    return np.ascontiguousarray((bgr / 127.5 - 1).transpose(2, 0, 1)[None])


def _find(screen: Screen, region: Box) -> list[Box]:
    """Detect the lines of text in a region. Returns their boxes."""
    import cv2

    part = screen.crop(region).pixels
    height, width = part.shape[:2]
    padded = np.pad(part, ((0, -height % _STRIDE), (0, -width % _STRIDE), (0, 0)), mode="edge")
    chance = _run("det", _tensor(padded))[0, 0][:height, :width]
    contours, _ = cv2.findContours((chance > _INK).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    left, top = int(region.left), int(region.top)
    boxes = []
    for contour in contours:
        x, y, w, h = cv2.boundingRect(contour)
        if min(w, h) < 2 or float(chance[y : y + h, x : x + w][chance[y : y + h, x : x + w] > _INK].mean()) < _SURE:
            continue
        grow = w * h * _GROW / (2 * (w + h))
        box = Box(round(left + x - grow), round(top + y - grow), round(left + x + w + grow), round(top + y + h + grow))
        box = box.within(screen.width, screen.height)
        if min(box.width, box.height) >= _LEAST:
            boxes.append(box)
    return boxes


def _read(crop: Pixels) -> tuple[str, float, tuple[tuple[str, float, float], ...]]:
    """Recognise a line. Return the text, its mean letter probability, and (word, start, end) as shares of the width."""
    import cv2

    width = min(_WIDEST, max(16, round(crop.shape[1] * _HEIGHT / crop.shape[0])))
    chances = _run("rec", _tensor(np.asarray(cv2.resize(crop, (width, _HEIGHT)), dtype=np.uint8)))[0]
    likeliest = chances.argmax(axis=1)
    fresh = (likeliest != 0) & (likeliest != np.concatenate([[-1], likeliest[:-1]]))
    steps = np.flatnonzero(fresh)
    if steps.size == 0:
        return "", 0.0, ()
    letters = [_alphabet()[likeliest[step]] for step in steps]
    sure = float(np.mean([chances[step, likeliest[step]] for step in steps]))
    return "".join(letters).strip(), sure, tuple(_words(letters, steps / len(likeliest), 0.5 / len(likeliest)))


def _words(letters: Sequence[str], places: npt.NDArray[np.float64], half: float) -> list[tuple[str, float, float]]:
    words: list[tuple[str, float, float]] = []
    start: int | None = None
    for i, letter in enumerate([*letters, " "]):
        if letter.strip() and start is None:
            start = i
        elif not letter.strip() and start is not None:
            ends = float(places[i - 1]) + 3 * half, float(places[i]) if i < len(letters) else 1.0
            words.append(("".join(letters[start:i]), max(0.0, float(places[start]) - half), min(1.0, max(ends))))
            start = None
    return words
