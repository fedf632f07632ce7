"""FlashInfer-Bench data sets: read as problems, modules and recordings; what we write its own package reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import presage
from presage import PresageError
from presage.cli import main
from presage.neighbours import flashinfer_bench, flashinfer_export

NORM = """\
import torch

def run(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
"""
DEFINITION = {
    "name": "rmsnorm_h128", "op_type": "rmsnorm", "description": "Root mean square norm.",
    "axes": {"batch": {"type": "var"}, "hidden": {"type": "const", "value": 128}},
    "inputs": {
        "x": {"shape": ["batch", "hidden"], "dtype": "float32"}, "weight": {"shape": ["hidden"], "dtype": "float32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["batch", "hidden"], "dtype": "float32"}},
    "reference": NORM,
}  # fmt: skip


def workload(batch: int) -> dict[str, Any]:
    inputs = {"x": {"type": "random"}, "weight": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-6}}
    return {"axes": {"batch": batch}, "inputs": inputs, "uuid": f"w{batch}"}


def solution(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"language": "python", "target_hardware": ["cuda"], "entry_point": "main.py::run"} | spec
    spec.setdefault("destination_passing_style", False)
    sources = [{"path": "main.py", "content": f"{NORM}\nNAME = {name!r}\n"}]
    return {"name": name, "definition": "rmsnorm_h128", "author": "me", "spec": spec, "sources": sources}


def trace(name: str, batch: int, status: str = "PASSED", ms: float = 0.5, place: str = "NVIDIA H100") -> dict[str, Any]:
    evaluation: dict[str, Any] = {
        "status": status, "environment": {"hardware": place, "libs": {}}, "timestamp": "2026-01-01", "log": "",
    }  # fmt: skip
    if status == "PASSED":
        evaluation["correctness"] = {"max_relative_error": 0.0, "max_absolute_error": 0.0}
        evaluation["performance"] = {"latency_ms": ms, "reference_latency_ms": 1.0, "speedup_factor": 1 / ms}
    return {"definition": "rmsnorm_h128", "workload": workload(batch), "solution": name, "evaluation": evaluation}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    traces = [
        trace("fast", 4), trace("fast", 64, ms=0.25), trace("slow", 4, ms=2.0), trace("slow", 64, ms=2.0),
        trace("broken", 4), trace("broken", 64, "COMPILE_ERROR"), trace("fast", 4, ms=9.0, place="NVIDIA B200"),
    ]  # fmt: skip
    files = {
        "definitions/rmsnorm/rmsnorm_h128.json": [DEFINITION],
        "workloads/rmsnorm/rmsnorm_h128.jsonl": [
            {"definition": "rmsnorm_h128", "workload": workload(each)} for each in (4, 64)
        ],
        "traces/rmsnorm/rmsnorm_h128.jsonl": traces,
        **{f"solutions/me/{name}.json": [solution(name)] for name in ("fast", "slow", "broken")},
        "solutions/me/other.json": [solution("other", destination_passing_style=True)],
    }
    for name, documents in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{json.dumps(each)}\n" for each in documents))
    return folder


def test_traces_become_a_recording(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="NVIDIA B200, NVIDIA H100; name one of them"):
        flashinfer_bench.import_traces(dataset, tmp_path / "r.parquet")
    found = flashinfer_bench.import_traces(dataset, tmp_path / "r.parquet", hardware="h100")
    rows = {row.family: row for row in found.rows("rmsnorm_h128")}
    assert rows.keys() == {"reference", "fast", "slow", "broken"}
    assert rows["fast"].speedup.value == pytest.approx(8**0.5)
    assert rows["slow"].speedup.value == pytest.approx(0.5)
    assert (str(rows["broken"].status), rows["broken"].cases) == ("compile_error", ())
    assert [case.case for case in rows["fast"].cases] == ["batch=4 eps=1e-06", "batch=64 eps=1e-06"]
    run = presage.search("rmsnorm_h128", device=f"recorded:{tmp_path / 'r.parquet'}", budget=4, run=tmp_path / "run")
    assert run.best.kernel.name == "fast"


def test_definitions_become_problems_and_solutions_modules(dataset: Path, tmp_path: Path) -> None:
    counts = flashinfer_bench.write_modules(dataset, tmp_path / "modules")
    assert counts == {"problems": 1, "modules": 3, "left_out": 1}
    problem = presage.load_problem(tmp_path / "modules" / "rmsnorm_h128.py")
    assert [case.name for case in problem.timed["gpu"]] == ["batch=4 eps=1e-06", "batch=64 eps=1e-06"]
    kernel = presage.load_kernel(problem, tmp_path / "modules" / "rmsnorm_h128" / "fast.py")
    assert "def custom_kernel(data):" in kernel.source


def test_a_data_set_without_traces_gives_problems(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(dataset / "traces")
    asked = ["--no-config", "corpus", "import", str(dataset), "--json"]
    assert main.main(asked) == 2
    assert "-o FILE.parquet" in capsys.readouterr().err
    assert main.main([*asked, "--modules", str(tmp_path / "modules")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["problems"], found["modules"]) == (None, 1, 3)


def test_a_problem_can_be_measured(dataset: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    flashinfer_bench.write_modules(dataset, tmp_path / "modules")
    scope: dict[str, Any] = {}
    exec((tmp_path / "modules" / "rmsnorm_h128.py").read_text(), scope)
    data = scope["inputs"](**scope["cases"][0])
    assert [tuple(each.shape) for each in data[:2]] == [(4, 128), (128,)]
    assert scope["reference"](*data).shape == (4, 128)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("definitions/x.json", "{"),
        ("definitions/x.json", "[]"),
        ("definitions/x.json", json.dumps(DEFINITION | {"name": "../../x"})),
        ("solutions/x.json", '{"name": "x"}'),
        ("traces/x.jsonl", '{"definition": "rmsnorm_h128", "evaluation": {}}'),
        ("traces/x.jsonl", json.dumps(trace("fast", 4, ms=1.0) | {"workload": 3})),
    ],
)
def test_a_file_that_is_wrong_is_named(dataset: Path, tmp_path: Path, path: str, text: str) -> None:
    (dataset / path).write_text(text)
    with pytest.raises(PresageError, match="does not hold what its format says"):
        flashinfer_bench.import_traces(dataset, tmp_path / "r.parquet", hardware="h100")


@pytest.mark.parametrize("word", ["x; import os", "a b", "1x", "__import__('os')"])
def test_no_name_can_smuggle_in_code(dataset: Path, word: str) -> None:
    for change in (
        {"axes": {word: {"type": "var"}}},
        {"axes": {word: {"type": "const", "value": 1}}},
        {"inputs": {"x": {"shape": [word], "dtype": "float32"}}},
        {"inputs": {word: {"shape": None, "dtype": "float32"}}},
        {"inputs": {"x": {"shape": ["batch"], "dtype": word}}},
    ):
        with pytest.raises(ValueError, match="is no "):
            flashinfer_bench.problem_text({**DEFINITION, **change}, [])


def test_what_needs_data_from_a_file_is_left_out() -> None:
    stored = workload(4)
    stored["inputs"]["x"] = {"type": "safetensors", "path": "a.safetensors", "tensor_key": "x"}
    assert flashinfer_bench.problem_text(DEFINITION, [stored]) is None


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    counts = flashinfer_export.export(presage.load_recording("h200"), "softmax", folder)
    assert counts["traces"] == counts["solutions"] * counts["workloads"] > 0
    with pytest.raises(PresageError, match="is not empty"):
        flashinfer_export.export(presage.load_recording("h200"), "softmax", folder)
    again = flashinfer_bench.import_traces(folder, tmp_path / "again.parquet")
    rows = {row.family: row for row in again.rows("softmax")}
    assert len(rows) == counts["solutions"] + 1
    data = pytest.importorskip("flashinfer_bench.data", reason="needs flashinfer-bench")
    found = data.TraceSet.from_path(str(folder))
    assert list(found.definitions) == ["softmax"]
    assert len(found.solutions["softmax"]) == counts["solutions"]
    assert len(found.traces["softmax"]) == counts["traces"]
    assert found.definitions["softmax"].get_input_shapes({"rows": 4, "cols": 8}) == [[4, 8]]


def test_the_package_agrees_with_our_examples(dataset: Path) -> None:
    data = pytest.importorskip("flashinfer_bench.data", reason="needs flashinfer-bench")
    assert len(data.TraceSet.from_path(str(dataset)).traces["rmsnorm_h128"]) == 7


def test_the_command_line(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = ["-o", str(tmp_path / "r.parquet"), "--hardware", "h100"]
    assert main.main(["corpus", "import", str(dataset), *to, "--modules", str(tmp_path / "m")]) == 0
    assert "1 problems, 3 modules" in capsys.readouterr().err
    assert main.main(["corpus", "fastp", str(tmp_path / "r.parquet"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["each"] == {"fast_0": 2 / 3, "fast_1": 1 / 3, "fast_1.5": 1 / 3, "fast_2": 1 / 3}
    assert told["best"]["fast_2"] == 1.0
    asked = ["corpus", "export", "h200", "--to", "flashinfer-bench", "-o", str(tmp_path / "out")]
    assert main.main(asked) == 2
    assert "name it with --problem" in capsys.readouterr().err
