"""Measure how well histories detect unexpected changes: python benchmarks/gui_history.py DATA [SPLIT]

DATA is a folder that `presage-gui record` wrote. The steps of recorded episodes are compared again, once by pixels and
words alone and once with OCR. The truth is the effect that the oracle recorded with each step.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from presage_gui.changes import Watcher
from presage_gui.data.dataset import State, load
from presage_gui.history import Effect, Entry
from presage_gui.reading import Reader
from presage_gui.sight.text import Reader as Ocr


def episodes(data: Path, split: str) -> list[State]:
    """Return the last state of each episode whose history states the intent of each step."""
    last: dict[tuple[str, int], State] = {}
    for state in load(split, data):  # type: ignore[arg-type]
        known = last.get((state.task, state.seed))
        if state.says_what_was_meant and (known is None or len(state.history) > len(known.history)):
            last[state.task, state.seed] = state
    return list(last.values())


def count(states: list[State], reader: Reader | None) -> dict[str, int]:
    found: Counter[str] = Counter()
    for state in states:
        watcher = Watcher(reader=reader)
        seen: list[Entry] = []
        for truth in state.history:
            entry = watcher.entry(truth.step, truth.before, truth.after, seen)
            seen.append(entry)
            found[f"{truth.effect} taken for {entry.effect}"] += 1
    surprises = sum(number for name, number in found.items() if name.startswith(f"{Effect.OTHER} "))
    return {"episodes": len(states), "surprises": surprises, **found}


if __name__ == "__main__":
    chosen = episodes(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "validation")
    print(json.dumps({"by pixels and words": count(chosen, None), "with a reader": count(chosen, Ocr())}))
