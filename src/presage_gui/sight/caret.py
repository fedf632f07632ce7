"""Find text carets: thin vertical bars with free space around them. Typed text appears at the caret."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from presage_gui.screen import Box, Screen

_SHORT, _LONG = 11, 26
_DARK, _LIGHT = 100, 190
_KEPT = 64
_seen: OrderedDict[str, tuple[Box, ...]] = OrderedDict()


def carets(screen: Screen) -> tuple[Box, ...]:
    """Return isolated vertical bars, one or two pixels wide: dark on light, taller than letters, shorter than borders.

    The results of the last screens are cached."""
    if screen.digest not in _seen:
        _seen[screen.digest] = _find(screen)
        if len(_seen) > _KEPT:
            _seen.popitem(last=False)
    return _seen[screen.digest]


def _find(screen: Screen) -> tuple[Box, ...]:
    import cv2

    grey = screen.pixels.max(axis=2)
    dark, light = (grey < _DARK).astype(np.uint8), (grey > _LIGHT).astype(np.uint8)
    core = cv2.morphologyEx(dark, cv2.MORPH_OPEN, np.ones((_SHORT, 1), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(core)
    found = []
    for x, y, w, h, _ in stats[1:count].tolist():
        if w > 2 or not _SHORT <= h <= _LONG or x < 3 or x + w + 3 > screen.width or y < 1:
            continue
        left, right = light[y : y + h, x - 2], light[y : y + h, x + w + 1]
        ends = [*light[y - 1 : y, x - 2 : x + w + 2].ravel(), *light[y + h : y + h + 1, x - 2 : x + w + 2].ravel()]
        if right.mean() > 0.9 and left.mean() > 0.5 and np.mean(ends) > 0.7:
            found.append(Box(x, y, x + w, y + h))
    return tuple(found)
