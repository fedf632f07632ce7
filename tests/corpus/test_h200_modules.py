"""The recording of whole modules keeps its promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

from presage import load_recording
from presage.plugins.group import MODELS
from presage.problems import splits

ANOTHER_S = re.compile(r"[0-9a-f]{16}\.py")


def test_it_keeps_its_promises() -> None:
    recording = load_recording("h200_modules")
    names = ("problem", "hash", "anchor", "split", "family", "source", "status", "room")
    rows = [dict(zip(names, values, strict=True)) for values in zip(*recording.columns(*names).values(), strict=True)]
    assert len(rows) >= 1_000
    assert len(recording.counts) >= 200
    assert len(recording.pairs) == len(rows)
    assert {row["room"] for row in rows} == {"KernelBench", "one-file"}
    assert all(row["split"] == splits.of_problem(row["problem"]) for row in rows)
    assert {row["split"] for row in rows} == {"train", "validation", "test_problem"}
    references = {row["problem"] for row in rows if row["hash"] == row["anchor"] and row["status"] == "ok"}
    assert len(references) >= 0.95 * len(recording.counts)
    theirs = [row for row in rows if ANOTHER_S.fullmatch(row["family"])]
    assert theirs
    assert not any(row["source"] for row in theirs), "their texts belong to others"


def test_the_model_was_learned_from_it() -> None:
    about = json.loads((Path(MODELS.load("modules")) / "modules.json").read_text())
    assert about["recordings"] == ["h200_modules"]
    assert about["modules"] > 500
