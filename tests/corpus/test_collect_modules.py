"""Modules for problems from elsewhere are collected as foreign kernels, whatever they do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from presage import Effort, Kernel, Measurement, PresageError, Problem, Status
from presage.corpus import check, collect, journal, pack
from presage.devices import recorded, recording
from presage.devices.examiner import ProblemError
from presage.devices.recording import open_recording
from presage.problems import splits

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = torch.nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(8, 16)]

def get_init_inputs():
    return [16]
"""
NEW = PROBLEM.split("def get_inputs")[0].replace("Model(", "ModelNew(")


class Foreign:
    """Two kernels are on their way at a time, as on a GPU; the reference of one problem fails."""

    name, kind, languages = "pretended", "gpu", ("torch", "triton")

    def describe(self) -> dict[str, Any]:
        return {}

    def measure_each(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        assert foreign
        ahead: list[tuple[Problem, Kernel]] = []
        for problem, kernel in work:
            if problem.name == "broken":
                raise ProblemError("broken", "its reference failed")
            ahead.append((problem, kernel))
            if len(ahead) == 2:
                yield self._measured(*ahead.pop())
        for each in ahead:
            yield self._measured(*each)

    def _measured(self, problem: Problem, kernel: Kernel) -> Measurement:
        wrong = "tanh" in kernel.source
        status = Status.WRONG_RESULT if wrong else Status.RUNTIME_ERROR
        return Measurement(problem.name, kernel, self.name, status, "as it was told")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three problems, of which one cannot be run, with modules that are right and wrong."""
    place = tmp_path / "modules"
    for name, problem in (("first", PROBLEM), ("second", PROBLEM), ("broken", PROBLEM)):
        (place / name).mkdir(parents=True)
        (place / f"{name}.py").write_text(problem)
        (place / name / "right.py").write_text(NEW)
    (place / "first" / "wrong.py").write_text(NEW.replace("torch.relu(", "torch.tanh("))
    (place / "second" / "twin.py").write_text(NEW)
    (place / "second" / "nothing.py").write_text("None\n")
    (place / "notes.txt").write_text("no problem")
    return place


def test_modules_are_collected_and_a_broken_problem_is_left_out(folder: Path, tmp_path: Path) -> None:
    said = list[str]()
    into = tmp_path / "journals"
    count = collect.collect_modules(Foreign(), into, folder, say=said.append)  # type: ignore[arg-type]
    again = collect.collect_modules(Foreign(), into, folder, say=said.append)  # type: ignore[arg-type]
    state = journal.read(into)
    found = {(each.problem, state.families[each.family]["name"]): str(each.status) for each in state.kernels.values()}
    assert found == {
        ("first", "first.py"): "runtime_error",
        ("first", "right.py"): "runtime_error",
        ("first", "wrong.py"): "wrong_result",
        ("second", "second.py"): "runtime_error",
        ("second", "right.py"): "runtime_error",
        ("second", "nothing.py"): "runtime_error",
    }
    assert (count, again) == (6, 0)
    assert {state.render(each)[1].hash for each in state.kernels.values()} == {each.hash for each in state.kernels.values()}
    assert any("broken is left out: its reference failed" in line for line in said)
    lines = [json.loads(line) for file in into.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"run", "problem", "family", "kernel"}
    assert {problem["room"] for problem in state.problems.values()} == {"KernelBench"}
    assert ("first", state.problems["first"]["reference"]) in state.kernels


def test_modules_are_packed_with_splits_by_problem_and_without_the_texts_of_others(
    folder: Path, tmp_path: Path
) -> None:
    into, others = tmp_path / "journals", tmp_path / "others"
    collect.collect_modules(Foreign(), into, folder, say=lambda line: None)  # type: ignore[arg-type]
    (others / "first").mkdir(parents=True)
    (others / "first.py").write_text(PROBLEM)
    (others / "first" / "right.py").write_text(NEW + "\n# the same but for a comment\n")
    found = pack.pack(into, tmp_path / "modules.parquet", "modules", "a GPU", without=others)
    rows = {(row.problem, row.family): row for row in found.rows()}
    assert len(rows) == 6
    assert {row.room for row in rows.values()} == {"KernelBench"}
    assert {row.split for row in rows.values() if row.problem == "first"} == {splits.of_problem("first")}
    assert [rows["first", name].source for name in ("first.py", "right.py")] == ["", ""]
    assert rows["first", "wrong.py"].source
    assert rows["first", "right.py"].kernel.hash == rows["first", "right.py"].hash
    assert check.check(found)["problems"] == []
    wrong = [replace(row, split="train" if row.split != "train" else "validation") for row in rows.values()]
    recording.write(tmp_path / "wrong.parquet", wrong, found.facts)
    assert any("it belongs in" in each for each in check.check(open_recording(tmp_path / "wrong.parquet"))["problems"])


def test_a_recording_is_continued(folder: Path, tmp_path: Path) -> None:
    """Elsewhere, and without the journals that it was made of."""
    collect.collect_modules(Foreign(), tmp_path / "one", folder, say=lambda line: None)  # type: ignore[arg-type]
    one = pack.pack(tmp_path / "one", tmp_path / "one.parquet", "one", "a GPU")
    (folder / "first" / "later.py").write_text(NEW.replace("torch.relu(", "torch.sin("))
    known = one.pairs - {(row.problem, row.hash) for row in one.rows() if row.family == "wrong.py"}
    (folder / "first" / "wrong.py").write_text((folder / "first" / "wrong.py").read_text() + "# tanh no more\n")
    count = collect.collect_modules(
        Foreign(), tmp_path / "two", folder, without=known, say=lambda line: None  # type: ignore[arg-type]
    )  # fmt: skip
    assert count == 2, "the one that is new, and the one that was wrong"
    two = pack.pack(tmp_path / "two", tmp_path / "two.parquet", "two", "a GPU", earlier=one)
    assert two.pairs > one.pairs
    assert len(two.pairs) == len(one.pairs) + 1
    assert [run["run"] for run in two.facts["runs"]][:1] == [run["run"] for run in one.facts["runs"]]
    assert check.check(two)["problems"] == []
    with pytest.raises(PresageError, match="was recorded on a cpu"):
        pack.pack(tmp_path / "two", tmp_path / "none.parquet", "none", earlier=recorded.find("cpu"))


def test_a_recording_s_modules_are_compiled_again(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    collect.collect_modules(Foreign(), tmp_path / "one", folder, say=lambda line: None)  # type: ignore[arg-type]
    path = tmp_path / "one.parquet"
    pack.pack(tmp_path / "one", path, "one", "h200", without=folder)
    assert pack.add_reports_to(path, None, None, modules=folder, say=lambda line: None) == 6
    reports = {(row.problem, row.family): row.reports for row in open_recording(path).rows()}
    (report,) = reports["first", "right.py"]
    assert report.trace is not None
    assert [step.name for step in report.trace.steps if step.kind == "operator"] == ["aten::addmm.default", "aten::relu.default"]
    with pytest.raises(PresageError, match="has none of the problems"):
        pack.add_reports_to(path, None, None, modules=tmp_path)
