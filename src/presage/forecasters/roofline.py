"""The `roofline` baseline: no kernel beats the hardware's peaks, so the anchor's distance from its floor bounds S."""

from __future__ import annotations

import math
from collections.abc import Sequence

from presage.core.forecast import Forecast
from presage.core.scale import LOG2_KNOTS
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task
from presage.problems.base import Case, Problem
from presage.static.hardware import Hardware

_PEAKS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}
"""The name of the peak for each type; other types, such as integers, use that of float32."""
_SLOWEST = LOG2_KNOTS[0]
_LEAST_RANGE = 1.0


class RooflineForecaster(Forecaster):
    """Expects any speed up to what the hardware allows, the same for every candidate."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        try:
            headroom = log2_headroom(task)
        except _Unknown as unknown:
            return [Prediction(None, (f"no forecast: {unknown}",))] * len(candidates)
        low = min(_SLOWEST, headroom - _LEAST_RANGE)
        note = f"the hardware allows at most {2**headroom:.3g} times the anchor's speed"
        return [Prediction(Forecast((low, headroom), (0.0, 1.0), p_fail=0.5), (note,))] * len(candidates)


class _Unknown(Exception):  # noqa: N818  what is not known, not a fault
    """A value that the roofline needs is not known. The message says which."""


def log2_headroom(task: Task) -> float:
    """The upper bound of log2 S: log2 of the anchor's time over the least possible time, the mean over cases."""
    if task.hardware is None or not task.hardware.bandwidth:
        raise _Unknown("the hardware's peaks are not known")
    if not task.problem.inputs:
        raise _Unknown(f"what {task.problem.name} must cost is not known")
    timed = [(task.anchor.times_ns[case.name], case) for case in task.cases if case.name in task.anchor.times_ns]
    if not timed:
        raise _Unknown("the anchor has no measured times")
    return sum(math.log2(time / _floor_ns(task.problem, case, task.hardware)) for time, case in timed) / len(timed)


def _floor_ns(problem: Problem, case: Case, hardware: Hardware) -> float:
    peak = hardware.peak_flops.get(_PEAKS.get(problem.precision(case), "fp32")) or hardware.peak_flops["fp32"]
    assert hardware.bandwidth
    return 1e9 * max(problem.bytes(case) / hardware.bandwidth, problem.textbook_flops(case) / peak)
