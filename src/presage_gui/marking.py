"""Draw a proposed action on the screen, for people and for critics that look at pictures."""

from __future__ import annotations

import math

import numpy as np

from presage_gui.action import Action, Kind, Point
from presage_gui.screen import Box, Screen

_COLOUR = (230, 0, 90)
_EDGE = (255, 255, 255)


def marked(screen: Screen, action: Action, radius: int = 9) -> Screen:
    """Return the screen with a ring at a click, or an arrow along a drag or a scroll.

    Other actions leave the screen unchanged. The inside of the ring stays free, so that the target is visible."""
    from PIL import Image, ImageDraw

    if not action.at:
        return screen
    image = Image.fromarray(screen.pixels)
    pen = ImageDraw.Draw(image)
    _ring(pen, action.at, radius)
    if action.kind is Kind.DOUBLE:
        _ring(pen, action.at, radius + 4)
    if action.to:
        _arrow(pen, action.at, action.to, radius)
    elif action.kind is Kind.SCROLL:
        length = math.hypot(action.dx, action.dy)
        end = Point(action.at.x + 36 * action.dx / length, action.at.y + 36 * action.dy / length)
        _arrow(pen, action.at, end, radius)
    return Screen(np.asarray(image, dtype=np.uint8))


def boxed(screen: Screen, boxes: tuple[Box, ...]) -> Screen:
    """Return the screen with frames around these boxes."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(screen.pixels)
    pen = ImageDraw.Draw(image)
    for box in boxes:
        frame = box.grown(2).within(screen.width - 1, screen.height - 1)
        pen.rectangle((frame.left, frame.top, frame.right, frame.bottom), outline=(0, 110, 255), width=2)
    return Screen(np.asarray(image, dtype=np.uint8))


def _ring(pen: object, at: Point, radius: int) -> None:
    draw = pen.ellipse  # type: ignore[attr-defined]
    for colour, wide, more in ((_EDGE, 4, 1), (_COLOUR, 2, 0)):
        r = radius + more
        draw((at.x - r, at.y - r, at.x + r, at.y + r), outline=colour, width=wide)


def _arrow(pen: object, start: Point, end: Point, radius: int) -> None:
    draw = pen.line  # type: ignore[attr-defined]
    angle = math.atan2(end.y - start.y, end.x - start.x)
    first = (start.x + radius * math.cos(angle), start.y + radius * math.sin(angle))
    wings = [(end.x - 9 * math.cos(angle + turn), end.y - 9 * math.sin(angle + turn)) for turn in (0.5, -0.5)]
    for colour, wide in ((_EDGE, 4), (_COLOUR, 2)):
        draw((first, (end.x, end.y)), fill=colour, width=wide)
        for wing in wings:
            draw(((end.x, end.y), wing), fill=colour, width=wide)
