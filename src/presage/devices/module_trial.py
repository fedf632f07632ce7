"""ModuleTrial: a foreign module under measurement on a GPU.

It is checked in its worker. There it is also recorded, and a *replayer*, in which no foreign host code has ever run,
repeats what it was seen to do: that is timed. What cannot be replayed is timed in its worker, and no time is believed
that is less than the parent's clock says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from presage.core.statistics import median_interval
from presage.devices import recorded_call
from presage.devices.base import CaseTiming, Effort
from presage.devices.child import Child, ChildLostError, TimingError, VerdictError, Window
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
from presage.devices.recorded_call import NotReplayedError
from presage.devices.status import Status
from presage.devices.trial import PATIENCE, Inputs, Surprises
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.trace import Trace, TraceError

MISSED_SHARE, MISSED_NS = 0.1, 2_000
"""By how much a module may be faster than its replay before the replay is not believed: a share of it, and beyond. Less
than that, few windows by the parent's clock cannot tell; and nobody gains by a replay that takes longer."""
SECOND_HOLD_NS = 5_000_000
"""A replay's second call is queued in less than this; its first may take ten times as long."""
CLOCKED_WINDOWS, LONG_NS = 2, 500_000_000
"""A module's throughput is the best of so many windows; one that takes so long need not be repeated."""
LEAST_WITNESSED, MOST_WITNESSED, WITNESSED_WIDTH, WITNESSED_NS = 5, 15, 0.015, 30_000_000
"""So many windows by the parent's clock decide what is the least that can be believed, and as many more as their median
needs to be known so well, if there is time; each is so long if there is room."""
CHECKED_CALLS, TAKEN_SHARE = 8, 0.1
"""So many calls of each are checked. Taking outputs while the clock runs may be this share of it."""
LEAST_CONTROL_NS, MOST_CONTROL_NS, CONTROL_BYTES = 5_000, 1_000_000, 64 << 20
"""How long calls of ours are that the module's are compared with, and what they write to find out."""
EMPTY_WINDOWS = 7
TAKEN_AT_ONCE = 2
MOST_DESCRIBED = 2048
"""So many outputs can be described in one message."""
CLOCKED_BYTES = 16 << 30
"""The inputs and outputs of a window by the parent's clock take no more than this, where several calls do."""


_COMPILES = re.compile(
    r"torch\.compile\b|\bimport compile\b|\.compile\((mode|backend|fullgraph|dynamic|\))|_dynamo|_inductor"
)
"""Where torch is recorded it compiles no function, and what it has once left uncompiled it does not compile later."""


class ReplayError(VerdictError):
    """A replay went wrong after its module had been let go of. The module is tried again, and timed in its worker."""


class ModuleTrial(GpuTrial):
    """What it decides once, before anything is timed, holds for all cases."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort, not_replayed: str = "") -> None:
        super().__init__(problem, kernel, effort)
        self.l2_bytes = 0
        self.hardware: Hardware | None = None
        self.replayer: Child | None = None
        """A process that repeats what the module was seen to do."""
        compiles = "torch compiles its functions, and what that gives is not recorded"
        self.not_replayed = not_replayed or (compiles if _COMPILES.search(kernel.source) else "")
        """Why it is timed in its worker, if it is."""
        self.traces: dict[str, Trace] = {}
        self.waits_ns: dict[str, float] = {}
        """By case: what a call takes in the module's own process, its host code with it."""
        self._replaying, self._paced, self._witnessed = False, False, False
        self._clocked_ns: dict[str, tuple[float, ...]] = {}
        self._taken = TAKEN_AT_ONCE
        self._empties: list[float] = []
        self._hold, self._other_hold = Hold(), Hold()
        """Of the process that is asked, and of the other one."""

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
        """What a replay does wrong is not held against its module; but what times show, they show."""
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
        """With the module's own process if it is replayed: while that lives, work that it left on the GPU may go on."""
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
        """One call of the module, written down, and handed to the replayer. It is not the first of its shape, in which
        it may compile, tune or capture."""
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
        """What goes wrong inside is not held against the module."""
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
        """A replay must return what is right for inputs that nobody has seen, and the module must not be faster: then
        it does something else."""
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
        """What a call takes on the GPU, of many: however slow its host is today, and whatever the first one met. A
        module that says too little of itself is not replayed, which gains it nothing."""
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

    def _clocked(self, child: Child, calls: int, collects: bool = True, repeats: int = 1) -> Window:
        """One window by the parent's clock alone, from before the inputs are there for the child until its outputs are
        taken. Whatever works on them does so in between, on whichever stream and for whomever it waits. Where outputs
        are not collected, nobody is paid for a short time, and the inputs are there before."""
        arena, trusted = self._child.arena, child.trusted
        child.trusted = False  # all of them are stopped and resumed
        if not collects:
            arena.show()
        arena.evict()  # which also has the GPU turn to this process, before every window alike
        start = time.perf_counter_ns()
        try:
            if collects:
                arena.show()
            window = child.window(calls, paced=False, collects=collects, repeats=repeats)
            if collects:
                arena.take(self._taken_at_once)
        finally:
            child.trusted = trusted
        ended = time.perf_counter_ns()
        if collects and child is self._child:
            arena.take(self._looked_at)
        return replace(window, parent_ns=ended - start, calls=calls * repeats)

    @property
    def _taken_at_once(self) -> list[int]:
        """The slots whose outputs are taken while the clock runs: as many in each window. The child does not know
        which, and what is not there yet is wrong."""
        slots = len(self._child.arena.slots)
        chosen = dict.fromkeys([slot for slot in self._looked_at if slot < slots] + list(range(slots)))
        return list(chosen)[: self._taken]

    def _lay_out_idle(self, layout: dict[str, Any]) -> None:
        wanted = self._child.arena.handle, layout
        if wanted != self._idle.laid_out:
            self._idle.command("open arena", handle=self._child.arena.handle)
            self._idle.command("lay out", **layout)
            self._idle.laid_out = wanted

    def _empty_ns(self, calls: int = 1) -> float:
        """What a window takes in which so many calls do nothing and return nothing."""
        self._lay_out_idle(NOTHING)
        return float(self._clocked(self._idle, 1, collects=False, repeats=calls).parent_ns)

    def _throughput(self, case: Case, call_ns: float) -> float:
        """Nanoseconds a call, at best, where nobody waits for one of many nor for what they return. Each is thought to
        take so long."""
        calls = clocked_calls(call_ns, self._spread(case), MOST_CALLS)
        slots = min(calls, WINDOW_CALLS, self._room_for_calls(case))
        repeats = -(-calls // slots)
        self.lay_out(case, slots)
        self._child.arena.hide()
        self._fill(self.draw(case))
        empty, found = [], []
        for _ in range(CLOCKED_WINDOWS if calls * call_ns < LONG_NS else 1):
            empty.append(self._empty_ns(slots * repeats))
            found.append(self._clocked(self._child, slots, collects=False, repeats=repeats).parent_ns)
        return max(1.0, (min(found) - min(empty)) / (slots * repeats))

    def _spread(self, case: Case) -> list[float]:
        """What windows with nothing in them take here and now."""
        if not self._empties:
            self.lay_out(case, 1)
            self._child.arena.hide()
            self._empties = [self._empty_ns() for _ in range(EMPTY_WINDOWS)]
        return self._empties

    def _clocked_calls(self, case: Case, call_ns: float) -> int:
        """How many make a window that counts: all on inputs of their own, which together do not fit into the cache."""
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
        self._clocked_ns[case.name] = self._witness(case, wait_ns)
        self._begin(case, self._calls_for(case, wait_ns))

    def _begin(self, case: Case, calls: int) -> None:
        super()._begin(case, calls)
        observation = self.observations[case.name]
        if isinstance(observation, WorkerObservation):
            observation.clocked_ns = self._clocked_ns[case.name]

    def _witness(self, case: Case, call_ns: float) -> tuple[float, ...]:
        """What a call takes by the parent's clock, window by window: as much longer as its windows are than those of
        calls of ours, whose length is known. Those have as many inputs to wait for and as many outputs to copy."""
        calls = self._clocked_calls(case, call_ns)
        self.lay_out(case, calls)
        control_ns = self._lay_out_control(case, call_ns)
        self._child.arena.hide()
        controls, windows, found = [], [], [call_ns]
        self._witnessed, start = True, time.monotonic()
        try:
            for number in range(1, MOST_WITNESSED + 1 if calls * call_ns < LONG_NS else 2):
                controls.append(self._clocked(self._idle, calls).parent_ns)
                windows.append(self.run(case, self.draw(case), CHECKED_CALLS, timed=True).parent_ns)
                found = [max(1.0, control_ns + (ns - median(controls)) / calls) for ns in windows]
                late = time.monotonic() - start > PATIENCE * self.effort.case_seconds
                precise = median_interval(found).relative_half_width <= WITNESSED_WIDTH
                if number >= LEAST_WITNESSED and (precise or late):
                    break
        finally:
            self._witnessed = False
        return tuple(found)

    def _lay_out_control(self, case: Case, call_ns: float) -> float:
        """Have the idle worker do about as much in a call as the module does. Returns how long that takes."""
        layout = self._layout(case)
        wanted = min(max(call_ns, LEAST_CONTROL_NS), MOST_CONTROL_NS)
        nothing, something = (self._control_ns(layout, size) for size in (0, CONTROL_BYTES))
        bytes_per_ns = CONTROL_BYTES / max(1.0, something - nothing)
        output = sum(self.problem.array_bytes(array, case) for array in self.problem.outputs)
        window_ns = len(self._child.arena.slots) * call_ns
        self._taken = min(CHECKED_CALLS, int(TAKEN_SHARE * window_ns * bytes_per_ns / max(1, 2 * output)))
        self._taken = max(TAKEN_AT_ONCE, self._taken)
        return self._control_ns(layout, int(bytes_per_ns * max(0.0, wanted - nothing)))

    def _control_ns(self, layout: dict[str, Any], size: int) -> float:
        self._lay_out_idle(layout | {"writes": size})
        return float(median(self._idle.window(1, hold_ns=self._hold.ns).answer["samples_ns"]))

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        self._paced = not timed
        return super().run(case, inputs, checked, timed)

    def _choose(self, slots: Sequence[int], checked: int) -> list[int]:
        """By the parent's clock the last is always one of them: work that is left behind is the last call's."""
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
        """Or the host's part in it does."""
        observation = self.observations.get(case.name)
        clocked = isinstance(observation, WorkerObservation) and observation.is_clocked
        return super().differs_by_process(case) or (self.live and clocked)

    # -- the result ---------------------------------------------------------------------------------------------------

    def timing(self, case: Case, floor: float) -> CaseTiming:
        return replace(super().timing(case, floor), wait_ns=self.waits_ns.get(case.name))

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **self._traced()}

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

    @property
    def _timed(self) -> str:  # type: ignore[override]
        if self.not_replayed:
            return "each call in its own process"
        return "each replay of what a call does, in a process without its host code"

    def _how(self) -> str:
        less = "; no time is less than the parent's clock says of windows with many calls" if self.not_replayed else ""
        return super()._how() + less
