"""`presage corpus …` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def recording(tmp_path: Path, tuning_cache: dict[str, Any], presage: Any) -> Path:
    (tmp_path / "cache.json").write_text(json.dumps(tuning_cache))
    done = presage("corpus", "import", tmp_path / "cache.json", "-o", tmp_path / "gpu.parquet")
    assert done.returncode == 0, done.stderr
    assert "3 kernels of add on A GPU" in done.stdout
    return tmp_path / "gpu.parquet"


def test_an_import_is_listed_shown_measured_checked_and_exported(recording: Path, tmp_path: Path, presage: Any) -> None:
    listed = presage("corpus", "ls", recording, "--problem", "add").stdout.splitlines()
    assert [line.split()[-1] for line in listed[1:]] == ["add@block=64", "add@block=32", "add@block=96"]
    problems = json.loads(presage("corpus", "ls", recording, "--json").stdout)["problems"]
    assert problems[0] == {
        "problem": "add", "room": "imported", "split": "", "kernels": 3, "failures": 1, "best": 2.0
    }  # fmt: skip
    shown = presage("corpus", "show", "add", "add@block=64", recording)
    assert "#define block 64" in shown.stdout
    assert "2x the speed of" in shown.stdout
    measured = presage("measure", "add", "add@block=64", "add@block=96", "--device", f"recorded:{recording}", "--json")
    first, second = json.loads(measured.stdout)["measurements"]
    assert first["speedup"]["value"] == pytest.approx(2.0)
    assert second["status"] == "runtime_error"
    card = json.loads(presage("corpus", "check", recording, "--json").stdout)
    assert (card["kernels"], card["problems"]) == (3, [])
    exported = presage("corpus", "export", recording, "-o", tmp_path / "export")
    assert exported.stdout.endswith("3 rows\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["corpus"], "the following arguments are required: WHAT"),
        (["corpus", "check", "nosuch.parquet"], "there is no recording nosuch.parquet"),
        (["corpus", "import", "nosuch.json", "-o", "x.parquet"], "there is no file nosuch.json"),
        (["corpus", "collect", "nosuch", "--into", "x"], "there is no problem or room 'nosuch'"),
        (["corpus", "collect", "--into", "x", "--seconds", "-1"], "is not a positive number"),
        (["corpus", "pack", "nosuch", "-o", "x.parquet"], "has no collected kernels"),
        (["measure", "softmax", "naive.cu", "--device", "recorded:nosuch"], "there is no recording 'nosuch'"),
    ],
)
def test_a_mistake_is_explained(arguments: list[str], complaint: str, presage: Any) -> None:
    done = presage(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""


def test_a_kernel_that_is_not_there_is_explained(recording: Path, presage: Any) -> None:
    done = presage("corpus", "show", "add", "nosuch", recording)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no kernel 'nosuch' of add" in done.stderr
    done = presage("measure", "add", "nosuch", "--device", f"recorded:{recording}")
    assert done.returncode == 2
    assert "'presage corpus ls' lists them" in done.stderr


def test_an_import_prints_a_command_that_works(
    tmp_path: Path, presage: Any, tuning_cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cache.json").write_text(json.dumps(tuning_cache))
    done = presage("corpus", "import", "cache.json", "-o", "noext")
    command = done.stdout.splitlines()[-1].removeprefix("search it with: presage ").split()
    assert presage(*command, "--forecaster", "none").returncode == 0
