"""Oracles of the elementwise, row-wise and layout problems, against closed forms and honest or cheapened float32."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from presage import Case, Problem
from presage.problems import registry
from presage.problems.compare import Answer, difference, solve
from presage.problems.sampler import Sampler
from presage_catalogue.elementwise.maps import erf

Arrays = tuple[np.ndarray, ...]
F32 = np.float32

NAMES = ("vector_add", "gelu", "sum", "argmax", "layernorm", "rmsnorm", "transpose", "cross_entropy")


def answer(name: str, dims: dict[str, int], *inputs: object) -> np.ndarray:
    """The oracle's output for inputs written out in the test."""
    problem = registry.get(name)
    arrays = [np.asarray(x) for x in inputs]
    (output,) = problem.oracle(np, Case(dims), *(x.astype(np.float64) if x.dtype.kind == "f" else x for x in arrays))
    return np.asarray(output)


def one_by_one(x: np.ndarray) -> np.ndarray:
    """Sums over the last axis in float32, each element added to what came before it."""
    return np.cumsum(x, axis=-1, dtype=F32)[..., -1:]


def pairwise(x: np.ndarray) -> np.ndarray:
    return np.sum(x, axis=-1, keepdims=True, dtype=F32)


Total = Callable[[np.ndarray], np.ndarray]


def add32(total: Total, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


def gelu32(total: Total, x: np.ndarray) -> np.ndarray:
    erf32 = np.array([math.erf(v) for v in (x * F32(math.sqrt(0.5))).tolist()], dtype=F32)
    return F32(0.5) * x * (F32(1) + erf32)


def sum32(total: Total, x: np.ndarray) -> np.ndarray:
    return total(x)[:, 0]


def layernorm32(total: Total, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    cols = F32(x.shape[1])
    centred = x - total(x) / cols
    return centred / np.sqrt(total(centred * centred) / cols + F32(1e-5)) * weight + bias


def rmsnorm32(total: Total, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt(total(x * x) / F32(x.shape[1]) + F32(1e-6)) * weight


def cross_entropy32(total: Total, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    top = np.max(logits, axis=-1, keepdims=True)
    chosen = np.take_along_axis(logits, targets[:, None], axis=-1)
    return (np.log(total(np.exp(logits - top))) + top - chosen)[:, 0]


FLOAT32: dict[str, Callable[..., np.ndarray]] = {
    "vector_add": add32,
    "gelu": gelu32,
    "sum": sum32,
    "layernorm": layernorm32,
    "rmsnorm": rmsnorm32,
    "cross_entropy": cross_entropy32,
}


def timed_case(problem: Problem, index: int) -> Case:
    return problem.timed["cpu"][index]


def inputs_of(problem: Problem, case: Case, seed: int = 7) -> Arrays:
    return problem.make_inputs(case, Sampler(seed, case.values))


def shares(right: Answer, output: np.ndarray) -> np.ndarray:
    """Each element's error as a share of what it may be off by."""
    return np.asarray(np.abs(output - right.expected[0]) / right.allowed[0])


def rounded(inputs: Arrays, drop_bits: int) -> Arrays:
    """Float inputs with that many bits fewer, to nearest: 13 leaves TF32 and float16's 11 bits, 16 bfloat16's 8."""

    def short(x: np.ndarray) -> np.ndarray:
        bits = x.view(np.uint32) + np.uint32(1 << (drop_bits - 1))
        return (bits & np.uint32(0xFFFFFFFF << drop_bits & 0xFFFFFFFF)).view(F32)

    return tuple(short(x) if x.dtype == F32 else x for x in inputs)


def test_erf_is_the_error_function() -> None:
    x = np.concatenate([np.linspace(-9, 9, 3001), [0.0, 1e-300, -1e-9, 1e-4, 40.0, -1e30]])
    expected = np.array([math.erf(v) for v in x])
    assert np.max(np.abs(erf(np, x) - expected)) < 1e-14


def test_gelu_is_half_of_x_times_one_plus_erf() -> None:
    x = np.array([-1000.0, -3.0, -0.5, 0.0, 0.5, 3.0, 1000.0])
    expected = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x]
    np.testing.assert_allclose(answer("gelu", {"n": 7}, x), expected, rtol=1e-12, atol=1e-12)


def test_gelu_with_tanh_is_refused() -> None:
    problem, case = registry.get("gelu"), timed_case(registry.get("gelu"), 0)
    inputs = inputs_of(problem, case)
    x = inputs[0].astype(np.float64)
    approximate = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert difference(problem, case, solve(problem, case, inputs), (approximate.astype(F32),))


def test_vector_add() -> None:
    np.testing.assert_array_equal(answer("vector_add", {"n": 3}, [1.0, 2.0, 3.0], [0.5, -2.0, 4.0]), [1.5, 0.0, 7.0])


def test_sum_adds_along_a_row() -> None:
    np.testing.assert_array_equal(
        answer("sum", {"rows": 2, "cols": 3}, [[1.0, 2.0, 3.0], [-1.0, 1.0, 0.5]]), [6.0, 0.5]
    )


def test_sum_tolerance_does_not_shrink_with_a_result_that_cancels() -> None:
    problem, case = registry.get("sum"), Case({"rows": 1, "cols": 4})
    x = np.array([[3.0, -3.0, 4.0, -4.0]], dtype=F32)
    assert solve(problem, case, (x,)).allowed[0] == pytest.approx(problem.tolerance(case).relative * math.sqrt(50))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 3.0, 2.0], 1),
        ([5.0, 1.0, 5.0], 0),
        ([-2.0, -1.0, -1.0], 1),
        ([0.0, 0.0, 0.0], 0),
        ([-math.inf, -3e38, -math.inf], 1),
    ],
)
def test_argmax_takes_the_first_of_equals(row: list[float], expected: int) -> None:
    output = answer("argmax", {"rows": 1, "cols": 3}, [row])
    assert output.dtype == np.int64
    assert output.tolist() == [expected]


def test_argmax_inputs_have_ties() -> None:
    problem = registry.get("argmax")
    case = timed_case(problem, 0)
    (x,) = inputs_of(problem, case)
    ties = np.sum(x == np.max(x, axis=-1, keepdims=True), axis=-1) > 1
    assert 0.4 < np.mean(ties) < 0.6
    last = case.dims["cols"] - 1 - np.argmax(x[:, ::-1], axis=-1)
    assert difference(problem, case, solve(problem, case, (x,)), (last,))


def test_layernorm_of_a_row_with_known_mean_and_variance() -> None:
    weight, bias = np.array([1.0, 2.0, -1.0, 0.5]), np.array([0.0, 1.0, 2.0, -3.0])
    normal = np.array([-3.0, -1.0, 1.0, 3.0]) / math.sqrt(5 + 1e-5)
    output = answer("layernorm", {"rows": 1, "cols": 4}, [[4.0, 6.0, 8.0, 10.0]], weight, bias)
    np.testing.assert_allclose(output, [normal * weight + bias], rtol=1e-14)


def test_layernorm_of_equal_elements_is_the_bias() -> None:
    output = answer("layernorm", {"rows": 1, "cols": 2}, [[3.0, 3.0]], [1.0, 1.0], [0.25, -4.0])
    np.testing.assert_array_equal(output, [[0.25, -4.0]])


def test_rmsnorm_of_a_row_with_known_squares() -> None:
    output = answer("rmsnorm", {"rows": 1, "cols": 2}, [[3.0, -4.0]], [1.0, 2.0])
    np.testing.assert_allclose(output, [[3 / math.sqrt(12.5 + 1e-6), -8 / math.sqrt(12.5 + 1e-6)]], rtol=1e-14)


def test_transpose() -> None:
    output = answer("transpose", {"rows": 2, "cols": 3}, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(output, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])


def test_transpose_of_other_values_is_refused() -> None:
    problem, case = registry.get("transpose"), Case({"rows": 5, "cols": 7})
    inputs = inputs_of(problem, case)
    right = solve(problem, case, inputs)
    assert difference(problem, case, right, (inputs[0].T,)) is None
    assert difference(problem, case, right, (np.nextafter(inputs[0].T, F32(9)),))


def test_cross_entropy_of_known_probabilities() -> None:
    logits = np.log([[0.7, 0.2, 0.1], [0.25, 0.5, 0.25]]) + 3.0
    output = answer("cross_entropy", {"rows": 2, "cols": 3}, logits, np.array([0, 2]))
    np.testing.assert_allclose(output, [-math.log(0.7), math.log(4)], rtol=1e-14)


def test_cross_entropy_does_not_overflow() -> None:
    output = answer("cross_entropy", {"rows": 2, "cols": 2}, [[5000.0, -5000.0], [-9e3, -9e3]], np.array([1, 0]))
    np.testing.assert_allclose(output, [10000.0, math.log(2)], rtol=1e-12)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("name", FLOAT32)
def test_honest_float32_is_admitted_with_room(name: str, index: int) -> None:
    problem = registry.get(name)
    case = timed_case(problem, index)
    inputs = inputs_of(problem, case)
    right = solve(problem, case, inputs)
    for total in (one_by_one, pairwise):
        assert np.max(shares(right, FLOAT32[name](total, *inputs))) < 0.25


@pytest.mark.parametrize("drop_bits", [13, 16])
@pytest.mark.parametrize("name", FLOAT32)
def test_rounded_inputs_are_refused(name: str, drop_bits: int) -> None:
    problem = registry.get(name)
    case = timed_case(problem, 0)
    inputs = inputs_of(problem, case)
    cheap = FLOAT32[name](pairwise, *rounded(inputs, drop_bits))
    assert np.mean(shares(solve(problem, case, inputs), cheap) > 1) > 0.3


@pytest.mark.parametrize("name", FLOAT32)
def test_float32_is_right_on_every_check(name: str) -> None:
    problem, rng = registry.get(name), random.Random(3)
    for case in (*problem.checks, *(problem.draw_case(rng) for _ in range(10))):
        inputs = inputs_of(problem, case)
        output = FLOAT32[name](one_by_one, *inputs)
        assert difference(problem, case, solve(problem, case, inputs), (output,)) is None, case.name


@pytest.mark.parametrize("name", NAMES)
def test_cases_agree_on_their_dimensions(name: str) -> None:
    problem = registry.get(name)
    drawn = problem.draw_case(random.Random(1))
    for case in (*problem.timed["cpu"], *problem.timed["gpu"], *problem.checks, drawn):
        assert tuple(case.dims) == problem.scalars
        assert problem.cost(case).bytes > 0
