"""Each mistake that an author of a problem can make is found and named, without a GPU and without running a kernel."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from presage import Array, Case, Problem, Tolerance
from presage.authoring import problem_check
from presage.authoring.finding import Verdict
from presage.problems import registry


class Doubled(Problem):
    """A problem without mistakes, and without kernels."""

    name = "doubled"
    summary = "y[i] = 2 * x[i]"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"),)
    timed = {"cpu": (Case({"n": 4096}),)}
    checks = (Case({"n": 1}), Case({"n": 333}, values="normal"))

    def make_inputs(self, case: Case, sampler: Any) -> tuple[Any, ...]:
        return (sampler.values((case.dims["n"],), case.dtype),)

    def oracle(self, xp: Any, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (2.0 * inputs[0],)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(1e-6, "doubling is exact")

    def flops(self, case: Case) -> int:
        return case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 999)}, values="large")


def with_(**changes: Any) -> Problem:
    """A problem with a mistake."""
    problem: Problem = type("Mistaken", (Doubled,), {"__module__": __name__, **changes})()
    return problem


def test_a_problem_without_mistakes() -> None:
    findings = list(problem_check.check(Doubled()))
    assert [each.rule for each in findings if each.verdict is Verdict.OK] == [
        "declarations", "costs", "drawn cases", "inputs", "oracle", "tolerance",
    ]  # fmt: skip
    assert next(each.said for each in findings if each.verdict is Verdict.WARNING).startswith("there is no naive.c in")
    assert problem_check.failures(Doubled()) == []


SIZES = {"cpu": (Case({"n": 16}), Case({"m": 16}))}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"summary": ""}, "declarations: set `summary` to a text"),
        ({"inputs": ()}, "declarations: set `inputs` to a tuple of Arrays"),
        ({"outputs": (Array("x", "n"),)}, "declarations: two arrays have one name: x, x"),
        ({"inputs": (Array("my x", "n"),)}, "declarations: an array's name must be a C identifier"),
        ({"timed": {}}, "declarations: set `timed` to the cases of each kind of device"),
        ({"timed": {"tpu": (Case({"n": 1}),)}}, "declarations: set `timed`"),
        ({"timed": SIZES}, "declarations: the case 'm=16' has the sizes m; others have n"),
        ({"checks": ()}, "declarations: set `checks` to a tuple of Cases"),
        (
            {"checks": (Case({"n": 1}, values="huge"),)},
            "declarations: the case 'n=1 huge' has the style 'huge'; styles",
        ),
        ({"checks": (Case({"n": 0}),)}, "declarations: the case 'n=0': x has the shape [0]; every length must be 1"),
        ({"outputs": (Array("y", "k"),)}, "declarations: "),
        ({"outputs": (Array("y", "n", "float"),)}, "declarations: the case 'n=1': y has the type 'float'; types are"),
        ({"parameters": ("stride",)}, "declarations: the case 'n=1' lacks the parameter 'stride'"),
        ({"flops": lambda self, case: 1.5}, "costs: flops of the case 'n=1' is 1.5; it must be a whole number"),
        ({"flops": lambda self, case: case.dims["k"]}, "costs: KeyError: 'k' (test_problem_check.py, line"),
        (
            {"draw_case": lambda self, rng: Case({"n": random.randint(1, 9**9)})},
            "drawn cases: draw_case gave two cases",
        ),
        (
            {"make_inputs": lambda self, case, sampler: sampler.values((case.dims["n"],))},
            "inputs: for the case 'n=1' make_inputs returned a ndarray; it must return a tuple",
        ),
        ({"make_inputs": lambda self, case, sampler: ()}, "inputs: for the case 'n=1' make_inputs made 0 arrays"),
        (
            {"make_inputs": lambda self, case, sampler: (np.zeros(case.dims["n"]),)},
            "inputs: for the case 'n=1' make_inputs made x float64[1], and not float32[1]",
        ),
        (
            {"make_inputs": lambda self, case, sampler: (np.random.rand(case.dims["n"]).astype("float32"),)},
            "inputs: for the case 'n=1' make_inputs made x at random; use the sampler alone",
        ),
        ({"oracle": lambda self, xp, case, x: x}, "oracle: for the case 'n=1' the oracle returned a ndarray"),
        ({"oracle": lambda self, xp, case, x: (x, x)}, "oracle: for the case 'n=1' the oracle returned 2 arrays"),
        (
            {"oracle": lambda self, xp, case, x: (x[:, None] + x,)},
            "oracle: for the case 'n=1' the oracle gave y the shape",
        ),
        ({"tolerance": lambda self, case: 1e-6}, "tolerance: tolerance must return a Tolerance"),
        ({"tolerance": lambda self, case: Tolerance(1e-6, " ")}, "tolerance: say in the tolerance's reason why"),
        ({"tolerance": lambda self, case: Tolerance(1.0, "why not")}, "tolerance: all-zero outputs pass 6 of 6 cases"),
        (
            {"oracle": lambda self, xp, case, x: (x / 3.0,), "tolerance": lambda self, case: Tolerance(0.0, "exact")},
            "tolerance: the oracle's own answer, rounded to the outputs' types, fails",
        ),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], said: str) -> None:
    found = problem_check.failures(with_(**changes))
    assert any(each.startswith(said) for each in found), found


def test_what_may_be_meant_is_a_warning() -> None:
    loose = with_(tolerance=lambda self, case: Tolerance(0.05, "it is rough"))
    undefined = with_(oracle=lambda self, xp, case, x: (xp.sqrt(x),))
    same = with_(draw_case=lambda self, rng: Case({"n": 7}))
    for problem, said in (
        (loose, "outputs that are 1 % off pass every case"),
        (undefined, "some outputs are not numbers for"),
        (same, "1 sizes in 32 draws"),
    ):
        warnings = [each.said for each in problem_check.check(problem) if each.verdict is Verdict.WARNING]
        assert any(each.startswith(said) for each in warnings), warnings


@pytest.mark.parametrize("name", ["softmax", "matmul", "transpose", "per_tensor_quant_int8", "argmax_rows"])
def test_problems_of_the_catalogue_have_no_mistakes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_check, "_kernels", lambda problem: iter(()))
    if name in registry.names():
        assert problem_check.failures(registry.get(name)) == []
