"""`presage train`, and the forecasts of what it trained, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from presage import Status
from presage.cli.main import main
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.kernel import from_source
from presage.problems import registry


def small_recording(path: Path) -> None:
    rows = []
    for problem, split in (("vector_add", "train"), ("gelu", "train"), ("sum", "test_op")):
        for number in range(12):
            source = (
                f"// presage: entry k\n#define WORK {number + 1}\nvoid k(void) {{ for (int i = 0; i < WORK; i++); }}\n"
            )
            kernel = from_source(source, ".c", "k.c")
            cases = tuple(
                RecordedCase(case.name, 1.0, (1000.0 * (number + 1),) * 3)
                for case in registry.get(problem).timed["cpu"]
            )
            rows.append(Row(problem, "elementwise", split, "k.c", "c", kernel.hash, source, {}, Status.OK, cases=cases))
    recording.write(path, rows, {"name": "small", "kind": "cpu", "hardware": "a formula"})


def test_train_and_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_recording(tmp_path / "small.parquet")
    assert main(["train", "learned", "--recording", "small.parquet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["into"] == "models/learned"
    model = {"cpu.json", "cpu_time.txt", "cpu_spread.txt", "cpu_fail.txt"}
    assert set(told["files"]) == {*model, "CARD.md", "importance.svg"}
    assert (
        main(["forecast", "sum", "rows.c", "--target", "cpu", "--forecaster", "learned:models/learned", "--json"]) == 0
    )
    (told,) = json.loads(capsys.readouterr().out)["forecasts"]
    assert told["forecast"]["speedup"]["value"] > 0
    assert any("was not measured" in note for note in told["notes"])


def test_nothing_to_learn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "learned", "--recording", str(tmp_path / "none.parquet")]) == 2
    assert "there is no recording" in capsys.readouterr().err


def test_operators_are_learned_from_recordings_of_operators_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_recording(tmp_path / "small.parquet")
    assert (
        main(["train", "operators", "--recording", str(tmp_path / "small.parquet"), "--into", str(tmp_path / "model")])
        == 2
    )
    assert "no recording of operators" in capsys.readouterr().err
