"""What a recalibration mends, and the parts of a split, for a forecaster whose fault is known."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import numpy as np
import pytest

from presage import Candidate, Forecast, Forecaster, Prediction, PresageError, Recording, Task
from presage.core.scale import BINS
from presage.devices import recording
from presage.evaluations.evaluation import evaluate


class Boaster(Forecaster):
    """Is right half of the time, and always nearly sure."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(self._say(task, candidate)) for candidate in candidates]

    def _say(self, task: Task, candidate: Candidate) -> Forecast:
        rng = random.Random(f"{task.problem.name}/{task.anchor.kernel.hash}/{candidate.kernel.hash}")
        bins = np.full(BINS, 0.001)
        bins[rng.randrange(BINS)] = 1.0
        return Forecast.from_bins(bins, p_fail=0.9)


@pytest.fixture(scope="module")
def held(truth: Recording, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The same with one operation of the train split in the validation split."""
    path = tmp_path_factory.mktemp("held") / "held.parquet"
    rows = [dataclasses.replace(row, split="validation") if row.problem == "op_c" else row for row in truth.rows()]
    return recording.write(path, rows, {"name": "held", "kind": "gpu", "hardware": "h200"})


def test_a_boaster_is_mended_by_a_temperature_and_a_curve(held: Recording) -> None:
    numbers = evaluate(Boaster(), held, "test_op", ["recalibration"]).numbers
    assert numbers["recalibrated_ece before"].value > 0.5
    assert numbers["recalibrated_ece temperature"].value < 0.3
    for score in ("nll", "rps"):
        assert numbers[f"recalibrated_{score} temperature"].value < numbers[f"recalibrated_{score} before"].value
    assert numbers["failure_brier isotonic"].value < numbers["failure_brier before"].value


def test_it_is_not_fitted_on_what_it_is_scored_on(held: Recording, truth: Recording) -> None:
    with pytest.raises(PresageError, match="scored on another"):
        evaluate(Boaster(), held, "validation", ["recalibration"])
    with pytest.raises(PresageError, match="no split 'validation'"):
        evaluate(Boaster(), truth, "test_op", ["recalibration"])


def test_parts_are_languages_rooms_and_lengths(truth: Recording) -> None:
    found = evaluate(Boaster(), truth, "test_op", ["parts", "accuracy"])
    numbers = found.numbers
    assert {name.split(maxsplit=1)[1] for name in numbers if name.startswith("exact_of")} == {
        *("cuda", "made_up"), *("short", "middling", "long"),
    }  # fmt: skip
    assert numbers["exact_of cuda"] == numbers["exact"]
    assert numbers["rps_of made_up"] == numbers["rps"]
