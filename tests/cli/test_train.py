"""`presage train`, and the forecasts of what it trained, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from presage import Interval, StaticReport, Status
from presage.cli.main import main
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.static.trace import Step, TensorSpec, Trace


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


def traced(calls: int, name: str = "relu") -> tuple[StaticReport, ...]:
    """A module that reads and writes 64 MB so many times."""
    tensors = (TensorSpec((1 << 24,), "float32"),) * (calls + 1)
    steps = tuple(
        Step("operator", f"aten::{name}.default", ({"tensor": at},), {}, {"tensor": at + 1}, bytes=1 << 27)
        for at in range(calls)
    )
    return (StaticReport("h200", "sm_90a", "ok", "none", trace=Trace(tensors, (0,), (), steps, {"tensor": calls})),)


def module_recording(path: Path) -> None:
    """Modules of three problems from elsewhere: each is as slow as it has steps, and the longest fail."""
    rows = []
    for problem, split in (("one", "train"), ("two", "train"), ("three", "test_problem")):
        modules = [(from_source(f"x = {n}\n", ".py", f"{n}.py"), n) for n in range(1, 9)]
        anchor = modules[3][0].hash
        for kernel, calls in modules:
            cases = (RecordedCase("as written", 1.0, (30_000.0 * calls,) * 3),)
            value, fails = 4 / calls, calls > 6
            row = Row(
                problem, "KernelBench", split, kernel.name, "torch", kernel.hash, kernel.source, {},
                Status.WRONG_RESULT if fails else Status.OK, "it is off" if fails else "", () if fails else cases,
                anchor, None if fails else Interval(value, value, value), reports=traced(calls),
            )  # fmt: skip
            rows.append(row)
    recording.write(path, rows, {"name": "some_modules", "kind": "gpu", "hardware": "h200"})


def test_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module_recording(tmp_path / "some_modules.parquet")
    command = ["train", "modules", "--recording", str(tmp_path / "some_modules.parquet"), "--into"]
    made = []
    for name in ("one", "two"):
        assert main([*command, str(tmp_path / name)]) == 0
        made.append((tmp_path / name / "modules.json").read_bytes())
    told = capsys.readouterr().out
    assert made[0] == made[1]
    facts = json.loads(made[0])
    assert (facts["modules"], facts["failed"], facts["recordings"]) == (14, 4, ["some_modules"])
    assert "learning from 14 modules: 4 failed" in told


@pytest.mark.parametrize(("named", "said"), [(True, "no modules with traces"), (False, "no recording of modules")])
def test_no_modules_to_learn_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: bool, said: str
) -> None:
    small_recording(tmp_path / "small.parquet")
    monkeypatch.setattr("presage.devices.recorded.packaged", list)
    chosen = ["--recording", str(tmp_path / "small.parquet")] if named else []
    assert main(["train", "modules", *chosen, "--into", str(tmp_path / "model")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "model" / "modules.json").exists()
