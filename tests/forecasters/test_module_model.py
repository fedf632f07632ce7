"""The model of modules: what it learns from measured ones, and how its file is read."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presage import PresageError
from presage.forecasters import module_training
from presage.forecasters.launch_times import MARKS, NO_CORRECTION, Correction
from presage.forecasters.module_model import FILE, ModuleModel
from presage.forecasters.module_training import Example, Launched

CORRECTION = Correction(0.1, {"heavy": 0.0, "long": -0.1, "small": 0.0, "thin": -1.0})
MODEL = ModuleModel(0.05, 1.5, 0.1, -2.0, {"half precision": 1.0}, CORRECTION)
GOOD = {"version": 3, "near": 1, "far": 1, "far_share": 0.1, "bias": 0, "weights": {}, "launches": asdict(CORRECTION)}


def examples(near: float, far: float, share: float, count: int = 400) -> list[Example]:
    """Modules of which so many are far off, at the quantiles of what they are drawn from."""
    drawn = np.random.default_rng(7)
    is_far = drawn.random(count) < share
    deviations = drawn.uniform(0.01, 0.1, count)
    off = drawn.normal(size=count) * np.hypot(deviations, np.where(is_far, far, near))
    return [Example(False, frozenset(), float(x), float(d)) for x, d in zip(off, deviations, strict=True)]


def test_the_chance_to_fail_is_a_logistic_sum() -> None:
    assert MODEL.p_fail([]) == pytest.approx(1 / (1 + math.exp(2)))
    assert MODEL.p_fail(["half precision"]) == pytest.approx(1 / (1 + math.exp(1)))
    assert MODEL.p_fail(["unknown"]) == MODEL.p_fail([])


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    MODEL.write(tmp_path / "model", modules=3)
    assert ModuleModel.load(tmp_path / "model") == MODEL
    assert ModuleModel.load().near > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        (json.dumps({"version": 0}), "of version 0"),
        (json.dumps({"version": 3, "near": "x"}), "cannot be read"),
        *(
            (json.dumps(GOOD | change), "cannot be read")
            for change in (
                {"weights": []},
                {"far_share": 2},
                {"near": math.nan},
                {"launches": {}},
                {"launches": {"bias": 0, "weights": {}}},
                {"launches": {"bias": math.inf, "weights": CORRECTION.weights}},
            )
        ),
    ],
)
def test_a_bad_file_is_refused_with_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(PresageError, match=said) as error:
        ModuleModel.load(tmp_path)
    assert "train" in str(error.value)


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="no model of modules"):
        ModuleModel.load(tmp_path)


def test_it_finds_how_far_modules_are() -> None:
    found = module_training.fitted(examples(0.08, 1.5, 0.1))
    assert found.near == pytest.approx(0.08, rel=0.4)
    assert found.far == pytest.approx(1.5, rel=0.4)
    assert found.far_share == pytest.approx(0.1, abs=0.04)


def test_it_finds_what_those_that_fail_do() -> None:
    """A sign that has no prior would have the weight ln(3 / 1) − ln(1 / 9): the prior draws it a little to nought."""
    signed = [Example(number < 150, frozenset({"lacks"}), 0.1, 0.1) for number in range(200)]
    unsigned = [Example(number < 20, frozenset(), 0.1, 0.1) for number in range(200)]
    found = module_training.fitted([*signed, *unsigned])
    assert found.bias == pytest.approx(math.log(1 / 9), abs=0.25)
    assert 0.85 * math.log(27) < found.weights["lacks"] < math.log(27)
    assert all(weight == 0 for sign, weight in found.weights.items() if sign != "lacks")


def test_the_same_modules_give_the_same_file(tmp_path: Path) -> None:
    measured: list[Any] = examples(0.05, 1.0, 0.2)
    for name in ("one", "two"):
        module_training.fitted(measured).write(tmp_path / name)
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "two" / FILE).read_bytes()


def test_it_finds_by_how_much_kernels_of_modules_differ() -> None:
    """What is added to thin kernels is found again, a little less; one that is far off hardly counts."""
    drawn = np.random.default_rng(3)
    marks = [dict(zip(MARKS, row, strict=True)) for row in drawn.uniform(0, 2, (300, len(MARKS)))]
    launched = [Launched(each, 0.2 - 0.5 * each["thin"]) for each in marks]
    found = module_training.corrected([*launched, Launched(marks[0], 50.0)])
    assert found.weights["thin"] == pytest.approx(-0.5, rel=0.1)
    assert found.octaves(dict.fromkeys(MARKS, 1.0)) == pytest.approx(-0.3, abs=0.03)
    assert all(abs(found.weights[mark]) < 0.03 for mark in MARKS if mark != "thin")
    assert module_training.corrected([]) == NO_CORRECTION
