"""What a GPU adds to the rules of belief, on windows and answers that are made up: no GPU is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage import Case, Effort, Kernel, Problem, Status  # noqa: E402
from presage.devices.child import VerdictError, Window  # noqa: E402
from presage.devices.gpu_memory import CrowdedError  # noqa: E402
from presage.devices.gpu_trial import MOST_HOLD_NS, GpuObservation, GpuTrial, shared_out  # noqa: E402
from presage.devices.worker.gpu import TorchRunner  # noqa: E402
from presage.devices.worker.triton_launches import OwnLaunches  # noqa: E402
from presage.kernels.kernel import from_source  # noqa: E402
from presage.problems import registry  # noqa: E402

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


# -- what the worker says ---------------------------------------------------------------------------------------------

RIGHT = {
    "type": "torch.Tensor",
    "dtype": "float32",
    "shape": [1000],
    "contiguous": True,
    "on_gpu": True,
    "is_input": False,
    "stride": [1],
}


@pytest.mark.parametrize(
    ("outputs", "timed", "status"),
    [
        pytest.param([[RIGHT]], True, Status.OK, id="as it should be"),
        pytest.param([[RIGHT, RIGHT]], True, Status.WRONG_RESULT, id="too many"),
        pytest.param([[]], True, Status.WRONG_RESULT, id="too few"),
        pytest.param([[{"type": "candidate.Lazy"}]], True, Status.WRONG_RESULT, id="a class of its own"),
        pytest.param([[RIGHT | {"dtype": "float16"}]], True, Status.WRONG_RESULT, id="another dtype"),
        pytest.param([[RIGHT | {"shape": [2**62, 2**62]}]], True, Status.WRONG_RESULT, id="another shape"),
        pytest.param([[RIGHT | {"contiguous": False}]], True, Status.WRONG_RESULT, id="a view with gaps"),
        pytest.param([[RIGHT | {"contiguous": 1e400}]], True, Status.WRONG_RESULT, id="not even a truth"),
        pytest.param([[RIGHT | {"on_gpu": False}]], True, Status.WRONG_RESULT, id="in the host's memory"),
        pytest.param([[RIGHT | {"is_input": True}]], True, Status.CHEATING, id="its input"),
        pytest.param([[RIGHT | {"is_input": True}]], False, Status.OK, id="its input, where the result decides"),
        pytest.param(
            [[{k: v for k, v in RIGHT.items() if k != "is_input"}]], True, Status.CHEATING, id="no word of it"
        ),
        pytest.param([[5]], True, Status.CHEATING, id="a number"),
        pytest.param([["torch.Tensor"]], True, Status.CHEATING, id="a text"),
        pytest.param([None], True, Status.CHEATING, id="nothing"),
        pytest.param([], True, Status.CHEATING, id="no calls"),
        pytest.param({"0": [RIGHT]}, True, Status.CHEATING, id="not a list"),
        pytest.param(None, True, Status.CHEATING, id="no outputs"),
    ],
)
def test_what_was_returned_must_be_described(outputs: Any, timed: bool, status: Status) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort())
    answer = {} if outputs is None else {"outputs": outputs}
    trial.attempt(trial._refuse_returned, CASE, 0, Window(0, 0, 0, 1, answer), timed)
    assert (trial.verdict.status if trial.verdict else Status.OK) == status


class FakeChild:
    """A worker that gives one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.arena = SimpleNamespace(slots=[[]] * CALLS, settle=lambda: None)
        self._answer = answer

    def window(self, calls: int, **details: Any) -> Window:
        return Window(0, 0, 0, calls, self._answer)

    def output(self) -> str:
        return ""

    def kill(self) -> None:
        return


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"samples_ns": None}, id="no times"),
        pytest.param({"samples_ns": [1000.0] * (CALLS - 1)}, id="one call left out"),
        pytest.param({"samples_ns": [1000.0] * (CALLS - 1) + [-1.0]}, id="less than nothing"),
        pytest.param({"samples_ns": [float("nan")] * CALLS}, id="not a number"),
        pytest.param({"samples_ns": [float("inf")] * CALLS}, id="for ever"),
        pytest.param({"samples_ns": [True] * CALLS}, id="truths"),
        pytest.param({"samples_ns": ["1"] * CALLS}, id="texts"),
        pytest.param({"samples_ns": {"0": 1.0}}, id="not a list"),
        pytest.param({"tails_ns": []}, id="no tails"),
        pytest.param({"tails_ns": [[]] * CALLS}, id="tails that are lists"),
        pytest.param({"launches": None}, id="no launches"),
        pytest.param({"launches": ["many"] * CALLS}, id="launches that are texts"),
    ],
)
def test_a_forged_answer_is_refused(forged: dict[str, Any]) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort())
    trial.child = FakeChild(HONEST.answer | forged)  # type: ignore[assignment]
    with pytest.raises(VerdictError, match="forged") as verdict:
        trial._window(CALLS)
    assert verdict.value.status is Status.CHEATING


@pytest.mark.parametrize("queued", [10**30, MOST_HOLD_NS, -5, 0, True, None, "long", 1e9])
def test_the_lead_is_never_held_for_longer_than_we_say(queued: Any) -> None:
    trial = GpuTrial(ADDITION, EAGER, Effort())
    trial.child = FakeChild(HONEST.answer | {"queued_ns": queued})  # type: ignore[assignment]
    trial._window(CALLS)
    assert 0 < trial._hold_ns <= MOST_HOLD_NS


GIB = 1 << 30


class Hoarding(FakeChild):
    """A worker that holds so much of the GPU's memory until it is killed."""

    def __init__(self, held: int, free: int) -> None:
        super().__init__(HONEST.answer)
        self.held, self.free = held, free
        self.arena.write_inputs = self.no_room

    def no_room(self, slot: int, values: Any) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    def kill(self) -> None:
        self.free, self.held = self.free + self.held, 0

    def memory(self) -> tuple[int, int]:
        return self.free, 80 * GIB


def short_of_memory(held_gib: int, room_gib: int) -> GpuTrial:
    trial = GpuTrial(ADDITION, EAGER, Effort())
    child = trial.child = Hoarding(held_gib * GIB, (room_gib - held_gib) * GIB)  # type: ignore[assignment]
    trial.memory, trial.room = child.memory, room_gib * GIB  # type: ignore[union-attr]
    return trial


@pytest.mark.parametrize(
    ("held_gib", "room_gib", "complaint", "status"),
    [
        pytest.param(1, 70, "CUDA out of memory. Tried to allocate 1024.00 GiB", Status.RUNTIME_ERROR, id="a terabyte"),
        pytest.param(60, 70, "CUDA out of memory. Tried to allocate 20.00 GiB", Status.RUNTIME_ERROR, id="its doing"),
        pytest.param(1, 5, "CUDA out of memory. Tried to allocate 8.00 GiB", Status.DEVICE_FAULT, id="others have it"),
        pytest.param(1, 5, "CUDA out of memory. Tried to allocate 60.00 GiB", Status.RUNTIME_ERROR, id="far too much"),
        pytest.param(1, 5, "CUDA_ERROR_OUT_OF_MEMORY", Status.DEVICE_FAULT, id="as the driver says it"),
        pytest.param(1, 70, "CUDA_ERROR_OUT_OF_MEMORY", Status.RUNTIME_ERROR, id="with nearly all of the GPU"),
    ],
)
def test_who_is_to_blame_when_a_kernel_runs_out_of_memory(
    held_gib: int, room_gib: int, complaint: str, status: Status
) -> None:
    trial = short_of_memory(held_gib, room_gib)
    trial.end(VerdictError(Status.RUNTIME_ERROR, complaint))
    assert trial.verdict is not None
    assert trial.verdict.status is status
    assert f"it held {held_gib}.0 GiB, and {room_gib}.0 GiB of the GPU's 80.0 GiB were free" in trial.verdict.reason
    assert isinstance(trial.verdict, CrowdedError) == (status is Status.DEVICE_FAULT), "which is tried again"


@pytest.mark.parametrize(
    ("held_gib", "room_gib", "status"),
    [
        pytest.param(69, 70, Status.RUNTIME_ERROR, id="it took all there was"),
        pytest.param(4, 5, Status.RUNTIME_ERROR, id="it took all that others left"),
        pytest.param(1, 5, Status.DEVICE_FAULT, id="others have it"),
        pytest.param(1, 70, Status.DEVICE_FAULT, id="checking needs more than there is"),
    ],
)
def test_who_is_to_blame_when_a_kernel_cannot_be_checked(held_gib: int, room_gib: int, status: Status) -> None:
    trial = short_of_memory(held_gib, room_gib)
    trial.attempt(trial.run, CASE, [()] * CALLS, 1, True)
    assert trial.verdict is not None
    assert trial.verdict.status is status
    assert "cannot be checked" in trial.verdict.reason


def test_that_a_worker_cannot_start_is_no_kernels_fault() -> None:
    trial = short_of_memory(0, 1)
    trial.end(VerdictError(Status.DEVICE_FAULT, "a worker process did not start: out of memory"))
    assert isinstance(trial.verdict, CrowdedError)


def test_what_is_not_about_memory_is_not_caught() -> None:
    trial = short_of_memory(1, 5)
    trial.child.no_room = trial.child.arena.write_inputs = None  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        trial.attempt(trial.run, CASE, [()] * CALLS, 1, True)


# -- in the worker ----------------------------------------------------------------------------------------------------


class Graph:
    """Stands for torch's, which needs a GPU."""

    def replay(self) -> None:
        return


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A counter over Triton's own classes, whose launches do nothing; `capturing` says whether a graph is captured."""
    jit = pytest.importorskip("triton.runtime.jit")
    compiler = pytest.importorskip("triton.compiler")

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> str:
        if args:
            raise RuntimeError("this kernel does not launch")
        return "compiled"

    monkeypatch.setattr(jit.JITFunction, "run", run)
    monkeypatch.setattr(compiler.CompiledKernel, "__getitem__", lambda compiled, grid: lambda *args, **options: None)
    capturing = [False]
    counter = OwnLaunches(Graph, lambda: capturing[0])
    yield SimpleNamespace(
        counter=counter,
        capturing=capturing,
        launch=lambda kernel, *args, warmup=False: jit.JITFunction.run(kernel, *args, grid=(1,), warmup=warmup),
        handle=lambda kernel: compiler.CompiledKernel.__getitem__(SimpleNamespace(src=kernel), (1, 1, 1)),
    )
    counter.close()
    assert jit.JITFunction.run is run


def kernel_of(module: str) -> Any:
    """What Triton makes of a function that is defined in this module."""

    def function() -> None:
        return

    function.__module__ = module
    return SimpleNamespace(fn=function)


def test_launches_of_its_own_kernels_count(launches: Any) -> None:
    own = kernel_of("candidate")
    assert launches.launch(own) == "compiled"
    launches.launch(own, warmup=True)
    assert launches.counter.count == 1


@pytest.mark.parametrize("module", ["torch._inductor.runtime.compile_tasks.abc", "triton.testing"])
def test_launches_of_others_kernels_do_not(launches: Any, module: str) -> None:
    launches.launch(kernel_of(module))
    assert launches.counter.count == 0


def test_a_launch_that_fails_does_not_count(launches: Any) -> None:
    with pytest.raises(RuntimeError):
        launches.launch(kernel_of("candidate"), "bad argument")
    assert launches.counter.count == 0


def test_a_kernel_that_was_compiled_ahead_counts(launches: Any) -> None:
    launch = launches.handle(SimpleNamespace(fn=kernel_of("candidate")))
    assert launches.counter.count == 0
    launch("x")
    launch("y")
    assert launches.counter.count == 2


def test_a_replay_counts_once_a_kernel_has_been_captured(launches: Any) -> None:
    Graph().replay()
    assert launches.counter.count == 0
    launches.capturing[0] = True
    launches.launch(kernel_of("candidate"))
    launches.capturing[0] = False
    Graph().replay()
    assert launches.counter.count == 2


def runner(expected: dict[str, Any]) -> tuple[TorchRunner, list[tuple[int, int, int]]]:
    """A runner without a GPU, and what it has copied: to where, from where, how much."""
    copied: list[tuple[int, int, int]] = []
    made = TorchRunner.__new__(TorchRunner)
    made._torch, made._tensor, made._any_order = torch, torch.Tensor, False
    made._base, made._plainly = torch._C.TensorBase, torch._C.DisableTorchFunction
    made._gpu = type("Gpu", (), {"arena": 1 << 20, "__call__": lambda self, result: None})()  # type: ignore[assignment]
    made._copy = lambda to, source, size, stream: copied.append((to, source, size))
    made._outputs, made._described = [expected], []
    return made, copied


HERE = {"type": "torch.Tensor", "dtype": "float32", "shape": [4, 3], "contiguous": True, "on_gpu": False}


def collected(result: Any, inputs: set[int]) -> tuple[list[Any], list[tuple[int, int, int]]]:
    made, copied = runner(HERE)
    made._collect(result, ((), [256], inputs))
    return made._described, copied


def test_what_is_returned_is_copied_and_described() -> None:
    x = torch.rand(4, 3)
    described, copied = collected(x, set())
    assert described == [[HERE | {"is_input": False, "stride": [3, 1]}]]
    assert copied == [((1 << 20) + 256, x.data_ptr(), 48)]
    assert collected((x,), {x.data_ptr()})[0][0][0]["is_input"] is True


@pytest.mark.parametrize(
    "result", [torch.zeros(4, 4), torch.zeros(4, 3).half(), torch.nn.Parameter(torch.zeros(4, 3)), None, 5, ()]
)
def test_what_is_not_as_expected_is_not_copied(result: Any) -> None:
    assert collected(result, set())[1] == []


@contextmanager
def patched_tensor(late: Callable[[], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("data_ptr", "numel", "nbytes", "shape", "dtype", "is_cuda", "is_contiguous", "stride"):
            patch.setattr(torch.Tensor, name, property(lambda self: late()), raising=False)
        yield


@contextmanager
def function_mode(late: Callable[[], None]) -> Iterator[None]:
    class Late(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
            late()
            return function(*arguments, **(options or {}))

    with Late():
        yield


@pytest.mark.parametrize("attack", [patched_tensor, function_mode])
def test_nothing_foreign_runs_while_outputs_are_collected(attack: Any) -> None:
    asked: list[int] = []
    made, copied = runner(HERE)
    x = torch.rand(4, 3)
    with attack(lambda: asked.append(1)):
        made._collect(x, ((), [256], set()))
    assert asked == []
    assert len(copied) == 1
