"""The sizes that a problem from elsewhere can be rehearsed at, and what its reference costs at each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from presage.core.errors import PresageError
from presage.devices.examiner import ProblemError
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems import static
from presage.problems.base import Cost
from presage.problems.external import GPU_MODE, ExternalProblem
from presage.problems.smaller import narrow, smaller
from presage.static import hardware, operations
from presage.static.report import StaticReport

_TARGET = "h200"
"""The GPU for which references are traced. Their cost is the same for all GPUs."""
_MOST_NARROW = 3
_TOO_MUCH = Cost(1 << 62, 1 << 62)
_ENOUGH = 64 << 20
"""Bytes of a size above which no larger one is tried."""


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


def problem_sizes(problem: ExternalProblem, tried: Callable[[ExternalProblem], Cost]) -> Sequence[Size]:
    """The sizes at which the reference works, the smallest first. A task of GPU MODE has tests of its own instead, so
    it has a single size. tried: runs the reference, if it can be traced at no size, and returns what a call costs.
    Raises PresageError if the reference works at no size."""
    if problem.convention == GPU_MODE:
        return [Size(problem, Cost(0, 0), is_smaller=False)]
    made = list(smaller(problem))
    costs = list(map(_cost, _reports(made)))
    if not any(costs):
        costs = _tried(made, tried)
    return [
        Size(each, cost, is_smaller=each is not made[-1])
        for each, cost in zip(made, costs, strict=True)
        if cost is not None
    ]


def _tried(problems: Sequence[ExternalProblem], tried: Callable[[ExternalProblem], Cost]) -> list[Cost | None]:
    """The costs of the problems, which grow from one to the next. Those after a large or slow one are not tried,
    and the last, the problem's own, counts as too much where it fails, as for lack of memory."""
    costs: list[Cost | None] = []
    errors: list[PresageError] = []
    for problem in problems:
        try:
            cost = tried(problem)
            costs.append(cost)
            is_last = cost.bytes > _ENOUGH
        except PresageError as error:
            is_last = isinstance(error, ProblemError) and error.status is Status.TIMEOUT
            costs.append(_TOO_MUCH if is_last else None)
            errors.append(error)
        if is_last:
            return costs + [_TOO_MUCH] * (len(problems) - len(costs))
    if not any(costs):
        raise errors[-1]
    return [*costs[:-1], costs[-1] or _TOO_MUCH]


def narrow_sizes(problem: ExternalProblem) -> Sequence[Size]:
    """Sizes at which one number is as written and all others are small (`problems/smaller.py`)."""
    made = [] if problem.convention == GPU_MODE else list(itertools.islice(narrow(problem), _MOST_NARROW))
    costs = map(_cost, _reports(made))
    return [Size(each, cost, is_smaller=True) for each, cost in zip(made, costs, strict=True) if cost is not None]


def _reports(problems: Sequence[ExternalProblem]) -> Sequence[Sequence[StaticReport]]:
    wanted = [(each, each.reference_kernel(), each.timed["gpu"]) for each in problems]
    return static.of_several(wanted, hardware.find(_TARGET))


def _cost(reports: Sequence[StaticReport]) -> Cost | None:
    """What the reference costs in all cases; None if one could not be traced."""
    traces = [report.trace for report in reports if report.trace is not None]
    if len(traces) < len(reports) or not traces:
        return None
    flops = sum(operations.of_step(trace, step)[0] for trace in traces for step in trace.steps)
    return Cost(sum(step.bytes for trace in traces for step in trace.steps), int(flops))
