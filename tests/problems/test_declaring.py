"""How a problem is declared, wherever its module lies, and how its kernels are found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from presage import Case, Problem
from presage.problems import registry
from presage.problems.base import cases

MODULE = """
from presage.problems.base import Array, Problem, Tolerance, cases


class Scaled(Problem):
    name = "my_op"
    summary = "y[i] = 2 * x[i]"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"),)
    timed = {"cpu": cases("n: 1000")}
    checks = cases("n: 1; 7 large")
    factor = "2.0f"

    def oracle(self, xp, case, x):
        return (2.0 * x,)

    def tolerance(self, case):
        return Tolerance(1e-7, "one product")

    def flops(self, case):
        return case.dims["n"]

    def draw_case(self, rng):
        return cases(f"n: {rng.randint(1, 9)}")[0]

    def given(self, suffix):
        return {"entry": self.name, "factor": self.factor}
"""
KERNEL = """\
// presage: entry my_op
void my_op(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];
}
"""
FAMILY = """\
// presage: entry $entry$
// presage: tune STEP = 1, 2
void $entry$(const float *x, float *y, int n) {
    $body$
}
"""
PIECE = "for (int i = 0; i < n; i++)\n    y[i] = $factor$ * x[i];\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of somebody's with one problem, a kernel of its own, a shared family and a piece of text for it."""
    files = {"ops.py": MODULE, "my_op/naive.c": KERNEL, "families/loops.c": FAMILY, "families/body.h": PIECE}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    spec = importlib.util.spec_from_file_location("somebodys_ops", tmp_path / "ops.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "somebodys_ops", made)
    spec.loader.exec_module(made)
    return made


def test_a_problem_of_any_package_finds_its_kernels(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    problem: Problem = module.Scaled()
    monkeypatch.setattr(registry, "_declared", lambda: ({problem.name: problem}, []))
    registry._kernels.cache_clear()
    try:
        naive, loops = registry.seed_kernels(problem)
    finally:
        registry._kernels.cache_clear()
    assert problem.room == Path(str(module.__file__)).parent.name
    assert [Path(kernel.name).name for kernel in (naive, loops)] == ["naive.c", "loops.c"]
    assert naive.source == KERNEL
    assert loops.source.startswith("// presage: problem my_op\n// presage: entry my_op\n")
    assert "\n    for (int i = 0; i < n; i++)\n        y[i] = 2.0f * x[i];\n" in loops.source


def test_one_class_serves_several_problems(module: ModuleType) -> None:
    assert (module.Scaled().name, module.Scaled("another").name) == ("my_op", "another")


def test_cases_come_from_a_table() -> None:
    assert cases("rows cols: 1 1; 9 1 large") == (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 9, "cols": 1}, values="large"),
    )
    assert cases("n: 3", "float16") == (Case({"n": 3}, "float16"),)
    with pytest.raises(ValueError, match="shorter"):
        cases("rows cols: 1")
