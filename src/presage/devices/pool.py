"""Pool: a device that is several of one kind. Kernels are handed in, and results come out in any order.

Whoever measures a kernel may be lost with it: a host that ends, a process that is killed. That costs the measurement
that was under way, and whoever handed the kernel in may do so again."""

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
"""A kernel with which a worker was lost so many times is not tried again."""


@dataclass(frozen=True)
class Outcome:
    """What came of a kernel that was handed in."""

    problem: Problem
    kernel: Kernel
    measurement: Measurement | None
    """None where its worker was lost."""
    seconds: float
    """How long it kept its worker."""
    why: str = ""
    """How the worker was lost."""


class Pool(Device):
    """Several devices that measure at the same time, each one kernel after the other."""

    at_once = 1
    ahead = 1
    """How many times as many kernels may be under way where nobody learns from one before the next is chosen."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """How many kernels should be under way to keep all busy, 1 or more; it changes as devices come and go."""

    @abstractmethod
    def submit(self, problem: Problem, kernel: Kernel, effort: Effort, foreign: bool = True, losses: int = 0) -> None:
        """Hand in a kernel, which does not wait for anything. `foreign`: see `measure_each`. One with which a worker
        was lost before, so many times, is measured apart from others."""

    @abstractmethod
    def collect(self, seconds: float = math.inf) -> Outcome | None:
        """The next result, whichever it is; None where there is none within so many seconds. Something must be under
        way."""

    @abstractmethod
    def cancel(self) -> list[Outcome]:
        """Give up all that is under way: each kernel, and how long it kept a worker until now."""

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
        finally:  # the caller may have had enough before the end
            self.cancel()


def given_up(device: Device, problem: Problem, kernel: Kernel, why: str) -> Measurement:
    """The verdict on a kernel with which workers were lost again and again. Nobody knows whose fault that was."""
    reason = f"its worker was lost {LOSSES} times, the last time: {why or 'nobody knows why'}"
    return Measurement(problem.name, kernel, device.name, Status.DEVICE_FAULT, reason)


def _key(problem: Problem, kernel: Kernel) -> tuple[str, str]:
    return problem.name, kernel.hash
