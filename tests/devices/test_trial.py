"""Which times are believed: windows as two clocks saw them, and the verdict on each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from presage import Case, Effort, Kernel, Problem, Status
from presage.devices.child import TimingError, VerdictError, Window
from presage.devices.observation import SURPRISES, Observation
from presage.devices.plan import Inputs, Plan, Surprises
from presage.devices.trial import Trial

MS = 1_000_000


@dataclass
class Roof:
    """A device whose peak turns out `better` times as high on a second look, and on which a copy kernel takes so many
    times what the peak says, in turns."""

    floor: float
    better: float = 1.0
    witness: tuple[float, ...] = (1.0,)
    asked: int = 0

    def floor_ns(self, problem: Problem, case: Case) -> float:
        return self.floor

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        return 0.7 * self.floor

    single_ns = impossible_ns

    def refresh(self) -> None:
        self.floor /= self.better

    def witness_ns(self, problem: Problem, case: Case) -> float:
        took = self.witness[self.asked % len(self.witness)] * self.floor
        self.asked += 1
        self.floor = min(self.floor, took)
        return took


def window(
    child_ms: float, parent_ms: float, cpu_ms: float | None = None, main_ms: float | None = None, waited_ms: float = 0
) -> Window:
    """As the clocks saw it; the first thread used all the processor time unless another number is given."""
    cpu = child_ms if cpu_ms is None else cpu_ms
    main = cpu if main_ms is None else main_ms
    times = (int(ms * MS) for ms in (child_ms, parent_ms, cpu))
    return Window(*times, 10, {}, threads=2, main_ns=int(main * MS), waited_ns=int(waited_ms * MS))


def problem_case(problem: Problem) -> tuple[Case]:
    return problem.timed["cpu"]  # type: ignore[return-value]  # it has one


def trial_of(
    problem: Problem, kernel: Kernel, windows: list[Window], pulse_ms: float = 0.05
) -> tuple[Trial, Observation]:
    trial = Trial(problem, kernel, Effort(rounds=8))
    (case,) = problem_case(problem)
    observation = trial.observations[case.name] = Observation(calls=10, least_rounds=8)
    observation.windows, observation.rounds = windows, [*range(len(windows))]
    observation.pulses = [window(0, pulse_ms)] * len(windows)
    return trial, observation


def judged(
    problem: Problem, kernel: Kernel, windows: list[Window], roof: Roof, untimed: list[Window], pulse_ms: float = 0.05
) -> tuple[Status, str, int]:
    trial, observation = trial_of(problem, kernel, windows, pulse_ms)
    trial._repeated = untimed
    trial.attempt(trial.judge, *problem_case(problem), roof)
    verdict = trial.verdict or VerdictError(Status.OK, "")
    return verdict.status, verdict.reason, len(observation.believed())


GOOD, LATE, LIE = window(3, 3.1), window(3, 9), window(0.3, 3.1, 3.1)
HELPED_LIE = window(0.3, 3.1, 6, main_ms=0.3)
"""Another thread does the work while the first, which reads the clock, sleeps."""
TWO = window(3, 3.1, 6, main_ms=3)
TWO_LATE = window(3, 9, 6, main_ms=3, waited_ms=6)
"""Two threads, of which the first, or the parent, had to wait for a processor in the end."""


@pytest.mark.parametrize(
    ("windows", "pulse_ms", "status", "samples"),
    [
        pytest.param([GOOD] * 10, 0.05, Status.OK, 10, id="the clocks agree"),
        pytest.param([GOOD] * 10 + [LATE] * 20, 0.05, Status.OK, 30, id="it was late, but did no work meanwhile"),
        pytest.param([LATE] * 10, 0.05, Status.OK, 10, id="always late, but it only waited for a processor"),
        pytest.param([TWO] * 20 + [TWO_LATE] * 10, 0.05, Status.OK, 20, id="a third of the windows was interrupted"),
        pytest.param([TWO] * 10 + [TWO_LATE] * 20, 0.05, Status.DEVICE_FAULT, 10, id="two thirds were interrupted"),
        pytest.param([TWO] * 4 + [TWO_LATE] * 4, 0.05, Status.DEVICE_FAULT, 4, id="too few are left"),
        pytest.param([LIE] * 10, 0.05, Status.CHEATING, 0, id="a child that hides most of its time"),
        pytest.param([GOOD] + [LIE] * 10, 0.05, Status.CHEATING, 1, id="a child that hardly ever tells the truth"),
        pytest.param([GOOD] * 3 + [LIE] * 17, 0.05, Status.CHEATING, 3, id="lies in 85 %"),
        pytest.param([GOOD] * 14 + [LIE] * 10, 0.05, Status.CHEATING, 14, id="lies in 40 %"),
        pytest.param([GOOD] * 18 + [LIE] * 2, 0.05, Status.OK, 18, id="two odd windows of twenty"),
        pytest.param([TWO] * 3 + [HELPED_LIE] * 17, 0.05, Status.CHEATING, 3, id="lies while another thread works"),
        pytest.param([window(3, 3.9, 3.9)] * 10, 0.05, Status.CHEATING, 0, id="a fifth of each window hidden"),
        pytest.param([window(3, 3.9, 3.9)] * 10, 0.5, Status.OK, 10, id="a slow machine, as pulses show"),
    ],
)
def test_two_clocks_must_agree(
    addition: Problem, naive: Kernel, windows: list[Window], pulse_ms: float, status: Status, samples: int
) -> None:
    got, reason, believed = judged(addition, naive, windows, Roof(1.0), [], pulse_ms)
    assert (got, believed) == (status, samples), reason
    if status is Status.CHEATING:
        assert reason.startswith("case n=200000: the clocks disagree")


def test_late_windows_are_no_lies_where_pulses_are_late_too(addition: Problem, naive: Kernel) -> None:
    """As on a virtual machine whose host does not say that it took the processor away."""
    late = window(3, 9, 6, main_ms=3)
    pulses = [window(0, 0.05), window(0, 0.05), window(0, 6)]
    for windows, status in (([TWO, TWO, late], Status.OK), ([TWO, late, TWO], Status.CHEATING)):
        trial, observation = trial_of(addition, naive, windows * 8)
        observation.pulses = pulses * 8
        trial.attempt(trial.judge, *problem_case(addition), Roof(1.0))
        assert (trial.verdict.status if trial.verdict else Status.OK) == status


def test_a_kernel_does_not_choose_which_windows_are_samples(addition: Problem, naive: Kernel) -> None:
    """Slow ones that it lies about count at the parent's time."""
    slow = window(0.1, 9, 9)
    _, observation = trial_of(addition, naive, [GOOD] * 18 + [slow] * 2)
    assert len(observation.samples()) == 20
    assert sorted(observation.samples().values())[-2:] == pytest.approx([0.9 * MS] * 2, rel=0.02)


@pytest.mark.parametrize("child_ms", [0.01, 1, 2.5])
def test_no_sample_is_less_than_the_parents_clock_says(addition: Problem, naive: Kernel, child_ms: float) -> None:
    _, observation = trial_of(addition, naive, [window(child_ms, 3.1, 6, main_ms=child_ms)] * 8)
    assert min(observation.samples().values()) == pytest.approx(0.3 * MS, rel=0.02)


@pytest.mark.parametrize(
    ("roof", "status", "asked"),
    [
        pytest.param(Roof(100e3), Status.OK, 0, id="slower than the floor"),
        pytest.param(Roof(400e3), Status.OK, 0, id="a little under a floor that is itself uncertain"),
        pytest.param(Roof(1000e3, better=5.0), Status.OK, 0, id="the peak had been measured too low"),
        pytest.param(Roof(1000e3), Status.CHEATING, 8, id="far under the floor, and a copy kernel is not"),
        pytest.param(Roof(1000e3, witness=(0.3, 3.0)), Status.OK, 8, id="a copy kernel is as fast, at times"),
        pytest.param(Roof(1000e3, witness=(1, 3, 3)), Status.DEVICE_FAULT, 8, id="a copy kernel is slow, at times"),
    ],
)
def test_no_time_is_under_the_floor(
    addition: Problem, naive: Kernel, roof: Roof, status: Status, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "run", lambda *arguments, **how: GOOD)
    monkeypatch.setattr(Trial, "_pulse", lambda *arguments: window(0, 0.05))
    trial, _ = trial_of(addition, naive, [GOOD] * 10)
    trial.attempt(trial.judge, *problem_case(addition), roof)
    assert (trial.verdict.status if trial.verdict else Status.OK) == status, trial.verdict
    assert roof.asked == asked
    assert trial.verdict is None or isinstance(trial.verdict, TimingError), "there is a second try"


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


# -- which inputs -----------------------------------------------------------------------------------------------------


def test_timed_sizes_are_checked_in_every_style(addition: Problem) -> None:
    (timed,) = problem_case(addition)
    plan = Plan.draw(addition, "cpu")
    asked = {case.values for case in plan.checks if case.dims == timed.dims}
    assert asked >= {"normal", "large", "tiny", "outliers", "needles"}
    assert plan.timed == (timed,)


def test_kernels_of_our_own_are_asked_no_more_than_before(addition: Problem) -> None:
    (timed,) = problem_case(addition)
    assert all(case.dims != timed.dims for case in Plan.fixed(addition, "cpu", 3).checks)


def test_among_timed_windows_are_some_on_other_inputs(addition: Problem, naive: Kernel) -> None:
    """They are checked, and are no samples."""
    trial, observation = trial_of(addition, naive, [])
    (case,) = problem_case(addition)
    seen: list[tuple[Inputs, int]] = []

    def run(case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        assert timed
        seen.append((inputs, checked))
        return GOOD

    trial.run, trial._pulse = run, lambda case, observation: window(0, 0.05)  # type: ignore[method-assign]
    for number in range(observation.least_rounds):
        trial.sample(case, trial.draw(case), number)
    surprises = [checked for inputs, checked in seen if isinstance(inputs, Surprises)]
    assert len(surprises) >= SURPRISES
    assert min(surprises) >= 1
    assert len(observation.windows) == observation.least_rounds == len(seen) - len(surprises)


def test_a_surprise_has_several_styles_each_with_its_own_answer(addition: Problem, naive: Kernel) -> None:
    (case,) = problem_case(addition)
    drawn = [Surprises(addition, case, Trial.backend) for _ in range(40)]
    assert len({inputs.case(slot).values for inputs in drawn for slot in range(12)}) > 3
    assert max(len({inputs.case(slot).values for slot in range(12)}) for inputs in drawn) > 2
    told = [(inputs, slot) for inputs in drawn for slot in range(12) if inputs.case(slot).values == "outliers"]
    inputs, slot = told[-1]
    x, y = inputs[slot]
    assert inputs.difference(slot, (x + y,)) is None
    assert inputs.difference(slot, (x - y,)) is not None
