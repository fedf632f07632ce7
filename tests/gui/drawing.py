"""Screens that are drawn for tests: a goal at the top, fields, buttons, check boxes."""

from __future__ import annotations

import numpy as np
import pytest

from presage_gui import Box, Screen

cv2 = pytest.importorskip("cv2", reason="needs the gui extra")
pytest.importorskip("onnxruntime", reason="needs the gui extra")
pytest.importorskip("rapidocr", reason="needs the gui extra")

GOAL = 'Enter "Jerald" into the text field and press Submit.'
FIELD, SUBMIT, CANCEL = Box(10, 60, 150, 84), Box(10, 100, 100, 130), Box(110, 100, 200, 130)


def form(typed: str = "", focused: bool = False, more: dict[tuple[int, int], str] | None = None) -> Screen:
    """A field, Submit and Cancel; `more` is text at places."""
    pixels = np.full((320, 320, 3), 255, np.uint8)
    frame(pixels, FIELD, (16, 16, 16) if focused else (118, 118, 118), 2 if focused else 1)
    for box, name in ((SUBMIT, "Submit"), (CANCEL, "Cancel")):
        pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = 239
        frame(pixels, box, (118, 118, 118), 1)
        write(pixels, name, int(box.left) + 18, int(box.bottom) - 9)
    if typed:
        write(pixels, typed, int(FIELD.left) + 4, int(FIELD.bottom) - 7)
    for (x, y), text in (more or {}).items():
        write(pixels, text, x, y)
    return Screen(pixels)


def frame(pixels: np.ndarray, box: Box, colour: tuple[int, int, int], width: int) -> None:
    cv2.rectangle(pixels, (int(box.left), int(box.top)), (int(box.right) - 1, int(box.bottom) - 1), colour, width)


def write(pixels: np.ndarray, text: str, x: int, y: int) -> None:
    cv2.putText(pixels, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, cv2.LINE_AA)
