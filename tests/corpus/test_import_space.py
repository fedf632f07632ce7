"""Exhaustively measured tuning spaces as recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from presage import PresageError
from presage.corpus.importing import import_space

SPACE = {
    "space": "add__A_GPU",
    "kernel": "add",
    "gpu": "A_GPU",
    "problem_size": [64, 32],
    "tune_params": {"block": [32, 64]},
}
ROWS = [
    {"block": 32, "status": "ok", "times_ms": [9.0, 2.0, 1.0, 2.0], "compile_ms": 1.0},
    {"block": 64, "status": "CompilationFailedConfig", "times_ms": None, "compile_ms": 1.0},
]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "spaces.json").write_text(json.dumps([SPACE]))
    sources = [
        {"kernel": "other", "path": "other.cu", "text": "__global__ void other() {}"},
        {"kernel": "add", "path": "add.json", "text": '{"ConfigurationSpace": {"Conditions": []}}'},
        {"kernel": "add", "path": "add.cu", "text": "__global__ void add() {}\n"},
    ]
    with pyarrow.output_stream(tmp_path / "sources.jsonl.zst", compression="zstd") as stream:
        stream.write("".join(json.dumps(each) + "\n" for each in sources).encode())
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "add__A_GPU.parquet")
    return tmp_path / "add__A_GPU.parquet"


def test_a_space_becomes_a_recording(space: Path, tmp_path: Path) -> None:
    found = import_space(space, tmp_path / "recording.parquet")
    rows = {int(row.values["block"]): row for row in found.rows("add")}
    assert found.facts["hardware"] == "A_GPU"
    assert rows[32].source == "#define block 32\n__global__ void add() {}\n"
    assert rows[32].total_ns == pytest.approx(2e6)
    assert [case.case for case in rows[32].cases] == ["64x32"]
    assert (str(rows[64].status), rows[64].cases) == ("compile_error", ())
    assert rows[64].anchor == rows[32].anchor == rows[32].hash
    assert rows[32].speedup is not None
    assert rows[32].speedup.value == pytest.approx(1)


def test_a_file_that_is_no_space_is_said_to_be_none(space: Path, tmp_path: Path) -> None:
    (tmp_path / "spaces.json").write_text("[]")
    with pytest.raises(PresageError, match="no tuning space"):
        import_space(space, tmp_path / "recording.parquet")
