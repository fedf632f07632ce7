"""Trial: checks and times one kernel, and decides whether its times are believed.

Every call, checked or timed, runs on new inputs, drawn from a secret seed while the child is stopped. A sample is the
time of a window divided by its number of calls, so work that a kernel defers to a later call of the window still
counts.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, ClassVar, Protocol

import numpy as np

from presage.core.errors import UNREADABLE
from presage.core.statistics import median_interval
from presage.devices.arena import ARENA_BYTES, SLOT_BUDGET
from presage.devices.base import CaseTiming, Effort, Measurement
from presage.devices.child import Child, TimingError, VerdictError, Window
from presage.devices.observation import Observation, round_numbers
from presage.devices.plan import Inputs
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems.backend import NUMPY, Backend
from presage.problems.base import Array, Case, Problem, storage
from presage.problems.external import ExternalProblem
from presage.static.trace import overlaps

WINDOW_NS = 3_000_000
TALKS = 40
"""Short calls run in windows of about WINDOW_NS, so that the cost of stopping and resuming the child is negligible, or
of TALKS times that cost if the machine is busy and this is longer. In a shorter window a lie of the child's clock could
hide."""
MAX_CALLS, MAX_MODULE_CALLS = 512, 128
"""The most calls of a window. A module has fewer, since every output that it returns must be described in the
answer."""
SURPRISING_CALLS = 3
"""The number of calls that are checked in a window on inputs of other styles."""
MOST_SPANNED = 1 << 30
"""The most bytes from the first element of an output to its last. Between elements there may be gaps."""
STEADY = 1.5
"""The witness was not disturbed if its median time is within this factor of its minimum."""
_SLEEP_NS = 20_000_000

_secret = random.SystemRandom()


class FloorError(TimingError):
    """A time below what the device's peaks allow. The trial is retried. If it happens again, `status` says whether the
    kernel lies or the machine is at fault."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Roof(Protocol):
    """The peak rates of a device, and the times that follow from them."""

    def floor_ns(self, problem: Problem, case: Case) -> float:
        """The roofline: the least time for the case at the device's measured peaks."""

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        """The least time that an honest kernel can take, with a margin for the uncertainty of the peaks."""

    def single_ns(self, problem: Problem, case: Case) -> float:
        """The least time of an honest call, where calls could be made together and so take less each."""

    def refresh(self) -> None:
        """Measure the peaks again and keep the higher readings."""

    def witness_ns(self, problem: Problem, case: Case) -> float:
        """Run our own code that moves the case's bytes or does its operations, whichever takes longer, and return its
        time. If it is faster than the peaks allow, they were measured too low, and are raised."""


class Trial:
    """One kernel, its child, and the observations so far. A verdict, once set, is final."""

    backend: ClassVar[Backend] = NUMPY
    observation_type: type[Observation] = Observation
    warms_up = True
    """Whether a warm-up window runs before the first window that counts."""
    asked_twice: ClassVar[float] = 0.6
    """The share of checks that are followed by a second call of the same shape, to find kernels that sleep in untimed
    calls."""
    surprises = True
    """Whether windows on inputs of other styles run between the windows that count."""
    least_share: ClassVar[float] = 0.5
    """A window has a random number of calls, at least this share of those that fit. The kernel cannot know the number,
    so it cannot defer its work to the last call."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort) -> None:
        self.problem, self.kernel, self.effort = problem, kernel, effort
        self.child: Child | None = None
        self.idle: Child | None = None
        """A worker of the same kind that computes nothing. Its windows are the baseline for all workers of this
        kind."""
        self.verdict: VerdictError | None = None
        self.output = ""
        self.observations: dict[str, Observation] = {}
        self._looked_at: list[int] = []
        """The slots of the current window that will be checked. The child does not know them."""
        self._repeated: list[Window] = []
        """Windows of untimed calls, each right after a call of the same shape."""

    @property
    def live(self) -> bool:
        return self.verdict is None

    def attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        """Run an action with the child. A verdict that it raises ends the trial."""
        if not self.live:
            return
        try:
            action(*arguments)
        except VerdictError as verdict:
            _forget_frames(verdict)
            verdict.reason = self._as_named(verdict.reason)
            self.end(verdict)

    def end(self, verdict: VerdictError) -> None:
        self.verdict = verdict
        self.close()

    def close(self) -> None:
        if self.child is not None:
            self.output = self._as_named(self.child.output())
            self.child.kill()
            self.child = None

    def _as_named(self, text: str) -> str:
        """Replace the path in the child's folder that the module was loaded from by the name of the user's file."""
        if self.child is None:
            return text
        loaded_from = rf"{re.escape(self.child.scratch)}/(candidate|kernel_[0-9a-f]+)\.py\b"
        return re.sub(loaded_from, lambda _: self.kernel.family, text)

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
        """Whether outputs lie in the arena. A module on the CPU returns them in its own memory."""
        return self.kernel.is_bare

    def _layout(self, case: Case) -> dict[str, Any]:
        """The details that the child needs to call the kernel on the slots."""
        problem = self.problem
        return {
            "slots": [[place.offset for place in slot] for slot in self._child.arena.slots],
            "scalars": [case.dims[name] for name in problem.scalars],
            **problem.arguments(case),
        }

    def draw(self, case: Case) -> Inputs:
        return Inputs(self.problem, case, self.backend)

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        """Run one window on new inputs, then check `checked` randomly chosen calls of it."""
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
        """Choose at random which slots of a window will be checked."""
        return _secret.sample(slots, checked)

    def _check(self, case: Case, inputs: Inputs, slot: int, window: Window, timed: bool) -> None:
        outputs = self._outputs(case, slot, window, timed)
        wrong = self._child.arena.tampering(self.problem, slot, inputs[slot]) or inputs.difference(slot, outputs)
        if wrong:
            raise VerdictError(Status.WRONG_RESULT, f"case {inputs.case(slot).name}: {wrong}")

    def _window(self, calls: int) -> Window:
        return self._child.window(calls)

    def _pulse(self, case: Case, observation: Observation) -> Window:
        """Run a window of the idle worker. It shows what stopping, resuming and messages cost at this moment. The idle
        worker for modules runs a module that copies its inputs, so that its windows end like a kernel's, with as many
        outputs."""
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
        """The arrays that a module returned from one call, read from the stopped child's memory."""
        try:
            kinds = window.answer["kinds"]
            described = [[kinds[kind] | {"address": at} for kind, at in parts] for parts in window.answer["outputs"]]
            parts = described[slot]
            if len(parts) != len(self.problem.outputs):
                raise VerdictError(
                    Status.WRONG_RESULT, f"returned {len(parts)} outputs, not {len(self.problem.outputs)}"
                )
            return tuple(self._array(case, i, slot, described, timed) for i in range(len(parts)))
        except UNREADABLE as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def _array(self, case: Case, index: int, slot: int, described: list[Any], timed: bool) -> np.ndarray:
        array, part = self.problem.outputs[index], described[slot][index]
        name, shape = self.problem.dtype(array, case), self.problem.shape(array, case)
        dtype = storage(name)
        self._refuse_unlike(array, part, shape, dtype.str if self.kernel.language == "numpy" else name)
        address, order = int(part["address"]), self._order(array, shape, part)
        if timed and not self.problem.is_passed_on(array, case):
            self._refuse_aliases(array.name, index, slot, address, described)
        if order and overlaps(shape, order) and not self.problem.may_overlap(array, case):
            raise VerdictError(
                Status.WRONG_RESULT, f"returned {array.name} as a view whose elements share memory; each needs its own"
            )
        if not order:
            return self._child.read_memory(address, math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
        span = 1 + sum((size - 1) * step for size, step in zip(shape, order, strict=True)) if math.prod(shape) else 0
        if span * dtype.itemsize > MOST_SPANNED:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as a strided view of more than 1 GiB")
        data = self._child.read_memory(address, span * dtype.itemsize).view(dtype)
        return self._ordered(data, shape, order)

    def _refuse_unlike(self, array: Array, part: dict[str, Any], shape: tuple[int, ...], dtype: str) -> None:
        """Raise VerdictError unless the output is a plain array of the kernel's language with this shape and dtype."""
        kind = "numpy.ndarray" if self.kernel.language == "numpy" else "torch.Tensor"
        if part["type"] != kind:
            got = str(part["type"])[:100]
            raise VerdictError(Status.WRONG_RESULT, f"returned a {got} for {array.name}, not a {kind}")
        if part["dtype"] != dtype or tuple(part["shape"]) != shape:
            got = f"{part['dtype']}{part['shape']}"[:100]
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as {got}, not {dtype}{list(shape)}")

    def _order(self, array: Array, shape: tuple[int, ...], part: dict[str, Any]) -> tuple[int, ...]:
        """The strides of an output that need not be in row-major order, if the problem allows that; otherwise ()."""
        if part["contiguous"] is not True:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as a strided view; it must be contiguous")
        if not self.problem.any_order or 0 in shape:
            return ()
        stride = tuple(int(step) for step in part["stride"])
        if len(stride) != len(shape) or min(stride, default=0) < 0:
            raise ValueError("strides that do not fit the shape")
        return tuple(step if size > 1 else 1 for step, size in zip(stride, shape, strict=True))

    def _ordered(self, data: np.ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
        """View flat data as an array of this shape with these strides."""
        strides = [step * data.itemsize for step in order]
        return np.lib.stride_tricks.as_strided(data, shape, strides)

    def _refuse_aliases(self, name: str, index: int, slot: int, address: int, described: list[Any]) -> None:
        start = self._child.arena_address
        places = zip(self.problem.inputs, self._child.arena.slots[slot], strict=False)
        offered = [place.offset for array, place in places if array.written]
        if start <= address < start + ARENA_BYTES and address - start not in offered:
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {name}; nothing was computed")
        if address and sum(parts[index].get("address") == address for parts in described) > 1:
            raise VerdictError(
                Status.WRONG_RESULT, f"returned the same memory as {name} of two calls; each call needs its own"
            )

    @property
    def _child(self) -> Child:
        assert self.child is not None
        return self.child

    def answer(self, case: Case, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The kernel's outputs for these inputs, from a single call that is neither timed nor checked."""
        arena = self._child.arena
        self._child.give(self.effort.timeout)
        self.lay_out(case, 1)
        arena.write_inputs(0, inputs)
        arena.poison(0)
        self._window(1)
        return tuple(x.clone() if hasattr(x, "clone") else x.copy() for x in arena.outputs(0))

    # -- phases -------------------------------------------------------------------------------------------------------

    def check(self, case: Case, inputs: Inputs) -> None:
        """Check one call of a case that is not timed. At random, run a second, unchecked call of the same shape."""
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
        """Start again with longer windows if the calls have become much shorter. A kernel that is slow before timing
        gets windows of few calls, in which a lie weighs more, so those windows are discarded."""
        recent = median(w.parent_ns / w.calls for w in observation.windows[-self.effort.rounds // 2 :])
        wanted = self._calls_for(case, recent, min((pulse.unseen_ns for pulse in observation.pulses), default=0.0))
        if wanted >= 2 * observation.calls:
            self._begin(case, wanted)

    def settle(self, cases: Sequence[Case]) -> None:
        """Decide, between checking and timing, where and how these cases are timed. By default there is nothing to
        decide."""

    def part(self) -> None:
        """Release, after `settle`, what timing does not need. This may take a while and does not need the device."""

    @property
    def is_timed_alone(self) -> bool:
        """Whether the kernel is timed before those that it is measured with, since it might slow them."""
        return False

    def conclude(self) -> None:
        """Finish after all cases are timed and judged. By default there is nothing to do."""

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
        """Accept a case's samples, or raise VerdictError with the reason why not."""
        observation = self.observations[case.name]
        self._compare_clocks(case, observation)
        if observation.typical_ns() < roof.impossible_ns(self.problem, case):
            roof.refresh()  # the peak may have been measured on a busy machine
        if observation.typical_ns() < roof.impossible_ns(self.problem, case):
            self._confront(case, observation, roof)
        self._refuse_sleep(observation, observation.typical_ns())

    def _confront(self, case: Case, observation: Observation, roof: Roof) -> None:
        """Decide whether a time below the floor is a lie, or the peaks were measured on a busy machine. For comparison,
        our own code, which does only what every kernel must do, runs in turns with the kernel."""
        witness = []
        for _ in range(self.effort.rounds):
            witness.append(roof.witness_ns(self.problem, case))
            self._take(case, observation, self.draw(case), next(round_numbers))
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
        """Raise TimingError if the kernel slept in untimed calls, but not in timed ones. Only calls right after one of
        the same shape are examined, since a kernel may wait when it meets a new shape. On a machine so busy that the
        kernel is off its processor for half of the time, it must have slept in most of these calls."""
        slept = [w for w in self._repeated if w.parent_ns - w.cpu_ns > max(_SLEEP_NS, 0.8 * w.parent_ns, 5 * typical)]
        awake = sorted(w.cpu_ns / w.parent_ns for w in observation.windows)
        mostly, at_times = median(awake) > 0.5, awake[len(awake) * 9 // 10] > 0.5
        if len(slept) >= 2 and (mostly or (at_times and 2 * len(slept) > len(self._repeated))):
            raise TimingError(f"slept in {len(slept)} calls before it was timed, and not afterwards")

    def _compare_clocks(self, case: Case, observation: Observation) -> None:
        """Raise VerdictError if the clocks of the child and the parent disagree. A busy machine delays pulses, too, or
        makes threads wait for a processor; a lie does neither."""
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
        """Further facts about how the kernel was measured."""
        notes = dict.fromkeys(self.problem.notes.values())
        return {"tolerance": "; ".join(notes)} if notes else {}


def _forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of an error. Their frames keep local variables alive, on a GPU gigabytes of inputs."""
    while error is not None:
        error.__traceback__, error = None, error.__cause__ or error.__context__


def worker_settings(problem: Problem, folder: str) -> dict[str, Any]:
    """The settings that a worker needs to load a module for this problem. Writes the problem's files to `folder`."""
    return {"problem": problem.worker_settings(folder)} if isinstance(problem, ExternalProblem) else {}
