"""Reading problems from elsewhere: what is taken from their files, and what is said of files that are no problems."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from presage import PresageError
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.problems.base import Cost
from presage.problems.external import ExternalProblem, Layout, read
from presage.static.trace import TensorSpec

MODEL = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Doubles
    its input.

    More of it.
    """
    def forward(self, x):
        return 2 * x

N = 16

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return []
'''
TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: |
  Doubles a vector.

  With care.
config:
  main: "eval.py"
tests:
  - {"size": 3, "seed": 1}
  - {"size": 3, "seed": 2}
  - {"size": 4, "mode": "odd", "seed": 2}
benchmarks:
  - {"size": 64, "seed": 1}
"""
REFERENCE = """
import torch
from task import input_t
from utils import match

def generate_input(size, seed): ...
def ref_kernel(data): ...
check_implementation = match(ref_kernel)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "1_Doubling.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "doubling_py"
    path.mkdir()
    (path / "task.yml").write_text(TASK)
    (path / "task.py").write_text("input_t = output_t = tuple\n")
    (path / "reference.py").write_text(REFERENCE)
    (tmp_path / "utils.py").write_text("def match(reference): ...\n")
    return path


def test_a_kernelbench_file(file: Path) -> None:
    problem = registry.get(str(file))
    assert isinstance(problem, ExternalProblem)
    assert (problem.name, problem.room, problem.folder) == ("1_Doubling", "KernelBench", file.parent)
    assert problem.summary == "Doubles its input."
    assert [case.name for case in problem.cases] == ["as written"]
    assert problem.draw_case(random.Random(0)) in problem.checks
    assert problem.files == {"reference.py": MODEL}
    tolerance = problem.tolerance(problem.checks[0])
    assert (tolerance.relative, tolerance.absolute) == (1e-4, 1e-4)


def test_a_gpu_mode_folder(folder: Path) -> None:
    problem = registry.get(str(folder))
    assert isinstance(problem, ExternalProblem)
    assert (problem.name, problem.room, problem.folder) == ("doubling_py", "GPU MODE", folder)
    assert problem.summary == "Doubles a vector."
    assert [case.name for case in problem.checks] == ["size=3", "size=4 mode=odd"]
    assert [case.name for case in problem.timed["cpu"]] == ["size=64"]
    assert set(problem.files) == {"task.py", "utils.py", "reference.py"}
    assert "check_implementation" in problem.tolerance(problem.checks[0]).reason


def test_its_reference_is_its_anchor(file: Path, folder: Path) -> None:
    for path, text in ((file, "ModelNew = Model"), (folder, "ref_kernel as custom_kernel")):
        problem = registry.get(str(path))
        anchor = registry.anchor(problem, "cpu")
        assert anchor is not None
        assert (anchor.language, text in anchor.source) == ("torch", True)
        assert [kernel.hash for kernel in registry.seed_kernels(problem)] == [anchor.hash]


def test_a_candidate_is_a_module_on_tensors(file: Path) -> None:
    (file.parent / "plain.py").write_text("def custom_kernel(data):\n    return data[0]\n")
    (file.parent / "bare.c").write_text("// presage: entry f\nvoid f(void) {}\n")
    problem = registry.get(str(file))
    assert registry.find_kernel(problem, "plain.py").language == "torch"
    with pytest.raises(PresageError, match=r"kernels for a KernelBench problem are Python modules"):
        registry.find_kernel(problem, "bare.c")


def test_its_files_are_put_beside_a_candidate(folder: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    settings = read(folder).worker_settings(str(scratch))
    assert sorted(path.name for path in scratch.iterdir()) == ["reference.py", "task.py", "utils.py"]
    assert (settings["convention"], settings["folder"]) == ("GPU MODE", str(scratch))


class Silent:
    def make(self, *arguments: object) -> tuple[()]:
        return ()

    def difference(self, *arguments: object) -> None:
        return None


def test_what_is_described_is_counted(file: Path) -> None:
    vector, half = TensorSpec((4, 8), "float32", (8, 1)), TensorSpec((4, 8), "bfloat16", (1, 4))
    layout = Layout((vector, half, half), (vector,), ("data[0]", "data[1]", "data[2]"), {})
    problem = read(file).described({"as written": layout}, [2], Silent())
    (case,) = problem.checks
    assert [array.written for array in problem.inputs] == [False, False, True]
    assert [problem.array_bytes(array, case) for array in problem.inputs] == [128, 64, 64]
    assert problem.bytes(case) == 128 + 64 + 128
    assert problem.cost(case) == Cost(128, 0), "of inputs a module need not read all"
    described = problem.arguments(case)
    assert described["inputs"][1] == {"shape": (4, 8), "dtype": "bfloat16", "stride": (1, 4), "written": False}


def test_every_case_has_as_many_tensors(folder: Path) -> None:
    vector = TensorSpec((4,), "float32", (1,))
    one, two = Layout((vector,), (vector,), ("data",), {}), Layout((vector,) * 2, (vector,), ("data[0]", "data[1]"), {})
    with pytest.raises(PresageError, match="different numbers of tensors"):
        read(folder).described({"size=3": one, "size=64": two}, [], Silent())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def get_inputs(): ...", "is no KernelBench problem: it defines no Model and no get_init_inputs"),
        (MODEL.replace("class Model(", "class Other("), "it defines no Model"),
        ("def f(:", "is no Python: "),
        (b"\x80", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_problem(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    path = tmp_path / "p.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PresageError, match=complaint):
        registry.get(str(path))


def test_names_that_come_from_elsewhere_are_looked_for_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("from other import *\n")
    assert read(tmp_path / "p.py").name == "p"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("tests:\n", "tests:\n  oops\n", r"task.yml:\d+: "),
        ("benchmarks:", "other:", "'benchmarks' is no list of arguments; write lines like"),
        ('lang: "py"', "lang: cu", "lang is 'cu'; only Python tasks"),
        ("files:", "sources:", "'files' is no list of mappings"),
        ('"source": "task.py"', '"source": "nowhere.py"', "cannot read .*nowhere.py: No such file"),
        ('"name": "task.py"', '"name": "../task.py"', "is no plain file name"),
        ('  - {"name": "reference.py", "source": "reference.py"}\n', "", "'files' lists no reference.py"),
    ],
)
def test_a_task_that_makes_no_sense(folder: Path, old: str, new: str, complaint: str) -> None:
    (folder / "task.yml").write_text(TASK.replace(old, new))
    with pytest.raises(PresageError, match=complaint):
        registry.get(str(folder))


def test_a_reference_without_its_functions(folder: Path) -> None:
    (folder / "reference.py").write_text("def ref_kernel(data): ...\n")
    with pytest.raises(PresageError, match="it defines no generate_input and no check_implementation"):
        registry.get(str(folder))


def test_a_folder_without_a_task(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match=r"is no GPU MODE task: there is no task\.yml in it"):
        registry.get(str(tmp_path))


@pytest.mark.parametrize("name", ["nowhere.py", "no/where"])
def test_a_path_that_is_not_there(name: str) -> None:
    with pytest.raises(PresageError, match=f"there is no problem '{name}'; there is no such file or folder"):
        registry.get(name)


def test_a_name_of_the_catalogue_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "softmax").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not isinstance(registry.get("softmax"), ExternalProblem)
    with pytest.raises(PresageError, match="is no GPU MODE task"):
        registry.get("./softmax")


def test_a_candidate_of_another_problem(file: Path) -> None:
    kernel = from_source("# presage: problem softmax\nimport torch\n", ".py", "k.py")
    (file.parent / "k.py").write_text(kernel.source)
    with pytest.raises(PresageError, match="says it solves 'softmax', not '1_Doubling'"):
        registry.find_kernel(registry.get(str(file)), str(file.parent / "k.py"))
