"""The sizes that a problem from elsewhere can be rehearsed at, and what its reference costs at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from presage.core.errors import PresageError
from presage.kernels.kernel import Kernel
from presage.problems import static
from presage.problems.base import Cost
from presage.problems.external import GPU_MODE, ExternalProblem
from presage.problems.smaller import smaller
from presage.static import hardware, operations
from presage.static.trace import Trace

_TARGET = "h200"
"""The GPU for which references are traced. Their cost is the same for all GPUs."""


@dataclass(frozen=True)
class Size:
    """The problem at one size."""

    problem: ExternalProblem
    cost: Cost
    is_smaller: bool
    """Whether the size is smaller than that of the problem as written."""

    @property
    def reference(self) -> Kernel:
        return self.problem.reference_kernel()

    def costs_less(self, limit: Cost) -> bool:
        return self.cost.bytes <= limit.bytes and self.cost.flops <= limit.flops


def problem_sizes(problem: ExternalProblem) -> Sequence[Size]:
    """The sizes at which the reference works, the smallest first. A task of GPU MODE has tests of its own instead, so
    it has a single size. Raises PresageError if the reference works at no size."""
    if problem.convention == GPU_MODE:
        return [Size(problem, Cost(0, 0), is_smaller=False)]
    made = list(smaller(problem))
    wanted = [(each, each.reference_kernel(), each.timed["gpu"]) for each in made]
    found = static.of_several(wanted, hardware.find(_TARGET))
    traces = [reports[0].trace for reports in found]
    sizes = [
        Size(each, _cost(trace), is_smaller=each is not made[-1])
        for each, trace in zip(made, traces, strict=True)
        if trace is not None
    ]
    if not sizes:
        raise PresageError(found[-1][0].error or "the problem's reference could not be traced")
    return sizes


def _cost(trace: Trace) -> Cost:
    flops = sum(operations.of_step(trace, step)[0] for step in trace.steps)
    return Cost(sum(step.bytes for step in trace.steps), int(flops))
