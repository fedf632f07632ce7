"""Trial: one kernel under measurement, and the rules by which its numbers are believed.

Every call, checked or timed, runs on inputs nobody has seen before, drawn from a secret seed while the child is
stopped. A sample is a window's time over its calls, so work put off to a later call of the window still counts.
"""

from __future__ import annotations

import itertools
import math
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, ClassVar, Protocol

import numpy as np

from presage.core.statistics import median_interval
from presage.devices.arena import ARENA_BYTES, SLOT_BUDGET
from presage.devices.base import CaseTiming, Effort, Measurement, Progress
from presage.devices.child import Child, TimingError, VerdictError, Window
from presage.devices.observation import Observation
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems.backend import NUMPY, Backend
from presage.problems.base import Array, Case, Problem, storage
from presage.problems.compare import Answer, difference, solve
from presage.problems.external import ExternalProblem
from presage.problems.sampler import Sampler

WINDOW_NS = 3_000_000
TALKS = 40
"""Short calls are run in windows of about this long, so that stopping and starting the child does not show, and of so
many times what that takes where the machine is busy: in a shorter window a lie of the child's clock could hide."""
FRESH_CHECKS = 4
"""Checking cases drawn anew for every measurement."""
MAX_CALLS, MAX_MODULE_CALLS = 512, 128
"""A module's calls are fewer, since what each has returned must be described."""
SURPRISING_CALLS, SURPRISING_INPUTS = 3, 6
"""Of a window on inputs of other styles, so many calls are checked, and so many inputs are made."""
MOST_SPANNED = 1 << 30
"""Bytes from an output's first element to its last, where there may be gaps between them."""
PATIENCE = 3
"""On a machine too busy for the clocks to agree, keep trying for this many times the rounds and the time cap."""
STEADY = 1.5
"""A witness whose usual time is within this factor of its least was not disturbed."""
_SLEEP_NS = 20_000_000

_secret = random.SystemRandom()


class FloorError(TimingError):
    """A time under what the device's peaks allow. That is a lie, or the machine's fault, if it happens again."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Roof(Protocol):
    """What the device can do at best."""

    def floor_ns(self, problem: Problem, case: Case) -> float:
        """The roofline: the least time for the case at the device's measured peaks."""

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        """A time that nothing honest can stay under, with a margin for what peaks are uncertain by."""

    def refresh(self) -> None:
        """Measure the peaks again, keeping the higher readings."""

    def witness_ns(self, problem: Problem, case: Case) -> float:
        """How long code of our own takes now to move the case's bytes or do its operations, whichever takes longer; if
        that is less than the peaks say, they were measured too low and are no longer."""


class Inputs:
    """The inputs of one round: made once for each slot, shared by all kernels, answered when asked."""

    def __init__(self, problem: Problem, case: Case, backend: Backend) -> None:
        self._problem, self._case, self._backend = problem, case, backend
        self._inputs: list[tuple[Any, ...]] = []
        self._answers: dict[int, Answer] = {}

    def case(self, slot: int) -> Case:
        return self._case

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        while len(self._inputs) <= slot:
            case = self.case(len(self._inputs))
            self._inputs.append(self._problem.make_inputs(case, self._sampler(case)))
        return self._inputs[slot]

    def _sampler(self, case: Case) -> Sampler:
        sampler: Sampler = self._backend.sampler(secrets.randbits(63), case.values)
        return sampler

    def reserve(self, slots: int) -> None:
        """Make the inputs of so many slots, where it is quicker to make them at once."""
        if isinstance(self._problem, ExternalProblem) and (missing := slots - len(self._inputs)) > 0:
            samplers = [self._sampler(self._case) for _ in range(missing)]
            self._inputs += self._problem.make_several(self._case, samplers)

    def answer(self, slot: int) -> Answer:
        if slot not in self._answers:
            self._answers[slot] = solve(self._problem, self.case(slot), self[slot], self._backend.xp)
        return self._answers[slot]

    @cached_property
    def surprises(self) -> Inputs:
        """Others of the same round, in other styles; shared by all kernels, too."""
        return Surprises(self._problem, self._case, self._backend)

    def difference(self, slot: int, outputs: tuple[Any, ...]) -> str | None:
        """Why these outputs of a slot are wrong, or None."""
        if isinstance(self._problem, ExternalProblem):
            return self._problem.difference(self._case, self[slot], outputs)
        return difference(self._problem, self.case(slot), self.answer(slot), outputs, self._backend.xp)


class Surprises(Inputs):
    """Inputs of a timed case's size in other styles: a few, in turn. Slots may be alike, since nobody times these
    windows."""

    def __init__(self, problem: Problem, case: Case, backend: Backend) -> None:
        super().__init__(problem, case, backend)
        self._styled = problem.restyled(case)
        self._drawn: dict[int, Case] = {}

    def case(self, slot: int) -> Case:
        return self._drawn.setdefault(slot % SURPRISING_INPUTS, _secret.choice(self._styled))

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        return super().__getitem__(slot % SURPRISING_INPUTS)

    def answer(self, slot: int) -> Answer:
        return super().answer(slot % SURPRISING_INPUTS)


@dataclass(frozen=True)
class Plan:
    """The cases of one measurement: the problem's own checks and some drawn anew, shuffled; then those to be timed."""

    checks: tuple[Case, ...]
    timed: tuple[Case, ...]

    @classmethod
    def draw(cls, problem: Problem, kind: str) -> Plan:
        """All checks, timed sizes in every style among them, in an order that nobody can foresee."""
        styled = [case for timed in problem.timed[kind] for case in problem.restyled(timed)]
        return cls._drawn(problem, kind, _secret, styled)

    @classmethod
    def fixed(cls, problem: Problem, kind: str, checks: int) -> Plan:
        """So many checks, always the same: for kernels of our own, which are told apart by the same questions."""
        drawn = cls._drawn(problem, kind, random.Random(problem.name))
        return cls(drawn.checks[:checks], drawn.timed)

    @classmethod
    def _drawn(cls, problem: Problem, kind: str, rng: random.Random, more: Sequence[Case] = ()) -> Plan:
        every = [*problem.checks, *(problem.draw_case(rng) for _ in range(FRESH_CHECKS)), *more]
        rng.shuffle(every)
        return cls(tuple(every), problem.timed[kind])


class Trial:
    """One kernel, its child, and what has been seen so far. Its verdict, once there, is final."""

    backend: ClassVar[Backend] = NUMPY
    observation_type: type[Observation] = Observation
    warms_up = True
    """Whether a window is run before the first that counts."""
    asked_twice: ClassVar[float] = 0.6
    """The share of checks that are followed by another call of the same shape: does it sleep in that one, too?"""
    surprises = True
    """Whether there are windows on inputs of other styles among those that count."""
    least_share: ClassVar[float] = 0.5
    """A window has at least this share of the calls it has room for; how many, no kernel can know, so none can put its
    work off to the last."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort) -> None:
        self.problem, self.kernel, self.effort = problem, kernel, effort
        self.child: Child | None = None
        self.idle: Child | None = None
        """A worker of the same kind that computes nothing, by which all of its kind are judged."""
        self.verdict: VerdictError | None = None
        self.output = ""
        self.observations: dict[str, Observation] = {}
        self._looked_at: list[int] = []
        """The slots of a window that will be checked; nobody else knows them."""
        self._repeated: list[Window] = []
        """Untimed calls right after one of the same shape."""

    @property
    def live(self) -> bool:
        return self.verdict is None

    def attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something with the child; a verdict it provokes ends the trial."""
        if not self.live:
            return
        try:
            action(*arguments)
        except VerdictError as verdict:
            _forget_frames(verdict)
            self.end(verdict)

    def end(self, verdict: VerdictError) -> None:
        self.verdict = verdict
        self.close()

    def close(self) -> None:
        if self.child is not None:
            self.output = self.child.output()
            self.child.kill()
            self.child = None

    # -- one window ---------------------------------------------------------------------------------------------------

    def load(self, command: dict[str, Any]) -> None:
        self._child.wait_ready()
        self._child.give(self.effort.timeout)
        self._child.command("load", **command)

    def lay_out(self, case: Case, calls: int) -> None:
        child = self._child
        child.arena.lay_out(self.problem, case, calls, outputs=self._in_arena)
        child.command("lay out", **self._layout(case))

    @property
    def _in_arena(self) -> bool:
        """Whether outputs lie in the arena; a module on the CPU leaves them in its own memory."""
        return self.kernel.is_bare

    def _layout(self, case: Case) -> dict[str, Any]:
        """What the child must know to call the kernel on the slots."""
        problem = self.problem
        return {
            "slots": [[place.offset for place in slot] for slot in self._child.arena.slots],
            "scalars": [case.dims[name] for name in problem.scalars],
            **problem.arguments(case),
        }

    def draw(self, case: Case) -> Inputs:
        return Inputs(self.problem, case, self.backend)

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        """One window on fresh inputs; afterwards `checked` randomly chosen calls of it are checked."""
        child = self._child
        if not self._in_arena:
            child.command("forget")
        room = len(child.arena.slots)
        slots = range(_secret.randint(math.ceil(self.least_share * room), room))
        inputs.reserve(len(slots))
        for slot in slots:
            child.arena.write_inputs(slot, inputs[slot])
            child.arena.poison(slot)
        self._looked_at = self._choose(slots, min(checked, len(slots)))
        window = self._window(len(slots))
        for slot in self._looked_at:
            self._check(case, inputs, slot, window, timed)
        return window

    def _choose(self, slots: Sequence[int], checked: int) -> list[int]:
        """The slots of a window that will be checked."""
        return _secret.sample(slots, checked)

    def _check(self, case: Case, inputs: Inputs, slot: int, window: Window, timed: bool) -> None:
        outputs = self._outputs(case, slot, window, timed)
        wrong = self._child.arena.tampering(self.problem, slot, inputs[slot]) or inputs.difference(slot, outputs)
        if wrong:
            raise VerdictError(Status.WRONG_RESULT, f"case {inputs.case(slot).name}: {wrong}")

    def _window(self, calls: int) -> Window:
        return self._child.window(calls)

    def _pulse(self, case: Case, observation: Observation) -> Window:
        """A window of the idle worker: what stopping, resuming and talking cost at this moment. One for modules has a
        module that copies what it is given, so that its windows end as a kernel's do, with as many outputs."""
        assert self.idle is not None
        if self._in_arena:
            return self.idle.window(0)
        outputs = [
            {"dtype": self.problem.dtype(a, case), "shape": self.problem.shape(a, case)} for a in self.problem.outputs
        ]
        slots = [[0] * len(outputs)] * observation.calls
        self.idle.command("forget")
        self.idle.command("lay out", slots=slots, inputs=outputs, parameters=[])
        return self.idle.window(observation.calls)

    def _outputs(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[Any, ...]:
        if self._in_arena:
            return tuple(self._child.arena.outputs(slot))
        return self._returned(case, slot, window, timed)

    def _returned(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[np.ndarray, ...]:
        """The arrays a module returned from one call, read out of the stopped child's memory."""
        try:
            kinds = window.answer["kinds"]
            described = [[kinds[kind] | {"address": at} for kind, at in parts] for parts in window.answer["outputs"]]
            parts = described[slot]
            if len(parts) != len(self.problem.outputs):
                raise VerdictError(
                    Status.WRONG_RESULT, f"returned {len(parts)} outputs, not {len(self.problem.outputs)}"
                )
            return tuple(self._array(case, i, slot, described, timed) for i in range(len(parts)))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def _array(self, case: Case, index: int, slot: int, described: list[Any], timed: bool) -> np.ndarray:
        array, part = self.problem.outputs[index], described[slot][index]
        name, shape = self.problem.dtype(array, case), self.problem.shape(array, case)
        dtype = storage(name)
        self._refuse_unlike(array, part, shape, dtype.str if self.kernel.language == "numpy" else name)
        address, order = int(part["address"]), self._order(array, shape, part)
        if timed:
            self._refuse_aliases(array.name, index, slot, address, described)
        if not order:
            return self._child.read_memory(address, math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
        span = 1 + sum((size - 1) * step for size, step in zip(shape, order, strict=True)) if math.prod(shape) else 0
        if span * dtype.itemsize > MOST_SPANNED:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as a strided view of more than 1 GiB")
        data = self._child.read_memory(address, span * dtype.itemsize).view(dtype)
        return self._ordered(data, shape, order)

    def _refuse_unlike(self, array: Array, part: dict[str, Any], shape: tuple[int, ...], dtype: str) -> None:
        """Refuse what is not a plain array of its language's, of this shape and type."""
        kind = "numpy.ndarray" if self.kernel.language == "numpy" else "torch.Tensor"
        if part["type"] != kind:
            got = str(part["type"])[:100]
            raise VerdictError(Status.WRONG_RESULT, f"returned a {got} for {array.name}, not a {kind}")
        if part["dtype"] != dtype or tuple(part["shape"]) != shape:
            got = f"{part['dtype']}{part['shape']}"[:100]
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as {got}, not {dtype}{list(shape)}")

    def _order(self, array: Array, shape: tuple[int, ...], part: dict[str, Any]) -> tuple[int, ...]:
        """The strides of an output that need not lie row by row, where the problem allows that; else nothing."""
        if part["contiguous"] is not True:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as a strided view; it must be contiguous")
        if not self.problem.any_order:
            return ()
        stride = tuple(int(step) for step in part["stride"])
        if len(stride) != len(shape) or min(stride, default=0) < 0:
            raise ValueError("strides that do not fit the shape")
        return tuple(step if size > 1 else 1 for step, size in zip(stride, shape, strict=True))

    def _ordered(self, data: np.ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
        """The values that lie in memory in this order."""
        strides = [step * data.itemsize for step in order]
        return np.lib.stride_tricks.as_strided(data, shape, strides)

    def _refuse_aliases(self, name: str, index: int, slot: int, address: int, described: list[Any]) -> None:
        start = self._child.arena_address
        places = zip(self.problem.inputs, self._child.arena.slots[slot], strict=False)
        offered = [place.offset for array, place in places if array.written]
        if start <= address < start + ARENA_BYTES and address - start not in offered:
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {name}; nothing was computed")
        if sum(parts[index].get("address") == address for parts in described) > 1:
            raise VerdictError(
                Status.WRONG_RESULT, f"returned the same memory as {name} of two calls; each call needs its own"
            )

    @property
    def _child(self) -> Child:
        assert self.child is not None
        return self.child

    def answer(self, case: Case, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """What the kernel makes of these inputs, of its one call that nobody times or checks."""
        arena = self._child.arena
        self._child.give(self.effort.timeout)
        self.lay_out(case, 1)
        arena.write_inputs(0, inputs)
        arena.poison(0)
        self._window(1)
        return tuple(x.clone() if hasattr(x, "clone") else x.copy() for x in arena.outputs(0))

    # -- phases -------------------------------------------------------------------------------------------------------

    def check(self, case: Case, inputs: Inputs) -> None:
        """One checked call of a case that will not be timed."""
        self.lay_out(case, 1)
        self.run(case, inputs, checked=1, timed=False)
        if _secret.random() < self.asked_twice:
            self._repeated.append(self.run(case, self.draw(case), checked=0, timed=False))

    def warm_up(self, case: Case) -> None:
        """Run a timed case until its speed is known, choose how many calls make a window, and touch their memory."""
        self.lay_out(case, 1)
        windows = [self.run(case, self.draw(case), checked=1, timed=True) for _ in range(3)]
        self._repeated += windows[1:]
        self._begin(case, self._calls_for(case, min(window.child_ns for window in windows)))

    def _calls_for(self, case: Case, call_ns: float, talk_ns: float = 0.0) -> int:
        """How many calls of this length make a window whose inputs and outputs fit into the arena's budget."""
        bytes_per_call = sum(self.problem.array_bytes(a, case) for a in (*self.problem.inputs, *self.problem.outputs))
        fits = min(MAX_CALLS if self.kernel.is_bare else MAX_MODULE_CALLS, SLOT_BUDGET // max(1, bytes_per_call))
        return max(1, min(fits, round(max(WINDOW_NS, TALKS * talk_ns) / max(1.0, call_ns))))

    def _begin(self, case: Case, calls: int) -> None:
        self.observations[case.name] = self.observation_type(calls, self.effort.rounds)
        self.lay_out(case, calls)
        if self.warms_up:
            self.run(case, self.draw(case), checked=1, timed=True)

    def sample(self, case: Case, inputs: Inputs, round_number: int) -> None:
        observation = self.observations[case.name]
        self._take(case, observation, inputs, round_number)
        if self.surprises and observation.surprises() and self.problem.restyled(case):
            self.run(case, inputs.surprises, SURPRISING_CALLS, timed=True)
        if len(observation.windows) >= self.effort.rounds // 2:
            self._refuse_short_windows(case, observation)

    def _take(self, case: Case, observation: Observation, inputs: Inputs, round_number: int) -> None:
        if observation.doubted:
            observation.pulses.append(self._pulse(case, observation))
        observation.windows.append(self.run(case, inputs, observation.checks(), timed=True))
        observation.rounds.append(round_number)

    def _refuse_short_windows(self, case: Case, observation: Observation) -> None:
        """Whoever dawdles before it is timed gets short windows, in which a lie weighs more: those do not count."""
        recent = median(w.parent_ns / w.calls for w in observation.windows[-self.effort.rounds // 2 :])
        wanted = self._calls_for(case, recent, min((pulse.unseen_ns for pulse in observation.pulses), default=0.0))
        if wanted >= 2 * observation.calls:
            self._begin(case, wanted)

    def settle(self, cases: Sequence[Case]) -> None:
        """Between checking and timing: where and how these cases are to be timed."""

    def part(self) -> None:
        """After that: let go of what is not needed for timing. It takes a while, and the device is not needed."""

    def windows(self, case: Case) -> int:
        return len(self.observations[case.name].windows)

    def disturbed(self, case: Case) -> bool:
        return not self.windows(case) or self.observations[case.name].is_disturbed

    def precise(self, case: Case) -> bool:
        if self.disturbed(case):
            return False
        samples = list(self.observations[case.name].samples().values())
        return median_interval(samples).relative_half_width <= self.effort.precision

    # -- belief -------------------------------------------------------------------------------------------------------

    def judge(self, case: Case, roof: Roof) -> None:
        """Believe a case's samples, or say why not."""
        observation = self.observations[case.name]
        self._compare_clocks(case, observation)
        if observation.typical_ns() < roof.impossible_ns(self.problem, case):
            roof.refresh()  # the peak may have been measured on a busy machine
        if observation.typical_ns() < roof.impossible_ns(self.problem, case):
            self._confront(case, observation, roof)
        self._refuse_sleep(observation, observation.typical_ns())

    def _confront(self, case: Case, observation: Observation, roof: Roof) -> None:
        """A time under the floor is impossible, or the machine was busy whenever its peaks were measured. Code of ours
        that does no more than any kernel must, in turns with this one, tells which."""
        witness = []
        for _ in range(self.effort.rounds):
            witness.append(roof.witness_ns(self.problem, case))
            self._take(case, observation, self.draw(case), next(_rounds))
        typical, floor = observation.typical_ns(), roof.floor_ns(self.problem, case)
        if typical >= roof.impossible_ns(self.problem, case):
            return
        seen = (
            f"case {case.name}: {typical:.0f} ns a call, but moving its bytes and doing its operations takes at least"
        )
        if median(witness) > STEADY * min(witness):
            raise FloorError(
                Status.DEVICE_FAULT,
                f"{seen} {floor:.0f} ns at this device's measured peak; the machine is too busy to tell which is wrong:"
                f" the same took a copy kernel {min(witness):.0f} to {max(witness):.0f} ns in the same rounds",
            )
        raise FloorError(
            Status.CHEATING,
            f"{seen} {floor:.0f} ns at this device's measured peak, and took a copy kernel {min(witness):.0f} ns in the"
            " same rounds",
        )

    def _refuse_sleep(self, observation: Observation, typical: float) -> None:
        """On a machine that keeps it from working for half the time, only one that slept in most calls is told. One
        that rests when it meets a new shape does not do so in the next call."""
        slept = [w for w in self._repeated if w.parent_ns - w.cpu_ns > max(_SLEEP_NS, 0.8 * w.parent_ns, 5 * typical)]
        awake = sorted(w.cpu_ns / w.parent_ns for w in observation.windows)
        mostly, at_times = median(awake) > 0.5, awake[len(awake) * 9 // 10] > 0.5
        if len(slept) >= 2 and (mostly or (at_times and 2 * len(slept) > len(self._repeated))):
            raise TimingError(f"slept in {len(slept)} calls before it was timed, and not afterwards")

    def _compare_clocks(self, case: Case, observation: Observation) -> None:
        """A busy machine delays windows, but it delays pulses, too, or makes threads wait; a lie does neither."""
        if observation.is_lied_about:
            lies = observation.lies()
            raise TimingError(
                f"case {case.name}: the clocks disagree: in {len(lies)} of {len(observation.windows)} windows about"
                f" {median(lies) / 1e3:.0f} us passed outside the time that the worker reported, beyond what talking"
                " to it explains",
            )
        if observation.is_disturbed:
            raise VerdictError(Status.DEVICE_FAULT, "this machine is too busy to time anything; try when it is idle")

    def measurement(self, device: str, cases: Sequence[Case], floors: Sequence[float]) -> Measurement:
        if self.verdict is not None:
            return Measurement(
                self.problem.name,
                self.kernel,
                device,
                self.verdict.status,
                self.verdict.reason or str(self.verdict.status),
                output=self.output,
            )
        timings = tuple(self.timing(case, floor) for case, floor in zip(cases, floors, strict=True))
        return Measurement(
            self.problem.name, self.kernel, device, Status.OK, cases=timings, output=self.output, facts=self.facts()
        )

    def timing(self, case: Case, floor: float) -> CaseTiming:
        observation = self.observations[case.name]
        samples = observation.samples()
        return CaseTiming(case.name, tuple(samples.values()), tuple(samples), floor, observation.calls)

    def facts(self) -> dict[str, Any]:
        """What else is worth keeping of how it was measured."""
        notes = self.problem.notes.values()
        return {"tolerance": "; ".join(notes)} if notes else {}


def _forget_frames(error: BaseException | None) -> None:
    """What functions worked with when they failed lives as long as their frames: on a GPU, gigabytes of inputs."""
    while error is not None:
        error.__traceback__, error = None, error.__cause__ or error.__context__


def conduct(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """Check every kernel on every checking case, then time the survivors side by side, round by round."""
    examine(trials, plan, roof, effort, progress)
    for trial in trials:
        trial.attempt(trial.part)
    clock(trials, plan, roof, effort, progress)


def examine(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """The first half: check, and find out how to time."""
    for done, case in enumerate(plan.checks):
        progress("checking", done / (len(plan.checks) + len(plan.timed)))
        inputs = trials[0].draw(case)
        for trial in trials:
            trial.attempt(trial.check, case, inputs)
    for trial in trials:
        trial.attempt(trial.settle, plan.timed)


def clock(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """The second half: time, and judge the times."""
    for done, case in enumerate(plan.timed, start=len(plan.checks)):
        progress(f"timing {case.name}", done / (len(plan.checks) + len(plan.timed)))
        _time_case([trial for trial in trials if trial.live], case, effort)
        for trial in trials:
            trial.attempt(trial.judge, case, roof)
    progress("done", 1.0)


_rounds = itertools.count()
"""Every round's number is its own, so that only what was measured side by side is compared so."""


def _time_case(trials: Sequence[Trial], case: Case, effort: Effort) -> None:
    for trial in trials:
        trial.attempt(trial.warm_up, case)
    start = time.monotonic()
    while live := [trial for trial in trials if trial.live]:
        elapsed = time.monotonic() - start
        enough = not any(trial.disturbed(case) for trial in live)
        patience = 1 if enough else PATIENCE
        tried = all(trial.windows(case) >= patience * effort.rounds for trial in live)
        late = tried and elapsed > patience * effort.case_seconds
        if late or all(trial.precise(case) for trial in live):
            return
        inputs, number = live[0].draw(case), next(_rounds)
        for trial in _secret.sample(live, len(live)):
            trial.attempt(trial.sample, case, inputs, number)


def worker_settings(problem: Problem, folder: str) -> dict[str, Any]:
    """What a worker must be told to load a module for this problem, whose files it finds in its folder."""
    return {"problem": problem.worker_settings(folder)} if isinstance(problem, ExternalProblem) else {}
