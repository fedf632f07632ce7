"""What a GPU adds to the rules of belief, on windows that are made up: no GPU is needed."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from presage import Case, Effort, Kernel, Problem, Status
from presage.devices.child import VerdictError, Window
from presage.devices.gpu_memory import GIB, CrowdedError
from presage.devices.gpu_observation import (
    LEAST_HOLD_NS,
    MOST_HOLD_NS,
    GpuObservation,
    Hold,
    WorkerObservation,
    clocked_calls,
)
from presage.devices.gpu_trial import CalledAheadError, GpuTrial
from presage.devices.module_trial import ModuleTrial
from presage.kernels.kernel import from_source
from presage.problems import registry

US = 1000
CALLS, ROUNDS = 8, 5
ADDITION: Problem = registry.get("vector_add")
CASE = Case({"n": 1000})
EAGER = from_source("import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n", ".py", "k.py")
BARE = registry.find_kernel(ADDITION, "naive.cu").render()


def window(call_us: float = 100, tail_us: float = 5, parent_us: float = 1400) -> Window:
    """Eight calls of so long, and what passed."""
    answer = {"samples_ns": [call_us * US] * CALLS, "tails_ns": [tail_us * US] * CALLS}
    answer |= {"queued_ns": [10 * US] * CALLS, "hold_ns": 20 * US}
    return Window(int(CALLS * call_us * US), int(parent_us * US), 0, CALLS, answer)


HONEST = window()


def observed(windows: list[Window]) -> GpuObservation:
    observation = GpuObservation(CALLS, ROUNDS)
    observation.windows, observation.rounds = windows, [*range(len(windows))]
    return observation


class Roof:
    """A device on which nothing is faster than this."""

    def __init__(self, least_ns: float = 0.5) -> None:
        self.least_ns = least_ns

    def floor_ns(self, problem: Problem, case: Case) -> float:
        return 1.0

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        return self.least_ns

    single_ns = impossible_ns

    def refresh(self) -> None:
        return

    def witness_ns(self, problem: Problem, case: Case) -> float:
        return 1.0


def judged(windows: list[Window], asking_us: float = 5.0) -> tuple[Status, str]:
    trial = GpuTrial(ADDITION, BARE, Effort(rounds=ROUNDS))
    trial._asking_ns = lambda: asking_us * US  # type: ignore[method-assign]
    trial.observations[CASE.name] = observed(windows)
    trial.attempt(trial.judge, CASE, Roof())
    return (trial.verdict.status, trial.verdict.reason) if trial.verdict else (Status.OK, "")


@pytest.mark.parametrize(
    ("tail_us", "asking_us", "status"),
    [
        pytest.param(5, 5, Status.OK, id="what asking takes"),
        pytest.param(18, 5, Status.OK, id="and a share of the call"),
        pytest.param(60, 5, Status.CHEATING, id="half of the work elsewhere"),
        pytest.param(60, 55, Status.OK, id="where asking takes long, that is no work"),
    ],
)
def test_nothing_may_run_on(tail_us: float, asking_us: float, status: Status) -> None:
    got, reason = judged([window(100, tail_us=tail_us)] * 6, asking_us)
    assert got == status, reason


@pytest.mark.parametrize(
    ("status", "again"),
    [
        pytest.param(Status.RUNTIME_ERROR, True, id="blank inputs may not be for it"),
        pytest.param(Status.CHEATING, False, id="what it tries is tried"),
    ],
)
def test_what_fails_ahead_is_tried_again_without(status: Status, again: bool) -> None:
    def command(what: str, **_: object) -> None:
        asked.append(what)
        raise VerdictError(status, "IndexError")

    asked = list[str]()
    trial = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    trial.child = SimpleNamespace(command=command, output=str, kill=lambda: None, scratch="/tmp/none")  # type: ignore[assignment]
    trial.attempt(trial._call_ahead, [])
    assert isinstance(trial.verdict, CalledAheadError) is again
    second = GpuTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    second.child, second.is_called_ahead = SimpleNamespace(command=command, scratch="/tmp/none"), False  # type: ignore[assignment]
    second._call_ahead([])
    assert asked == ["prepare"]


def test_where_this_process_has_no_memory_left_the_others_go_on() -> None:
    """Whatever it was about to do: the kernel can be tried again."""

    def hide() -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 13.88 GiB.")

    trial = GpuTrial(ADDITION, BARE, Effort(rounds=ROUNDS))
    trial.room, trial.memory = GIB, lambda: (GIB, 2 * GIB)
    trial.attempt(hide)
    assert isinstance(trial.verdict, CrowdedError)


def test_what_a_failed_trial_worked_with_is_let_go() -> None:
    """Inputs may take gigabytes."""
    inputs = {1, 2, 3}
    known = weakref.ref(inputs)

    def judge(values: list[set[int]]) -> None:
        values = [values.pop()]
        try:
            raise ValueError("an answer that cannot be read")
        except ValueError as error:
            raise VerdictError(Status.CHEATING, f"forged: {len(values)}") from error

    trial = GpuTrial(ADDITION, BARE, Effort(rounds=ROUNDS))
    holder = [inputs]
    del inputs
    trial.attempt(judge, holder)
    assert trial.verdict is not None
    assert known() is None


def test_what_cannot_be_so_fast_is_not() -> None:
    trial = ModuleTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    trial._replaying = True
    trial._take = lambda *rest: None  # type: ignore[method-assign]
    trial.observations[CASE.name] = observed([window(1)] * ROUNDS)
    trial.attempt(trial.judge, CASE, Roof(least_ns=2 * US))
    assert trial.verdict is not None
    assert trial.verdict.status is Status.CHEATING


@pytest.mark.parametrize(
    ("call_us", "kernel", "clocked_us", "waits", "differs"),
    [
        pytest.param(50, EAGER, 0, False, True, id="short"),
        pytest.param(600, EAGER, 0, False, False, id="long"),
        pytest.param(600, EAGER, 0, True, True, id="waits for the GPU inside"),
        pytest.param(600, EAGER, 700, False, True, id="its host takes longer"),
        pytest.param(600, EAGER, 500, False, False, id="its host keeps up"),
        pytest.param(600, BARE, 0, False, False, id="a bare kernel"),
    ],
)
def test_what_is_timed_in_several_processes(
    call_us: float, kernel: Kernel, clocked_us: float, waits: bool, differs: bool
) -> None:
    """An interval from one process alone would be too narrow."""
    effort = Effort(precision=1e-9, rounds=ROUNDS)
    trial = (GpuTrial if kernel.is_bare else ModuleTrial)(ADDITION, kernel, effort)
    usual = window()
    usual.answer["samples_ns"] = [call_us * US * (1 + 0.001 * call) for call in range(CALLS)]
    trial.observations[CASE.name] = seen = observed([usual] * ROUNDS)
    if clocked_us:
        clocked = (clocked_us * US,) * 3
        trial.observations[CASE.name] = WorkerObservation(
            seen.calls, ROUNDS, seen.rounds, seen.windows, clocked_ns=clocked
        )
    trial._hold.waits = waits
    assert trial.differs_by_process(CASE) == differs
    assert trial.precise(CASE) == differs


def alternating(call_us: float, other_us: float) -> Window:
    """A window in which every other call takes longer."""
    made = window()
    made.answer["samples_ns"] = [call_us * US, other_us * US] * (CALLS // 2)
    return made


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
    trial = ModuleTrial(ADDITION, EAGER, Effort(rounds=ROUNDS, processes=processes))
    trial.observations[CASE.name] = observed(windows)
    assert trial.precise(CASE) == enough


@pytest.mark.parametrize(("call_ms", "calls"), [(0.02, 8), (20, 8), (100, 3), (1000, 1), (20_000, 1)])
def test_a_slow_kernel_has_short_windows(call_ms: float, calls: int) -> None:
    trial = GpuTrial(ADDITION, BARE, Effort())
    trial.child = SimpleNamespace(arena=SimpleNamespace(size=1 << 32))  # type: ignore[assignment]
    assert trial._calls_for(CASE, call_ms * 1e6) == calls


# -- how long the GPU is held -----------------------------------------------------------------------------------------


def test_the_lead_holds_the_gpu_until_a_call_is_queued() -> None:
    hold = Hold()
    for queued in (30_000_000, 200_000, 180_000, 180_000):  # the first call makes room
        hold.learn([queued] * 8)
    assert hold.ns == 360_000
    assert not hold.waits


def test_a_busy_host_is_no_wait_for_the_gpu() -> None:
    hold = Hold()
    for queued in (50_000, 120_000, 60_000, 150_000, 50_000):
        hold.learn([queued] * 7 + [5_000_000])  # the last call was interrupted
        assert not hold.waits
    assert hold.ns == 100_000


@pytest.mark.parametrize(
    ("queued_us", "samples"),
    [
        pytest.param([50, 10, 10, 10], [101, 102, 103], id="late calls do not count"),
        pytest.param([21, 10, 10, 10], [100, 101, 102, 103], id="unless it is by little"),
        pytest.param([50, 50, 50, 50], [100, 101, 102, 103], id="nor where all are late"),
    ],
)
def test_calls_that_are_queued_in_time_are_samples(queued_us: list[int], samples: list[int]) -> None:
    answer = {"samples_ns": [(100 + call) * US for call in range(4)], "tails_ns": [0] * 4}
    answer |= {"queued_ns": [us * US for us in queued_us], "hold_ns": 20 * US}  # type: ignore[dict-item]
    assert list(observed([Window(0, 0, 0, 4, answer)]).samples().values()) == [us * US for us in samples]


@pytest.mark.parametrize(
    ("calls_us", "queued_us", "typical_us"),
    [
        pytest.param([765, 5, 5, 5, 5, 5, 5, 5], 10, 100, id="the first call does the work of all"),
        pytest.param([16_000] + [2_000] * 7, 15_900, 3_687.5, id="and fills the GPU's queue, so that it is late"),
        pytest.param([290, 5, 5] * 3, 10, 100, id="every third call does the work of three"),
        pytest.param([195, 5] * 4, 10, 100, id="every other call"),
        pytest.param([112, 100, 100, 100, 100, 100, 100, 100], 10, 100, id="the first call is a little slower"),
        pytest.param([250, 100, 100, 100, 100, 100, 100, 100], 170, 100, id="the first call waits for the host"),
    ],
)
def test_work_on_later_calls_counts(calls_us: list[float], queued_us: float, typical_us: float) -> None:
    """A kernel on the GPU finds the inputs of the window's other calls, which lie beside its own."""
    answer = {"samples_ns": [us * US for us in calls_us], "tails_ns": [0] * len(calls_us), "hold_ns": 20 * US}
    answer["queued_ns"] = [queued_us * US] + [10 * US] * (len(calls_us) - 1)
    seen = observed([Window(0, 0, 0, len(calls_us), answer)] * ROUNDS)
    assert seen.typical_ns() == pytest.approx(typical_us * US, rel=0.01)
    assert len(set(seen.samples())) == len(seen.samples()) >= ROUNDS


@pytest.mark.parametrize("disturbed", [1, 2, 3])
def test_windows_that_something_disturbed_do_not_matter(disturbed: int) -> None:
    """As happens while other processes prepare kernels on the same GPU."""
    late = window()
    late.answer["samples_ns"] = [5_000 * US] + [100 * US] * (CALLS - 1)
    seen = observed([HONEST] * (ROUNDS - disturbed) + [late] * disturbed)
    assert seen.typical_ns() == 100 * US
    assert len(seen.samples()) == ROUNDS * CALLS


def test_a_call_that_waits_for_the_gpu_is_not_held_up() -> None:
    hold = Hold()
    for _ in range(4):
        hold.learn([300_000 + hold.ns] * 8)
    assert hold.waits
    assert hold.ns == LEAST_HOLD_NS


@pytest.mark.parametrize("host_ms", [0, 0.1, 1, 10, 24, 26, 40, 60])
def test_long_work_of_the_host_hides_no_wait_for_the_gpu(host_ms: float) -> None:
    """A call that works on the host for longer than half of the longest hold, and then waits for the GPU: what it works
    on could be what the call before it has fetched."""
    hold = Hold()
    for _ in range(16):
        hold.learn([max(host_ms * 1e6, hold.ns) + 50_000] * 8)
    assert hold.waits
    assert hold.ns == LEAST_HOLD_NS


@pytest.mark.parametrize("host_ms", [0.1, 1, 10, 24, 26, 40])
def test_long_work_of_the_host_is_no_wait_for_the_gpu(host_ms: float) -> None:
    hold = Hold()
    for _ in range(16):
        hold.learn([host_ms * 1e6] * 8)
    assert not hold.waits


@pytest.mark.parametrize("queued", [0, 10**12])
def test_there_is_an_end_to_holding(queued: int) -> None:
    hold = Hold()
    hold.learn([queued])
    assert LEAST_HOLD_NS <= hold.ns <= MOST_HOLD_NS


# -- the parent's clock -----------------------------------------------------------------------------------------------


def in_its_worker(claimed: float, clocked: tuple[float, ...]) -> WorkerObservation:
    """What events and the clock say of a module, in microseconds."""
    observation = WorkerObservation(2, ROUNDS, clocked_ns=tuple(us * US for us in clocked))
    answer = {"samples_ns": [claimed * US] * 2, "tails_ns": [0] * 2, "queued_ns": [0] * 2, "hold_ns": US}
    observation.windows, observation.rounds = [Window(0, 0, 0, 2, answer)] * 3, [3, 4, 5]
    return observation


@pytest.mark.parametrize(
    ("claimed", "clocked", "typical"),
    [
        pytest.param(50, (47, 48, 49), 50, id="events, which the clock does not contradict"),
        pytest.param(30, (47, 48, 49), 48, id="no less than the clock says"),
        pytest.param(99.2, (99, 100, 101), 99.2, id="events, which the clock cannot tell from its own"),
        pytest.param(98.5, (99, 100, 101), 100, id="no less, where events say a little less"),
        pytest.param(50, (), 50, id="not clocked yet"),
    ],
)
def test_a_worker_is_believed_no_less_than_the_parents_clock_says(
    claimed: float, clocked: tuple[float, ...], typical: float
) -> None:
    observation = in_its_worker(claimed, clocked)
    assert observation.typical_ns() == typical * US


@pytest.mark.parametrize(
    ("claimed", "clocked", "typical"),
    [
        pytest.param(36, (30, 30, 30), 36, id="a call that is longer is believed"),
        pytest.param(3, (30, 30, 30), 35, id="calls that were made together"),
        pytest.param(30, (30, 30, 30), 35, id="events that say as little as the clock"),
        pytest.param(3, (47, 48, 49), 48, id="the clock says more"),
    ],
)
def test_no_call_is_believed_to_be_faster_than_one_that_is_made_alone(
    claimed: float, clocked: tuple[float, ...], typical: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Roof, "single_ns", lambda *_: 35 * US)
    trial = ModuleTrial(ADDITION, BARE, Effort(rounds=ROUNDS), "it reads a value")
    observation = in_its_worker(claimed, clocked)
    trial.observations[CASE.name] = observation
    monkeypatch.setattr(GpuTrial, "judge", lambda *_: None)
    trial.judge(CASE, Roof())
    assert observation.typical_ns() == typical * US
    monkeypatch.setattr(GpuTrial, "_how", lambda _: "")
    assert ("less was found than a call that is made alone can take" in trial._how()) == (typical == 35)


@pytest.mark.parametrize(
    ("call_us", "empty_us", "room", "calls"),
    [
        pytest.param(100, [500] * 7, 1000, 30, id="three milliseconds"),
        pytest.param(100, [400, 420, 450, 500, 550, 600, 700], 1000, 54, id="or many times what talking differs by"),
        pytest.param(1, [500] * 7, 1000, 512, id="not without end"),
        pytest.param(1, [500] * 7, 30, 30, id="as many as there is room for"),
        pytest.param(50_000, [500] * 7, 30, 1, id="one that is long"),
    ],
)
def test_a_window_is_so_long_that_subtracting_does_not_matter(
    call_us: float, empty_us: list[float], room: int, calls: int
) -> None:
    assert clocked_calls(call_us * US, [us * US for us in empty_us], room) == calls


def test_bare_kernels_have_no_host_code_to_leave_out() -> None:
    trial = GpuTrial(ADDITION, BARE, Effort())
    trial.settle([CASE])
    assert trial.believed == "replay"
