"""GpuTrial: checks and times one kernel on a GPU, with the additional rules by which GPU times are believed.

This is enough for bare kernels and our own kernels, where no foreign host code runs in the process that times them by
events. `ModuleTrial` is for foreign modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from presage.core.errors import UNREADABLE
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
from presage.devices.plan import Inputs, Plan
from presage.devices.status import Status
from presage.devices.trial import Roof, Trial, worker_settings
from presage.devices.worker.tensors import is_dense
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Array, Case, Problem
from presage.problems.compare import Answer
from presage.problems.on_torch import TORCH

OWN_WINDOW_NS, OWN_LONG_NS = 4_000_000, 40_000_000
"""A window of one of our own kernels need not take longer than OWN_WINDOW_NS if it has two calls, or one call that
takes longer than OWN_LONG_NS."""
OWN_INPUTS = 2
OWN_HOLD_NS = 500_000
"""The longest hold of the GPU for kernels that are not measured closely. Longer queueing is not waited for."""
BUILD_SECONDS = 600.0
"""The most seconds that a module may take to load if torch compiles code for it. The lane is free meanwhile."""
TAIL_NS = 15_000
"""The least nanoseconds for which the GPU may seem busy after a call's stream has finished, since asking takes this
long."""
_ASKINGS = 3
"""The GPU may also seem busy for this many times what asking takes after an empty call, on systems where asking is
slow."""
SHORT_NS = 100_000
"""Times of shorter cases differ by process: by a tenth at 5 us, by 2 % at 50 us."""
NOTHING: dict[str, Any] = {"slots": [[]], "inputs": [], "parameters": [], "outputs": []}
"""The layout of an empty call."""
_LAUNCHING = "so that launching is not part of the time"


class CalledAheadError(VerdictError):
    """A kernel failed while it was called ahead of its checks. It is tried again without being called ahead."""


class OwnInputs(Inputs):
    """Inputs for our own kernels. The calls of a window may share inputs, of which OWN_INPUTS are kept for the next
    kernel."""

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        return super().__getitem__(slot % OWN_INPUTS)

    def answer(self, slot: int) -> Answer:
        return super().answer(slot % OWN_INPUTS)


class GpuTrial(Trial):
    """A trial on a GPU. Outputs always lie in the arena; the outputs of a module are copied there after each call."""

    backend = TORCH
    asked_twice = 0.0
    least_share = 1.0  # the outputs of each call are copied, so no work can be deferred
    believed, not_replayed = "replay", ""
    """`believed` is "replay" because no foreign host code runs in the worker."""
    is_called_ahead: bool = True
    """Whether a module is called on blank inputs before it enters the lane."""
    may_part: bool = False
    """Whether `part` may have to end a process between checking and timing."""
    has_parted: bool = False
    lacks_replayer = False
    """Whether the trial still needs a replayer, a process that repeats the module's recorded steps without the
    module."""
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
        """Returns the free bytes of this GPU and its total bytes."""
        self.room = 0
        """The free bytes when the kernel was prepared, and again when it entered the lane."""
        self._draws, self.is_own = draws, draws is not None
        self.observation_type = OwnObservation if self.is_own else GpuObservation
        self.warms_up = self.surprises = not self.is_own
        self._hold = Hold(OWN_HOLD_NS)

    def draw(self, case: Case) -> Inputs:
        """New inputs. Our own kernels share `draws`, so they may see the same inputs twice."""
        if self._draws is None:
            return super().draw(case)
        return self._draws.setdefault(case.name, OwnInputs(self.problem, case, self.backend))

    # -- without the lane ---------------------------------------------------------------------------------------------

    def prepare(self, compiler: Mapping[str, Any], plan: Plan) -> None:
        """Load the kernel and compile it for every shape of the plan."""
        child, kernel = self._child, self.kernel
        if not child.sandbox:  # the worker has not reported yet that it is ready
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
        """Call the module once for every shape, so that the seconds for compiling and loading at a first call pass
        before the lane is held. Errors from blank inputs, or because kernels are not launched, do not count against the
        module."""
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

    # -- holding the lane ---------------------------------------------------------------------------------------------

    @property
    def children(self) -> list[Child]:
        """The processes that the trial still has."""
        return [self.child] if self.child is not None else []

    def enter_lane(self, arena: Any) -> None:
        self.room, _ = self.memory()
        for child in self.children:
            child.arena = arena
            child.give(self.effort.timeout)
            child.command("open arena", handle=arena.handle)

    def release(self) -> list[Child]:
        """Give up the processes and return them."""
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
        """The description of an output that a module must return, in the form in which the child describes outputs."""
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
        """Run an action. If this process runs out of GPU memory, raise CheckingError, since others may have the
        memory."""
        try:
            action(*arguments)
        except RuntimeError as error:  # torch says so in several ways
            if not is_shortage(str(error)):
                raise
            raise CheckingError from error

    # -- windows ------------------------------------------------------------------------------------------------------

    def warm_up(self, case: Case) -> None:
        """Run one call, which shows how long a call takes, and one whole window."""
        self.lay_out(case, 1)
        (call_ns,) = self.run(case, self.draw(case), checked=1, timed=True).answer["samples_ns"]
        self._begin(case, self._calls_for(case, call_ns))

    def _calls_for(self, case: Case, call_ns: float, talk_ns: float = 0.0) -> int:
        """The calls of a window: as many as fit into the arena and the time, up to WINDOW_CALLS. For slow kernels of
        our own, few are enough."""
        if self.is_own:
            enough = max(2 - (call_ns > OWN_LONG_NS), int(OWN_WINDOW_NS / max(1.0, call_ns)))
        else:
            enough = max(1, int(1e9 * self.effort.case_seconds / (self.effort.rounds * max(1.0, call_ns))))
        return int(max(1, min(WINDOW_CALLS, enough, self._child.arena.size // self._bytes_per_call(case))))

    def run(self, case: Case, inputs: Inputs, checked: int, timed: bool) -> Window:
        if self.is_own and not checked and not any(array.written for array in self.problem.inputs):
            return self._window(len(self._child.arena.slots))  # on the inputs that the previous window has left there
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
        """Raise VerdictError unless each output is a plain tensor of the right kind and not a view of an input. Returns
        the strides of each output."""
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
        except UNREADABLE as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def _order_of_returned(self, array: Array, case: Case, part: dict[str, Any], timed: bool) -> tuple[int, ...]:
        shape = self.problem.shape(array, case)
        self._refuse_unlike(array, part, shape, self.problem.dtype(array, case))
        if part["on_gpu"] is not True:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} in the host's memory; it must be the GPU's")
        order = self._order(array, shape, part)
        if order and not is_dense(shape, tuple(int(step) for step in part["stride"])):
            raise ValueError("strides of what is not whole")
        if part["is_input"] and timed and not self.problem.is_passed_on(array, case):
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {array.name}")
        return order

    # -- belief -------------------------------------------------------------------------------------------------------

    def end(self, verdict: VerdictError) -> None:
        """Set the verdict. Our own kernels share a worker, so it stays open, and a shortage of memory in it is not
        blamed on one of them. For foreign kernels, `_blamed` decides whose fault a shortage is."""
        if is_shortage(verdict.reason) and not isinstance(verdict, CalledAheadError):
            verdict = VerdictError(Status.DEVICE_FAULT, verdict.reason) if self.is_own else self._blamed(verdict)
        self.verdict = verdict
        if not self.is_own:
            self.close()

    def _blamed(self, verdict: VerdictError) -> VerdictError:
        """The verdict on a shortage of memory. The memory that becomes free when the kernel's process ends is what the
        kernel held. A worker that cannot start is not the kernel's fault."""
        if verdict.status is not Status.RUNTIME_ERROR and not isinstance(verdict, CheckingError):
            return CrowdedError(verdict.reason) if verdict.status is Status.DEVICE_FAULT else verdict
        before, _ = self.memory()
        self.close()
        free, total = self.memory()
        return Shortage(total, min(self.room, free), max(0, free - before)).verdict(verdict)

    def judge(self, case: Case, roof: Roof) -> None:
        """Judge as on every device. In addition, nothing may still run on the GPU when the call's own stream has
        finished."""
        observation = self.observations[case.name]
        if not self.is_own and isinstance(observation, GpuObservation) and not observation.doubted:
            tail, typical = observation.tail_ns(), observation.typical_ns()
            if tail > TAIL_NS + CLOCK_SLACK * typical and tail > _ASKINGS * self._asking_ns() + CLOCK_SLACK * typical:
                raise TimingError(
                    f"case {case.name}: the GPU went on working for {tail / 1e3:.0f} us after the call's own stream",
                )
        super().judge(case, roof)

    def _asking_ns(self) -> float:
        """Nanoseconds that it takes to ask whether the GPU is busy when it is not."""
        self._idle.command("lay out", **NOTHING)
        self._idle.laid_out = None
        asked = (self._idle.window(1, hold_ns=self._hold.ns).answer["tails_ns"][0] for _ in range(WINDOW_CALLS))
        return float(median(asked))

    def _refuse_sleep(self, observation: Observation, typical: float) -> None:
        return  # a kernel gains nothing by sleeping in untimed calls

    def differs_by_process(self, case: Case) -> bool:
        """Whether the time of a case differs by process: it is short, or includes host code, which is fast in one
        process and slow in another."""
        return self.live and (self.observations[case.name].typical_ns() < SHORT_NS or self._hold.waits)

    def precise(self, case: Case) -> bool:
        """Whether there are enough samples. If several processes time the case, `rounds` windows are enough, since
        other processes tell more."""
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
