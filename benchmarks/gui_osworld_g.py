"""Score the `pixels` critic on real desktop screens: python benchmarks/gui_osworld_g.py FOLDER LINES [--development N]

FOLDER holds OSWorld-G.json and images/ (github.com/xlang-ai/OSWorld-G; read, never shipped). LINES is a cache of the
text that was read on each screen, one line per screen. Reading is the slow part; the same command resumes.
Screens are taken in the order of the hashes of their names. The first N are for development and are not in the report.

For each instruction, a click on its target is good. Bad clicks are on the target of another instruction for the same
screen, beside the target, and on a random label. An instruction that cannot be followed has only bad clicks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.scoring import auroc, bootstrap
from presage_gui.action import Action, Kind, Point
from presage_gui.critics.pixels import Pixels
from presage_gui.evaluation.scores import alarms, caught
from presage_gui.history import History
from presage_gui.screen import Box, Screen
from presage_gui.sight.text import Line, Reader, Word
from presage_gui.step import Step

DEVELOPMENT = 12


@dataclass(frozen=True)
class Check:
    image: str
    kind: str
    good: bool
    probability: float
    abstains: bool
    seconds: float


class Kept(Reader):
    """A reader that caches the lines of each screen in a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._known: dict[str, tuple[Line, ...]] = {}
        self.seconds: dict[str, float] = {}
        for text in file.read_text().splitlines() if file.is_file() else ():
            kept = json.loads(text)
            self._known[kept["digest"]] = tuple(_line(each) for each in kept["lines"])
            self.seconds[kept["digest"]] = kept["seconds"]

    def read(self, screen: Screen) -> tuple[Line, ...]:
        if screen.digest not in self._known:
            self._screens.clear()
            began = time.process_time()
            lines = self._known[screen.digest] = super().read(screen)
            took = self.seconds[screen.digest] = round(time.process_time() - began, 3)
            with self._file.open("a") as out:
                row = {"digest": screen.digest, "seconds": took, "lines": [_json(line) for line in lines]}
                out.write(json.dumps(row) + "\n")
        return self._known[screen.digest]

    def has(self, screen: Screen) -> bool:
        return screen.digest in self._known


def _json(line: Line) -> list[Any]:
    return [line.text, line.box.to_json(), line.sure, [[word.text, word.box.to_json()] for word in line.words]]


def _line(kept: list[Any]) -> Line:
    text, box, sure, words = kept
    return Line(text, Box(*box), sure, tuple(Word(word, Box(*at)) for word, at in words))


def place_in(task: dict[str, Any]) -> tuple[Point, Box] | None:
    """Return a point on the target and the box around the target; None if there is no target."""
    told = task["box_coordinates"]
    if task["box_type"] == "bbox":
        x, y, width, height = told
        return Point(round(x + width / 2), round(y + height / 2)), Box(x, y, x + width, y + height)
    if task["box_type"] == "polygon":
        corners = np.array(told, dtype=float).reshape(-1, 2)
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        x, y = corners.mean(axis=0)
        return Point(round(x), round(y)), Box(left, top, right, bottom)
    return None


def bad_places(
    task: dict[str, Any], others: list[dict[str, Any]], lines: Iterable[Line], size: tuple[int, int]
) -> dict[str, Point]:
    rng = random.Random(task["id"])
    found: dict[str, Point] = {}
    target = place_in(task)
    box = target[1] if target else Box(-9, -9, -9, -9)

    def is_free(point: Point) -> bool:
        return 0 <= point.x < size[0] and 0 <= point.y < size[1] and not box.grown(2).holds(point.x, point.y)

    elsewhere = [place for other in others if (found_at := place_in(other)) and is_free(place := found_at[0])]
    if elsewhere:
        found["another_target"] = rng.choice(elsewhere)
    if target:
        away, (x, y) = rng.choice((6, 10, 16, 25, 40)), (target[0].x, target[0].y)
        beside = [
            Point(box.left - away, y),
            Point(box.right + away, y),
            Point(x, box.top - away),
            Point(x, box.bottom + away),
        ]
        if free := [Point(round(p.x), round(p.y)) for p in beside if is_free(p)]:
            found["near_miss"] = rng.choice(free)
    middles = [Point(round(line.box.middle[0]), round(line.box.middle[1])) for line in lines if line.is_readable]
    if free := [place for place in middles if is_free(place)]:
        found["random_label"] = rng.choice(free)
    return found


def checks(folder: Path, reader: Kept, images: list[str], by_image: dict[str, list[dict[str, Any]]]) -> list[Check]:
    critic = Pixels(fixes=False, online=False, reader=reader)
    found = []
    for image in images:
        screen = Screen.from_png((folder / "images" / image).read_bytes())
        lines = reader.read(screen)
        for task in by_image[image]:
            target = place_in(task)
            others = [other for other in by_image[image] if other is not task]
            places = {"good": target[0]} if target else {}
            places |= bad_places(task, others, lines, screen.size)
            for kind, at in places.items():
                step = Step(Action(Kind.CLICK, at=at), task["instruction"])
                began = time.process_time()
                verdict = critic.check(task["instruction"], History(), screen, step)
                took = time.process_time() - began
                found.append(Check(image, kind, kind == "good", verdict.probability, verdict.abstains, took))
    return found


def report(found: list[Check]) -> dict[str, Any]:
    judged = [each for each in found if not each.abstains]
    probability, good = np.array([each.probability for each in judged]), np.array([each.good for each in judged])
    images = [each.image for each in judged]
    kinds = {each.kind for each in judged} - {"good"}
    return {
        "screens": len({each.image for each in found}),
        "checks": len(found),
        "judged": round(len(judged) / len(found), 3),
        "judged_good": round(float(np.mean([not each.abstains for each in found if each.good])), 3),
        "auroc": _interval(lambda at: auroc(probability[at], good[at]), images),
        "false_alarms_at_half": _interval(lambda at: alarms(probability[at], good[at], 0.5), images),
        "recall_at_half": _interval(lambda at: caught(probability[at], good[at], 0.5), images),
        "auroc_by_kind": {kind: _round(_against(judged, kind)) for kind in sorted(kinds)},
        "auroc_of_all": _round(auroc(np.array([c.probability for c in found]), np.array([c.good for c in found]))),
        "cpu_seconds_a_check": _round(float(np.mean([each.seconds for each in found]))),
    }


def _against(judged: list[Check], kind: str) -> float:
    own = [each for each in judged if each.good or each.kind == kind]
    return auroc(np.array([each.probability for each in own]), np.array([each.good for each in own]))


def _interval(figure: Any, names: list[str]) -> list[float]:
    return [_round(each) for each in bootstrap(figure, names, resamples=200)]


def _round(value: float) -> float:
    return round(float(value), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--development", type=int, default=DEVELOPMENT)
    parser.add_argument("--only-development", action="store_true")
    parser.add_argument("--read", action="store_true", help="only the screens that were read before")
    given = parser.parse_args()
    by_image: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for task in json.loads((given.folder / "OSWorld-G.json").read_text()):
        by_image[task["image_path"]].append(task)
    images = sorted(by_image, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    images = images[: given.development] if given.only_development else images[given.development :]
    reader = Kept(given.lines)
    if given.read:
        images = [name for name in images if reader.has(Screen.from_png((given.folder / "images" / name).read_bytes()))]
    found = report(checks(given.folder, reader, images, by_image))
    print(json.dumps(found | {"reading_cpu_seconds_a_screen": _round(float(np.mean(list(reader.seconds.values()))))}))


if __name__ == "__main__":
    main()
