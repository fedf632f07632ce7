"""The oracles of products, convolutions, pooling, scans and histograms, against values found in other ways."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from presage import Case
from presage.problems import registry
from presage.problems.compare import difference, solve
from presage.problems.sampler import Sampler

SUMS = ("matmul", "batched_matmul", "conv2d", "causal_conv1d", "cumsum")
NAMES = (*SUMS, "maxpool2d", "histogram")


def expected(name: str, dims: dict[str, int], *inputs: Any) -> np.ndarray:
    problem, case = registry.get(name), Case(dims)
    arrays = tuple(
        np.asarray(values, dtype=problem.dtype(array, case)).reshape(problem.shape(array, case))
        for array, values in zip(problem.inputs, inputs, strict=True)
    )
    output: np.ndarray = solve(problem, case, arrays).expected[0]
    assert output.shape == problem.shape(problem.outputs[0], case)
    return output


BY_HAND = [
    ("matmul", {"m": 2, "n": 1, "k": 2}, ([[1, 2], [3, 4]], [5, 6]), [17, 39]),
    ("batched_matmul", {"batch": 2, "m": 1, "n": 2, "k": 1}, ([2, 3], [[1, 10], [1, 10]]), [2, 20, 3, 30]),
    # The kernel is not turned round: y[0] = 1 * 10 + 2 * 1.
    ("conv2d", {"n": 1, "c": 1, "h": 1, "w": 3, "o": 1, "r": 1, "s": 2}, ([1, 2, 3], [10, 1]), [12, 23]),
    ("conv2d", {"n": 1, "c": 2, "h": 1, "w": 1, "o": 2, "r": 1, "s": 1}, ([3, 4], [[1, 2], [0, -1]]), [11, -4]),
    # The last tap meets the present, the first the furthest past.
    ("causal_conv1d", {"batch": 1, "channels": 1, "length": 3, "width": 2}, ([1, 2, 3], [10, 1]), [1, 12, 23]),
    ("causal_conv1d", {"batch": 1, "channels": 2, "length": 1, "width": 3}, ([5, 7], [9, 9, 2, 9, 9, 3]), [10, 21]),
    ("maxpool2d", {"n": 1, "c": 1, "h": 3, "w": 3, "window": 2, "stride": 1}, (range(9),), [4, 5, 7, 8]),
    ("maxpool2d", {"n": 1, "c": 1, "h": 2, "w": 5, "window": 1, "stride": 3}, (range(10),), [0, 3]),
    ("maxpool2d", {"n": 1, "c": 1, "h": 2, "w": 2, "window": 2, "stride": 2}, ([-4, -1, -3, -2],), [-1]),
    ("cumsum", {"rows": 2, "cols": 3}, ([[1, 2, 3], [4, -5, 6]],), [1, 3, 6, 4, -1, 5]),
    ("histogram", {"n": 5, "bins": 4}, ([3, 0, 3, 3, 1],), [1, 1, 0, 3]),
]


@pytest.mark.parametrize(("name", "dims", "inputs", "output"), BY_HAND)
def test_by_hand(name: str, dims: dict[str, int], inputs: tuple[Any, ...], output: list[float]) -> None:
    assert expected(name, dims, *inputs).ravel().tolist() == output


def conv2d_by_loops(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    (n, _, h, w), (o, _, r, s) = x.shape, weight.shape
    y = np.zeros((n, o, h - r + 1, w - s + 1))
    for i, k, p, q in np.ndindex(y.shape):
        y[i, k, p, q] = np.sum(x[i, :, p : p + r, q : q + s] * weight[k])
    return y


def test_conv2d_agrees_with_loops() -> None:
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((4, 3, 3, 2))
    x, weight = x.astype(np.float32), weight.astype(np.float32)
    dims = {"n": 2, "c": 3, "h": 6, "w": 5, "o": 4, "r": 3, "s": 2}
    loops = conv2d_by_loops(x.astype(np.float64), weight.astype(np.float64))
    np.testing.assert_allclose(expected("conv2d", dims, x, weight), loops, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [1, 4, 9])
def test_causal_conv1d_agrees_with_loops(width: int) -> None:
    rng = np.random.default_rng(2)
    x, weight = rng.standard_normal((2, 3, 6)).astype(np.float32), rng.standard_normal((3, width)).astype(np.float32)
    loops = np.zeros((2, 3, 6))
    for b, c, t in np.ndindex(2, 3, 6):
        for j in range(width):
            if (at := t - (width - 1) + j) >= 0:
                loops[b, c, t] += float(weight[c, j]) * float(x[b, c, at])
    dims = {"batch": 2, "channels": 3, "length": 6, "width": width}
    np.testing.assert_allclose(expected("causal_conv1d", dims, x, weight), loops, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("window", "stride"), list(product((1, 2, 4), (1, 2, 5))))
def test_maxpool2d_agrees_with_loops(window: int, stride: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 2, 7, 9)).astype(np.float32)
    output = expected("maxpool2d", {"n": 2, "c": 2, "h": 7, "w": 9, "window": window, "stride": stride}, x)
    for i, c, p, q in np.ndindex(output.shape):
        top, left = p * stride, q * stride
        assert output[i, c, p, q] == x[i, c, top : top + window, left : left + window].max()


def test_maxpool2d_counts_only_what_windows_cover() -> None:
    case = Case({"n": 1, "c": 1, "h": 8, "w": 8, "window": 2, "stride": 4})
    cost = registry.get("maxpool2d").cost(case)
    assert cost.bytes == 4 * (4 * 4 + 4)
    assert cost.flops == 4 * 3


def test_histogram_agrees_with_bincount() -> None:
    problem = registry.get("histogram")
    for case in (*problem.checks, problem.timed["cpu"][0]):
        (x,) = problem.make_inputs(case, Sampler(4, case.values))
        answer = solve(problem, case, (x,))
        assert np.array_equal(answer.expected[0], np.bincount(x, minlength=case.dims["bins"]))
        wrong = answer.expected[0].copy()
        wrong[-1] += 1
        assert difference(problem, case, answer, (wrong,)) is not None


def matmul_in_order(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros((*a.shape[:-1], b.shape[-1]), dtype=np.float32)
    for p in range(a.shape[-1]):
        c += a[..., :, p : p + 1] * b[..., p : p + 1, :]
    return c


def conv2d_in_order(case: Case, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    _, channels, h, w, _, r, s = case.dims.values()
    rows, cols = h - r + 1, w - s + 1
    total = np.float32(0)
    for c, u, v in np.ndindex(channels, r, s):
        total = total + weight[:, c, u, v, None, None] * x[:, None, c, u : u + rows, v : v + cols]
    return np.asarray(total)


def causal_conv1d_in_order(case: Case, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    y, width, length = np.zeros_like(x), case.dims["width"], case.dims["length"]
    for j in range(max(0, width - length), width):
        back = width - 1 - j
        y[..., back:] += weight[:, j : j + 1] * x[..., : length - back]
    return y


IN_ORDER: dict[str, Callable[..., np.ndarray]] = {
    "matmul": matmul_in_order,
    "batched_matmul": matmul_in_order,
    "conv2d": conv2d_in_order,
    "causal_conv1d": causal_conv1d_in_order,
    "cumsum": lambda case, x: np.cumsum(x, axis=-1, dtype=np.float32),
}


def tf32(x: np.ndarray) -> np.ndarray:
    """To the nearest value with a mantissa of 10 bits."""
    bits = x.view(np.uint32) + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float16": lambda x: x.astype(np.float16).astype(np.float32),
    "tf32": tf32,
}


@pytest.mark.parametrize("name", SUMS)
def test_float32_sums_in_order_are_admitted(name: str) -> None:
    problem, rng = registry.get(name), random.Random(5)
    for case in (*problem.timed["cpu"], *problem.checks, *(problem.draw_case(rng) for _ in range(5))):
        inputs = problem.make_inputs(case, Sampler(5, case.values))
        answer = solve(problem, case, inputs)
        output = IN_ORDER[name](case, *inputs)
        assert difference(problem, case, answer, (output,)) is None, case.name
        if case in problem.timed["cpu"]:
            assert np.all(3 * np.abs(output - answer.expected[0]) <= answer.allowed[0]), case.name


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", SUMS)
def test_rounded_inputs_are_refused(name: str, rounding: str) -> None:
    problem = registry.get(name)
    for case in problem.timed["cpu"]:
        inputs = problem.make_inputs(case, Sampler(6, case.values))
        output = IN_ORDER[name](case, *(ROUNDINGS[rounding](x) for x in inputs))
        assert difference(problem, case, solve(problem, case, inputs), (output,)) is not None


def test_maxpool2d_admits_only_exact_values() -> None:
    problem = registry.get("maxpool2d")
    case = problem.timed["cpu"][0]
    inputs = problem.make_inputs(case, Sampler(7))
    answer = solve(problem, case, inputs)
    output = answer.expected[0].astype(np.float32)
    assert difference(problem, case, answer, (output,)) is None
    assert difference(problem, case, answer, (tf32(output),)) is not None


@pytest.mark.parametrize("name", NAMES)
def test_cases_agree_in_their_dims_and_fit_together(name: str) -> None:
    problem, rng = registry.get(name), random.Random(8)
    drawn = [problem.draw_case(rng) for _ in range(200)]
    for case in (*problem.timed["cpu"], *problem.timed["gpu"], *problem.checks, *drawn):
        assert tuple(case.dims) == problem.scalars
        assert all(math.prod(problem.shape(array, case)) > 0 for array in (*problem.inputs, *problem.outputs))
        assert problem.cost(case).bytes > 0
        assert problem.cost(case).flops >= 0
    assert all(case.dtype == "float32" for case in problem.timed["gpu"])
