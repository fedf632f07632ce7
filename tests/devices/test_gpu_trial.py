"""What a GPU adds to the rules of belief, on windows and answers that are made up: no GPU is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices import module_trial  # noqa: E402
from presage.devices.base import Effort  # noqa: E402
from presage.devices.child import ChildLostError, TimingError, VerdictError, Window  # noqa: E402
from presage.devices.gpu_memory import CrowdedError  # noqa: E402
from presage.devices.gpu_observation import (  # noqa: E402
    LEAST_HOLD_NS,
    MOST_HOLD_NS,
    WINDOW_CALLS,
    GpuObservation,
    Hold,
    WorkerObservation,
    clocked_calls,
)
from presage.devices.gpu_trial import GpuTrial  # noqa: E402
from presage.devices.module_trial import ModuleTrial, ReplayError  # noqa: E402
from presage.devices.status import Status  # noqa: E402
from presage.devices.trial import Inputs  # noqa: E402
from presage.devices.worker.gpu import Slot, TorchRunner  # noqa: E402
from presage.kernels.kernel import Kernel, from_source  # noqa: E402
from presage.problems import registry  # noqa: E402
from presage.problems.base import Case, Problem  # noqa: E402

US = 1000
CALLS, ROUNDS = 8, 5
ADDITION: Problem = registry.get("vector_add")
CASE = Case({"n": 1000})
EAGER = from_source("import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n", ".py", "k.py")
BARE = registry.find_kernel(ADDITION, "naive.cu").render()


def window(call_us: float = 100, tail_us: float = 5, parent_us: float = 1400) -> Window:
    """Eight calls of so long, and what passed."""
    answer = {"samples_ns": [call_us * US] * CALLS, "tails_ns": [tail_us * US] * CALLS, "queued_ns": 10 * US}
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


def test_what_cannot_be_so_fast_is_not() -> None:
    trial = ModuleTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
    trial._replaying = True
    trial._take = lambda *rest: None  # type: ignore[method-assign]
    trial.observations[CASE.name] = observed([window(1)] * ROUNDS)
    trial.attempt(trial.judge, CASE, Roof(least_ns=2 * US))
    assert trial.verdict is not None
    assert trial.verdict.status is Status.CHEATING


@pytest.mark.parametrize(
    ("call_us", "kernel", "not_replayed", "waits", "differs"),
    [
        pytest.param(50, EAGER, "", False, True, id="short"),
        pytest.param(600, EAGER, "", False, False, id="long"),
        pytest.param(600, EAGER, "", True, True, id="waits for the GPU inside"),
        pytest.param(600, EAGER, "it cannot", False, True, id="with its host code"),
        pytest.param(600, BARE, "", False, False, id="a bare kernel"),
    ],
)
def test_what_is_timed_in_several_processes(
    call_us: float, kernel: Kernel, not_replayed: str, waits: bool, differs: bool
) -> None:
    """An interval from one process alone would be too narrow."""
    effort = Effort(precision=1e-9, rounds=ROUNDS)
    trial = (
        GpuTrial(ADDITION, kernel, effort) if kernel.is_bare else ModuleTrial(ADDITION, kernel, effort, not_replayed)
    )
    usual = window()
    usual.answer["samples_ns"] = [call_us * US * (1 + 0.001 * call) for call in range(CALLS)]
    trial.observations[CASE.name] = observed([usual] * ROUNDS)
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
        hold.learn(queued)
    assert hold.ns == 270_000
    assert not hold.waits


def test_a_call_that_waits_for_the_gpu_is_not_held_up() -> None:
    hold = Hold()
    for _ in range(4):
        hold.learn(300_000 + hold.ns)
    assert hold.waits
    assert hold.ns == LEAST_HOLD_NS


@pytest.mark.parametrize("queued", [0, 10**12])
def test_there_is_an_end_to_holding(queued: int) -> None:
    hold = Hold()
    hold.learn(queued)
    assert LEAST_HOLD_NS <= hold.ns <= MOST_HOLD_NS


# -- the parent's clock -----------------------------------------------------------------------------------------------


def clocked(parent_us: float, calls: int = 100) -> Window:
    return Window(0, int(parent_us * US), 0, calls, {})


def test_a_worker_is_timed_by_the_parent_less_what_empty_windows_take() -> None:
    observation = WorkerObservation(100, ROUNDS)
    observation.windows, observation.rounds = [clocked(5000), clocked(5200)], [3, 4]
    observation.pulses = [clocked(900), clocked(1000), clocked(4000)]
    assert observation.samples() == {3 * WINDOW_CALLS: 40.0 * US, 4 * WINDOW_CALLS: 42.0 * US}


def test_copying_that_cost_nothing_is_not_subtracted() -> None:
    """The host was busy meanwhile."""
    observation = WorkerObservation(100, ROUNDS, least_ns=45.0 * US)
    observation.windows, observation.rounds, observation.pulses = [clocked(5000)], [0], [clocked(1000)]
    assert observation.typical_ns() == 45.0 * US


@pytest.mark.parametrize(
    ("call_us", "empty_us", "room", "calls"),
    [
        pytest.param(100, [500] * 7, 1000, 20, id="two milliseconds"),
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


# -- replay or worker -------------------------------------------------------------------------------------------------

SUM = {
    "version": 1,
    "tensors": [{"shape": [1000], "dtype": "float32", "stride": [1], "device": "cuda"}] * 3,
    "inputs": [0, 1],
    "constants": [],
    "steps": [
        {
            "kind": "operator",
            "name": "aten::add.Tensor",
            "arguments": [{"tensor": 0}, {"tensor": 1}],
            "results": {"tensor": 2},
        }
    ],
    "outputs": {"tensor": 2},
}


class FakeArena:
    """Holds inputs and outputs of the CPU."""

    size, handle = 1 << 30, "00"

    def lay_out(self, problem: Problem, case: Case, calls: int, outputs: bool = True) -> None:
        self.slots = [[SimpleNamespace(offset=0)] * 3 for _ in range(calls)]
        self.values: dict[int, Any] = {}
        self.made: dict[int, Any] = {}

    def write_inputs(self, slot: int, inputs: Any) -> None:
        self.values[slot], self.made[slot] = inputs, None

    def outputs(self, slot: int) -> tuple[Any, ...]:
        return (self.made[slot],)

    def tampering(self, problem: Problem, slot: int, inputs: Any) -> None:
        return None

    def poison(self, slot: int) -> None:
        return

    hide = show = take = settle = lambda self: None


class FakeProcess:
    """A child that adds, at some speed, and may be wrong, or fail when it is told something."""

    trusted, sandbox = False, {"seccomp": True}

    def __init__(
        self, arena: FakeArena, scratch: Path, call_us: float = 100, wrong: bool = False, **fails: str
    ) -> None:
        self.arena, self.scratch, self.call_us, self.wrong, self.fails = arena, str(scratch), call_us, wrong, fails
        self.told: list[str] = []
        self.trace: Any = SUM
        self.is_dead = False

    def command(self, do: str, **details: Any) -> dict[str, Any]:
        self.told.append(do)
        if do.replace(" ", "_") in self.fails:
            raise VerdictError(Status.RUNTIME_ERROR, self.fails[do.replace(" ", "_")])
        if do == "record":
            Path(details["path"]).write_text(json.dumps(self.trace))
        return {"handle": ""}

    def window(self, calls: int, **details: Any) -> Window:
        self.told.append("run")
        if "run" in self.fails:
            raise VerdictError(Status.RUNTIME_ERROR, self.fails["run"])
        for slot in range(calls):
            x, y = self.arena.values.get(slot, (torch.zeros(1), torch.zeros(1)))
            self.arena.made[slot] = x + y + (1 if self.wrong else 0)
        clock.now += int(calls * details.get("repeats", 1) * self.call_us * US)
        answer = window(self.call_us).answer
        answer = {name: value if name == "queued_ns" else value[:1] * calls for name, value in answer.items()}
        return Window(0, 0, 0, calls, answer | {"outputs": [[RIGHT]] * calls})

    def output(self) -> str:
        return ""

    def kill(self) -> None:
        self.is_dead = True


clock = SimpleNamespace(now=0)


class CpuInputs(Inputs):
    def __getitem__(self, slot: int) -> Any:
        while len(self._inputs) <= slot:
            self._inputs.append((torch.rand(1000), torch.rand(1000)))
        return self._inputs[slot]

    def difference(self, slot: int, outputs: Any) -> str | None:
        x, y = self[slot]
        return None if torch.equal(outputs[0], x + y) else "z[0] is wrong"


@pytest.fixture
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleTrial]:
    """A trial that has found out how it is to be timed, with these two processes."""
    monkeypatch.setattr(module_trial.time, "perf_counter_ns", lambda: clock.now)
    monkeypatch.setattr(ADDITION, "restyled", lambda case: (), raising=False)

    def settle(
        worker: dict[str, Any] | None = None, replayer: dict[str, Any] | None = None, trace: Any = SUM
    ) -> ModuleTrial:
        arena = FakeArena()
        folders = [tmp_path / name for name in ("worker", "replayer", "idle")]
        for folder in folders:
            folder.mkdir()
        trial = ModuleTrial(ADDITION, EAGER, Effort(rounds=ROUNDS))
        trial.draw = lambda case: CpuInputs(ADDITION, case, trial.backend)  # type: ignore[method-assign]
        trial.child = FakeProcess(arena, folders[0], **(worker or {}))  # type: ignore[assignment]
        trial.replayer = FakeProcess(arena, folders[1], **(replayer or {}))  # type: ignore[assignment]
        trial.idle = FakeProcess(arena, folders[2], call_us=0)  # type: ignore[assignment]
        trial.child.trace = trace  # type: ignore[union-attr]
        trial.processes = trial.child, trial.replayer  # type: ignore[attr-defined]
        trial.attempt(trial.settle, [CASE])
        return trial

    return settle


def test_a_module_is_replayed_and_its_process_is_gone_before_it_is_timed(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled()
    worker, replayer = trial.processes  # type: ignore[attr-defined]
    assert (trial.believed, trial.not_replayed) == ("replay", "")
    assert worker.is_dead
    assert not replayer.is_dead
    assert trial._child is replayer
    assert trial.waits_ns[CASE.name] == pytest.approx(100 * US, rel=0.01)
    assert replayer.told[:2] == ["program", "lay out"]
    trial.attempt(trial.warm_up, CASE)
    trial.attempt(trial.sample, CASE, trial.draw(CASE), 0)
    assert trial.live
    assert trial.timing(CASE, 1.0).wait_ns == trial.waits_ns[CASE.name]
    assert "replay of what a call does" in trial.facts()["timing"]
    assert trial.facts()["traces"][CASE.name]["steps"] == 1


@pytest.mark.parametrize(
    ("worker", "replayer", "trace", "reason"),
    [
        pytest.param({}, {}, SUM | {"lacks": "it calls a library"}, "it calls a library", id="lacks something"),
        pytest.param({}, {}, {"version": 0}, "its trace is refused: not a trace", id="is no trace"),
        pytest.param({"record": "no room"}, {}, SUM, "cannot be recorded: no room", id="fails when it is recorded"),
        pytest.param({}, {"program": "bad code"}, SUM, "cannot be replayed: bad code", id="cannot be loaded"),
        pytest.param({}, {"run": "illegal address"}, SUM, "illegal address", id="faults"),
        pytest.param({}, {"wrong": True}, SUM, "z[0] is wrong", id="returns something else"),
        pytest.param({"call_us": 90}, {}, SUM, "faster than its replay: 90.0 us", id="is faster than its replay"),
    ],
)
def test_what_cannot_be_replayed_is_timed_in_its_worker(
    settled: Callable[..., ModuleTrial], worker: dict[str, Any], replayer: dict[str, Any], trace: Any, reason: str
) -> None:
    trial = settled(worker, replayer, trace)
    own, other = trial.processes  # type: ignore[attr-defined]
    assert trial.believed == "worker"
    assert reason in trial.not_replayed
    assert other.is_dead
    assert not own.is_dead
    assert own.told.count("stop recording") >= 1
    trial.attempt(trial.warm_up, CASE)
    for number in range(ROUNDS):
        trial.attempt(trial.sample, CASE, trial.draw(CASE), number)
    assert trial.live, trial.verdict
    assert trial.observations[CASE.name].typical_ns() == pytest.approx(own.call_us * US, rel=0.01)
    assert "the parent's clock" in trial.facts()["timing"]


def test_a_slow_host_is_no_reason_not_to_replay(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled({"call_us": 400})
    assert trial.believed == "replay"
    assert trial.waits_ns[CASE.name] == pytest.approx(400 * US, rel=0.01)


def test_a_module_that_is_wrong_itself_is_to_blame(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled({"wrong": True}, {"wrong": True})
    trial.attempt(trial.warm_up, CASE)
    assert trial.verdict is not None
    assert trial.verdict.status is Status.WRONG_RESULT


@pytest.mark.parametrize(
    ("verdict", "again"),
    [
        (VerdictError(Status.WRONG_RESULT, "z is wrong"), True),
        (VerdictError(Status.RUNTIME_ERROR, "a fault"), True),
        (TimingError("too fast"), False),
        (ChildLostError(), False),
    ],
)
def test_a_replay_that_fails_late_is_not_held_against_the_module(
    settled: Callable[..., ModuleTrial], verdict: VerdictError, again: bool
) -> None:
    trial = settled()
    trial.end(verdict)
    assert isinstance(trial.verdict, ReplayError) == again
    assert all(process.is_dead for process in trial.processes)  # type: ignore[attr-defined]


def test_bare_kernels_have_no_host_code_to_leave_out() -> None:
    trial = GpuTrial(ADDITION, BARE, Effort())
    trial.settle([CASE])
    assert trial.believed == "replay"


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
    trial = ModuleTrial(ADDITION, EAGER, Effort())
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
        pytest.param({"queued_ns": None}, id="not queued"),
        pytest.param({"queued_ns": float("nan")}, id="queued for no time"),
    ],
)
def test_a_forged_answer_is_refused(forged: dict[str, Any]) -> None:
    trial = GpuTrial(ADDITION, BARE, Effort())
    trial.child = FakeChild(HONEST.answer | forged)  # type: ignore[assignment]
    with pytest.raises(VerdictError, match="forged") as verdict:
        trial._window(CALLS)
    assert verdict.value.status is Status.CHEATING


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
    trial = ModuleTrial(ADDITION, EAGER, Effort())
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
    made._collect(result, Slot((), [], [256], inputs))
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
        made._collect(x, Slot((), [], [256], set()))
    assert asked == []
    assert len(copied) == 1
