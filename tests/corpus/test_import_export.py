"""Recordings from other people's files, and files for other people's tools."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from presage import Effort, PresageError, Recording, Status
from presage.corpus import export
from presage.corpus.check import check
from presage.corpus.importing import import_pairs, import_tuning, read_pairs
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import open_recording

PUBLIC = Path(os.environ.get("PRESAGE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
CACHES = PUBLIC / "kernel_tuner_caches" / "convolution_milo"
SPACES = PUBLIC / "autotune_spaces" / "spaces.json"

CACHE: dict[str, Any] = {
    "device_name": "A GPU",
    "kernel_name": "add",
    "problem_size": [64, 32],
    "tune_params_keys": ["block", "unroll"],
    "tune_params": {"block": [32, 64], "unroll": [1, 2]},
    "objective": "time",
    "cache": {
        "32,1": {"block": 32, "unroll": 1, "time": 2.0, "times": [2.5, 1.5]},
        "32,2": {"block": 32, "unroll": 2, "time": 1.0, "times": [1.0, 1.0]},
        "64,1": {"block": 64, "unroll": 1, "time": "CompilationFailedConfig"},
        "64,2": {"block": 64, "unroll": 2, "time": "RuntimeFailedConfig"},
    },
}
T4: dict[str, Any] = {
    "metadata": {"timeunit": "microseconds"},
    "schema_version": "1.0.0",
    "results": [
        {
            "configuration": {"block": 32},
            "times": {"runtimes": [3.0, 5.0]},
            "invalidity": "correct",
            "measurements": [{"name": "time", "value": 4.0, "unit": ""}],
        },
        {"configuration": {"block": 64}, "times": {}, "invalidity": "timeout", "measurements": []},
    ],
}


def _write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_a_kernel_tuner_cache_becomes_a_device(tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    source.write_text("__global__ void add() { /* twice as fast */ }\n")
    found = import_tuning(_write(tmp_path / "gpu.json", CACHE), tmp_path / "gpu.parquet", source=source)
    rows = found.rows("add")
    assert [str(row.status) for row in sorted(rows, key=lambda row: str(row.values))] == [
        "ok", "ok", "compile_error", "runtime_error"
    ]  # fmt: skip
    best = min(rows, key=lambda row: row.total_ns)
    assert (best.values, best.total_ns) == ({"block": 32, "unroll": 2}, pytest.approx(1e6))
    assert best.source == "#define block 32\n#define unroll 2\n__global__ void add() { /* twice as fast */ }\n"
    assert best.speedup is not None
    assert best.speedup.value == pytest.approx((2.5 * 1.5) ** 0.5)
    device = RecordedDevice(found)
    problem = device.problem("add")
    assert device.describe()["hardware"] == "A GPU"
    measured = device.measure(problem, device.pool("add"), Effort(), lambda doing, share: None)
    assert Counter(m.status for m in measured)[Status.OK] == 2
    with pytest.raises(PresageError, match="known from a recording alone"):
        problem.flops(problem.timed["gpu"][0])


def _lines(document: dict[str, Any]) -> str:
    """As Kernel Tuner writes a cache: a line for each result."""
    head = json.dumps({name: part for name, part in document.items() if name != "cache"}).removesuffix("}")
    results = ",\n".join(f'"{key}": {json.dumps(each)}' for key, each in document["cache"].items())
    return f'{head}, "cache": {{\n{results}'


@pytest.mark.parametrize("end", ["", ",", ",\n", ',\n"9,9": {"block": 9, "unro', "}\n}"])
def test_a_cache_that_was_left_open_is_read(tmp_path: Path, end: str) -> None:
    path = tmp_path / "open.json"
    path.write_text(_lines(CACHE) + end)
    rows = import_tuning(path, tmp_path / "gpu.parquet").rows("add")
    assert len(rows) == len(CACHE["cache"])


def test_t4_files_have_their_own_unit(tmp_path: Path) -> None:
    found = import_tuning(_write(tmp_path / "gpu_T4.json", T4), tmp_path / "out.parquet", name="add", hardware="B")
    ok, failed = sorted(found.rows("add"), key=lambda row: row.total_ns)
    assert ok.cases[0].samples_ns == (3000.0, 5000.0)
    assert ok.facts["objective_ns"] == 4000.0
    assert failed.status is Status.TIMEOUT


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is no JSON, and no Kernel Tuner cache that was left open"),
        (b'{"cache": 1', "has no results|does not hold"),
        (gzip.compress(json.dumps(CACHE).encode())[:-20], "was cut short"),
        (b"[1]", "is JSON, but not an object"),
        (b'{"a": 1}', "neither a Kernel Tuner cache"),
        (json.dumps({**CACHE, "cache": {}}).encode(), "has no results"),
        (json.dumps({**CACHE, "cache": {"1": {"block": 32}}}).encode(), "configuration '1' cannot be read"),
        (json.dumps({**T4, "results": [{}]}).encode(), "result 1 cannot be read"),
    ],
)
def test_a_bad_file_is_explained_and_nothing_is_written(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(PresageError, match=complaint):
        import_tuning(path, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.sweep
@pytest.mark.skipif(not CACHES.is_dir(), reason="the public measurements are not here; PRESAGE_DATA names their folder")
@pytest.mark.parametrize("name", ["A100"])
def test_published_caches_keep_their_counts_and_optimum(name: str, tmp_path: Path) -> None:
    spaces = {space["space"]: space for space in json.loads(SPACES.read_text())}
    space = spaces[f"convolution_milo__{name.removesuffix('_T4')}"]
    rows = import_tuning(CACHES / f"{name}.json.gz", tmp_path / "out.parquet").rows()
    assert len(rows) == space["n_configs"]
    assert Counter(row.status for row in rows) == {
        status: space["status"][theirs]
        for theirs, status in (
            ("ok", Status.OK),
            ("RuntimeFailedConfig", Status.RUNTIME_ERROR),
            ("CompilationFailedConfig", Status.COMPILE_ERROR),
        )
        if theirs in space["status"]
    }
    best = min((row for row in rows if row.cases), key=lambda row: row.facts["objective_ns"])
    assert best.facts["objective_ns"] / 1e6 == space["best_ms"]
    assert best.values == space["best_config"]
    assert fmean(best.cases[0].samples_ns) / 1e6 == pytest.approx(space["best_ms"], rel=1e-4)


def test_research_pairs_are_labelled_with_our_scale(tmp_path: Path) -> None:
    records = [
        {"anchor_code": "a", "candidate_code": "b", "hardware": "H", "aggregated_speedup": speedup, "label": 7}
        for speedup in (0.5, 1.0, 3.0)
    ]
    lines = tmp_path / "pairs.jsonl"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    table = tmp_path / "pairs.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), table)
    for path in (lines, table):
        assert [pair.bin for pair in read_pairs(path)] == [1, 3, 6]
    lines.write_text(json.dumps({**records[0], "candidate_code": "a\u2028b\x85"}, ensure_ascii=False))
    assert [pair.candidate for pair in read_pairs(lines)] == ["a\u2028b\x85"]  # these end no line of JSON
    lines.write_text(json.dumps({"anchor_code": "a"}))
    with pytest.raises(PresageError, match="has no column 'candidate_code'"):
        read_pairs(lines)
    lines.write_text(json.dumps({**records[0], "aggregated_speedup": -1}))
    with pytest.raises(PresageError, match="row 1 has no positive speedup"):
        read_pairs(lines)


def codes(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir()
    lines = "".join(json.dumps({"code_id": name, "text": text}) + "\n" for name, text in texts.items())
    with pyarrow.output_stream(folder / "codes.jsonl.zst", compression="zstd") as stream:
        stream.write(lines.encode())
    return folder


def test_a_candidate_s_ratios_to_several_references_make_one_pool(tmp_path: Path) -> None:
    folder = codes(tmp_path / "l1", {name: f"import torch\n{name} = 1\n" for name in ("eager", "graph", "candidate")})
    about = {"problem_id": "P", "candidate_code_id": "candidate"}
    records = [
        {**about, "hardware": gpu, "reference_kind": kind, "reference_code_id": code, "speedup": ratio * by}
        for gpu, by in (("NVIDIA A", 1.0), ("NVIDIA B", 2.0))
        for kind, code, ratio in (("torch_eager", "eager", 4.0), ("cuda_graph", "graph", 2.0))
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), folder / "pairs.parquet")
    with pytest.raises(PresageError, match="NVIDIA A, NVIDIA B; name one"):
        import_pairs(folder, tmp_path / "both.parquet")
    rows = {row.source.split()[2]: row for row in import_pairs(folder, tmp_path / "b.parquet", hardware="b").rows()}
    assert {name: row.speedup.value for name, row in rows.items() if row.speedup} == pytest.approx(
        {"eager": 1.0, "graph": 2.0, "candidate": 8.0}
    )
    assert check(open_recording(tmp_path / "b.parquet"), hashes=False)["problems"] == []


def test_a_ratio_to_another_anchor_is_not_mixed_with_the_first_s(tmp_path: Path) -> None:
    texts = {name: f"import torch\n{name} = 1\n" for name in "abcd"}
    lines = tmp_path / "pairs.jsonl"
    pairs = (("a", "c", 2.0), ("b", "c", 5.0), ("b", "d", 3.0))
    lines.write_text(
        "".join(
            json.dumps({
                "problem": "P", "anchor_code": texts[one], "candidate_code": texts[other], "hardware": "H",
                "aggregated_speedup": S,
            }) + "\n"
            for one, other, S in pairs
        )
    )  # fmt: skip
    rows = import_pairs(lines, tmp_path / "pairs.parquet").rows()
    found = sorted((row.source.split()[2], round(row.speedup.value, 6)) for row in rows if row.speedup)
    assert found == [("a", 1.0), ("b", 1.0), ("c", 2.0), ("c", 5.0), ("d", 3.0)]
    with pytest.raises(PresageError, match="there is no file"):
        import_pairs(tmp_path / "nothing.parquet", tmp_path / "again.parquet")


def test_ratios_to_a_library_make_a_pool_per_configuration(tmp_path: Path) -> None:
    folder = codes(tmp_path / "l2", {"k": "#include <x>\n__global__ void k() {}\n"})
    about = {"config": "c", "hardware": "NVIDIA A", "candidate_code_id": "k"}
    records = [{**about, "mode": mode, "speedup_vs_torch_matmul": 1.5} for mode in ("offline", "server")]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), folder / "speedups.parquet")
    found = import_pairs(folder, tmp_path / "a.parquet")
    assert sorted((row.language, row.speedup.value) for row in found.rows() if row.speedup) == [
        ("cuda", pytest.approx(1.5)),
        ("torch", 1.0),
    ]
    (folder / "codes.jsonl.zst").write_bytes(b"cut short")
    with pytest.raises(PresageError, match=r"no readable codes\.jsonl\.zst"):
        import_pairs(folder, tmp_path / "again.parquet")


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_export_that_fails_leaves_nothing(
    small: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, exists: bool
) -> None:
    def fail(*_: object) -> str:
        raise error

    folder = tmp_path / "more" / "out"
    if exists:
        folder.mkdir(parents=True)
    monkeypatch.setattr(export, "_card", fail)  # after the tables are written
    with pytest.raises(PresageError if isinstance(error, OSError) else KeyboardInterrupt):
        export.export(small, folder)
    assert not any(folder.iterdir()) if exists else not any(folder.parent.iterdir())
    monkeypatch.undo()
    export.export(small, folder)
    assert sorted(each.name for each in folder.iterdir()) == ["README.md", "data"]


def test_an_export_that_is_killed_leaves_nothing_under_its_name(small: Recording, tmp_path: Path) -> None:
    kill = "export._card = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    code = f"""import os, pathlib, signal
from presage.corpus import export
from presage.devices.recording import open_recording
{kill}
export.export(open_recording(pathlib.Path({str(small.path)!r})), pathlib.Path({str(tmp_path / "out")!r}))
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()


def test_an_export_can_be_read_back(small: Recording, tmp_path: Path) -> None:
    made = export.export(small, tmp_path / "out")
    assert made["splits"] == {"train": sum(small.counts.values())}
    table = pyarrow.parquet.read_table(tmp_path / "out" / "data" / "train.parquet")
    assert {"anchor_code", "candidate_code", "hardware", "aggregated_speedup"} <= set(table.column_names)
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nlicense: apache-2.0")
    assert "path: data/train.parquet" in card
    with pytest.raises(PresageError, match="is not empty"):
        export.export(small, tmp_path / "out")
