"""Find boxes on a screen by contours (fields, buttons, filled shapes), and describe the surface under a point."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from presage_gui.screen import Box, Pixels

_EDGE = 14
"""A difference between neighbouring pixels above this value, in any channel, is an edge."""
_LEAST = 7
"""The least width and height of a box, in pixels."""
_FILLED = 0.4
"""A contour must fill at least this share of its bounding box. A triangle does, a line does not."""
_SAME = 3
"""Two boxes whose sides all differ by at most this many pixels are the same box."""


def find_boxes(pixels: Pixels) -> list[Box]:
    """Return the boxes of everything with a closed outline, the smallest first."""
    import cv2

    steps = cv2.morphologyEx(pixels, cv2.MORPH_GRADIENT, np.ones((2, 2), np.uint8)).max(axis=2)
    edges = np.pad((steps > _EDGE).astype(np.uint8), 1)
    contours, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    height, width = pixels.shape[:2]
    found = []
    for contour in contours:
        x, y, w, h = cv2.boundingRect(contour)
        if min(w, h) < _LEAST or w * h > 0.9 * width * height or cv2.contourArea(contour) < _FILLED * w * h:
            continue
        found.append(Box(max(x - 1, 0), max(y - 1, 0), min(x + w - 1, width), min(y + h - 1, height)))
    return _distinct(sorted(found, key=lambda box: box.area))


def _distinct(boxes: list[Box]) -> list[Box]:
    kept: list[Box] = []
    corners = np.empty((len(boxes), 4))
    for box in boxes:
        sides = np.array(box.to_json())
        if not len(kept) or not np.any(np.all(np.abs(corners[: len(kept)] - sides) <= _SAME, axis=1)):
            corners[len(kept)] = sides
            kept.append(box)
    return kept


def is_small_square(box: Box) -> bool:
    """Whether a box has the size and shape of a check box or a radio button."""
    return 8 <= box.width <= 24 and 8 <= box.height <= 24 and abs(box.width - box.height) <= 3


def is_field(pixels: Pixels, box: Box) -> bool:
    """Whether a box looks like a text field: wide, and bright inside."""
    if box.width < 30 or box.height < 13 or box.height > max(60, box.width):
        return False
    inside = pixels[int(box.top) + 2 : int(box.bottom) - 2, int(box.left) + 2 : int(box.right) - 2]
    return inside.size > 0 and float(np.median(inside)) >= 250


@dataclass(frozen=True)
class Surface:
    """The surface under a point: how even it is, and how far its colour extends."""

    spread: float
    """The standard deviation of the brightness around the point."""
    reach: float
    """The share of the screen that has the same colour and is connected to the point."""
    is_common: bool
    """Whether the colour at the point is the most common one of the screen."""
    colour: tuple[int, int, int]


def surface_at(pixels: Pixels, x: float, y: float, radius: int = 6) -> Surface:
    import cv2

    height, width = pixels.shape[:2]
    column, row = min(max(int(x), 0), width - 1), min(max(int(y), 0), height - 1)
    near = pixels[max(row - radius, 0) : row + radius + 1, max(column - radius, 0) : column + radius + 1]
    mask = np.zeros((height + 2, width + 2), np.uint8)
    flags = 4 | cv2.FLOODFILL_MASK_ONLY | cv2.FLOODFILL_FIXED_RANGE
    count, *_ = cv2.floodFill(pixels.copy(), mask, (column, row), 0, (6, 6, 6), (6, 6, 6), flags)
    coded = (pixels[::3, ::3].astype(np.int64) >> 2) @ np.array([4096, 64, 1])
    values, counts = np.unique(coded, return_counts=True)
    here = int((pixels[row, column].astype(np.int64) >> 2) @ np.array([4096, 64, 1]))
    red, green, blue = (int(each) for each in pixels[row, column])
    return Surface(
        float(near.mean(axis=2).std()),
        count / (height * width),
        here == int(values[counts.argmax()]),
        (red, green, blue),
    )


def ring(pixels: Pixels, box: Box) -> float:
    """Return how complete a focus ring around a box is, 0 to 1. Above one half, the box has the focus.

    A focus ring is a dark or strongly coloured outline, two pixels thick. The weakest of the four sides counts.
    """
    left, top, right, bottom = (int(side) for side in box.to_json())
    if box.width < 10 or box.height < 8:
        return 0.0
    columns, rows = slice(max(left + 4, 0), right - 4), slice(max(top + 4, 0), bottom - 4)
    sides = (
        [_strong(pixels[at, columns]) for at in _places(top, pixels.shape[0])],
        [_strong(pixels[at, columns]) for at in _places(bottom, pixels.shape[0])],
        [_strong(pixels[rows, at]) for at in _places(left, pixels.shape[1])],
        [_strong(pixels[rows, at]) for at in _places(right, pixels.shape[1])],
    )
    return min(max((min(pair) for pair in itertools.pairwise(side)), default=0.0) for side in sides)


def _places(middle: int, end: int) -> range:
    return range(max(middle - 4, 0), min(middle + 4, end))


def _strong(line: Pixels) -> float:
    """Return the share of a line of pixels that is dark or strongly coloured."""
    high, low = line.max(axis=1).astype(np.int16), line.min(axis=1).astype(np.int16)
    return float(((high < 70) | (high - low > 120)).mean()) if line.size else 0.0
