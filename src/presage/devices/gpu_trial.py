"""GpuTrial: one kernel under measurement on a GPU, and what a GPU adds to the rules of belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from presage.devices.base import Effort, Status
from presage.devices.child import Child, VerdictError, Window
from presage.devices.trial import CLOCK_SLACK, Inputs, Plan, Record, Roof, Trial
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Array, Case, Problem
from presage.problems.on_torch import TORCH

WINDOW_CALLS = 8
LEAST_HOLD_NS, MOST_HOLD_NS = 20_000, 5_000_000
"""How long the lead holds the GPU while a call is queued behind it."""
TAIL_NS = 15_000
"""How long the GPU may seem busy after a call's stream has finished: what asking takes."""
_CALL_NS = 15_000
_COPY_RATE = 1e12
"""Bytes a second that any GPU can copy a returned output with, at the least."""


@dataclass
class GpuRecord(Record):
    """A window's samples are its calls, each timed by events. The parent's clock bounds their sum."""

    output_bytes: int = 0

    @property
    def whole(self) -> int:
        """Two are enough, since each call's outputs are taken before the next begins."""
        return min(2, self.calls)

    @property
    def unexplained_ns(self) -> float:
        return 1.25 * median(pulse.unseen_ns for pulse in self.pulses) + 50_000 + _CALL_NS * self.calls

    def hidden(self) -> tuple[float, float]:
        """A GPU can work while no processor does."""
        unseen = sorted(window.unseen_ns for window in self.windows)
        return unseen[len(unseen) // 10], self.unexplained_ns

    def believed(self) -> list[int]:
        """Both clocks agree, and the calls' own share is not less than what windows with nothing in them leave over."""
        allowed = self.unexplained_ns
        empty = 1.1 * median(pulse.parent_ns for pulse in self.pulses) + 50_000
        copies = self.calls * (_CALL_NS + 2e9 * self.output_bytes / _COPY_RATE)
        return [
            i
            for i, w in enumerate(self.windows)
            if w.unseen_ns <= allowed + CLOCK_SLACK * w.child_ns
            and w.parent_ns - empty - copies <= (1 + CLOCK_SLACK) * sum(w.answer["samples_ns"])
        ]

    def samples(self) -> dict[int, float]:
        return {
            self.rounds[i] * WINDOW_CALLS + call: float(ns)
            for i in self.believed()
            for call, ns in enumerate(self.windows[i].answer["samples_ns"])
        }


class GpuTrial(Trial):
    """Outputs always lie in the arena; what a module returns is copied there right after each call."""

    backend = TORCH
    record_type: ClassVar[type[Record]] = GpuRecord
    least_share = 1.0  # each call is waited for and its outputs taken, so nothing can be put off
    _in_arena = True

    def __init__(
        self, problem: Problem, kernel: Kernel, effort: Effort, draws: dict[str, Inputs] | None = None
    ) -> None:
        super().__init__(problem, kernel, effort)
        self.sensors: dict[str, Any] = {}
        self._hold_ns = LEAST_HOLD_NS
        self._draws = draws

    def draw(self, case: Case) -> Inputs:
        """Fresh inputs; kernels of our own, which share `draws`, may see the same inputs twice."""
        if self._draws is None:
            return super().draw(case)
        return self._draws.setdefault(case.name, super().draw(case))

    # -- off the lane -------------------------------------------------------------------------------------------------

    def prepare(self, compiler: Mapping[str, Any], plan: Plan) -> None:
        """Load and compile for every shape that will be asked for."""
        child, kernel = self._child, self.kernel
        child.give(self.effort.timeout)
        if kernel.is_bare:
            entries = [launch.entry for launch in kernel.header.launches]
            child.command("load", kind="cuda", source=kernel.source, entries=entries, compiler=dict(compiler))
            return
        path = Path(child.scratch, f"kernel_{kernel.hash}.py")
        path.write_text(kernel.source)
        child.command("load", kind="torch", path=str(path))
        if kernel.language == "triton":
            child.command("prepare", layouts=[self._shapes(case) for case in (*plan.checks, *plan.timed)])

    # -- on the lane --------------------------------------------------------------------------------------------------

    def enter_lane(self, arena: Any) -> None:
        self._child.arena = arena
        self._child.command("open arena", handle=arena.handle)

    def leave_lane(self) -> None:
        """Have the worker forget the kernel, so that the next can have it."""
        self._child.command("close")

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
        return {
            "inputs": [{"dtype": problem.dtype(a, case), "shape": problem.shape(a, case)} for a in problem.inputs],
            "outputs": [self._expected(array, case) for array in problem.outputs],
            "parameters": [case.dims[name] for name in problem.parameters],
        }

    def _expected(self, array: Array, case: Case) -> dict[str, Any]:
        """What a module must return, in the words in which the child describes what it returned."""
        return {
            "type": "torch.Tensor",
            "dtype": self.problem.dtype(array, case),
            "shape": list(self.problem.shape(array, case)),
            "contiguous": True,
        }

    def warm_up(self, case: Case) -> None:
        """One call, which shows how long it takes to queue, and one whole window."""
        self.lay_out(case, 1)
        self.run(case, self.draw(case), checked=1, timed=True)
        self._begin(case, self._calls_for(case, 0.0))

    def _calls_for(self, case: Case, call_ns: float) -> int:
        bytes_per_call = sum(self.problem.array_bytes(a, case) for a in (*self.problem.inputs, *self.problem.outputs))
        return int(max(1, min(WINDOW_CALLS, self._child.arena.size // (bytes_per_call + 4096))))

    def _begin(self, case: Case, calls: int) -> None:
        super()._begin(case, calls)
        record = self.records[case.name]
        assert isinstance(record, GpuRecord)
        if not self.kernel.is_bare:
            record.output_bytes = sum(self.problem.array_bytes(array, case) for array in self.problem.outputs)

    def _window(self, calls: int) -> Window:
        """One window; the lead of the next is long enough for what this one took to queue."""
        child = self._child
        child.arena.settle()
        window = child.window(calls, hold_ns=self._hold_ns)
        samples, queued, tails = (window.answer.get(name) for name in ("samples_ns", "queued_ns", "tails_ns"))
        for numbers in (samples, tails):
            if not isinstance(numbers, list) or len(numbers) != len(child.arena.slots):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: it does not time every call")
            if not all(type(n) in (int, float) and 0 <= n < 1e15 for n in numbers):
                raise VerdictError(Status.CHEATING, "the worker's answer was forged: its times are no times")
        if type(queued) is int:
            self._hold_ns = max(LEAST_HOLD_NS, min(MOST_HOLD_NS, int(queued * 1.5)))
        return window

    def _pulse(self, idle: Child, record: Record) -> Window:
        return idle.window(record.calls, hold_ns=self._hold_ns)

    def _outputs(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[Any, ...]:
        if not self.kernel.is_bare:
            self._refuse_returned(case, slot, window, timed)
        return tuple(self._child.arena.outputs(slot))

    def _refuse_returned(self, case: Case, slot: int, window: Window, timed: bool) -> None:
        """Refuse what is not a plain tensor of the right kind, or is only another name for an input."""
        try:
            parts = window.answer["outputs"][slot]
            if len(parts) != len(self.problem.outputs):
                raise VerdictError(
                    Status.WRONG_RESULT, f"returned {len(parts)} outputs, not {len(self.problem.outputs)}"
                )
            for part, array in zip(parts, self.problem.outputs, strict=True):
                expected = self._expected(array, case)
                for what in ("type", "dtype", "shape", "contiguous"):
                    if part[what] != expected[what]:
                        got, right = str(part[what])[:100], expected[what]
                        raise VerdictError(
                            Status.WRONG_RESULT, f"returned {array.name} with {what} {got}; it must be {right}"
                        )
                if part["is_input"] and timed:
                    raise VerdictError(Status.CHEATING, f"returned a view of its input as {array.name}")
        except (LookupError, TypeError, AttributeError) as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def judge(self, case: Case, roof: Roof) -> None:
        """Beside what every device asks: nothing may still run on the GPU when the call's own stream has finished."""
        record = self.records[case.name]
        tail = median(tail for window in record.windows for tail in window.answer["tails_ns"])
        typical = median(ns for window in record.windows for ns in window.answer["samples_ns"])
        if tail > TAIL_NS + CLOCK_SLACK * typical:
            raise VerdictError(
                Status.CHEATING,
                f"case {case.name}: the GPU went on working for {tail / 1e3:.0f} us after the call's stream was done",
            )
        super().judge(case, roof)

    def _refuse_sleep(self, record: Record, typical: float) -> None:
        return  # a call is timed by the GPU's own clock, whatever its host does before

    def facts(self) -> dict[str, Any]:
        return {
            **self.sensors,
            "timing": "CUDA events around each call, queued behind a kernel that evicts the L2 cache and holds the GPU"
            f" for {self._hold_ns / 1e3:.0f} us, so that launching is not part of the time",
        }


def _three(expressions: Sequence[str], values: Mapping[str, Any]) -> list[int]:
    sizes = [_number(text, values) for text in expressions]
    return [*sizes, 1, 1][:3]


def _number(text: str, values: Mapping[str, Any]) -> int:
    try:
        return int(expression.evaluate(text, values))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise VerdictError(Status.RUNTIME_ERROR, f"cannot launch: {error}") from error
