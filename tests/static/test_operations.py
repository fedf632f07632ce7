"""The operations that operators need, against what the usual algorithms take."""

import math
from typing import Any

import pytest

from presage.static import hardware, operations, roofline
from presage.static.trace import Step, TensorSpec, Trace

TWO: dict[str, Any] = {"list": [2]}
BOTH: dict[str, Any] = {"list": [0, 1]}


def call(name: str, given: list[tuple[int, ...]], made: tuple[int, ...], *more: Any, **about: Any) -> Trace:
    """A call of one operator. about: the tensors' `dtype`, and fields of the step."""
    tensors = [TensorSpec(shape, about.pop("dtype", "float32")) for shape in (*given, made)]
    arguments = (*({"tensor": at} for at in range(len(given))), *more)
    step = Step("operator", f"aten::{name}.default", arguments, results={"tensor": len(given)}, **about)
    return Trace(tuple(tensors), tuple(range(len(given))), (), (step,), None)


def counted(trace: Trace) -> float:
    return operations.of_step(trace, trace.steps[0])[0]


@pytest.mark.parametrize(
    ("trace", "wanted"),
    [
        (call("mv", [(8, 32), (32,)], (8,)), 2 * 8 * 32),
        (call("dot", [(32,), (32,)], ()), 2 * 32),
        (call("addmm_", [(8, 16), (8, 32), (32, 16)], (8, 16)), 2 * 8 * 32 * 16),
        (call("_euclidean_dist", [(2, 40, 8), (2, 50, 8)], (2, 40, 50)), 2 * 2 * 40 * 50 * 8),
        (call("_cdist_forward", [(40, 8), (50, 8)], (40, 50), 1.0, None), 3 * 40 * 50 * 8),
        (call("_pdist_forward", [(40, 8)], (780,), 1.0), 3 * 780 * 8),
        (
            call("_trilinear", [(5, 3), (7, 3, 4), (5, 4)], (5, 7), {"list": [1, 3]}, {"list": [0]}, {"list": [1, 2]}),
            2 * 5 * 7 * 3 * 4,
        ),
        (call("linalg_inv_ex", [(6, 32, 32)], (6, 32, 32)), 6 * 2 * 32**3),
        (call("linalg_cholesky_ex", [(32, 32)], (32, 32)), 32**3 / 3),
        (call("_linalg_solve_ex", [(32, 32), (32, 3)], (32, 3)), 2 / 3 * 32**3 + 2 * 32**2 * 3),
        (call("linalg_solve_triangular", [(32, 32), (32, 3)], (32, 3)), 32**2 * 3),
        (call("cholesky_solve", [(32, 3), (32, 32)], (32, 3)), 2 * 32**2 * 3),
        (call("_fft_c2c", [(6, 32)], (6, 32), {"list": [1]}), 5 * 6 * 32 * 5),
        (call("_fft_r2c", [(8, 32)], (8, 17), BOTH), 2.5 * 256 * 8),
        (call("_fft_c2r", [(8, 17)], (8, 32), BOTH), 2.5 * 256 * 8),
        (call("geqrf", [(6, 40, 30)], (6, 40, 30)), 6 * 2 * 30**2 * (40 - 10)),
        (call("linalg_qr", [(40, 30)], (40, 30)), 2 * 2 * 30**2 * (40 - 10)),
        (call("linalg_qr", [(30, 40)], (30, 30)), 2 * 30**2 * (40 - 10) + 4 / 3 * 30**3),
        (
            call("linalg_qr", [(40, 30)], (40, 40), "complete"),
            2 * 30**2 * 30 + 4 * (40**2 * 30 - 40 * 30**2 + 30**3 / 3),
        ),
        (call("linalg_qr", [(40, 30)], (0,), "r"), 2 * 30**2 * (40 - 10)),
        (call("linalg_householder_product", [(40, 30), (30,)], (40, 30)), 2 * 30**2 * (40 - 10)),
        (call("_linalg_eigh", [(5, 30, 30)], (5, 30)), 5 * 14 / 3 * 30**3),
        (call("_linalg_eigh", [(30, 30)], (30,), "L", False), 4 / 3 * 30**3),
        (call("_linalg_svd", [(30, 30)], (30, 30)), 22 * 30**3),
        (call("_linalg_svd", [(400, 30)], (400, 30)), 6 * 400 * 30**2 + 20 * 30**3),
        (call("_linalg_svd", [(400, 30)], (400, 400), True), 4 * 400**2 * 30 + 22 * 30**3),
        (call("_linalg_svd", [(30, 400)], (30, 30), False, False), 2 * 400 * 30**2 + 2 * 30**3),
        (call("relu", [(6, 32)], (6, 32), flops=192.0), 192),
    ],
)
def test_operations_are_those_of_the_usual_algorithm(trace: Trace, wanted: float) -> None:
    assert counted(trace) == pytest.approx(wanted)


@pytest.mark.parametrize(("used", "wanted"), [(0, 4 / 3), (1, 14 / 3)])
def test_vectors_that_nothing_uses_do_not_count(used: int, wanted: float) -> None:
    """As while `eigvalsh` is traced."""
    made = {"list": [{"tensor": 1}, {"tensor": 2}]}
    step = Step("operator", "aten::_linalg_eigh.default", ({"tensor": 0},), results=made)
    tensors = tuple(TensorSpec(shape, "float32") for shape in ((30, 30), (30,), (30, 30)))
    trace = Trace(tensors, (0,), (), (step,), {"tensor": 1 + used})
    assert counted(trace) == pytest.approx(wanted * 30**3)


def test_many_decompositions_take_no_longer_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether their vectors are used is looked up, and not looked for in all steps."""
    asked = []
    monkeypatch.setattr(Step, "reads", property(lambda step: (asked.append(step), iter((0,)))[1]))
    made = {"list": [{"tensor": 1}, {"tensor": 2}]}
    step = Step("operator", "aten::_linalg_eigh.default", ({"tensor": 0},), results=made)
    tensors = tuple(TensorSpec(shape, "float32") for shape in ((30, 30), (30,), (30, 30)))
    trace = Trace(tensors, (0,), (), (step,) * 100, {"tensor": 1})
    for each in trace.steps:
        operations.of_step(trace, each)
    assert len(asked) <= 10 * len(trace.steps)


def test_precision_is_that_of_the_tensors_and_of_the_settings() -> None:
    inverse, vector = ("linalg_inv_ex", [(32, 32)], (32, 32)), ("mv", [(8, 32), (32,)], (8,))
    exact, allowed = {"matmul_tf32": False}, {"matmul_tf32": True}
    for trace, wanted in (
        (call(*inverse, flags=exact), "fp32"),
        (call(*inverse, flags=allowed), "tf32"),
        (call(*inverse), "tf32"),  # a trace from before steps kept the settings
        (call(*inverse, dtype="float64", flags=allowed), "fp64"),
        (call(*vector, flags=allowed), "fp32"),
    ):
        assert operations.of_step(trace, trace.steps[0])[1] == wanted


def test_what_needs_many_operations_takes_long() -> None:
    h200 = hardware.find("h200")
    (least,) = roofline.step_ns(
        call("linalg_inv_ex", [(4096, 4096)], (4096, 4096), flags={"matmul_tf32": False}), h200
    ).values()
    assert least == pytest.approx(1e9 * 2 * 4096**3 / h200.peak_flops["fp32"])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 1 << 48), (1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("name", sorted(operations._COUNTS))
def test_calls_that_make_no_sense_have_a_count_too(name: str, shape: tuple[int, ...]) -> None:
    for more in ((), (BOTH, TWO, TWO, TWO), (1, "a", None, {"list": [{"tensor": 0}, -9]})):
        for given in ([shape], [shape, (2, 2), (4,)]):
            assert math.isfinite(counted(call(name, given, shape, *more)))
