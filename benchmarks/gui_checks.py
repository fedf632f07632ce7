"""Measure the processor seconds of a check of the `pixels` critic: python benchmarks/gui_checks.py

The screens are synthetic: a form at 320 × 320, and windows full of text at 1920 × 1080. The first check reads a whole
screen. Each later check follows a change of a few lines, as in an episode.
"""

from __future__ import annotations

import json
import random
import time

import numpy as np

from presage_gui import Action, History, Screen, Step
from presage_gui.critics.pixels import Pixels

WORDS = "file edit view insert format tools data window help open save print search settings account name date".split()  # noqa: SIM905


def drawn(width: int, height: int, lines: int, seed: int) -> np.ndarray:
    """Return an image with this many short lines of text, evenly spaced."""
    import cv2

    rng = random.Random(seed)
    pixels = np.full((height, width, 3), 255, np.uint8)
    columns = max(1, width // 240)
    for i in range(lines):
        x, y = 12 + i % columns * (width // columns), 24 + i // columns * (height * columns // (lines + columns))
        text = " ".join(rng.choices(WORDS, k=3))
        cv2.putText(pixels, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, cv2.LINE_AA)
    return pixels


def seconds(width: int, height: int, lines: int, checks: int = 8) -> dict[str, float]:
    import cv2

    critic = Pixels()
    pixels = drawn(width, height, lines, 0)
    rng = random.Random(1)
    took = []
    for i in range(checks):
        row = rng.randrange(40, height - 40)
        pixels = pixels.copy()
        pixels[row - 14 : row + 8, 10:220] = 255
        cv2.putText(pixels, f"line {i} new", (12, row), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, cv2.LINE_AA)
        began = time.process_time()
        critic.check(
            "Save the file", History(), Screen(pixels), Step(Action.parse(f"click(40, {row})"), 'Click "save"')
        )
        took.append(time.process_time() - began)
    return {
        "first": round(took[0], 3),
        "later_mean": round(float(np.mean(took[1:])), 3),
        "later_most": round(max(took[1:]), 3),
    }


if __name__ == "__main__":
    Pixels().check(
        "", History(), Screen(drawn(64, 64, 1, 0)), Step(Action.parse("click(4, 4)"), "Click")
    )  # load everything
    print(json.dumps({"320x320": seconds(320, 320, 14), "1920x1080": seconds(1920, 1080, 160)}))
