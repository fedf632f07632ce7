"""A kernel that is being measured on a GPU, in one process after another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from presage.devices.base import CaseTiming, Effort
from presage.devices.plan import Plan
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem


@dataclass
class Task:
    """A kernel to measure, with its plan and effort, and, if it is our own, with its shared inputs."""

    problem: Problem
    kernel: Kernel
    plan: Plan
    draws: dict[str, Any] | None
    effort: Effort
    trials: list[Any] = field(default_factory=list)
    """One trial for each process in which the kernel was measured."""
    not_replayed: str = ""
    """Why the module is timed in its worker, once that is known."""
    is_called_ahead: bool = True
    """Whether the module is called on blank inputs, without launching kernels, while it is prepared."""

    @property
    def to_time(self) -> tuple[Case, ...]:
        """The cases to time in the next process. The first process times all cases, a few more time those whose time
        differs by process, and further ones those whose interval is still too wide."""
        if not self.trials:
            return self.plan.timed
        processes, effort = len(self.trials), self.effort
        if processes >= effort.most_processes or not all(trial.live for trial in self.trials):
            return ()
        differing = [case for case in self.plan.timed if self.trials[0].differs_by_process(case)]
        if processes >= effort.processes:
            differing = [case for case in differing if not self._is_precise(case)]
        return tuple(differing)

    def _is_precise(self, case: Case) -> bool:
        return self.timing(case, math.nan).median.relative_half_width <= self.effort.precision

    @property
    def next(self) -> Plan:
        """The plan for the next process. Only the first process runs the checking cases; later ones check timed calls
        only."""
        return Plan(() if self.trials else self.plan.checks, self.to_time)

    def timing(self, case: Case, floor_ns: float) -> CaseTiming:
        """The timing of a case with the samples of all processes."""
        trials = [trial for trial in self.trials if trial.live and case.name in trial.observations]
        timings: list[CaseTiming] = [trial.timing(case, floor_ns) for trial in trials]
        if len(timings) == 1:
            return timings[0]
        return replace(
            timings[0],
            samples_ns=tuple(ns for timing in timings for ns in timing.samples_ns),
            rounds=tuple(number for timing in timings for number in timing.rounds),
            processes=tuple(len(timing.samples_ns) for timing in timings),
        )
