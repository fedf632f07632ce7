"""The recorded H200 that comes with presage, and the model learned from it. What a sweep reads is data: it changes only
where somebody records anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from presage import Candidate
from presage.cli import main
from presage.devices import recorded
from presage.devices.recorded import RecordedDevice
from presage.forecasters import learned_training
from presage.forecasters.features import case_rows
from presage.forecasters.learned import installed


@pytest.mark.slow
@pytest.mark.sweep
def test_it_keeps_its_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["corpus", "check", "h200", "--quick", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["problems"] == []
    assert card["kernels"] >= 12_388
    assert card["operations"] >= 118
    assert card["operations_with_both_languages"] >= 100
    assert 0.03 <= card["failures"] <= 0.25
    assert min(split["operations"] for split in card["splits"].values()) >= 15
    assert card["bytes"] <= 16e6


def test_the_model_is_small_and_learned_from_training_alone() -> None:
    assert sum(file.stat().st_size for file in installed().iterdir()) <= 5e6
    facts = json.loads((installed() / "compiled.json").read_text())
    trained = {row.problem for row in recorded.find("h200").rows(reports=False) if row.split == "train"}
    assert facts["operations"] <= len(trained)
    assert facts["recordings"] == ["h200"]


def test_a_new_count_of_walks_does_not_change_what_training_again_gives() -> None:
    """Trees draw features at random, so that one more would give other trees."""
    device = RecordedDevice(recorded.find("h200"))
    rows = [row for row in device.rows("matmul_half").values() if row.reports][:8]
    task = learned_training.task_of(device, "matmul_half", rows[0])
    found = {name for row in rows for case in case_rows(task, Candidate(row.kernel, row.reports)) for name in case}
    assert found <= set(json.loads((installed() / "compiled.json").read_text())["names"])


def test_a_search_of_an_unseen_operation_beats_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    arguments = ["search", "variance", "--device", "recorded:h200", "--budget", "16", "--run", folder, "--json"]
    assert main.main(arguments) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["forecaster"] == "learned"
    assert run["forecasts"] > 16
    assert run["best"]["speedup"]["low"] > 2.0
    assert Path(run["best"]["path"]).suffix in (".cu", ".py")
