"""Kernel Tuner's own package reads what we write, and tunes with our strategy, in its simulation mode."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presage import PresageError, Recording
from presage.corpus import importing
from presage.neighbours import kernel_tuner as ours

SPACE = {"block_size_x": [16, 32, 64, 128, 256, 512], "work": [1, 2, 4, 8], "flag": [0, 1]}


def time_ms(block: int, work: int, flag: int) -> float | None:
    """A smooth space with one optimum (128, 4, 1), and a corner where nothing compiles."""
    if block * work > 2048:
        return None
    return 1.0 + abs(block.bit_length() - 8) * 0.5 + abs(work.bit_length() - 3) * 0.3 + (0.2 if not flag else 0.0)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    entries = {}
    for values in itertools.product(*SPACE.values()):
        time = time_ms(*values)
        told: dict[str, Any] = dict(zip(SPACE, values, strict=True))
        told |= {"__error__": "CompilationFailedConfig"} if time is None else {"time": time, "times": [time, time]}
        entries[",".join(map(str, values))] = told
    document = {
        "device_name": "a GPU", "kernel_name": "scale", "problem_size": [4096, 8], "tune_params_keys": list(SPACE),
        "tune_params": SPACE, "cache": entries,
    }  # fmt: skip
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(document))
    return importing.import_tuning(path, tmp_path / "space.parquet")


def known(recording: Recording) -> dict[str, Any]:
    return {row.name: (str(row.status), row.cases, row.facts) for row in recording.rows("scale")}


def test_a_cache_goes_there_and_back(recording: Recording, tmp_path: Path) -> None:
    assert ours.write_cache(recording, tmp_path / "ours.json") == 48
    again = importing.import_tuning(tmp_path / "ours.json", tmp_path / "again.parquet")
    assert known(again) == known(recording)
    assert again.facts["hardware"] == "a GPU"


def test_a_t4_file_goes_there_and_back(recording: Recording, tmp_path: Path) -> None:
    assert ours.write_t4(recording, tmp_path / "ours_T4.json") == 48
    again = importing.import_tuning(tmp_path / "ours_T4.json", tmp_path / "again.parquet", name="scale")
    was, now = recording.rows("scale"), again.rows("scale")
    assert [(row.values, row.status, row.total_ns) for row in now] == [
        (row.values, row.status, pytest.approx(row.total_ns)) for row in was
    ]


def test_one_family_is_written(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="has no family 'other'; it has scale"):
        ours.write_cache(recording, tmp_path / "ours.json", family="other")
    with pytest.raises(PresageError, match="has no kernel of softmax with tunables"):
        ours.write_cache(recording, tmp_path / "ours.json", problem="softmax")


def test_t4_is_as_its_schema_says(recording: Recording, tmp_path: Path) -> None:
    utils = pytest.importorskip("kernel_tuner.file_utils", reason="needs kernel_tuner")
    jsonschema = pytest.importorskip("jsonschema")
    ours.write_t4(recording, tmp_path / "ours.json")
    _, schema = utils.output_file_schema("results")
    jsonschema.validate(json.loads((tmp_path / "ours.json").read_text()), schema)


@pytest.fixture
def tune(recording: Recording, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    kernel_tuner = pytest.importorskip("kernel_tuner", reason="needs kernel_tuner")
    ours.write_cache(recording, tmp_path / "ours.json")

    def run(strategy: Any, evaluations: int) -> list[dict[str, Any]]:
        results, _ = kernel_tuner.tune_kernel(
            "scale", "__global__ void scale() {}", (4096, 8), [], SPACE, strategy=strategy, simulation_mode=True,
            strategy_options={"max_fevals": evaluations}, cache=str(tmp_path / "ours.json"), quiet=True, verbose=False,
        )  # fmt: skip
        return list(results)

    return run


def test_kernel_tuner_tunes_with_our_strategy(tune: Callable[..., list[dict[str, Any]]]) -> None:
    found = tune(ours.SurrogateStrategy(), 20)
    assert len(found) == 20
    assert min(each["time"] for each in found if "__error__" not in each) == 1.0
    assert len({tuple(each[name] for name in SPACE) for each in found}) == 20, "nothing is measured twice"


def test_it_comes_to_an_end_of_its_own(tune: Callable[..., list[dict[str, Any]]]) -> None:
    assert len(tune(ours.SurrogateStrategy(), 1000)) == 48


def test_it_works_inside_kernel_tuner_s_wrapper(tune: Callable[..., list[dict[str, Any]]]) -> None:
    wrapper = pytest.importorskip("kernel_tuner.strategies.wrapper")
    found = tune(wrapper.OptAlgWrapper(ours.SurrogateStrategy()), 20)
    assert min(each["time"] for each in found if "__error__" not in each) == 1.0
