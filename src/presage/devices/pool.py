"""Pool: a device that consists of several devices of one kind. Kernels are submitted, and results come in any order.

A worker may be lost with the kernel that it measures, because a host or a process ends. Its measurement is then lost,
and the caller may submit the kernel again.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from presage.devices.base import Device, Effort, Measurement
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem

LOSSES = 3
"""A kernel whose worker was lost this many times is not tried again."""


@dataclass(frozen=True)
class Outcome:
    """The result of a submitted kernel."""

    problem: Problem
    kernel: Kernel
    measurement: Measurement | None
    """None if the worker was lost."""
    seconds: float
    """Seconds that the kernel occupied its worker."""
    why: str = ""
    """Why the worker was lost."""


class Pool(Device):
    """Several devices that measure at the same time, each one kernel after another."""

    at_once = 1
    ahead = 1
    """How many times `lanes` kernels may be in progress when no kernel is chosen by the result of another."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """How many kernels should be in progress to keep all devices busy: 1 or more. It changes as devices come and
        go."""

    @abstractmethod
    def submit(self, problem: Problem, kernel: Kernel, effort: Effort, foreign: bool = True, losses: int = 0) -> None:
        """Submit a kernel, without waiting. `foreign`: see `measure_each`. `losses`: how often a worker was lost with
        this kernel before; if it is not 0, the kernel is measured apart from others."""

    @abstractmethod
    def collect(self, seconds: float = math.inf) -> Outcome | None:
        """Wait for the next result of any kernel; None if there is none within this many seconds. Some kernel must be
        in progress."""

    @abstractmethod
    def cancel(self) -> list[Outcome]:
        """Give up all kernels in progress. Returns them with the seconds that each occupied a worker until now."""

    def measure_each(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        todo, lost = iter(work), deque[tuple[Problem, Kernel]]()
        losses: Counter[tuple[str, str]] = Counter()
        under_way = 0
        try:
            while True:
                while under_way < self.ahead * self.lanes:
                    pair = lost.popleft() if lost else next(todo, None)
                    if pair is None:
                        break
                    self.submit(*pair, effort, foreign, losses[_key(*pair)])
                    under_way += 1
                if not under_way:
                    return
                outcome = self.collect()
                assert outcome is not None, "it was waited for as long as it takes"
                under_way -= 1
                if outcome.measurement:
                    yield outcome.measurement
                    continue
                pair = outcome.problem, outcome.kernel
                losses[_key(*pair)] += 1
                if losses[_key(*pair)] < LOSSES:
                    lost.append(pair)
                else:
                    yield given_up(self, *pair, outcome.why)
        finally:  # the caller may stop before the end
            self.cancel()


def given_up(device: Device, problem: Problem, kernel: Kernel, why: str) -> Measurement:
    """The verdict on a kernel with which workers were lost again and again: DEVICE_FAULT, since nobody knows whose
    fault that was."""
    reason = f"its worker was lost {LOSSES} times, the last time: {why or 'nobody knows why'}"
    return Measurement(problem.name, kernel, device.name, Status.DEVICE_FAULT, reason)


def _key(problem: Problem, kernel: Kernel) -> tuple[str, str]:
    return problem.name, kernel.hash
