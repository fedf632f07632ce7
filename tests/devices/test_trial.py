"""Which times are believed: windows as two clocks saw them, and the verdict on each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from presage.devices.base import Effort
from presage.devices.child import VerdictError, Window
from presage.devices.status import Status
from presage.devices.trial import Record, Trial
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem

MS = 1_000_000


@dataclass
class Roof:
    """A device whose peak turns out `better` times as high on a second look."""

    floor: float
    better: float = 1.0

    def floor_ns(self, problem: Problem, case: Case) -> float:
        return self.floor

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        return 0.7 * self.floor

    def refresh(self) -> None:
        self.floor /= self.better


def window(child_ms: float, parent_ms: float, cpu_ms: float | None = None) -> Window:
    cpu = child_ms if cpu_ms is None else cpu_ms
    return Window(int(child_ms * MS), int(parent_ms * MS), int(cpu * MS), 10, {})


def judged(
    problem: Problem, kernel: Kernel, windows: list[Window], roof: Roof, untimed: list[Window], pulse_ms: float = 0.05
) -> tuple[Status, str, int]:
    trial = Trial(problem, kernel, Effort(rounds=8))
    (case,) = problem.timed["cpu"]
    record = trial.records[case.name] = Record(calls=10, least_rounds=8)
    record.windows, record.rounds = windows, [*range(len(windows))]
    record.pulses = [window(0, pulse_ms)] * len(windows)
    trial._untimed = untimed
    trial.attempt(trial.judge, case, roof)
    verdict = trial.verdict or VerdictError(Status.OK, "")
    return verdict.status, verdict.reason, len(record.believed())


GOOD, LATE, LIE = window(3, 3.1), window(3, 9), window(0.3, 3.1, 3.1)


@pytest.mark.parametrize(
    ("windows", "pulse_ms", "status", "samples"),
    [
        pytest.param([GOOD] * 10, 0.05, Status.OK, 10, id="the clocks agree"),
        pytest.param([GOOD] * 10 + [LATE] * 20, 0.05, Status.OK, 10, id="interrupted windows are left out"),
        pytest.param([GOOD] * 4 + [LATE] * 6, 0.05, Status.DEVICE_FAULT, 4, id="too few are left"),
        pytest.param([LIE] * 10, 0.05, Status.CHEATING, 0, id="a child that hides most of its time"),
        pytest.param([GOOD] + [LIE] * 10, 0.05, Status.CHEATING, 1, id="a child that hardly ever tells the truth"),
        pytest.param([GOOD] * 4 + [LIE] * 10, 0.05, Status.DEVICE_FAULT, 4, id="lies that leave too few"),
        pytest.param([window(3, 3.9, 3.9)] * 10, 0.05, Status.CHEATING, 0, id="a fifth of each window hidden"),
        pytest.param([window(3, 3.9, 3.9)] * 10, 0.5, Status.OK, 10, id="a slow machine, as pulses show"),
        pytest.param([LATE] * 10, 0.05, Status.DEVICE_FAULT, 0, id="always late, but it only waited for a processor"),
    ],
)
def test_two_clocks_must_agree(
    addition: Problem, naive: Kernel, windows: list[Window], pulse_ms: float, status: Status, samples: int
) -> None:
    got, reason, believed = judged(addition, naive, windows, Roof(1.0), [], pulse_ms)
    assert (got, believed) == (status, samples), reason
    if status is Status.CHEATING:
        assert reason.startswith("case n=200000: the clocks disagree")


@pytest.mark.parametrize(
    ("roof", "status"),
    [
        pytest.param(Roof(100e3), Status.OK, id="slower than the floor"),
        pytest.param(Roof(400e3), Status.OK, id="a little under a floor that is itself uncertain"),
        pytest.param(Roof(1000e3), Status.CHEATING, id="far under the floor"),
        pytest.param(Roof(1000e3, better=5.0), Status.OK, id="the peak had been measured too low"),
    ],
)
def test_no_time_is_under_the_floor(addition: Problem, naive: Kernel, roof: Roof, status: Status) -> None:
    got, reason, _ = judged(addition, naive, [GOOD] * 10, roof, [])
    assert got == status, reason


@pytest.mark.parametrize(
    ("untimed", "cpu_ms", "status"),
    [
        pytest.param([window(1, 60, 1)] * 3, 3, Status.CHEATING, id="slept until it was timed"),
        pytest.param([window(1, 60, 1)], 3, Status.OK, id="one slow start"),
        pytest.param([window(1, 60, 59)] * 3, 3, Status.OK, id="worked hard at first: a cold cache"),
        pytest.param([window(1, 60, 1)] * 3, 0.1, Status.OK, id="waits in every call, timed or not"),
    ],
)
def test_sleeping_only_while_unwatched_is_cheating(
    addition: Problem, naive: Kernel, untimed: list[Window], cpu_ms: float, status: Status
) -> None:
    got, reason, _ = judged(addition, naive, [window(3, 3.1, cpu_ms)] * 10, Roof(1.0), untimed)
    assert got == status, reason


@pytest.mark.parametrize(
    ("slept", "status"),
    [
        pytest.param(5, Status.CHEATING, id="slept in all calls before"),
        pytest.param(2, Status.OK, id="the machine's delays"),
    ],
)
def test_sleep_is_told_on_a_busy_machine(addition: Problem, naive: Kernel, slept: int, status: Status) -> None:
    untimed = [window(1, 60, 1)] * slept + [GOOD] * (5 - slept)
    windows = [window(3, 3.1, 1.2)] * 8 + [window(3, 3.1, 3)] * 2
    got, reason, _ = judged(addition, naive, windows, Roof(1.0), untimed)
    assert got == status, reason
