"""The least times of kernels at a GPU's peaks, held against what was recorded: no GPU is needed."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

pytest.importorskip("torch")

from presage import Array, Case, load_recording
from presage.devices.gpu_peaks import GpuPeaks
from presage.devices.recorded import RecordedDevice
from presage.problems.external import ExternalProblem

CASE = Case({"n": 1000})


@pytest.fixture
def h200() -> Any:
    """The peaks that were measured when the H200 was recorded."""
    facts = load_recording("h200").facts["facts"]
    peaks = GpuPeaks()
    peaks._best = {"bandwidth": facts["peak_bandwidth"], "float16": facts["peak_half_flops"]}
    peaks.l2_bytes = 60 << 20
    return peaks


@pytest.mark.parametrize("name", ["sum", "sum_of_squares", "matvec", "lerp", "vector_add"])
def test_no_recorded_call_was_faster_than_one_that_is_made_alone(name: str, h200: Any) -> None:
    """Nor would it have been called impossible."""
    device = RecordedDevice(load_recording("h200"))
    problem = device.problem(name)
    single = {case.name: h200.single_ns(problem, case) for case in problem.timed["gpu"]}
    rows = device.rows(name).values()
    timed = [(case.median.value, single[case.case]) for row in rows for case in row.cases if case.case in single]
    assert timed
    assert all(took > least > 5000 for took, least in timed)


class Foreign(ExternalProblem):
    """A problem from elsewhere, of which it is known what has to be read."""

    def __init__(self, read: int, written: int) -> None:
        self.outputs, self._read, self._written = (Array("output", "", ""),), read, written

    def array_bytes(self, array: Array, case: Case) -> int:
        return self._written

    def is_passed_on(self, array: Array, case: Case) -> bool:
        return False

    may_overlap = is_passed_on

    def moved_bytes(self, case: Case) -> int:
        return self._read + self._written if self._read else 0


@pytest.mark.parametrize(
    ("read", "written", "least_us"),
    [
        pytest.param(10**9, 4, 0.95 * 1000 / 4.201657 + 5, id="much to read"),
        pytest.param(10**9, (60 << 20) + 10**9, 0.95 * 2000 / 4.201657 + 5, id="and to write"),
        pytest.param(4_201_657, 4, 0.95 + 3.95, id="little to read"),
        pytest.param(4, 4, 3, id="hardly anything"),
        pytest.param(0, 4, 0, id="nothing"),
    ],
)
def test_what_has_to_be_read_bounds_calls_of_foreign_problems(
    read: int, written: int, least_us: float, h200: Any
) -> None:
    assert h200.single_ns(Foreign(read, written), CASE) == pytest.approx(1000 * least_us, rel=1e-5)


@pytest.mark.sweep
def test_no_recorded_module_was_faster_than_all_of_its_inputs_allow(h200: Any) -> None:
    """But for two problems, whose answer does not depend on the inputs. Outputs may stay in the cache."""

    def least_ns(floor_ns: float) -> float:
        moved = round(floor_ns * h200.bandwidth * 1e-9)
        return float(h200.single_ns(Foreign(max(1, moved - h200.l2_bytes), 0), CASE))

    rows = load_recording("h200_modules").rows(reports=False)
    faster = {row.problem for row in rows for case in row.cases if median(case.samples_ns) < least_ns(case.floor_ns)}
    assert faster == {"level2_KB_L2_66", "level2_KB_L2_80"}
