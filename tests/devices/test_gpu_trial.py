"""When a GPU's windows are believed: made-up windows, so no GPU is needed."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from presage import Case, Effort, Kernel, Problem, Status
from presage.devices.child import Window
from presage.devices.gpu_trial import MOST_HOLD_NS, GpuObservation, GpuTrial, shared_out
from presage.kernels.kernel import from_source
from presage.problems import registry

US = 1000
CALLS, ROUNDS = 8, 5
ADDITION: Problem = registry.get("vector_add")
CASE = Case({"n": 1000})
EAGER = from_source("import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n", ".py", "k.py")
TRITON = from_source("import torch\nimport triton\ndef custom_kernel(data):\n    return data[0]\n", ".py", "k.py")

PULSE = Window(320 * US, 600 * US, 0, CALLS, {"tails_ns": [5 * US] * CALLS})
"""A window with nothing in it: eight leads, and as much again for talking."""


def window(
    call_us: float = 100, accounted_us: float = 1120, parent_us: float = 1400, tail_us: float = 5, launches: int = 1
) -> Window:
    """Eight calls of so long, what the worker accounts for, and what passed."""
    answer = {
        "samples_ns": [call_us * US] * CALLS,
        "tails_ns": [tail_us * US] * CALLS,
        "launches": [launches] * CALLS,
        "queued_ns": 10 * US,
    }
    return Window(int(accounted_us * US), int(parent_us * US), 0, CALLS, answer, main_ns=0)


def lump(first_us: float, others_us: float) -> Window:
    """A window whose first call does the work of the others."""
    samples = [first_us * US, *[others_us * US] * (CALLS - 1)]
    made = window()
    return Window(made.child_ns, made.parent_ns, 0, CALLS, made.answer | {"samples_ns": samples})


HONEST = window()
HURRIED = window(accounted_us=400, parent_us=2400)
"""Its events say that most of the time did not pass."""
UNDERSTATED = window(call_us=10, accounted_us=2390, parent_us=2400)
"""It accounts for all the time, but not in its calls."""
INTERRUPTED = dataclasses.replace(window(parent_us=9000), waited_ns=7600 * US)
"""Its host waited for a processor."""
LATE = window(parent_us=9000)
"""Nobody waited."""


def observation_of(windows: list[Window]) -> GpuObservation:
    observation = GpuObservation(CALLS, ROUNDS)
    observation.windows, observation.rounds = windows, [*range(len(windows))]
    observation.pulses = [PULSE] * len(windows)
    return observation


class Roof:
    """A device that can do anything."""

    def floor_ns(self, problem: Problem, case: Case) -> float:
        return 1.0

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        return 0.5

    def refresh(self) -> None:
        return

    def witness_ns(self, problem: Problem, case: Case) -> float:
        return 1.0


def judged(windows: list[Window], kernel: Kernel = EAGER) -> tuple[Status, str]:
    trial = GpuTrial(ADDITION, kernel, Effort(rounds=ROUNDS))
    trial.observations[CASE.name] = observation_of(windows)
    trial.attempt(trial.judge, CASE, Roof())
    return (trial.verdict.status, trial.verdict.reason) if trial.verdict else (Status.OK, "")


@pytest.mark.parametrize(
    ("windows", "status", "believed"),
    [
        pytest.param([HONEST] * 6, Status.OK, 6, id="both clocks agree"),
        pytest.param([HONEST] * 9 + [INTERRUPTED] * 6, Status.OK, 9, id="some were interrupted"),
        pytest.param([HONEST] * 6 + [INTERRUPTED] * 9, Status.DEVICE_FAULT, 6, id="most were interrupted"),
        pytest.param([HONEST] * 3 + [INTERRUPTED] * 3, Status.DEVICE_FAULT, 3, id="too few are left"),
        pytest.param([HONEST] * 9 + [LATE] * 6, Status.OK, 9, id="some late, and nobody waited"),
        pytest.param([HONEST] * 6 + [LATE] * 9, Status.CHEATING, 6, id="most late, and nobody waited"),
        pytest.param([HURRIED] * 6, Status.CHEATING, 0, id="events that say less than passed"),
        pytest.param([UNDERSTATED] * 6, Status.CHEATING, 0, id="calls that say less than the window"),
        pytest.param([HONEST] * 3 + [UNDERSTATED] * 17, Status.CHEATING, 3, id="lies in 85 %"),
        pytest.param([HONEST] * 18 + [UNDERSTATED] * 2, Status.OK, 18, id="two odd windows of twenty"),
    ],
)
def test_the_parents_clock_bounds_the_calls(windows: list[Window], status: Status, believed: int) -> None:
    got, reason = judged(windows)
    assert got == status, reason
    assert len(observation_of(windows).believed()) == believed
    if status is Status.CHEATING:
        assert "the clocks disagree" in reason


def test_late_windows_are_no_lies_where_pulses_are_late_too() -> None:
    observation = observation_of([HONEST, LATE, LATE] * 6)
    assert observation.is_lied_about
    late = dataclasses.replace(PULSE, parent_ns=9000 * US)
    observation.pulses = [PULSE, late, late] * 6
    assert not observation.is_lied_about


def test_what_a_window_hides_counts_as_its_calls_time() -> None:
    samples = observation_of([HONEST] * 18 + [UNDERSTATED] * 2).samples()
    assert len(samples) == 20 * CALLS
    assert min([*samples.values()][-2 * CALLS :]) > 150 * US


@pytest.mark.parametrize(
    ("usual_us", "audited_us", "queued_us", "complaint"),
    [
        pytest.param(100, 100, 10, None, id="the same after a pause"),
        pytest.param(100, 97, 10, None, id="noise below"),
        pytest.param(100, 103, 10, None, id="noise above"),
        pytest.param(6, 5, 10, None, id="noise of a short call"),
        pytest.param(17, 3, 10, "done on another stream", id="worked ahead on another stream"),
        pytest.param(100, 95, 10, "done on another stream", id="worked ahead a little"),
        pytest.param(12.3, 17, 10, "something had filled it", id="fetched its inputs during the hold"),
        pytest.param(900, 500, 2000, None, id="not queued in time, so it may be either"),
    ],
)
def test_an_audit_shows_what_was_done_elsewhere(
    usual_us: float, audited_us: float, queued_us: float, complaint: str | None
) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    usual = window(usual_us, accounted_us=1120 + 8 * (usual_us - 100), parent_us=1400 + 8 * (usual_us - 100))
    usual.answer["queued_ns"] = int(queued_us * US)
    observation = trial.observations[CASE.name] = observation_of([usual] * ROUNDS)
    observation.audits = [window(audited_us)]
    trial._audit = lambda case, inputs: window(audited_us)  # type: ignore[method-assign]
    trial.attempt(trial.judge, CASE, Roof())
    if complaint is None:
        assert trial.verdict is None
    else:
        assert trial.verdict is not None
        assert complaint in trial.verdict.reason


@pytest.mark.parametrize(
    ("call_us", "queued_us", "differs", "said"),
    [
        pytest.param(50, 10, True, "launching is not part of the time", id="short"),
        pytest.param(600, 10, False, "launching is not part of the time", id="long"),
        pytest.param(600, 1100, True, "host code, whose time is part of its own", id="waits for the host"),
    ],
)
def test_what_is_timed_in_several_processes(call_us: float, queued_us: float, differs: bool, said: str) -> None:
    """One whose host is slow, too: an interval from one process alone would be too narrow."""
    trial = GpuTrial(ADDITION, EAGER, Effort(precision=1e-9, rounds=ROUNDS))
    usual = window(call_us, accounted_us=1120 + 8 * (call_us - 100), parent_us=1400 + 8 * (call_us - 100))
    usual.answer["queued_ns"] = int(queued_us * US)
    usual.answer["samples_ns"] = [call_us * US * (1 + 0.001 * call) for call in range(CALLS)]
    trial.observations[CASE.name] = observation_of([usual] * ROUNDS)
    assert trial.differs_by_process(CASE) == differs
    assert trial.precise(CASE) == differs
    assert said in trial.facts()["timing"]


def test_where_times_depend_on_the_inputs_one_audit_is_no_proof() -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    observation = trial.observations[CASE.name] = observation_of([HONEST] * ROUNDS)
    observation.audits = [window(115)]
    others = iter([window(98), window(120)])
    trial._audit = lambda case, inputs: next(others)  # type: ignore[method-assign]
    trial.attempt(trial.judge, CASE, Roof())
    assert trial.verdict is None
    assert next(others, None) is None


def alternating(call_us: float, other_us: float) -> Window:
    """A window in which every other call takes longer."""
    made = window(accounted_us=400, parent_us=800)
    samples = [call_us * US, other_us * US] * (CALLS // 2)
    return Window(made.child_ns, made.parent_ns, 0, CALLS, made.answer | {"samples_ns": samples})


@pytest.mark.parametrize(
    ("windows", "processes", "enough"),
    [
        pytest.param([window(100)] * ROUNDS, 4, True, id="all alike"),
        pytest.param([alternating(100, 110)] * ROUNDS, 4, False, id="of two kinds"),
        pytest.param([window(100 + 20 * (i % 7)) for i in range(2 * ROUNDS)], 4, False, id="of many kinds"),
        pytest.param([alternating(5, 6)] * (ROUNDS - 1), 4, False, id="short, too few"),
        pytest.param([alternating(5, 6)] * ROUNDS, 4, True, id="short, in several processes"),
        pytest.param([alternating(5, 6)] * ROUNDS, 1, False, id="short, in one"),
    ],
)
def test_sampling_ends_when_the_median_is_known(windows: list[Window], processes: int, enough: bool) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS, processes=processes))
    trial.observations[CASE.name] = observation_of(windows)
    assert trial.precise(CASE) == enough


def test_a_window_cannot_be_made_long_enough_to_hide_in() -> None:
    """Windows with nothing in them hold the GPU as long as the worker says that queueing takes, but not longer."""
    lead = MOST_HOLD_NS // US
    observation = observation_of([window(call_us=10, accounted_us=22_000, parent_us=22_000)] * 6)
    observation.pulses = [Window(CALLS * lead * US, CALLS * (lead + 40) * US, 0, CALLS, {})] * 6
    assert observation.believed() == []


@pytest.mark.parametrize(
    ("samples", "counted"),
    [
        pytest.param([20.0, 20.4, 20.1], [20.0, 20.4, 20.1], id="even"),
        pytest.param([24.0, 20.0, 20.0, 20.0], [24.0, 20.0, 20.0, 20.0], id="a slow start"),
        pytest.param([79.0, 1.0, 1.0, 1.0], [20.5] * 4, id="the first does the work of all"),
        pytest.param([1.0, 1.0, 79.0, 1.0], [20.5] * 4, id="another one does"),
        pytest.param([20.0], [20.0], id="a single call"),
    ],
)
def test_work_done_for_other_calls_is_shared_out(samples: list[float], counted: list[float]) -> None:
    assert [*shared_out([us * US for us in samples])] == [us * US for us in counted]


def test_a_sample_is_never_less_than_its_share() -> None:
    samples = observation_of([lump(first_us=793, others_us=1)] * 6).samples()
    assert len(samples) == 6 * CALLS
    assert set(samples.values()) == {100.0 * US}


@pytest.mark.parametrize(
    ("tail_us", "call_us", "status"),
    [
        pytest.param(5, 100, Status.OK, id="what asking takes"),
        pytest.param(18, 100, Status.OK, id="and a share of the call"),
        pytest.param(60, 100, Status.CHEATING, id="half of the work elsewhere"),
    ],
)
def test_nothing_may_run_on(tail_us: float, call_us: float, status: Status) -> None:
    got, reason = judged([window(call_us, tail_us=tail_us)] * 6)
    assert got == status, reason


def test_where_asking_takes_long_that_is_no_work() -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    observation = trial.observations[CASE.name] = observation_of([window(tail_us=60)] * ROUNDS)
    observation.pulses = [dataclasses.replace(PULSE, answer={"tails_ns": [55 * US] * CALLS})] * ROUNDS
    trial.attempt(trial.judge, CASE, Roof())
    assert trial.verdict is None


def test_what_copying_an_output_takes_on_a_slow_gpu_is_not_hidden_time() -> None:
    copying = window(accounted_us=1120 + CALLS * 500, parent_us=1400 + CALLS * 500)
    observation = observation_of([copying] * 6)
    assert observation.believed() == []
    observation.copy_ns = 600 * US
    assert len(observation.believed()) == 6


@pytest.mark.parametrize(("call_ms", "calls"), [(0.02, 8), (20, 8), (100, 3), (1000, 1), (20_000, 1)])
def test_a_slow_kernel_has_short_windows(call_ms: float, calls: int) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort())
    trial.child = SimpleNamespace(arena=SimpleNamespace(size=1 << 32))  # type: ignore[assignment]
    assert trial._calls_for(CASE, call_ms * 1e6) == calls


@pytest.mark.parametrize(
    ("kernel", "windows", "status"),
    [
        pytest.param(TRITON, [window(launches=1)] * 6, Status.OK, id="a kernel of its own in each call"),
        pytest.param(TRITON, [window(launches=0)] * 6, Status.CHEATING, id="none at all"),
        pytest.param(TRITON, [window(launches=2)] * 5 + [window(launches=0)], Status.CHEATING, id="not in every call"),
        pytest.param(EAGER, [window(launches=0)] * 6, Status.OK, id="nobody asked for one"),
    ],
)
def test_a_triton_module_launches_its_own_kernels(kernel: Kernel, windows: list[Window], status: Status) -> None:
    got, reason = judged(windows, kernel)
    assert got == status, reason
    if status is Status.CHEATING:
        assert "is a Triton module, but no Triton kernel of its own ran in" in reason
