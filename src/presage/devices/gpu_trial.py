"""GpuTrial: one kernel under measurement on a GPU, and what a GPU adds to the rules of belief.

Times come from a process in which no foreign host code has run: a bare kernel's own, or a *replayer*, which repeats the
steps that a module was seen to do. What cannot be replayed is timed in its worker, by the parent's clock alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from presage.devices import recorded_call
from presage.devices.base import CaseTiming, Effort, Measurement
from presage.devices.child import Child, ChildLostError, TimingError, VerdictError, Window
from presage.devices.examiner import CheckingError
from presage.devices.gpu_memory import CrowdedError, Shortage, is_shortage
from presage.devices.gpu_observation import (
    WINDOW_CALLS,
    GpuObservation,
    Hold,
    OwnObservation,
    WorkerObservation,
    clocked_calls,
)
from presage.devices.observation import CLOCK_SLACK, Observation
from presage.devices.recorded_call import NotReplayedError
from presage.devices.status import Status
from presage.devices.trial import Inputs, Plan, Roof, Surprises, Trial, worker_settings
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Array, Case, Problem
from presage.problems.compare import Answer
from presage.problems.on_torch import TORCH
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.trace import Trace, TraceError

OWN_WINDOW_NS, OWN_LONG_NS = 4_000_000, 40_000_000
"""A window of a kernel of our own need not be longer than this, if it has two calls, or one that is long."""
OWN_INPUTS = 2
OWN_HOLD_NS = 500_000
"""Of kernels that are never looked at closely, long queues are not waited for."""
BUILD_SECONDS = 600.0
"""How long a module may take to load that torch compiles something for; off the lane, so that others need not wait."""
TAIL_NS = 15_000
"""How long the GPU may seem busy after a call's stream has finished, at the least: what asking takes."""
_ASKINGS = 3
"""Or so many times what it takes after a call of nothing, on systems that take their time."""
SHORT_NS = 100_000
"""A case that takes less differs by process: which one it is moves 5 us by a tenth, and 50 us by 2 %."""
MISSED_SHARE, MISSED_NS = 0.03, 1_000
"""By how much a module may be faster than its replay before the replay is not believed: a share of it, and beyond."""
CLOCKED_WINDOWS = 3
EMPTY_WINDOWS = 7
CLOCKED_BYTES = 1 << 30
"""The inputs and outputs of a window by the parent's clock take no more than this, where several calls do."""
_LAUNCHING = "so that launching is not part of the time"


class ReplayError(VerdictError):
    """A replay went wrong after its module had been let go of. The module is tried again, and timed in its worker."""


class OwnInputs(Inputs):
    """For kernels of our own: calls of a window may share inputs, of which few are kept for the next kernel."""

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        return super().__getitem__(slot % OWN_INPUTS)

    def answer(self, slot: int) -> Answer:
        return super().answer(slot % OWN_INPUTS)


class GpuTrial(Trial):
    """Outputs always lie in the arena; what a module returns is copied there after each call."""

    backend = TORCH
    asked_twice = 0.0
    least_share = 1.0  # each call's outputs are taken, so nothing can be put off
    _in_arena = True

    def __init__(
        self,
        problem: Problem,
        kernel: Kernel,
        effort: Effort,
        draws: dict[str, Inputs] | None = None,
        not_replayed: str = "",
    ) -> None:
        super().__init__(problem, kernel, effort)
        self.sensors: dict[str, Any] = {}
        self.l2_bytes = 0
        self.hardware: Hardware | None = None
        self.memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """How many bytes of this GPU are free, and how many there are."""
        self.room = 0
        """How many were free when it was prepared, and again when it entered the lane."""
        self._draws, self.is_own = draws, draws is not None
        self.observation_type = OwnObservation if self.is_own else GpuObservation
        self.rehearses = self.surprises = not self.is_own
        self.is_clean = self.is_own or kernel.is_bare
        """Whether no foreign host code runs in its worker."""
        self.replayer: Child | None = None
        """A process that repeats what the module was seen to do."""
        self.not_replayed = not_replayed
        """Why it is timed in its worker, if it is."""
        self.traces: dict[str, Trace] = {}
        self.waits_ns: dict[str, float] = {}
        """By case: what a call takes in the module's own process, its host code with it."""
        self._replaying, self._paced = False, False
        self._hold = Hold(OWN_HOLD_NS) if self.is_clean else Hold()

    @property
    def believed(self) -> str:
        return "worker" if self.not_replayed else "replay"

    @property
    def _child(self) -> Child:
        child = self.replayer if self._replaying else self.child
        assert child is not None
        return child

    @property
    def _by_events(self) -> bool:
        """Whether calls are timed where no foreign host code has run."""
        return self.is_clean or self._replaying

    def draw(self, case: Case) -> Inputs:
        """Fresh inputs; kernels of our own, which share `draws`, may see the same inputs twice."""
        if self._draws is None:
            return super().draw(case)
        return self._draws.setdefault(case.name, OwnInputs(self.problem, case, self.backend))

    # -- off the lane -------------------------------------------------------------------------------------------------

    def prepare(self, compiler: Mapping[str, Any], plan: Plan) -> None:
        """Load and compile for every shape that will be asked for."""
        assert self.child is not None
        child, kernel = self.child, self.kernel
        if not child.sandbox:  # it has not been heard of yet
            child.wait_ready()
        child.give(BUILD_SECONDS if kernel.compiles_by_torch else self.effort.timeout)
        path = Path(child.scratch, f"kernel_{kernel.hash}{'.cu' if kernel.is_bare else '.py'}")
        try:
            path.write_text(kernel.source)
        except OSError as error:
            raise VerdictError(Status.DEVICE_FAULT, f"cannot write to {path.parent}: {error.strerror}") from error
        if kernel.is_bare:
            entries = [launch.entry for launch in kernel.header.launches]
            child.command("load", kind="cuda", path=str(path), entries=entries, compiler=dict(compiler))
            return
        settings = worker_settings(self.problem, child.scratch)
        child.command("load", kind="torch", path=str(path), records=self.replayer is not None, **settings)
        shapes = {replace(case, values="uniform").name: case for case in (*plan.checks, *plan.timed)}
        layouts = [self._shapes(case) for case in shapes.values()]
        if kernel.language == "triton":
            child.command("prepare", layouts=layouts)
        elif self.is_own or "torch.compile" in kernel.source:  # at the first calls, for seconds that the lane lacks
            child.command("rehearse", layouts=layouts)
        if self.replayer is not None:
            self.replayer.wait_ready()
            self.replayer.give(self.effort.timeout)
            self.replayer.command("load", kind="replay")

    # -- on the lane --------------------------------------------------------------------------------------------------

    def enter_lane(self, arena: Any) -> None:
        self.room, _ = self.memory()
        for child in filter(None, (self.child, self.replayer)):
            child.arena = arena
            child.give(self.effort.timeout)
            child.command("open arena", handle=arena.handle)

    def close(self) -> None:
        super().close()
        self._end_replayer()

    def _end_replayer(self) -> None:
        if self.replayer is not None:
            self.replayer.kill()
            self.replayer = None

    def release(self) -> list[Child]:
        """Give up the children that there still are."""
        if self.child is not None:
            self.output = self.child.output()
        left = [child for child in (self.child, self.replayer) if child is not None]
        self.child = self.replayer = None
        return left

    # -- replay -------------------------------------------------------------------------------------------------------

    def settle(self, cases: Sequence[Case]) -> None:
        """Find out whether the module can be replayed, and let go of its process if so: only then is it timed."""
        if self.is_clean:
            return
        self.not_replayed = self.not_replayed or self._why_not(cases)
        if self.not_replayed:
            self._end_replayer()
            self.observation_type = WorkerObservation
            return
        super().close()  # while it lives, work that it left on the GPU may go on
        self._replaying = True

    def _why_not(self, cases: Sequence[Case]) -> str:
        try:
            for case in cases:
                self._record(case)
            self._child.command("stop recording")
            for case in cases:
                self._refuse_unlike_replay(case)
        except NotReplayedError as error:
            self._child.command("stop recording")
            return str(error)
        return ""

    def _record(self, case: Case) -> None:
        """One call of the module, written down, and handed to the replayer."""
        self.lay_out(case, 1)
        self._fill(self.draw(case))
        child = self._child
        child.arena.show()
        try:
            answer = child.command("record", path=str(Path(child.scratch, recorded_call.FILE)))
        except VerdictError as verdict:
            if verdict.status not in (Status.RUNTIME_ERROR, Status.COMPILE_ERROR):
                raise
            raise NotReplayedError(f"it cannot be recorded: {verdict.reason}") from verdict
        try:
            trace = recorded_call.read(child.scratch)
        except TraceError as error:
            raise NotReplayedError(f"its trace is refused: {error}") from error
        if trace.lacks:
            raise NotReplayedError(trace.lacks)
        with self._as_replay("its trace cannot be replayed"):
            path = recorded_call.write(trace, self._child.scratch, f"{len(self.traces)}.json")
            self._child.command("program", name=case.name, path=path, handle=str(answer.get("handle", "")))
        self.traces[case.name] = trace

    @contextmanager
    def _as_replay(self, what: str) -> Iterator[None]:
        """What goes wrong inside is not held against the module."""
        self._replaying = True
        try:
            yield
        except (VerdictError, OSError) as error:
            if isinstance(error, CheckingError | ChildLostError):
                raise
            raise NotReplayedError(f"{what}: {error}") from error
        finally:
            self._replaying = False

    def _refuse_unlike_replay(self, case: Case) -> None:
        """A replay must return what is right for inputs that nobody has seen, and the module must not be faster: then
        it does something else."""
        with self._as_replay("its replay does not do what the module does"):
            self.lay_out(case, 1)
            self.run(case, self.draw(case), checked=1, timed=True)
            (call_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
            self.lay_out(case, self._calls_for(case, call_ns))
            if self.problem.restyled(case):
                self.run(case, Surprises(self.problem, case, self.backend), WINDOW_CALLS, timed=True)
            replay_ns = median(self.run(case, self.draw(case), 1, timed=True).answer["samples_ns"])
        calls = self._clocked_calls(case, replay_ns)
        module_ns = self.waits_ns[case.name] = self._throughput(case, calls)
        least = (1 - MISSED_SHARE) * replay_ns - MISSED_NS
        if module_ns >= least:
            return
        with self._as_replay("its replay cannot be timed"):  # it may be that what is in the cache makes the difference
            again_ns = self._throughput(case, calls)
        if module_ns < (1 - MISSED_SHARE) * again_ns - MISSED_NS:
            raise NotReplayedError(
                f"the module itself is faster than its replay: {module_ns / 1e3:.1f} us a call against"
                f" {min(again_ns, replay_ns) / 1e3:.1f} us (case {case.name}), so its trace does not have all it does"
            )

    # -- the parent's clock -------------------------------------------------------------------------------------------

    def lay_out(self, case: Case, calls: int) -> None:
        super().lay_out(case, calls)
        if not self._by_events:
            self._child.arena.hide()

    def _fill(self, inputs: Inputs) -> None:
        arena = self._child.arena
        for slot in range(len(arena.slots)):
            arena.write_inputs(slot, inputs[slot])
            arena.poison(slot)

    def _clocked(self, child: Child, calls: int, paced: bool = False, collects: bool = True) -> Window:
        """One window by the parent's clock alone, from before the inputs are there for the child until its outputs are
        taken. Whatever works on them does so in between, on whichever stream and for whomever it waits."""
        arena, trusted = self._child.arena, child.trusted
        child.trusted = False  # all of them are stopped and resumed
        start = time.perf_counter_ns()
        try:
            arena.show()
            window = child.window(calls, paced=paced, collects=collects)
            arena.take()
        finally:
            child.trusted = trusted
        return replace(window, parent_ns=time.perf_counter_ns() - start)

    def _empty(self, case: Case, calls: int, collects: bool) -> Window:
        """The same window of a worker that computes nothing."""
        assert self.idle is not None
        self.idle.command("open arena", handle=self._child.arena.handle)
        self.idle.command("lay out", **self._layout(case))
        return self._clocked(self.idle, calls, collects=collects)

    def _throughput(self, case: Case, calls: int) -> float:
        """Nanoseconds a call where nobody waits for it nor for what it returns, at best."""
        self.lay_out(case, calls)
        self._child.arena.hide()
        found = []
        for _ in range(CLOCKED_WINDOWS):
            empty = self._empty(case, calls, collects=False).parent_ns
            self._fill(self.draw(case))
            found.append(self._clocked(self._child, calls, collects=False).parent_ns - empty)
        return max(1.0, min(found) / calls)

    def _clocked_calls(self, case: Case, call_ns: float) -> int:
        self.lay_out(case, 1)
        self._child.arena.hide()
        empty = [float(self._empty(case, 1, collects=False).parent_ns) for _ in range(EMPTY_WINDOWS)]
        call = self._bytes_per_call(case)
        room = int(min(self._child.arena.size, max(CLOCKED_BYTES, 4 * self.l2_bytes))) // call
        return max(clocked_calls(call_ns, empty, room), min(room, -(-2 * self.l2_bytes // call)))

    def _bytes_per_call(self, case: Case) -> int:
        arrays = (*self.problem.inputs, *self.problem.outputs)
        return sum(self.problem.array_bytes(array, case) for array in arrays) + 4096

    def _pulse(self, case: Case, observation: Observation) -> Window:
        return self._empty(case, observation.calls, collects=True)

    def _layout(self, case: Case) -> dict[str, Any]:
        layout = super()._layout(case) | self._shapes(case)
        if self.kernel.is_bare:
            values = {**case.dims, **self.kernel.values}
            layout["launches"] = [
                {
                    "grid": _three(launch.grid, values),
                    "block": _three(launch.block, values),
                    "shared": _number(launch.shared, values),
                }
                for launch in self.kernel.header.launches
            ]
            layout["scratch"] = [_number(size, values) for size in self.kernel.header.scratch.values()]
        return layout | ({"program": case.name} if self._replaying else {})

    def _shapes(self, case: Case) -> dict[str, Any]:
        problem = self.problem
        return problem.arguments(case) | {"outputs": [self._expected(array, case) for array in problem.outputs]}

    def _expected(self, array: Array, case: Case) -> dict[str, Any]:
        """What a module must return, in the words in which the child describes what it returned."""
        return {
            "type": "torch.Tensor",
            "dtype": self.problem.dtype(array, case),
            "shape": list(self.problem.shape(array, case)),
            "contiguous": True,
            "on_gpu": True,
        }

    # -- windows ------------------------------------------------------------------------------------------------------

    def warm_up(self, case: Case) -> None:
        """One call, which shows how long it takes, and one whole window."""
        if not self._by_events:
            self._warm_up_worker(case)
            return
        self.lay_out(case, 1)
        (call_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
        self._begin(case, self._calls_for(case, call_ns))

    def _warm_up_worker(self, case: Case) -> None:
        self.lay_out(case, 1)
        self.run(case, self.draw(case), checked=1, timed=False)
        calls = self._clocked_calls(case, self._throughput(case, 1))
        for _ in range(2):  # a single call is no good guess at what many take
            self.waits_ns[case.name] = self._throughput(case, calls)
            calls = self._clocked_calls(case, self.waits_ns[case.name])
        self._begin(case, calls)

    def _calls_for(self, case: Case, call_ns: float, talk_ns: float = 0.0) -> int:
        """As many as there are room and time for, up to a fixed number. Of a slow kernel of our own, few are enough."""
        if not self._by_events:  # they were counted when it was warmed up
            return self.observations[case.name].calls
        if self.is_own:
            enough = max(2 - (call_ns > OWN_LONG_NS), int(OWN_WINDOW_NS / max(1.0, call_ns)))
        else:
            enough = max(1, int(1e9 * self.effort.case_seconds / (self.effort.rounds * max(1.0, call_ns))))
        return int(max(1, min(WINDOW_CALLS, enough, self._child.arena.size // self._bytes_per_call(case))))

    def _begin(self, case: Case, calls: int) -> None:
        super()._begin(case, calls)
        observation = self.observations[case.name]
        if isinstance(observation, WorkerObservation):
            observation.least_ns = self.waits_ns[case.name]

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        if self.is_own and not checked and not any(array.written for array in self.problem.inputs):
            return self._window(len(self._child.arena.slots))  # on what the window before has left there
        self._paced = not timed
        try:
            return super().run(case, inputs, checked, timed)
        except RuntimeError as error:  # torch says so in several ways
            if not is_shortage(str(error)):
                raise
            raise CheckingError from error

    def _window(self, calls: int) -> Window:
        child = self._child
        if not self._by_events:
            return self._clocked(child, calls, self._paced)
        child.arena.settle()
        window = child.window(calls, hold_ns=self._hold.ns)
        samples, tails, queued = (window.answer.get(name) for name in ("samples_ns", "tails_ns", "queued_ns"))
        for numbers in (samples, tails, [queued] * len(child.arena.slots)):
            if not isinstance(numbers, list) or len(numbers) != len(child.arena.slots):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: it does not time every call")
            if not all(type(n) in (int, float) and 0 <= n < 1e15 for n in numbers):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: its times are no times")
        self._hold.learn(int(window.answer["queued_ns"]))
        return window

    def _outputs(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[Any, ...]:
        outputs = tuple(self._child.arena.outputs(slot))
        if self.kernel.is_bare:
            return outputs
        orders = self._refuse_returned(case, slot, window, timed)
        return tuple(x.as_strided(x.shape, order) if order else x for x, order in zip(outputs, orders, strict=True))

    def _refuse_returned(self, case: Case, slot: int, window: Window, timed: bool) -> list[tuple[int, ...]]:
        """Refuse what is not a plain tensor of the right kind, or is only another name for an input. Returns the order
        that each output lies in."""
        try:
            parts = window.answer["outputs"][slot]
            if len(parts) != len(self.problem.outputs):
                raise VerdictError(
                    Status.WRONG_RESULT, f"returned {len(parts)} outputs, not {len(self.problem.outputs)}"
                )
            return [
                self._order_of_returned(array, case, part, timed)
                for part, array in zip(parts, self.problem.outputs, strict=True)
            ]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def _order_of_returned(self, array: Array, case: Case, part: dict[str, Any], timed: bool) -> tuple[int, ...]:
        shape = self.problem.shape(array, case)
        self._refuse_unlike(array, part, shape, self.problem.dtype(array, case))
        if part["on_gpu"] is not True:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} in the host's memory; it must be the GPU's")
        order = self._order(array, shape, part)
        if part["is_input"] and timed:
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {array.name}")
        return order

    # -- belief -------------------------------------------------------------------------------------------------------

    def end(self, verdict: VerdictError) -> None:
        """What becomes of a worker that others share is not for one kernel to say; and that memory runs out is their
        common fault. Of a module that is replayed, its replay says nothing: but what times show, they show."""
        if is_shortage(verdict.reason):
            verdict = VerdictError(Status.DEVICE_FAULT, verdict.reason) if self.is_own else self._blamed(verdict)
        elif self._replaying and not isinstance(verdict, TimingError | ChildLostError):
            verdict = ReplayError(verdict.status, f"its replay failed while it was timed: {verdict.reason}")
        self.verdict = verdict
        if not self.is_own:
            self.close()

    def _blamed(self, verdict: VerdictError) -> VerdictError:
        """What comes back when its process ends is what it held. That a worker cannot start is no kernel's fault."""
        if verdict.status is not Status.RUNTIME_ERROR and not isinstance(verdict, CheckingError):
            return CrowdedError(verdict.reason) if verdict.status is Status.DEVICE_FAULT else verdict
        before, _ = self.memory()
        self.close()
        free, total = self.memory()
        return Shortage(total, min(self.room, free), max(0, free - before)).verdict(verdict)

    def judge(self, case: Case, roof: Roof) -> None:
        """Beside what every device asks: nothing may still run on the GPU when the call's own stream has finished."""
        observation = self.observations[case.name]
        if self._by_events and not self.is_own and isinstance(observation, GpuObservation):
            tail, typical = observation.tail_ns(), observation.typical_ns()
            if tail > TAIL_NS + CLOCK_SLACK * typical and tail > _ASKINGS * self._asking_ns() + CLOCK_SLACK * typical:
                raise TimingError(
                    f"case {case.name}: the GPU went on working for {tail / 1e3:.0f} us after the call's own stream",
                )
        super().judge(case, roof)

    def _asking_ns(self) -> float:
        """What it takes to ask whether the GPU still works, where it does not."""
        assert self.idle is not None
        self.idle.command("lay out", slots=[[]] * WINDOW_CALLS, inputs=[], parameters=[], outputs=[])
        tails: list[float] = self.idle.window(WINDOW_CALLS, hold_ns=self._hold.ns).answer["tails_ns"]
        return median(tails)

    def _refuse_sleep(self, observation: Observation, typical: float) -> None:
        return  # what it does before it is timed gains it nothing

    def differs_by_process(self, case: Case) -> bool:
        """It is short, or its host code is part of its time, which is fast in one process and slow in another."""
        is_short = self.observations[case.name].typical_ns() < SHORT_NS
        return self.live and (is_short or bool(self.not_replayed) or self._hold.waits)

    def precise(self, case: Case) -> bool:
        """Or as precise as it need be: what other processes say counts for more."""
        enough = not self.is_own and self.effort.processes > 1 and self.windows(case) >= self.effort.rounds
        return super().precise(case) or (enough and self.differs_by_process(case))

    # -- the result ---------------------------------------------------------------------------------------------------

    def measurement(self, device: str, cases: Sequence[Case], floors: Sequence[float]) -> Measurement:
        found = super().measurement(device, cases, floors)
        if found.status is not Status.OK:
            return found
        return replace(found, believed=self.believed, not_replayed=self.not_replayed)

    def timing(self, case: Case, floor: float) -> CaseTiming:
        return replace(super().timing(case, floor), wait_ns=self.waits_ns.get(case.name))

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **self.sensors, **self._traced(), "timing": self._how()}

    def _traced(self) -> dict[str, Any]:
        """Of each case: which program it is, how many steps it has, and which share of the time that they need at least
        its own kernels do."""
        if self.not_replayed or not self.traces:
            return {}
        return {
            "traces": {
                name: {"hash": trace.hash, "steps": len(trace.steps), "own_share": self._own_share(trace)}
                for name, trace in self.traces.items()
            }
        }

    def _own_share(self, trace: Trace) -> float | None:
        return trace.own_share(roofline.step_ns(trace, self.hardware)) if self.hardware else None

    def _how(self) -> str:
        if self.not_replayed:
            calls = max(observation.calls for observation in self.observations.values())
            return f"the parent's clock over windows of up to {calls} calls, less what empty windows take"
        what = "each call" if self.is_clean else "each replay of what a call does, in a process without its host code"
        launching = "but it waits for the host, whose time is part of its own" if self._hold.waits else _LAUNCHING
        return (
            f"CUDA events around {what}, queued behind a kernel that holds the GPU for {self._hold.ns / 1e3:.0f} us,"
            f" {launching}, and then evicts the L2 cache"
        )


def _three(expressions: Sequence[str], values: Mapping[str, Any]) -> list[int]:
    sizes = [_number(text, values) for text in expressions]
    return [*sizes, 1, 1][:3]


def _number(text: str, values: Mapping[str, Any]) -> int:
    try:
        return int(expression.evaluate(text, values))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise VerdictError(Status.RUNTIME_ERROR, f"cannot launch: {error}") from error
