"""GpuTrial: one kernel under measurement on a GPU, and what a GPU adds to the rules of belief.

This is enough for bare kernels and for kernels of our own: no foreign host code runs beside the events that time them.
`ModuleTrial` is for foreign modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from presage.devices.base import Effort, Measurement
from presage.devices.child import Child, TimingError, VerdictError, Window
from presage.devices.examiner import CheckingError
from presage.devices.gpu_memory import CrowdedError, Shortage, is_shortage
from presage.devices.gpu_observation import (
    WINDOW_CALLS,
    GpuObservation,
    Hold,
    OwnObservation,
)
from presage.devices.observation import CLOCK_SLACK, Observation
from presage.devices.status import Status
from presage.devices.trial import Inputs, Plan, Roof, Trial, worker_settings
from presage.devices.worker.tensors import is_dense
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Array, Case, Problem
from presage.problems.compare import Answer
from presage.problems.on_torch import TORCH

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
NOTHING: dict[str, Any] = {"slots": [[]], "inputs": [], "parameters": [], "outputs": []}
"""The layout of a call of nothing."""
_LAUNCHING = "so that launching is not part of the time"


class CalledAheadError(VerdictError):
    """A kernel failed before its first call that counts. It is tried again without being called ahead."""


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
    believed, not_replayed = "replay", ""
    """No foreign host code runs in its worker."""
    is_called_ahead: bool = True
    """Whether a module is called before it enters the lane."""
    may_part: bool = False
    """Whether it may have to part with a process between its checks and its times."""
    has_parted: bool = False
    lacks_replayer = False
    """Whether it needs another process, in which what it does is repeated without it."""
    _in_arena = True
    _timed = "each call"

    def __init__(
        self,
        problem: Problem,
        kernel: Kernel,
        effort: Effort,
        draws: dict[str, Inputs] | None = None,
    ) -> None:
        super().__init__(problem, kernel, effort)
        self.sensors: dict[str, Any] = {}
        self.memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """How many bytes of this GPU are free, and how many there are."""
        self.room = 0
        """How many were free when it was prepared, and again when it entered the lane."""
        self._draws, self.is_own = draws, draws is not None
        self.observation_type = OwnObservation if self.is_own else GpuObservation
        self.warms_up = self.surprises = not self.is_own
        self._hold = Hold(OWN_HOLD_NS)

    def draw(self, case: Case) -> Inputs:
        """Fresh inputs; kernels of our own, which share `draws`, may see the same inputs twice."""
        if self._draws is None:
            return super().draw(case)
        return self._draws.setdefault(case.name, OwnInputs(self.problem, case, self.backend))

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
        self._load_module(path)
        shapes = {replace(case, values="uniform").name: case for case in (*plan.checks, *plan.timed)}
        layouts = [self._shapes(case) for case in shapes.values()]
        self._call_ahead(layouts)

    def _call_ahead(self, layouts: Sequence[dict[str, Any]]) -> None:
        """Call it once for every shape: what it compiles and loads at a first call takes seconds that the lane lacks.
        What comes of blank inputs, and of kernels that are not launched, is not held against it."""
        child, is_triton = self._child, self.kernel.language == "triton"
        if not is_triton and (self.is_own or "torch.compile" in self.kernel.source):
            child.command("call ahead", layouts=layouts)
            return
        if not self.is_called_ahead:
            return
        try:
            child.command("prepare", layouts=layouts, anew=not is_triton)
        except VerdictError as verdict:
            if verdict.status is Status.RUNTIME_ERROR and not self.is_own:
                raise CalledAheadError(verdict.status, verdict.reason) from verdict
            raise

    def _load_module(self, path: Path, **more: Any) -> None:
        settings = worker_settings(self.problem, self._child.scratch)
        self._child.command("load", kind="torch", path=str(path), **settings, **more)

    # -- on the lane --------------------------------------------------------------------------------------------------

    @property
    def children(self) -> list[Child]:
        """The processes that there still are."""
        return [self.child] if self.child is not None else []

    def enter_lane(self, arena: Any) -> None:
        self.room, _ = self.memory()
        for child in self.children:
            child.arena = arena
            child.give(self.effort.timeout)
            child.command("open arena", handle=arena.handle)

    def release(self) -> list[Child]:
        """Give them up."""
        left = self.children
        if self.child is not None:
            self.output = self.child.output()
        self.child = None
        return left

    @property
    def _idle(self) -> Child:
        assert self.idle is not None
        return self.idle

    def _bytes_per_call(self, case: Case) -> int:
        arrays = (*self.problem.inputs, *self.problem.outputs)
        return sum(self.problem.array_bytes(array, case) for array in arrays) + 4096

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

    def attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        super().attempt(self._with_memory, action, *arguments)

    def _with_memory(self, action: Callable[..., None], *arguments: Any) -> None:
        """Where this process runs out of the GPU's memory, others may have it."""
        try:
            action(*arguments)
        except RuntimeError as error:  # torch says so in several ways
            if not is_shortage(str(error)):
                raise
            raise CheckingError from error

    # -- windows ------------------------------------------------------------------------------------------------------

    def warm_up(self, case: Case) -> None:
        """One call, which shows how long it takes, and one whole window."""
        self.lay_out(case, 1)
        (call_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
        self._begin(case, self._calls_for(case, call_ns))

    def _calls_for(self, case: Case, call_ns: float, talk_ns: float = 0.0) -> int:
        """As many as there are room and time for, up to a fixed number. Of a slow kernel of our own, few are enough."""
        if self.is_own:
            enough = max(2 - (call_ns > OWN_LONG_NS), int(OWN_WINDOW_NS / max(1.0, call_ns)))
        else:
            enough = max(1, int(1e9 * self.effort.case_seconds / (self.effort.rounds * max(1.0, call_ns))))
        return int(max(1, min(WINDOW_CALLS, enough, self._child.arena.size // self._bytes_per_call(case))))

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        if self.is_own and not checked and not any(array.written for array in self.problem.inputs):
            return self._window(len(self._child.arena.slots))  # on what the window before has left there
        return super().run(case, inputs, checked, timed)

    def _window(self, calls: int) -> Window:
        child = self._child
        child.arena.settle()
        hold = self._hold
        window = child.window(calls, hold_ns=hold.ns)
        for numbers in (window.answer.get(name) for name in ("samples_ns", "tails_ns", "queued_ns")):
            if not isinstance(numbers, list) or len(numbers) != len(child.arena.slots):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: it does not time every call")
            if not all(type(n) in (int, float) and 0 <= n < 1e15 for n in numbers):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: its times are no times")
        window.answer["hold_ns"] = math.inf if hold.waits else hold.ns
        hold.learn(window.answer["queued_ns"])
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
        if order and not is_dense(shape, tuple(int(step) for step in part["stride"])):
            raise ValueError("strides of what is not whole")
        if part["is_input"] and timed:
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {array.name}")
        return order

    # -- belief -------------------------------------------------------------------------------------------------------

    def end(self, verdict: VerdictError) -> None:
        """What becomes of a worker that others share is not for one kernel to say; and that memory runs out is their
        common fault."""
        if is_shortage(verdict.reason) and not isinstance(verdict, CalledAheadError):
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

    def judge(self, case: Case, roof: Roof) -> None:
        """Beside what every device asks: nothing may still run on the GPU when the call's own stream has finished."""
        observation = self.observations[case.name]
        if not self.is_own and isinstance(observation, GpuObservation) and not observation.doubted:
            tail, typical = observation.tail_ns(), observation.typical_ns()
            if tail > TAIL_NS + CLOCK_SLACK * typical and tail > _ASKINGS * self._asking_ns() + CLOCK_SLACK * typical:
                raise TimingError(
                    f"case {case.name}: the GPU went on working for {tail / 1e3:.0f} us after the call's own stream",
                )
        super().judge(case, roof)

    def _asking_ns(self) -> float:
        """What it takes to ask whether the GPU still works, where it does not."""
        self._idle.command("lay out", **NOTHING)
        self._idle.laid_out = None
        asked = (self._idle.window(1, hold_ns=self._hold.ns).answer["tails_ns"][0] for _ in range(WINDOW_CALLS))
        return float(median(asked))

    def _refuse_sleep(self, observation: Observation, typical: float) -> None:
        return  # what it does before it is timed gains it nothing

    def differs_by_process(self, case: Case) -> bool:
        """It is short, or its host code is part of its time, which is fast in one process and slow in another."""
        return self.live and (self.observations[case.name].typical_ns() < SHORT_NS or self._hold.waits)

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

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **self.sensors, "timing": self._how()}

    def _how(self) -> str:
        launching = "but it waits for the host, whose time is part of its own" if self._hold.waits else _LAUNCHING
        return (
            f"CUDA events around {self._timed}, queued behind a kernel that holds the GPU for"
            f" {self._hold.ns / 1e3:.0f} us, {launching}, and then evicts the L2 cache"
        )


def _three(expressions: Sequence[str], values: Mapping[str, Any]) -> list[int]:
    sizes = [_number(text, values) for text in expressions]
    return [*sizes, 1, 1][:3]


def _number(text: str, values: Mapping[str, Any]) -> int:
    try:
        return int(expression.evaluate(text, values))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise VerdictError(Status.RUNTIME_ERROR, f"cannot launch: {error}") from error
