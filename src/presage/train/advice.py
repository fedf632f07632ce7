"""Forecasts of `learned` for the kernels that a language model is trained on, by trees that have not seen them.

A model trained with forecasts of kernels that the trees know would trust the trees too much. So the train split is
divided into folds, as for `learned` itself once by operation and once by whole rooms, and each fold is forecast by
trees grown on the other folds. A question of the train split states one of the two forecasts, drawn at random, so that
the model sees forecasts for operations both like and unlike those that the trees know. Other splits are forecast by the
installed `learned`, which is also used for questions to the trained model.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.devices.recording import Recording, Row
from presage.forecasters import learned_training
from presage.forecasters.learned import KINDS, LearnedForecaster
from presage.forecasters.learned_training import TREES, Example

VIEWS = ("problem", "room")
FOLDS = "folds.json"


@dataclass(frozen=True)
class Advice:
    """The forecasters that advise on each operation."""

    folds: Mapping[str, Mapping[str, LearnedForecaster]]
    """For the train split: by view, and by the name of the operation or room that the trees have not seen."""
    installed: LearnedForecaster

    def of(self, row: Row, rng: random.Random) -> LearnedForecaster:
        """The forecaster for a question about this kernel. Raises PresageError if there is none for its fold."""
        if row.split != "train":
            return self.installed
        view = rng.choice(VIEWS)
        if (group := str(getattr(row, view))) not in self.folds[view]:
            raise PresageError(
                f"trees that have not seen {group} were not grown: the recordings are others than those that the "
                "questions were begun with; give another folder with --into"
            )
        return self.folds[view][group]


def make(
    recordings: Sequence[Recording], folder: Path, say: Callable[[str], None] = print, trees: int = TREES
) -> Advice:
    """Grow the trees of every fold into a folder, unless they exist."""
    file = folder / FOLDS
    if not file.exists():
        write_whole(file, json.dumps(_grow(recordings, folder, say, trees)) + "\n")
    known: dict[str, dict[str, str]] = json.loads(file.read_text())
    places = {place for folds in known.values() for place in folds.values()}
    unseen = {place: LearnedForecaster(folder / place) for place in places}
    named = {view: {group: unseen[place] for group, place in folds.items()} for view, folds in known.items()}
    return Advice(named, LearnedForecaster())


def _grow(
    recordings: Sequence[Recording], folder: Path, say: Callable[[str], None], trees: int
) -> dict[str, dict[str, str]]:
    """Grow missing trees. Returns, by view and group, the subfolder of the trees that have not seen the group."""
    samples = {kind: learned_training.read_all(recordings, kind, "train") for kind in KINDS}
    held = {kind: learned_training.read_all(recordings, kind, "validation") for kind in KINDS}
    found = {}
    for view in VIEWS:
        folds = learned_training.folds(_group(sample, view) for each in samples.values() for sample in each)
        for kind, each in samples.items():
            if each and len({folds[_group(sample, view)] for sample in each}) < 2:
                raise PresageError(
                    f"the train split has too few {view}s with kernels of the kind '{kind}' to grow trees without "
                    "some of them; set advised = false under [questions]"
                )
        for number in sorted(set(folds.values())):
            place = folder / f"{view}_{number}"
            if (place / "done").exists():
                continue
            place.mkdir(parents=True, exist_ok=True)
            say(f"advice: trees that have not seen {sum(n == number for n in folds.values())} {view}s")
            for kind in KINDS:
                if others := [sample for sample in samples[kind] if folds[_group(sample, view)] != number]:
                    sources = [each.name for each in learned_training.of_kind(recordings, kind)]
                    learned_training.train_kind(kind, others, held[kind], place, sources, _quiet, trees)
            (place / "done").touch()
        found[view] = {group: f"{view}_{number}" for group, number in folds.items()}
    return found


def _group(sample: Example, view: str) -> str:
    return str(getattr(sample, view))


def _quiet(line: str) -> None:
    """Discard the messages of the training of a fold."""
