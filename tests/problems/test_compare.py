"""Comparing outputs: what counts as right, and what is said of what is not."""

from __future__ import annotations

import random
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from presage import Array, Case, Problem, Tolerance
from presage.problems import compare as comparing
from presage.problems import registry
from presage.problems.compare import difference, solve
from presage.problems.sampler import Sampler


class Double(Problem):
    """y = 2 x, to one part in a thousand; and how many elements there are, exactly."""

    summary = "y = 2 x"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"), Array("count", "1", "int64"))
    timed = {"cpu": (Case({"n": 4}),)}
    checks = ()

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values((case.dims["n"],), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return 2 * inputs[0], np.array([case.dims["n"]])

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(1e-3, "an example", absolute=1e-6)

    def flops(self, case: Case) -> int:
        return case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 9)})


COUNT = np.array([4])
X = [1.0, -2.0, 0.0, 2.0**127]


def compare(y: Any, count: np.ndarray = COUNT, x: list[float] = X, dtype: str = "float32") -> str | None:
    problem, case = Double(), Case({"n": 4})
    answer = solve(problem, case, (np.array(x, dtype=np.float32),))
    with np.errstate(all="ignore"):
        return difference(problem, case, answer, (np.array(y).astype(dtype), count))


@pytest.mark.parametrize(
    "y",
    [
        [2.0, -4.0, 0.0, np.inf],
        [2.0 * 1.0009, -4.0 * 0.9991, 9e-7, np.inf],
        [2.0, -4.0, -0.0, np.inf],
    ],
)
def test_near_enough_is_right_and_overflow_is_infinite(y: list[float]) -> None:
    assert compare(y) is None


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        ([2.01, -4.0, 0.0, np.inf], "y[0] is 2.00999999, not 2; 1 of 4 elements are wrong"),
        ([2.0, -4.01, 0.1, np.inf], "y[1] is -4.01000023, not -4; 2 of 4 elements are wrong"),
        ([2.0, -4.0, np.nan, np.inf], "y[2] is nan, not 0; 1 of 4 elements are wrong"),
        ([2.0, -4.0, 0.0, -np.inf], "y[3] is -inf, not inf; 1 of 4 elements are wrong"),
        ([2.0, -4.0, 0.0, 3.4e38], "y[3] is 3.39999995e+38, not inf; 1 of 4 elements are wrong"),
        ([np.inf, -4.0, 0.0, np.inf], "y[0] is inf, not 2; 1 of 4 elements are wrong"),
    ],
)
def test_a_wrong_element_is_named(y: list[float], reason: str) -> None:
    assert compare(y) == reason


@pytest.mark.parametrize("y", [[np.nan, 0.0, 0.0, np.inf], [np.nan, 0.0, 0.0, -np.inf]])
def test_nan_and_infinities_match_only_themselves(y: list[float]) -> None:
    x = [np.nan, 0.0, 0.0, np.inf]
    assert (compare(y, x=x) is None) == (y[3] == np.inf)
    assert "y[0] is 0, not nan" in str(compare([0.0, *y[1:]], x=x))


@pytest.mark.parametrize(
    ("y", "count", "dtype", "reason"),
    [
        ([2.0, -4.0, 0.0], COUNT, "float32", "y is float32[3], not float32[4]"),
        ([[2.0, -4.0, 0.0, 0.0]], COUNT, "float32", "y is float32[1, 4], not float32[4]"),
        ([2.0, -4.0, 0.0, 0.0], COUNT, "float64", "y is float64[4], not float32[4]"),
        ([2.0, -4.0, 0.0, np.inf], np.array([4], "int32"), "float32", "count is int32[1], not int64[1]"),
        ([2.0, -4.0, 0.0, np.inf], np.array([5]), "float32", "count[0] is 5, not 4; 1 of 1 elements are wrong"),
    ],
)
def test_types_shapes_and_integers_are_exact(y: Any, count: np.ndarray, dtype: str, reason: str) -> None:
    assert compare(y, count, dtype=dtype) == reason


def test_half_precision_overflows_at_its_own_range() -> None:
    problem, case = Double(), Case({"n": 2}, dtype="float16")
    answer = solve(problem, case, (np.array([1.0, 40000.0], dtype=np.float16),))
    right, finite = np.array([2.0, np.inf], dtype=np.float16), np.array([2.0, 65504.0], dtype=np.float16)
    assert difference(problem, case, answer, (right, np.array([2]))) is None
    assert "y[1] is 65504, not inf" in str(difference(problem, case, answer, (finite, np.array([2]))))


ELEMENTWISE = [name for name in registry.names() if registry.get(name).elementwise]


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("style", ["normal", "large", "zeros"])
def test_what_is_solved_in_pieces_is_solved_as_a_whole(name: str, style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = registry.get(name)
    case = replace(problem.checks[0], dims={"n": 103}, values=style)
    inputs = problem.make_inputs(case, Sampler(5, style))
    whole = solve(problem, case, inputs)
    monkeypatch.setattr(comparing, "_SOLVED", 25)
    pieces = solve(problem, case, inputs)
    for one, other in ((whole.expected, pieces.expected), (whole.allowed, pieces.allowed)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(np.broadcast_to(a, (103,)), b)


def test_most_maps_are_elementwise() -> None:
    assert len(ELEMENTWISE) > 30
