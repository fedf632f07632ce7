"""What is wrong with a kernel is said before it runs; a kernel with which nothing is wrong is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from presage import Candidate, Forecast, Kernel, Measured, Prediction, StaticReport, Task
from presage.devices import recorded
from presage.devices.recorded import RecordedDevice
from presage.forecasters import faults
from presage.kernels import header as headers
from presage.problems import registry
from presage.static import hardware
from presage.static.report import LaunchReport
from presage.static.trace import NO_TENSOR, Trace

SOFTMAX = registry.get("softmax")
TASK = Task(SOFTMAX, Measured(registry.find_kernel(SOFTMAX, "naive.cu")), hardware.find("h200"))


def kernel(parameters: str, language: str = "cuda", header: str = "") -> Kernel:
    begin = 'extern "C" __global__ ' if language == "cuda" else ""
    source = f"// presage: entry f\n{header}{begin}void f({parameters}) {{ }}\n"
    return Kernel(source, language, headers.parse(source, "f"), "f")


def launch(stores: float, **others: Any) -> LaunchReport:
    """One of 1,000 blocks of 4 warps."""
    counts = {"registers": 32, "spill_bytes": 0, "stack_bytes": 0, "shared_bytes": 0, "code_bytes": 512}
    made = LaunchReport(
        "f", (1000, 1, 1), (128, 1, 1), 1, **counts, occupancy=1.0, occupancy_limiter="warps", blocks_per_sm=16,
        waves=1.0, loops=0, instructions={}, instructions_in_loops={}, options={},
        executed={"instructions": 100.0, "store_sectors": stores},
    )  # fmt: skip
    return replace(made, **others)


def report(*launches: LaunchReport, **others: Any) -> StaticReport:
    return replace(StaticReport("h200", "sm_90a", "ok", "none", launches), **others)


@pytest.mark.parametrize("language", ["c", "cuda"])
@pytest.mark.parametrize(
    ("parameters", "p_fail", "reason"),
    [
        ("const float *x, float *y, int rows, int cols", None, ""),
        ("const float *__restrict__ x, float y[], const int rows, /* all */ int cols", None, ""),
        ("ARGUMENTS", None, ""),
        ("const float *x, float *y, int rows", 0.95, "it does not take cols: it is called as void f(const float *x, "),
        ("const float *x, float *y", 0.95, "it does not take rows, cols: "),
        ("const float *x", 0.99, "it takes 1 pointers, and 2 arrays are read and written"),
        ("void", 0.99, "it takes 0 pointers"),
        ("const float *x, int rows, int cols", 0.99, "parameter 2 of f is given a pointer and declared otherwise"),
        ("float *x, float *y, float *z, int n", 0.99, "parameter 3 of f is given an integer and declared otherwise"),
        ("float *x, float *y, int a, int b, int c", 0.99, "f takes 5 parameters and is given 4"),
    ],
)
def test_parameters(parameters: str, language: str, p_fail: float | None, reason: str) -> None:
    fault = faults.find(TASK, Candidate(kernel(parameters, language)))
    assert (fault and fault.p_fail) == p_fail
    assert fault is None or fault.reason.startswith(reason)


def test_scratch_comes_last_and_need_not_be_taken() -> None:
    header, usual = "// presage: scratch part = 4 * rows\n", "const float *x, float *y, int rows, int cols"
    for parameters in (usual, f"{usual}, float *part"):
        assert faults.find(TASK, Candidate(kernel(parameters, header=header))) is None
    fault = faults.find(TASK, Candidate(kernel(f"{usual}, int part", header=header)))
    assert fault
    assert "parameter 5 of f is given a pointer" in fault.reason


@pytest.mark.parametrize(
    ("reports", "is_fault"),
    [
        ([], False),
        ([report(launch(0.0))], True),
        ([report(launch(0.001))], True),
        ([report(launch(1e9))], False),
        ([report(launch(0.0)), report(launch(1e9))], False),
        ([report(launch(0.0), launch(1e9))], False),
        ([report(launch(0.0, executed=None))], False),
        ([report(launch(0.0, unbounded={"store_sectors": 1.0}))], False),
        ([report(launch(0.0, executed={"atomic": 1.0}))], False),
        ([report(launch(0.0, executed={"async_copy": 1.0}))], False),
        ([report(launch(0.0), operators={"add": 1})], False),
        ([report(launch(0.0), status="unknown")], False),
    ],
)
def test_what_writes_less_than_the_output_holds_at_every_case(reports: list[StaticReport], is_fault: bool) -> None:
    told = [reports[i % len(reports)] for i in range(len(TASK.cases))] if reports else []
    fault = faults.find(TASK, Candidate(kernel("const float *x, float *y, int rows, int cols"), told))
    assert (fault is not None) == is_fault
    assert fault is None or fault.reason.startswith("it seems to write no more than 0.0")


@pytest.mark.parametrize(("share", "is_fault"), [(0.5, True), (0.7, False), (1.0, False)])
def test_a_kernel_that_leaves_half_of_the_output_as_it_was(share: float, is_fault: bool) -> None:
    """Walks look at some warps only, so a part that seems to be missing may not be."""
    told = [report(launch(share * SOFTMAX.array_bytes(SOFTMAX.outputs[0], case) / 4000 / 32)) for case in TASK.cases]
    fault = faults.find(TASK, Candidate(kernel("const float *x, float *y, int rows, int cols"), told))
    assert (fault is not None) == is_fault


ADDS = {"instructions": 100.0, "atomic": 1.0, "atomic_sectors": 8.0}


@pytest.mark.parametrize(
    ("executed", "is_fault"),
    [
        ([ADDS], True),
        ([ADDS, {"instructions": 9.0}], True),
        ([ADDS, {"global_store": 1.0, "store_sectors": 1.0}], False),
        ([ADDS | {"global_store": 1.0, "store_sectors": 1.0}], False),
        ([ADDS, None], False),
        ([{"atomic": 1.0, "global_store": 9.0, "store_sectors": 1e9}], False),
    ],
    ids=["adds", "adds and reads", "writes first", "writes, too", "unknown", "shared memory"],
)
def test_a_bare_kernel_that_only_adds_to_its_output_adds_to_noise(executed: list[Any], is_fault: bool) -> None:
    told = [report(*[launch(0.0, executed=each) for each in executed])] * len(TASK.cases)
    fault = faults.find(TASK, Candidate(kernel("const float *x, float *y, int rows, int cols"), told))
    assert (fault is not None) == is_fault
    assert fault is None or "only adds to its output" in fault.reason


@pytest.mark.parametrize(("language", "is_fault"), [("triton", True), ("cuda", False)])
def test_a_triton_kernel_that_writes_far_less_at_one_case(language: str, is_fault: bool) -> None:
    told = [report(launch(0.0)), *[report(launch(1e9))] * (len(TASK.cases) - 1)]
    made = replace(kernel("const float *x, float *y, int rows, int cols"), language=language)
    assert (faults.find(TASK, Candidate(made, told)) is not None) == is_fault


def test_a_forecast_is_warned_once_and_never_made_less_likely_to_fail() -> None:
    candidate = Candidate(kernel("const float *x, float *y, int rows"))
    forecast = Forecast.from_bins([1] * 8, p_fail=0.1)
    warned = faults.warned(TASK, candidate, Prediction(forecast, ("by guessing",)))
    assert warned.forecast
    assert warned.forecast.p_fail == 0.95
    assert warned.forecast.knots == forecast.knots
    assert len(warned.notes) == 2
    assert faults.warned(TASK, candidate, warned) == warned
    surer = faults.warned(TASK, candidate, Prediction(replace(forecast, p_fail=0.98)))
    assert surer.forecast
    assert surer.forecast.p_fail == 0.98
    blind = faults.warned(TASK, candidate, Prediction(None))
    assert blind.forecast
    assert blind.forecast.p_fail == 0.95


def test_a_loop_of_unknown_length_is_said_once_and_changes_no_forecast() -> None:
    unknown = report(launch(1e9, unbounded={"instructions": 5.0}))
    candidate = Candidate(kernel("const float *x, float *y, int rows, int cols"), (unknown, unknown))
    forecast = Forecast.from_bins([1] * 8, p_fail=0.1)
    told = faults.warned(TASK, candidate, Prediction(forecast))
    said = "how often a loop of f runs depends on values that are not known before it runs"
    assert told == Prediction(forecast, (said,))
    assert faults.warned(TASK, candidate, told) == told


def test_what_memory_may_skip_is_said() -> None:
    early = replace(launch(1e9), executed={"instructions": 100.0, "skippable": 90.0, "store_sectors": 1e9})
    candidate = Candidate(kernel("const float *x, float *y, int rows, int cols"), (report(early),))
    told = faults.warned(TASK, candidate, Prediction(Forecast.from_bins([1] * 8, p_fail=0.1)))
    assert told.notes == ("how much of f is skipped depends on values that are not known before it runs",)


def test_the_first_error_is_told_and_not_a_warning_before_it() -> None:
    log = "k.cu(2): warning #177-D: unused\nk.cu(3): error: no \x1b[31msuch thing\nmore"
    said = faults.why_broken([report(), report(status="compile_error", error=log)])
    assert said == "it does not compile: k.cu(3): error: no  [31msuch thing"
    assert faults.why_broken([report(status="runtime_error")]) == "it ends in an error: no reason is given"
    assert faults.why_broken([report(status="unknown"), report()]) == ""


@pytest.mark.parametrize("problem", ["softmax", "adam_step", "gelu", "matmul", "cumsum", "argmax", "gdn_chunk_fwd_o"])
def test_nothing_is_wrong_with_recorded_kernels_that_work(problem: str) -> None:
    device = RecordedDevice(recorded.find("h200"))
    task = replace(TASK, problem=device.problem(problem))
    for row in device.rows(problem).values():
        if row.cases:
            assert faults.find(task, Candidate(row.kernel, row.reports)) is None


@pytest.mark.parametrize(
    ("lacks", "fails"),
    [(f"{NO_TENSOR}: a builtins.coroutine", True), ("it returns a tensor that no recorded step has made", False)],
)
def test_what_returns_no_tensor_fails(lacks: str, fails: bool) -> None:
    told = report(trace=Trace((), (), (), (), None, lacks=lacks))
    fault = faults.find(TASK, Candidate(kernel("", "torch"), (told,)))
    assert (fault is not None and (fault.p_fail, fault.reason) == (0.99, lacks)) == fails
