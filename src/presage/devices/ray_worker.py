"""The worker on each device of a Ray cluster: an actor that owns the device and measures kernels on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import presage
from presage.core.errors import PresageError
from presage.devices import registry
from presage.devices.base import Device, Effort, Measurement
from presage.devices.examiner import ProblemError
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem
from presage.static.hardware import Hardware

Make = Callable[[], Device]
"""Makes the device of a worker."""


@dataclass(frozen=True)
class About:
    """A worker's description of its device."""

    model: str
    kind: str
    languages: tuple[str, ...]
    hardware: Hardware | None
    batch: int
    """How many kernels the worker should get together, since it prepares them in parallel."""
    bulk_effort: Effort
    own_effort: Effort | None
    version: str = presage.__version__


@dataclass(frozen=True)
class Refusal:
    """The reason why something cannot be done. Our own exceptions cannot be sent through Ray."""

    why: str
    problem: str | None = None
    """The name of the problem, if its own code failed."""

    @classmethod
    def of(cls, error: PresageError) -> Refusal:
        return cls(str(error), error.problem if isinstance(error, ProblemError) else None)

    def error(self) -> PresageError:
        return PresageError(self.why) if self.problem is None else ProblemError(self.problem, self.why)


class Worker:
    """One device, with its share of its host's cores for compiling."""

    def __init__(self, device: str | Make, place: str, share: tuple[int, int]) -> None:
        """place: a name for the device in the cluster. share: which of how many workers of the host this is."""
        self._place = place
        _keep_to_own_cores(*share)
        try:
            self._device: Device | Refusal = registry.get(device) if isinstance(device, str) else device()
        except PresageError as error:
            self._device = Refusal.of(error)

    def about(self) -> About | Refusal:
        device = self._device
        if isinstance(device, Refusal):
            return device
        has_own_way = type(device).measure_each is not Device.measure_each
        return About(
            device.model or device.name, device.kind, tuple(device.languages), device.hardware,
            device.at_once if has_own_way else 1, device.bulk_effort, device.own_effort,
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        return self._own.describe()

    def posed(self, problem: Problem, seconds: float) -> Problem | Refusal:
        """A problem from elsewhere as its own code describes it."""
        try:
            with self._own.posed(problem, seconds) as described:
                return described
        except PresageError as error:
            return Refusal.of(error)

    def measure(self, problem: Problem, kernels: Sequence[Kernel], effort: Effort) -> list[Measurement] | Refusal:
        """Measure kernels side by side."""
        try:
            found = self._own.measure(problem, kernels, effort, lambda doing, share: None)
        except PresageError as error:
            return Refusal.of(error)
        return [self._marked(each) for each in found]

    def measure_each(
        self, work: Sequence[tuple[Problem, Kernel]], effort: Effort, foreign: bool
    ) -> Iterator[tuple[Measurement, float] | Refusal]:
        """Measure kernels one by one. Yields each measurement with the seconds that it took."""
        start = time.monotonic()
        try:
            for measurement in self._own.measure_each(work, effort, foreign):
                yield self._marked(measurement), time.monotonic() - start
                start = time.monotonic()
        except PresageError as error:
            yield Refusal.of(error)

    def close(self) -> None:
        if isinstance(self._device, Device):
            self._device.close()

    @property
    def _own(self) -> Device:
        assert isinstance(self._device, Device)
        return self._device

    def _marked(self, measurement: Measurement) -> Measurement:
        return replace(measurement, facts={**measurement.facts, "worker": self._place})


def _keep_to_own_cores(index: int, workers: int) -> None:
    """Bind this worker to its own share of the cores, since the workers of one host compile at the same time."""
    if workers > 1 and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[index::workers] or [cores[index % len(cores)]])
