"""ModuleTrial: checks and times a foreign module on a GPU.

The module is checked in its worker, and its calls are recorded there. A *replayer*, a process in which no foreign host
code has ever run, repeats the recorded steps, and these replays are timed. A module that cannot be replayed is timed in
its worker, and no time below what the parent's clock says is believed.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from presage.core.statistics import median_interval
from presage.devices import recorded_call
from presage.devices.base import CaseTiming, Effort
from presage.devices.child import Child, ChildLostError, Handover, TimingError, VerdictError, Window
from presage.devices.conduct import PATIENCE
from presage.devices.examiner import CheckingError
from presage.devices.gpu_memory import CrowdedError
from presage.devices.gpu_observation import (
    MOST_CALLS,
    WINDOW_CALLS,
    Hold,
    WorkerObservation,
    are_late,
    clocked_calls,
)
from presage.devices.gpu_trial import NOTHING, GpuTrial
from presage.devices.plan import Inputs, Surprises
from presage.devices.recorded_call import NotReplayedError
from presage.devices.status import Status
from presage.devices.trial import Roof
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.trace import LAUNCHES, Trace, TraceError

MISSED_SHARE, MISSED_NS = 0.1, 2_000
"""How much faster than its replay a module may be before the replay is rejected: a share of the replay's time, plus
nanoseconds. A few windows by the parent's clock cannot resolve less, and a module gains nothing by a slower replay."""
SECOND_HOLD_NS = 5_000_000
"""The longest hold for a replay's second call, which is queued in less time. The first call may take ten times as
long."""
CLOCKED_WINDOWS, LONG_NS = 2, 500_000_000
"""A module's throughput is the best of CLOCKED_WINDOWS windows, or a single window if it takes LONG_NS or more."""
LEAST_WITNESSED, MOST_WITNESSED, WITNESSED_WIDTH, WITNESSED_NS = 5, 25, 0.01, 30_000_000
"""How many windows by the parent's clock give the least time that is believed: LEAST_WITNESSED, and up to
MOST_WITNESSED until the relative half-width of their median is at most WITNESSED_WIDTH, if there is time. Each takes
WITNESSED_NS if there is room. What forged events gain in the worst case is this width and CLOCK_AGREES together."""
SLOWED_SHARE = 0.005
"""Windows of control calls that take longer than after the module's process has ended, by more than this share of the
module's windows, were slowed by it."""
CHECKED_CALLS, TAKEN_SHARE = 8, 0.1
"""The number of checked calls in each of these windows, and the share of a window that copying outputs may take."""
LEAST_CONTROL_NS, MOST_CONTROL_NS, CONTROL_BYTES = 5_000, 1_000_000, 64 << 20
"""The least and the most nanoseconds of our own control calls, with which the module's calls are compared, and the
bytes that are written to find out the rate of writing."""
EMPTY_WINDOWS = 7
TAKEN_AT_ONCE = 2
MOST_DESCRIBED = 2048
"""The most outputs that can be described in one message."""
CLOCKED_BYTES = 16 << 30
"""The most bytes of inputs and outputs in a window by the parent's clock, if it has several calls."""


_COMPILES = re.compile(
    r"torch\.compile\b|\bimport compile\b|\.compile\((mode|backend|fullgraph|dynamic|\))|_dynamo|_inductor"
)
"""Finds modules that use torch.compile. While torch is recorded it compiles no function, and it never compiles later
what it once left uncompiled."""


@dataclass
class Witnessed:
    """Windows of one case by the parent's clock."""

    case: Case
    calls: int
    control: dict[str, Any]
    """The layout of the control calls."""
    taken: int
    """The number of calls whose outputs are copied while the clock runs."""
    windows: list[int] = field(default_factory=list)
    """Nanoseconds of the module's windows."""
    beyond_ns: float = math.inf
    """Nanoseconds that a window of control calls takes beyond these calls."""

    @property
    def call_ns(self) -> tuple[float, ...]:
        """Nanoseconds per call, one value per window."""
        return tuple(max(1.0, (ns - self.beyond_ns) / self.calls) for ns in self.windows)


@contextmanager
def _stopped_like_any(child: Child) -> Iterator[None]:
    """Every child is stopped and resumed alike, also one that we trust."""
    trusted, child.trusted = child.trusted, False
    try:
        yield
    finally:
        child.trusted = trusted


class ReplayError(VerdictError):
    """A replay failed after the module's own process had ended. The module is tried again, and timed in its worker."""


class ModuleTrial(GpuTrial):
    """A trial of a foreign module. Before timing, it decides once for all cases whether the module is replayed."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort, not_replayed: str = "") -> None:
        super().__init__(problem, kernel, effort)
        self.l2_bytes = 0
        self.hardware: Hardware | None = None
        self.replayer: Child | None = None
        """The process that repeats the recorded steps of the module."""
        compiles = "torch compiles its functions, and what that gives is not recorded"
        self.not_replayed = not_replayed or (compiles if _COMPILES.search(kernel.source) else "")
        """Why the module is timed in its worker; empty if it is not."""
        self.traces: dict[str, Trace] = {}
        self.waits_ns: dict[str, float] = {}
        """For each case, nanoseconds that a call takes in the module's own process, including host code."""
        self._replaying, self._paced, self._witnessed = False, False, False
        self._clocked_by: dict[str, Witnessed] = {}
        self._taken = TAKEN_AT_ONCE
        self._empties: list[float] = []
        self._hold, self._other_hold = Hold(), Hold()
        """The hold of the process that commands go to (the worker or the replayer), and that of the other one."""

    @property
    def believed(self) -> str:  # type: ignore[override]
        return "worker" if self.not_replayed else "replay"

    @property
    def _child(self) -> Child:
        child = self.replayer if self._replaying else self.child
        assert child is not None
        return child

    @property
    def children(self) -> list[Child]:
        return [*super().children, *([self.replayer] if self.replayer is not None else [])]

    @property
    def lacks_replayer(self) -> bool:  # type: ignore[override]
        return self.live and not self.not_replayed and self.replayer is None

    def _load_module(self, path: Path, **more: Any) -> None:
        super()._load_module(path, records=not self.not_replayed)

    def close(self) -> None:
        self._end_worker()
        self._end_replayer()

    def _end_worker(self) -> None:
        super().close()

    def _end_replayer(self) -> None:
        if self.replayer is not None:
            self.replayer.kill()
            self.replayer = None

    def release(self) -> list[Child]:
        left = super().release()
        self.replayer = None
        return left

    def end(self, verdict: VerdictError) -> None:
        """Set the verdict. An error in the replay becomes a ReplayError, which does not count against the module. A
        TimingError does count, and a lost child or a shortage of memory keeps its own verdict."""
        if self._replaying and not isinstance(verdict, TimingError | ChildLostError | CheckingError | CrowdedError):
            self.verdict = ReplayError(verdict.status, f"its replay failed while it was timed: {verdict.reason}")
            self.close()
            return
        super().end(verdict)

    # -- replay -------------------------------------------------------------------------------------------------------

    def settle(self, cases: Sequence[Case]) -> None:
        """Find out whether the module can be replayed."""
        self.not_replayed = self.not_replayed or self._why_not(cases)
        if self.not_replayed:
            self._end_replayer()
            self._child.command("stop recording")
            self.observation_type = WorkerObservation
            return
        self._turn_to(replaying=True)

    def _turn_to(self, replaying: bool) -> None:
        if replaying != self._replaying:
            self._hold, self._other_hold = self._other_hold, self._hold
        self._replaying = replaying

    @property
    def may_part(self) -> bool:  # type: ignore[override]
        return self.live and not self.not_replayed and not self.has_parted

    def part(self) -> None:
        """End the module's own process if the module is replayed. While that process lives, work that it left on the
        GPU may go on."""
        if self._replaying:
            self._end_worker()
        self.has_parted = True

    def _why_not(self, cases: Sequence[Case]) -> str:
        try:
            for case in cases:
                self._record(case)
            self._child.command("stop recording")
            for case in cases:
                self._refuse_unlike_replay(case)
        except NotReplayedError as error:
            return str(error)
        return ""

    def _record(self, case: Case) -> None:
        """Record one call of the module and hand its trace to the replayer. The recorded call is not the first of its
        shape, in which the module may compile, tune or capture a graph. Raises NotReplayedError."""
        self.lay_out(case, 1)
        self.run(case, self.draw(case), checked=1, timed=True)
        self._fill(self.draw(case))
        child = self._child
        child.arena.settle()
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
        """Direct commands to the replayer. An error inside becomes NotReplayedError, which does not count against the
        module."""
        self._turn_to(replaying=True)
        try:
            yield
        except (VerdictError, OSError) as error:
            if isinstance(error, CheckingError | ChildLostError):
                raise
            raise NotReplayedError(f"{what}: {error}") from error
        finally:
            self._turn_to(replaying=False)

    def _refuse_unlike_replay(self, case: Case) -> None:
        """Raise NotReplayedError unless the replay returns right outputs for new inputs and the module is not faster
        than the replay. A faster module does something that its trace does not contain."""
        with self._as_replay("its replay does not do what the module does"):
            self.lay_out(case, 1)
            self.run(case, self.draw(case), checked=1, timed=True)
            self._hold = Hold(ns=min(self._hold.ns, SECOND_HOLD_NS))  # a first call allocates, which takes long
            (replay_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
            if self.problem.restyled(case):
                self.run(case, Surprises(self.problem, case, self.backend), checked=1, timed=True)
        module_ns = self.waits_ns[case.name] = self._throughput(case, replay_ns)
        least = (1 - MISSED_SHARE) * replay_ns - MISSED_NS
        if module_ns >= least:
            return
        with self._as_replay("its replay cannot be timed"):
            again_ns = min(self._throughput(case, replay_ns), self._cold_ns(case))
        module_ns = max(module_ns, self._cold_ns(case))  # many calls in a row find their inputs in the cache
        if module_ns < (1 - MISSED_SHARE) * again_ns - MISSED_NS:
            raise NotReplayedError(
                f"the module itself is faster than its replay: {module_ns / 1e3:.1f} us a call against"
                f" {min(again_ns, replay_ns) / 1e3:.1f} us (case {case.name}), so its trace does not have all it does"
            )

    def _cold_ns(self, case: Case) -> float:
        """The median nanoseconds of a call on the GPU, over several calls, so that neither a slow host nor the first
        call matters. A module that forges too short a time is not replayed, so it gains nothing."""
        self.lay_out(case, min(WINDOW_CALLS, self._room_for_calls(case)))
        answer = self.run(case, self.draw(case), checked=1, timed=True).answer
        late = are_late(answer)
        in_time = [ns for ns, is_late in zip(answer["samples_ns"], late, strict=True) if not is_late]
        return float(median(in_time or answer["samples_ns"]))

    # -- the parent's clock -------------------------------------------------------------------------------------------

    def _fill(self, inputs: Inputs) -> None:
        arena = self._child.arena
        inputs.reserve(len(arena.slots))
        for slot in range(len(arena.slots)):
            arena.write_inputs(slot, inputs[slot])
            arena.poison(slot)

    def _clocked(self, child: Child, calls: int, arena: Any = None) -> Window:
        """Run one window by the parent's clock alone, from before the child gets the inputs until its outputs are
        copied. All work on them happens in between, on whatever stream and whatever it waits for. Work can start when
        the inputs are there, and go on until outputs are copied. So the child is resumed before the clock starts and
        stopped after it ends, and between these moments and its calls there is only a short message each."""
        arena = arena or self._child.arena
        taken, others = self._taken_at_once(arena)
        take, times = arena.taker(taken, others), list[int]()

        def give() -> None:
            arena.evict()  # also makes the GPU switch to this process, alike before every window
            times.append(time.perf_counter_ns())
            arena.show()

        with _stopped_like_any(child):
            handover = Handover(give, lambda: times.append(take()))
            window = child.window(calls, handover, paced=False, collects=True, repeats=1)
        start, ended = times
        return replace(window, parent_ns=ended - start)

    def _in_a_row(self, child: Child, calls: int, repeats: int) -> int:
        """Nanoseconds by the parent's clock of a window whose outputs are not collected. The inputs are there before
        the clock starts, since a module gains nothing by a short time."""
        arena = self._child.arena
        arena.show()
        arena.evict()
        with _stopped_like_any(child):
            start = time.perf_counter_ns()
            child.window(calls, paced=False, collects=False, repeats=repeats)
            return time.perf_counter_ns() - start

    def _taken_at_once(self, arena: Any) -> tuple[list[int], list[int]]:
        """The slots whose outputs are copied while the clock runs, the same number in each window, and those that are
        copied right behind. The child does not know which. An output that is not ready by then is wrong."""
        slots = len(arena.slots)
        looked_at = [slot for slot in self._looked_at if slot < slots]
        chosen = list(dict.fromkeys([*looked_at, *range(slots)]))
        return chosen[: self._taken], looked_at[self._taken :]

    def _lay_out_idle(self, layout: dict[str, Any], arena: Any = None) -> None:
        handle = (arena or self._child.arena).handle
        wanted = handle, layout
        if wanted != self._idle.laid_out:
            self._idle.command("open arena", handle=handle)
            self._idle.command("lay out", **layout)
            self._idle.laid_out = wanted

    def _empty_ns(self, calls: int = 1) -> float:
        """Nanoseconds of a window in which `calls` calls do nothing and return nothing."""
        self._lay_out_idle(NOTHING)
        return float(self._in_a_row(self._idle, 1, calls))

    def _throughput(self, case: Case, call_ns: float) -> float:
        """The least nanoseconds per call when nothing waits for a single call or for its outputs. `call_ns`: the
        expected time of a call."""
        calls = clocked_calls(call_ns, self._spread(case), MOST_CALLS)
        slots = min(calls, WINDOW_CALLS, self._room_for_calls(case))
        repeats = -(-calls // slots)
        self.lay_out(case, slots)
        self._child.arena.hide()
        self._fill(self.draw(case))
        empty, found = [], []
        for _ in range(CLOCKED_WINDOWS if calls * call_ns < LONG_NS else 1):
            empty.append(self._empty_ns(slots * repeats))
            found.append(self._in_a_row(self._child, slots, repeats))
        return max(1.0, (min(found) - min(empty)) / (slots * repeats))

    def _spread(self, case: Case) -> list[float]:
        """Nanoseconds of several empty windows, measured once."""
        if not self._empties:
            self.lay_out(case, 1)
            self._child.arena.hide()
            self._empties = [self._empty_ns() for _ in range(EMPTY_WINDOWS)]
        return self._empties

    def _clocked_calls(self, case: Case, call_ns: float) -> int:
        """The number of calls of a window by the parent's clock. Each call has its own inputs, which together exceed
        the L2 cache if there is room."""
        room = min(self._room_for_calls(case), MOST_DESCRIBED // len(self.problem.outputs))
        beyond = -(-2 * self.l2_bytes // self._bytes_per_call(case))
        return max(clocked_calls(call_ns, self._spread(case), room, WITNESSED_NS), min(room, MOST_CALLS, beyond))

    def _room_for_calls(self, case: Case) -> int:
        size = min(int(self._child.arena.size), max(CLOCKED_BYTES, 4 * self.l2_bytes))
        return max(1, size // self._bytes_per_call(case))

    # -- windows ------------------------------------------------------------------------------------------------------

    def _layout(self, case: Case) -> dict[str, Any]:
        return super()._layout(case) | ({"program": case.name} if self._replaying else {})

    def warm_up(self, case: Case) -> None:
        if self._replaying:
            super().warm_up(case)
            return
        self.lay_out(case, 1)
        latest_ns = self.run(case, self.draw(case), checked=1, timed=False).parent_ns
        call_ns = self._throughput(case, latest_ns)
        self.waits_ns[case.name] = wait_ns = self._throughput(case, call_ns)
        self._witness(case, wait_ns)
        self._begin(case, self._calls_for(case, wait_ns))

    def _begin(self, case: Case, calls: int) -> None:
        super()._begin(case, calls)
        observation = self.observations[case.name]
        if isinstance(observation, WorkerObservation):
            observation.clocked_ns = self._clocked_by[case.name].call_ns

    def _witness(self, case: Case, call_ns: float) -> None:
        """Find out the nanoseconds per call by the parent's clock. If calls turn out to take far less than `call_ns`,
        repeat that with longer windows, since little can be gained in a long one."""
        while True:
            seen = self._clocked_windows(case, call_ns)
            call_ns = median(seen.call_ns)
            is_brief = len(seen.windows) < LEAST_WITNESSED and seen.calls * call_ns < LONG_NS
            if not is_brief and self._clocked_calls(case, call_ns) < 2 * seen.calls:
                self._clocked_by[case.name] = seen
                return

    def _clocked_windows(self, case: Case, call_ns: float) -> Witnessed:
        """The times of the module's windows by the parent's clock, and what windows of our own control calls take
        beyond these calls, whose length is known. Control calls have as many inputs to wait for and as many outputs to
        copy."""
        calls = self._clocked_calls(case, call_ns)
        self.lay_out(case, calls)
        control_ns, control = self._lay_out_control(case, call_ns)
        self._child.arena.hide()
        seen = Witnessed(case, calls, control, self._taken)
        controls = []
        self._witnessed, start = True, time.monotonic()
        try:
            for number in range(1, MOST_WITNESSED + 1 if calls * call_ns < LONG_NS else 2):
                controls.append(self._clocked(self._idle, calls).parent_ns)
                seen.windows.append(self.run(case, self.draw(case), CHECKED_CALLS, timed=True).parent_ns)
                seen.beyond_ns = median(controls) - calls * control_ns
                late = time.monotonic() - start > PATIENCE * self.effort.case_seconds
                precise = median_interval(seen.call_ns).relative_half_width <= WITNESSED_WIDTH
                if number >= LEAST_WITNESSED and (precise or late):
                    break
        finally:
            self._witnessed = False
        return seen

    def judge(self, case: Case, roof: Roof) -> None:
        super().judge(case, roof)
        observation = self.observations[case.name]
        if isinstance(observation, WorkerObservation):
            observation.single_ns = roof.single_ns(self.problem, case)

    @property
    def is_timed_alone(self) -> bool:
        """Work that a module left on the GPU goes on while its process is stopped and others are timed."""
        return bool(self.not_replayed)

    def conclude(self) -> None:
        """End the module's process if its times were witnessed, and calibrate again. Until then, work that it left on
        the GPU may have slowed the control calls, while the process itself was stopped."""
        if not self._clocked_by:
            return
        arena = self._child.arena
        self._end_worker()
        for name, seen in self._clocked_by.items():
            arena.lay_out(self.problem, seen.case, seen.calls)
            self._lay_out_idle(seen.control, arena)
            self._taken = seen.taken
            control_ns = self._control_call_ns()
            arena.hide()
            windows = min(len(seen.windows), LEAST_WITNESSED)
            controls = [self._clocked(self._idle, seen.calls, arena=arena).parent_ns for _ in range(windows)]
            beyond_ns = median(controls) - seen.calls * control_ns
            if seen.beyond_ns - beyond_ns > SLOWED_SHARE * median(seen.windows):
                seen.beyond_ns = beyond_ns
            observation = self.observations[name]
            assert isinstance(observation, WorkerObservation)
            observation.clocked_ns = seen.call_ns

    def _lay_out_control(self, case: Case, call_ns: float) -> tuple[float, dict[str, Any]]:
        """Lay out control calls in the idle worker that take about as long as the module's calls. Returns their
        nanoseconds and their layout."""
        layout = self._layout(case)
        wanted = min(max(call_ns, LEAST_CONTROL_NS), MOST_CONTROL_NS)
        nothing, something = (self._control_ns(layout, size) for size in (0, CONTROL_BYTES))
        bytes_per_ns = CONTROL_BYTES / max(1.0, something - nothing)
        output = sum(self.problem.array_bytes(array, case) for array in self.problem.outputs)
        window_ns = len(self._child.arena.slots) * call_ns
        self._taken = min(CHECKED_CALLS, int(TAKEN_SHARE * window_ns * bytes_per_ns / max(1, 2 * output)))
        self._taken = max(TAKEN_AT_ONCE, self._taken)
        size = int(bytes_per_ns * max(0.0, wanted - nothing))
        return self._control_ns(layout, size), layout | {"writes": size}

    def _control_ns(self, layout: dict[str, Any], size: int) -> float:
        self._lay_out_idle(layout | {"writes": size})
        return self._control_call_ns()

    def _control_call_ns(self) -> float:
        return float(median(self._idle.window(1, hold_ns=self._hold.ns).answer["samples_ns"]))

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        self._paced = not timed
        return super().run(case, inputs, checked, timed)

    def _choose(self, slots: Sequence[int], checked: int) -> list[int]:
        """In a window by the parent's clock, the last call is always checked, since work that is left unfinished
        belongs to it."""
        if not self._witnessed or checked < 1:
            return super()._choose(slots, checked)
        return [slots[-1], *super()._choose(slots[:-1], checked - 1)]

    def _window(self, calls: int) -> Window:
        if self._witnessed:
            return self._clocked(self._child, calls)
        if self._paced and not self._replaying:
            self._child.arena.settle()
            return self._child.window(calls, paced=True, collects=True, repeats=1)
        return super()._window(calls)

    def differs_by_process(self, case: Case) -> bool:
        """As for every kernel on a GPU, or if the parent's clock decides, since the time of host code differs by
        process."""
        observation = self.observations.get(case.name)
        clocked = isinstance(observation, WorkerObservation) and observation.is_clocked
        return super().differs_by_process(case) or (self.live and clocked)

    # -- the result ---------------------------------------------------------------------------------------------------

    def timing(self, case: Case, floor: float) -> CaseTiming:
        return replace(super().timing(case, floor), wait_ns=self.waits_ns.get(case.name))

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **self._traced()}

    def _traced(self) -> dict[str, Any]:
        """For each case: the hash of its trace, the number of steps, and the share of the module's own kernels."""
        if self.not_replayed or not self.traces:
            return {}
        return {
            "traces": {
                name: {"hash": trace.hash, "steps": len(trace.steps), "own_share": self._own_share(name, trace)}
                for name, trace in self.traces.items()
            }
        }

    def _own_share(self, name: str, trace: Trace) -> float | None:
        """The share of the module's own kernels in the roofline time of all steps, but at most the share of the
        measured time that torch's steps leave. Else a kernel that is given large tensors, and does nothing, would have
        one."""
        if self.hardware is None:
            return None
        times = roofline.step_ns(trace, self.hardware)
        share = trace.own_share(times)
        if share is None:
            return None
        of_torch = sum(ns for number, ns in times.items() if trace.steps[number].kind not in LAUNCHES)
        return min(share, max(0.0, 1.0 - of_torch / self.observations[name].typical_ns()))

    @property
    def _timed(self) -> str:  # type: ignore[override]
        if self.not_replayed:
            return "each call in its own process"
        return "each replay of what a call does, in a process without its host code"

    def _how(self) -> str:
        if not self.not_replayed:
            return super()._how()
        told = f"{super()._how()}; no time is less than the parent's clock says of windows with many calls"
        seen = self.observations.items()
        raised = [name for name, each in seen if isinstance(each, WorkerObservation) and each.is_raised]
        if not raised:
            return told
        instead = "less was found than a call that is made alone can take, which is told instead"
        return f"{told}; {instead}: {', '.join(raised)}"
