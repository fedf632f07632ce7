"""Train the weights of the `pixels` critic on recorded states: python -m presage_gui.critics.training DATA [FOLDER].

The trees are fitted on train and validation together. The scaling and the guard's calibration come from
cross-fitting: from predictions on task families that the fitted trees had not seen. Test tasks are never read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from presage.core.recalibration import Scaling
from presage_gui.action import ActionError
from presage_gui.critics.evidence.all import evidence
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.weights import FOLDER, Weights, balanced, cross_fitted
from presage_gui.data.dataset import State, load
from presage_gui.sight.scene import Viewer

_CALIBRATION = 1500
"""The number of verdicts with outcomes that are stored for the guard."""


@dataclass(frozen=True)
class Row:
    """The evidence of one proposal with and without its intent, and its label."""

    task: str
    family: str
    good: bool
    with_intent: dict[str, float]
    bare: dict[str, float]


def rows_of(states: Iterable[State], viewer: Viewer | None = None) -> list[Row]:
    """Return one row for each proposal that can be carried out. All others are rejected without weights."""
    viewer = viewer or Viewer()
    rows = []
    for state in states:
        history, screen = state.history, state.screen
        for proposal in state.proposals:
            if (step := proposal.step) is None:
                continue
            try:
                seen = [evidence(Situation.of(viewer, state.goal, history, screen, each)) for each in (step, step.bare)]
            except ActionError:
                continue
            rows.append(Row(state.task, state.family, proposal.good, seen[0], seen[1]))
    return rows


def train(rows: list[Row], folder: Path) -> None:
    """Fit and write the weights for steps with an intent and for bare steps, and the guard's calibration."""
    good = np.array([float(row.good) for row in rows])
    weight = balanced(good, [row.family for row in rows])
    families = [row.family for row in rows]
    for name in ("with_intent", "bare"):
        seen = [getattr(row, name) for row in rows]
        said = cross_fitted(seen, good, weight, families)
        scaling = Scaling.fit(said, good, weight)
        Weights.fit(seen, good, weight, scaling).save(folder / f"{name}.txt")
        if name == "with_intent":
            chosen = np.random.default_rng(0).permutation(len(rows))[:_CALIBRATION]
            pairs = [[round(float(scaling(said[i])), 4), bool(good[i])] for i in chosen]
            (folder / "calibration.json").write_text(json.dumps(pairs))


def main(argv: list[str]) -> int:
    if not argv:
        raise SystemExit("give the folder of the recorded states")
    data, folder = Path(argv[0]), Path(argv[1]) if len(argv) > 1 else FOLDER
    folder.mkdir(exist_ok=True)
    train([*rows_of(load("train", data)), *rows_of(load("validation", data))], folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
