"""Whether a foreign module is replayed or timed in its worker, with processes that are made up: no GPU is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage import Case, Effort, Problem, Status  # noqa: E402
from presage.devices import module_trial  # noqa: E402
from presage.devices.child import ChildLostError, Handover, TimingError, VerdictError, Window  # noqa: E402
from presage.devices.conduct import clock as module_clock  # noqa: E402
from presage.devices.module_trial import ModuleTrial, ReplayError  # noqa: E402
from presage.devices.plan import Inputs, Plan  # noqa: E402
from presage.kernels.kernel import from_source  # noqa: E402
from presage.problems import registry  # noqa: E402
from presage.static import hardware  # noqa: E402
from presage.static.trace import Trace  # noqa: E402

US = 1000
ROUNDS = 5
ADDITION: Problem = registry.get("vector_add")
CASE = Case({"n": 1000})
EAGER = from_source("import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n", ".py", "k.py")
RIGHT = {
    "type": "torch.Tensor",
    "dtype": "float32",
    "shape": [1000],
    "contiguous": True,
    "on_gpu": True,
    "is_input": False,
    "stride": [1],
}
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

    def __init__(self) -> None:
        self.events: list[str] = []
        self.taken: list[int] = []

    def show(self) -> None:
        self.events.append("show")

    def evict(self) -> None:
        self.events.append("evict")

    def taker(self, slots: list[int], others: list[int]) -> Callable[[], int]:
        assert not set(slots) & set(others)

        def take() -> int:
            self.events.append("take")
            self.taken.append(len(slots))
            return int(clock.now)

        return take

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

    hide = settle = lambda self: None


class FakeProcess:
    """A child that adds, at some speed, and may be wrong, or fail when it is told something. Its host may be slower
    than its GPU, and its first call than the others."""

    trusted, laid_out, sandbox = False, None, {"seccomp": True}

    def __init__(
        self,
        arena: FakeArena,
        scratch: Path,
        call_us: float = 100,
        host_us: float = 0,
        first_us: float = 0,
        wrong: bool = False,
        **fails: str,
    ) -> None:
        self.arena, self.scratch, self.call_us, self.wrong, self.fails = arena, str(scratch), call_us, wrong, fails
        self.host_us, self.first_us = host_us, first_us
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

    def window(self, calls: int, handover: Handover | None = None, **details: Any) -> Window:
        self.told.append("run")
        if "run" in self.fails:
            raise VerdictError(Status.RUNTIME_ERROR, self.fails["run"])
        clock.now += AWAKE_US * US
        self.arena.events += [f"resumed, trusted: {self.trusted}"]
        if handover:
            handover.give()
        self.arena.events += ["calls"]
        for slot in range(calls):
            x, y = self.arena.values.get(slot, (torch.zeros(1), torch.zeros(1)))
            self.arena.made[slot] = x + y + (1 if self.wrong else 0)
        clock.now += int(calls * details.get("repeats", 1) * max(self.call_us, self.host_us) * US)
        if handover:
            handover.take()
        clock.now += STOPPED_US * US
        samples = [max(self.call_us, self.first_us) * US] + [self.call_us * US] * (calls - 1)
        answer = {"samples_ns": samples, "tails_ns": [5 * US] * calls, "queued_ns": [10 * US] * calls}
        return Window(0, 0, 0, calls, answer | {"outputs": [[RIGHT]] * calls})

    def output(self) -> str:
        return ""

    def kill(self) -> None:
        self.is_dead = True


clock = SimpleNamespace(now=0)
AWAKE_US, STOPPED_US = 400, 300
"""To resume a process until it waits, and to have its answer and to stop it."""


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
        trial.attempt(trial.part)
        return trial

    return settle


def test_a_module_is_replayed_and_its_process_is_gone_before_it_is_timed(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled()
    worker, replayer = trial.processes  # type: ignore[attr-defined]
    assert (trial.believed, trial.not_replayed) == ("replay", "")
    assert worker.is_dead
    assert trial.has_parted
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
        pytest.param({"call_us": 80}, {}, SUM, "faster than its replay: 80.0 us", id="is faster than its replay"),
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


@pytest.mark.parametrize(
    ("text", "compiles"),
    [
        ("f = torch.compile(g)", True),
        ("@torch.compile", True),
        ("from torch import compile", True),
        ("model.compile()", True),
        ("model.compile(mode='max-autotune')", True),
        ("from torch._inductor import config", True),
        ("pattern = re.compile('x')", False),
        ("torch.relu(x)  # compiled", False),
    ],
)
def test_what_torch_compiles_is_not_recorded(text: str, compiles: bool) -> None:
    kernel = from_source(f"import torch\n{text}\ndef custom_kernel(data):\n    return data[0]\n", ".py", "k.py")
    assert (ModuleTrial(ADDITION, kernel, Effort()).believed == "worker") == compiles


def test_a_slow_host_is_no_reason_not_to_replay(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled({"call_us": 400})
    assert trial.believed == "replay"
    assert trial.waits_ns[CASE.name] == pytest.approx(400 * US, rel=0.01)


def test_nor_is_a_slow_host_of_the_replay(settled: Callable[..., ModuleTrial]) -> None:
    """What counts is what the GPU needs for it."""
    trial = settled({"call_us": 19}, {"call_us": 17, "host_us": 27, "first_us": 28})
    assert trial.believed == "replay", trial.not_replayed


def test_by_the_parents_clock_the_last_output_is_waited_for(settled: Callable[..., ModuleTrial]) -> None:
    """Who answers before its work is done has not done the last call's. Nobody knows which others are looked at."""
    trial = settled(trace={"version": 0})
    for checked in (1, 2, 8):
        trial._witnessed = True
        trial._child.arena.slots = [[]] * 20
        trial._looked_at = trial._choose(range(20), checked)
        assert len(set(trial._looked_at)) == checked
        taken, others = trial._taken_at_once(trial._child.arena)
        assert taken[0] == 19
        assert len(taken) == trial._taken
        assert sorted({*taken, *others}) == sorted({*taken, *trial._looked_at})
    others = {tuple(trial._choose(range(20), 3)[1:]) for _ in range(20)}
    assert len(others) > 1


class Slowed(FakeProcess):
    """An idle worker that something on the GPU slows for as long as another process lives."""

    def __init__(self, idle: FakeProcess, other: FakeProcess, slower_us: float) -> None:
        super().__init__(idle.arena, Path(idle.scratch), call_us=0)
        self.other, self.slower_us = other, slower_us

    def window(self, calls: int, handover: Handover | None = None, **details: Any) -> Window:
        if "hold_ns" not in details and not self.other.is_dead:
            slower_ns = int(calls * details.get("repeats", 1) * self.slower_us * US)
            handover = _slower(handover, slower_ns)
        return super().window(calls, handover, **details)


def _slower(handover: Handover | None, ns: int) -> Handover | None:
    def give() -> None:
        assert handover
        handover.give()
        clock.now += ns

    return handover and Handover(give, handover.take)


@pytest.mark.parametrize("slower_us", [0, 30, 90])
def test_work_that_a_stopped_module_left_on_the_gpu_gains_nothing(
    settled: Callable[..., ModuleTrial], slower_us: float
) -> None:
    """It slows the control calls, with which the module's calls are compared, until its process ends."""
    trial = settled(trace={"version": 0})
    worker = trial.child
    trial.idle = Slowed(trial.idle, worker, slower_us)  # type: ignore[arg-type, assignment]
    trial.attempt(trial.warm_up, CASE)
    for number in range(ROUNDS):
        trial.attempt(trial.sample, CASE, trial.draw(CASE), number)
    observation = trial.observations[CASE.name]
    for window in observation.windows:
        window.answer["samples_ns"] = [10 * US] * len(window.answer["samples_ns"])  # forged
    assert observation.typical_ns() == pytest.approx((100 - slower_us) * US, rel=0.01)
    trial.attempt(trial.conclude)
    assert trial.live, trial.verdict
    assert worker.is_dead  # type: ignore[union-attr]
    assert observation.typical_ns() == pytest.approx(100 * US, rel=0.01)


class Dawdler(FakeProcess):
    """Takes long as long as its outputs are not asked for, which is when it is found out how many calls make a
    window."""

    def window(self, calls: int, handover: Handover | None = None, **details: Any) -> Window:
        if details.get("collects") is False:
            clock.now += int(calls * details["repeats"] * 1_000_000 * US)
        return super().window(calls, handover, **details)


def test_resuming_and_stopping_a_process_are_no_part_of_a_window(settled: Callable[..., ModuleTrial]) -> None:
    """Work that it left on the GPU would go on meanwhile. The idle worker goes the same way."""
    trial = settled(trace={"version": 0})
    arena = trial._child.arena
    trial.attempt(trial.warm_up, CASE)
    resumed, given = "resumed, trusted: False", ["evict", "show", "calls", "take"]
    seen: list[str] = []
    for process in (trial._child, trial._idle):
        process.trusted = process is trial._idle
        arena.events.clear()
        trial._looked_at = [0]
        before, window = clock.now, trial._clocked(process, 1)
        assert arena.events == [resumed, *given]
        assert clock.now - before == window.parent_ns + (AWAKE_US + STOPPED_US) * US
        assert process.trusted == (process is trial._idle)
        seen += arena.events
    assert seen[:5] == seen[5:]
    assert trial._clocked_by[CASE.name].beyond_ns == 0


def test_as_many_outputs_are_copied_when_control_calls_are_repeated(settled: Callable[..., ModuleTrial]) -> None:
    """A later case may have fewer that are copied at once."""
    trial = settled(trace={"version": 0})
    arena = trial._child.arena
    trial.attempt(trial.warm_up, CASE)
    (taken,) = set(arena.taken)
    assert taken == trial._clocked_by[CASE.name].taken > module_trial.TAKEN_AT_ONCE
    trial._taken = module_trial.TAKEN_AT_ONCE
    arena.taken.clear()
    trial.attempt(trial.conclude)
    assert set(arena.taken) == {taken}


@pytest.mark.parametrize("call_us", [100, 40_000])
def test_a_module_cannot_have_itself_timed_in_short_windows(
    settled: Callable[..., ModuleTrial], call_us: float
) -> None:
    """What it gains by starting early would be a large part of them."""
    trial = settled({"call_us": call_us}, trace={"version": 0})
    worker = trial._child
    trial.child = Dawdler(worker.arena, Path(worker.scratch), call_us=call_us)  # type: ignore[assignment]
    trial.attempt(trial.warm_up, CASE)
    assert trial.live, trial.verdict
    seen = trial._clocked_by[CASE.name]
    assert seen.calls * call_us * US >= module_trial.WITNESSED_NS
    assert len(seen.windows) >= module_trial.LEAST_WITNESSED
    assert seen.call_ns[0] == pytest.approx(call_us * US, rel=0.01)


class Timed:
    """A kernel that is timed alone or beside others, and what happened."""

    live = True

    def __init__(self, name: str, alone: bool, events: list[str]) -> None:
        self.name, self.is_timed_alone, self.events = name, alone, events

    def attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        action(*arguments)

    def _happened(self, *arguments: Any) -> None:
        self.events.append(self.name)

    warm_up = judge = _happened

    def conclude(self) -> None:
        self.events.append(f"{self.name} ends")

    def disturbed(self, case: Case) -> bool:
        return False

    def precise(self, case: Case) -> bool:
        return True

    def windows(self, case: Case) -> int:
        return 1


def test_what_might_slow_others_has_ended_before_they_are_timed() -> None:
    events = list[str]()
    trials = [Timed("a", False, events), Timed("b", True, events), Timed("c", False, events), Timed("d", True, events)]
    plan = Plan((), (CASE, CASE))
    module_clock(trials, plan, None, Effort(), lambda doing, share: None)  # type: ignore[arg-type]
    order = [*["b"] * 4, "b ends", *["d"] * 4, "d ends", *["a", "c"] * 4, "a ends", "c ends"]
    assert events == order


def test_a_module_in_the_fall_back_is_timed_alone(settled: Callable[..., ModuleTrial]) -> None:
    trial = settled()
    assert not trial.is_timed_alone
    trial.not_replayed = "it reads a value"
    assert trial.is_timed_alone


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


@pytest.mark.parametrize(("measured_us", "least", "most"), [(300, 0.45, 0.55), (15, 0.0, 0.2), (5, 0.0, 0.0)])
def test_kernels_that_do_nothing_have_no_share(measured_us: float, least: float, most: float) -> None:
    """The trace has a launch that is given as much as torch's step, which takes 12 us at least. If no more is measured,
    the launch has done nothing."""
    big = {"shape": [5_000_000], "dtype": "float32", "stride": [1], "device": "cuda"}
    launch = {"kind": "triton", "name": "k", "cubin": 0, "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0}
    pointers = [{"hex": "00" * 8, "pointers": [[0, number, 0]]} for number in range(3)]
    steps = [
        SUM["steps"][0] | {"bytes": 60_000_000},  # type: ignore[index]
        launch | {"parameters": pointers, "bytes": 60_000_000},
    ]
    trial = ModuleTrial(ADDITION, EAGER, Effort())
    trial.hardware = hardware.find("h200")
    trial.traces = {
        CASE.name: Trace.from_document(SUM | {"tensors": [big] * 3, "steps": steps, "cubins": ["f0VMRg=="]})
    }
    trial.observations = {CASE.name: SimpleNamespace(typical_ns=lambda: measured_us * US)}  # type: ignore[dict-item]
    assert least <= trial._traced()["traces"][CASE.name]["own_share"] <= most
