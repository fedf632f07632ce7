"""The recorded H200 that comes with presage, and the model learned from it. What a sweep reads is data: it changes only
where somebody records anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from presage.cli import main
from presage.devices import recorded
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


def test_a_search_of_an_unseen_operation_beats_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    arguments = ["search", "variance", "--device", "recorded:h200", "--budget", "16", "--run", folder, "--json"]
    assert main.main(arguments) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["forecaster"] == "learned"
    assert run["forecasts"] > 16
    assert run["best"]["speedup"]["low"] > 2.0
    assert Path(run["best"]["path"]).suffix in (".cu", ".py")
