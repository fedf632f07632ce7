"""GpuTrial: one kernel under measurement on a GPU, and what a GPU adds to the rules of belief."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, ClassVar

from presage.core.statistics import median_interval
from presage.devices.base import Effort
from presage.devices.child import Child, TimingError, VerdictError, Window
from presage.devices.gpu_memory import CrowdedError, Shortage, is_shortage
from presage.devices.observation import BLIND_LIE_SHARE, CLOCK_SLACK, Observation
from presage.devices.reference import CheckingError
from presage.devices.status import Status
from presage.devices.trial import Inputs, Plan, Roof, Trial, worker_settings
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Array, Case, Problem
from presage.problems.compare import Answer
from presage.problems.on_torch import TORCH

WINDOW_CALLS = 8
OWN_WINDOW_NS, OWN_LONG_NS = 4_000_000, 40_000_000
"""A window of a kernel of our own need not be longer than this, if it has two calls, or one that is long."""
OWN_INPUTS = 2
LEAST_HOLD_NS, MOST_HOLD_NS = 20_000, 500_000
"""How long the lead holds the GPU while a call is queued behind it. What happens meanwhile is not timed, so the most is
less than it takes to fetch a timed case's inputs over the bus and work on them elsewhere."""
LUMP_SHARE, LUMP_NS = 0.05, 1_000
"""By how much the mean of a window's calls may exceed their median before they count as the mean."""
IDLE_SHARE = 0.5
"""A call under this share of its window's mean was idle: another did its work."""
GAP_NS = 150_000
"""How long the GPU is left free before an audited call, for work on other streams to betray itself by being done."""
AUDIT_SHARE, AUDIT_NS = 0.03, 1_000
"""How far an audited call's time may be from the usual, as a share of it and beyond that. Honest kernels stay within
0.7 us of a short call and, 299 times of 300, 3 % of a long one, unless their times depend on the inputs."""
AUDITED_CALLS = 24
"""So many, before a kernel is accused: where times depend on the inputs, those of one window may be a tenth off."""
BUILD_SECONDS = 600.0
"""How long a module may take to load that torch compiles something for; off the lane, so that others need not wait."""
TAIL_NS = 15_000
"""How long the GPU may seem busy after a call's stream has finished, at the least: what asking takes."""
_ASKINGS = 3
"""Or so many times what it takes after a call of nothing, on systems that take their time."""
SHORT_NS = 100_000
"""A case that takes less differs by process: which one it is moves 5 us by a tenth, and 50 us by 2 %."""
_CALL_NS = 15_000
_COPIES = 4
"""Copying a returned output may take so many times what it takes at this GPU's measured bandwidth."""


@dataclass
class GpuObservation(Observation):
    """A window's samples are its calls, each timed by events. The parent's clock bounds their sum."""

    copy_ns: float = 0.0
    """The longest that copying one call's outputs to where the parent looks for them may take."""
    audited: int = -1
    """The round in which there is an audit besides; no kernel can foresee it."""
    audits: list[Window] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.audited = secrets.randbelow(self.least_rounds)

    @property
    def whole(self) -> int:
        """Two are enough, since each call's outputs are taken before the next begins."""
        return min(2, self.calls)

    @property
    def whole_windows(self) -> int:
        return 1

    def queued_ns(self) -> float:
        """How long it takes to queue a call. More than the lead can hold: the call waits for the host, or its host code
        is slow, so that the host's time is part of its own."""
        queued = [window.answer["queued_ns"] for window in self.windows if type(window.answer["queued_ns"]) is int]
        return median(queued) if queued else math.inf

    def shown_by_audits(self, surely: bool) -> str | None:
        """What audited calls say against the others, if anything; surely if both medians' intervals say so."""
        if not self.audits or self.queued_ns() > MOST_HOLD_NS:
            return None
        usual, audited = (
            median_interval([ns for window in windows for ns in window.answer["samples_ns"]])
            for windows in (self.windows, self.audits)
        )
        times = f"{usual.value / 1e3:.1f} us a call, but {audited.value / 1e3:.1f} us when"
        shorter = usual.low - audited.high if surely else usual.value - audited.value
        longer = audited.low - usual.high if surely else audited.value - usual.value
        if shorter > AUDIT_SHARE * usual.value + AUDIT_NS:
            return f"{times} the GPU was free before it: the rest was done on another stream, ahead of the call's own"
        if longer > AUDIT_SHARE * usual.value + AUDIT_NS:
            return f"{times} the cache was evicted right before it: something had filled it while the GPU was held"
        return None

    @property
    def unexplained_ns(self) -> float:
        return 1.25 * median(pulse.unseen_ns for pulse in self.pulses) + 50_000 + _CALL_NS * self.calls

    def excess(self) -> list[float]:
        """How much of each window passed on the parent's clock and is explained neither by what the worker accounts for
        nor by its calls' own times beside what windows with nothing in them take. Negative where all is explained."""
        allowed = self.unexplained_ns
        empty = 1.1 * median(pulse.parent_ns for pulse in self.pulses) + 50_000
        copies = self.calls * (_CALL_NS + self.copy_ns)
        return [
            max(
                w.unseen_ns - allowed - CLOCK_SLACK * w.child_ns,
                w.parent_ns - empty - copies - (1 + CLOCK_SLACK) * sum(w.answer["samples_ns"]),
            )
            for w in self.windows
        ]

    def believed(self) -> list[int]:
        return [i for i, excess in enumerate(self.excess()) if excess <= 0]

    def lies(self) -> list[float]:
        """A GPU can work while no processor does, so that processor time says nothing."""
        found = zip(self.windows, self.excess(), self.calm(), strict=True)
        return [excess - w.waited_ns for w, excess, calm in found if calm and excess > w.waited_ns]

    @property
    def is_lied_about(self) -> bool:
        """Whether most windows hide time. Honest modules keep the host waiting now and then, and whoever lies less
        often than that gains nothing: what is unexplained counts."""
        lies = len(self.lies())
        return lies > BLIND_LIE_SHARE * len(self.windows) or (self.is_disturbed and 2 * lies > len(self.windows))

    def samples(self) -> dict[int, float]:
        """What is unexplained of a window counts as its calls' time."""
        return {
            self.rounds[i] * WINDOW_CALLS + call: ns + max(0.0, excess) / window.calls
            for i, (window, excess) in enumerate(zip(self.windows, self.excess(), strict=True))
            for call, ns in enumerate(shared_out(window.answer["samples_ns"]))
        }

    def without_launch(self) -> tuple[int, int]:
        """In how many calls no Triton kernel of the module's own was launched, and how many calls there were."""
        launches = [count for window in self.windows for count in window.answer["launches"]]
        return launches.count(0), len(launches)


@dataclass
class OwnObservation(GpuObservation):
    """Of a kernel of our own, which does not lie about its time."""

    doubted: ClassVar[bool] = False

    @property
    def unexplained_ns(self) -> float:
        return 0.0

    def excess(self) -> list[float]:
        return [0.0] * len(self.windows)

    def lies(self) -> list[float]:
        return []

    def samples(self) -> dict[int, float]:
        """Each call's own time: one that something else on the GPU delayed is an outlier and says nothing of others."""
        return {
            self.rounds[i] * WINDOW_CALLS + call: float(ns)
            for i, window in enumerate(self.windows)
            for call, ns in enumerate(window.answer["samples_ns"])
        }

    def checks(self) -> int:
        """It does not change its mind either."""
        return 0 if self.windows else 1


class OwnInputs(Inputs):
    """For kernels of our own: calls of a window may share inputs, of which few are kept for the next kernel."""

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        return super().__getitem__(slot % OWN_INPUTS)

    def answer(self, slot: int) -> Answer:
        return super().answer(slot % OWN_INPUTS)


def shared_out(samples: Sequence[float]) -> Sequence[float]:
    """A window's calls; where some did the work of others, whose inputs already lay there, each counts as the mean.

    >>> shared_out([20e3, 20.2e3, 20.1e3]), shared_out([60e3, 2e3, 1e3])
    ([20000.0, 20200.0, 20100.0], [21000.0, 21000.0, 21000.0])
    """
    mean = fmean(samples)
    lumped = mean > (1 + LUMP_SHARE) * median(samples) + LUMP_NS
    return [mean] * len(samples) if lumped else samples


class GpuTrial(Trial):
    """Outputs always lie in the arena; what a module returns is copied there right after each call."""

    backend = TORCH
    asked_twice = 0.0
    least_share = 1.0  # each call is waited for and its outputs taken, so nothing can be put off
    _in_arena = True

    def __init__(
        self, problem: Problem, kernel: Kernel, effort: Effort, draws: dict[str, Inputs] | None = None
    ) -> None:
        super().__init__(problem, kernel, effort)
        self.sensors: dict[str, Any] = {}
        self.bandwidth = math.inf
        """Of this GPU, in bytes a second."""
        self.memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """How many bytes of this GPU are free, and how many there are."""
        self.room = 0
        """How many were free when it was prepared, and again when it entered the lane."""
        self._hold_ns, self._gap_ns = LEAST_HOLD_NS, 0
        self._draws, self.is_own = draws, draws is not None
        self.observation_type = OwnObservation if self.is_own else GpuObservation
        self.rehearses = self.surprises = not self.is_own

    def draw(self, case: Case) -> Inputs:
        """Fresh inputs; kernels of our own, which share `draws`, may see the same inputs twice."""
        if self._draws is None:
            return super().draw(case)
        return self._draws.setdefault(case.name, OwnInputs(self.problem, case, self.backend))

    def end(self, verdict: VerdictError) -> None:
        """What becomes of a worker that others share is not for one kernel to say; and that memory runs out is their
        common fault."""
        if is_shortage(verdict.reason):
            verdict = VerdictError(Status.DEVICE_FAULT, verdict.reason) if self.is_own else self._blamed(verdict)
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

    # -- off the lane -------------------------------------------------------------------------------------------------

    def prepare(self, compiler: Mapping[str, Any], plan: Plan) -> None:
        """Load and compile for every shape that will be asked for."""
        child, kernel = self._child, self.kernel
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
        child.command("load", kind="torch", path=str(path), **worker_settings(self.problem, child.scratch))
        shapes = {replace(case, values="uniform").name: case for case in (*plan.checks, *plan.timed)}
        layouts = [self._shapes(case) for case in shapes.values()]
        if kernel.language == "triton":
            child.command("prepare", layouts=layouts)
        elif self.is_own or "torch.compile" in kernel.source:  # at the first calls, for seconds that the lane lacks
            child.command("rehearse", layouts=layouts)

    # -- on the lane --------------------------------------------------------------------------------------------------

    def enter_lane(self, arena: Any) -> None:
        self._child.arena = arena
        self.room, _ = self.memory()
        self._child.give(self.effort.timeout)
        self._child.command("open arena", handle=arena.handle)

    def release(self) -> Child | None:
        """Give up the child, if there still is one."""
        child, self.child = self.child, None
        if child is not None:
            self.output = child.output()
        return child

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
        return layout

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

    def warm_up(self, case: Case) -> None:
        """One call, which shows how long it takes to queue and to run, and one whole window."""
        self.lay_out(case, 1)
        (call_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
        self._begin(case, self._calls_for(case, call_ns))

    def _calls_for(self, case: Case, call_ns: float, talk_ns: float = 0.0) -> int:
        """As many as there are room and time for, up to a fixed number. Of a slow kernel of our own, few are enough."""
        bytes_per_call = sum(self.problem.array_bytes(a, case) for a in (*self.problem.inputs, *self.problem.outputs))
        if self.is_own:
            enough = max(2 - (call_ns > OWN_LONG_NS), int(OWN_WINDOW_NS / max(1.0, call_ns)))
        else:
            enough = max(1, int(1e9 * self.effort.case_seconds / (self.effort.rounds * max(1.0, call_ns))))
        return int(max(1, min(WINDOW_CALLS, enough, self._child.arena.size // (bytes_per_call + 4096))))

    def _begin(self, case: Case, calls: int) -> None:
        super()._begin(case, calls)
        observation = self.observations[case.name]
        assert isinstance(observation, GpuObservation)
        if not self.kernel.is_bare:
            copied = sum(self.problem.array_bytes(array, case) for array in self.problem.outputs)
            observation.copy_ns = _COPIES * 2e9 * copied / self.bandwidth

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        if self.is_own and not checked and not any(array.written for array in self.problem.inputs):
            return self._window(len(self._child.arena.slots))  # on what the window before has left there
        try:
            return super().run(case, inputs, checked, timed)
        except RuntimeError as error:  # torch says so in several ways
            if not is_shortage(str(error)):
                raise
            raise CheckingError from error

    def sample(self, case: Case, inputs: Inputs, round_number: int) -> None:
        super().sample(case, inputs, round_number)
        observation = self.observations[case.name]
        assert isinstance(observation, GpuObservation)
        if not self.is_own and len(observation.windows) == observation.audited + 1 and not observation.audits:
            observation.audits.append(self._audit(case, inputs))

    def _audit(self, case: Case, inputs: Inputs) -> Window:
        self._gap_ns = GAP_NS
        try:
            return self.run(case, inputs, self.observations[case.name].whole, timed=True)
        finally:
            self._gap_ns = 0

    def _window(self, calls: int) -> Window:
        """One window; the lead of the next is long enough for what this one took to queue."""
        child = self._child
        child.arena.settle()
        window = child.window(calls, hold_ns=self._hold_ns, gap_ns=self._gap_ns)
        samples, queued, tails = (window.answer.get(name) for name in ("samples_ns", "queued_ns", "tails_ns"))
        launches = [] if self.kernel.is_bare else [window.answer.get("launches")]
        for numbers in (samples, tails, *launches):
            if not isinstance(numbers, list) or len(numbers) != len(child.arena.slots):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: it does not time every call")
            if not all(type(n) in (int, float) and 0 <= n < 1e15 for n in numbers):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: its times are no times")
        if type(queued) is int:
            self._hold_ns = max(LEAST_HOLD_NS, min(MOST_HOLD_NS, int(queued * 1.5)))
        return window

    def _pulse(self, case: Case, observation: Observation) -> Window:
        assert self.idle is not None
        return self.idle.window(observation.calls, hold_ns=self._hold_ns)

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

    def judge(self, case: Case, roof: Roof) -> None:
        """Beside what every device asks: nothing may still run on the GPU when the call's own stream has finished."""
        if self.is_own:
            super().judge(case, roof)
            return
        observation = self.observations[case.name]
        tail = median(tail for window in observation.windows for tail in window.answer["tails_ns"])
        typical = median(ns for window in observation.windows for ns in window.answer["samples_ns"])
        asking = median(tail for pulse in observation.pulses for tail in pulse.answer["tails_ns"])
        if tail > max(TAIL_NS, _ASKINGS * asking) + CLOCK_SLACK * typical:
            raise TimingError(
                f"case {case.name}: the GPU went on working for {tail / 1e3:.0f} us after the call's stream was done",
            )
        self._refuse_fallback(case, observation)
        self._refuse_working_ahead(case, observation)
        self._refuse_what_an_audit_shows(case, observation)
        super().judge(case, roof)

    def _refuse_what_an_audit_shows(self, case: Case, observation: Observation) -> None:
        """A call takes as long after a pause as right behind the lead, if it was queued in time and does its work on
        its own stream with what is in memory. Times may depend on the inputs, too: more of them tell."""
        assert isinstance(observation, GpuObservation)
        if observation.shown_by_audits(surely=False):
            more = -(-AUDITED_CALLS // observation.calls) - len(observation.audits)
            observation.audits += [self._audit(case, self.draw(case)) for _ in range(more)]
            if shown := observation.shown_by_audits(surely=True):
                raise TimingError(f"case {case.name}: {shown}")

    def _refuse_working_ahead(self, case: Case, observation: Observation) -> None:
        """Calls on inputs of one kind take alike; a window with idle calls in it has others that did their work."""
        windows = [window.answer["samples_ns"] for window in observation.windows]
        idle = sum(min(calls) < IDLE_SHARE * fmean(calls) - LUMP_NS for calls in windows)
        if 2 * idle > len(windows):
            raise TimingError(
                f"case {case.name}: in {idle} of {len(windows)} windows some calls did the work of others",
            )

    def _refuse_fallback(self, case: Case, observation: Observation) -> None:
        """A module that is offered as Triton must not leave the work to torch."""
        assert isinstance(observation, GpuObservation)
        silent, calls = observation.without_launch() if self.kernel.language == "triton" else (0, 0)
        if silent:
            raise VerdictError(
                Status.CHEATING,
                f"case {case.name}: is a Triton module, but no Triton kernel of its own ran in {silent} of the {calls}"
                " timed calls",
            )

    def _refuse_sleep(self, observation: Observation, typical: float) -> None:
        return  # a call is timed by the GPU's own clock, whatever its host does before

    def differs_by_process(self, case: Case) -> bool:
        """It is short, or waits for the host, which is fast in one process and slow in another."""
        observation = self.observations[case.name]
        assert isinstance(observation, GpuObservation)
        return self.live and (observation.typical_ns() < SHORT_NS or observation.queued_ns() > MOST_HOLD_NS)

    def precise(self, case: Case) -> bool:
        """Or as precise as it need be: what other processes say counts for more."""
        enough = not self.is_own and self.effort.processes > 1 and not self.disturbed(case)
        return super().precise(case) or (enough and self.differs_by_process(case))

    def facts(self) -> dict[str, Any]:
        launching = "so that launching is not part of the time"
        observations = [
            observation
            for observation in self.observations.values()
            if isinstance(observation, GpuObservation) and observation.windows
        ]
        if any(observation.queued_ns() > MOST_HOLD_NS for observation in observations):
            launching = "too short for this kernel's host code, whose time is part of its own"
        return {
            **super().facts(),
            **self.sensors,
            "timing": "CUDA events around each call, queued behind a kernel that holds the GPU for"
            f" {self._hold_ns / 1e3:.0f} us, {launching}, and then evicts the L2 cache",
        }


def _three(expressions: Sequence[str], values: Mapping[str, Any]) -> list[int]:
    sizes = [_number(text, values) for text in expressions]
    return [*sizes, 1, 1][:3]


def _number(text: str, values: Mapping[str, Any]) -> int:
    try:
        return int(expression.evaluate(text, values))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise VerdictError(Status.RUNTIME_ERROR, f"cannot launch: {error}") from error
