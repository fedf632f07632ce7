"""Briefing: what forecasters and proposers are told about a run: kernels, measurements, the best and the latest failed
kernels."""

from __future__ import annotations

from functools import cached_property, lru_cache

from presage.devices.base import Device
from presage.forecasters.base import Measured, Task
from presage.problems.base import Problem
from presage.proposers.base import Parent
from presage.searches.state import REMEMBERED, State
from presage.store.store import Store

_OTHERS = 8
"""How many of the best kernels a proposer sees in addition to the parent."""
_CACHED = 4 * REMEMBERED


class Briefing:
    """Reads the kernels that the state names from the store, and caches them."""

    def __init__(self, store: Store, state: State, problem: Problem, device: Device) -> None:
        self._store, self._state, self._problem, self._device = store, state, problem, device
        self.kernel = lru_cache(_CACHED)(self._kernel)
        """A function (hash, measured) that returns a kernel, with its first measurement if `measured` is true. Else the
        status is `trusted`."""

    def _kernel(self, hash: str, measured: bool) -> Measured:
        kernel, reports = self._store.kernel(hash), self._store.reports(hash)
        if not measured:
            return Measured(kernel, reports, status="trusted")
        measurement = self._store.measurements(hash)[0]
        times = {case.case: case.median.value for case in measurement.cases}
        return Measured(kernel, reports, times, str(measurement.status))

    @cached_property
    def anchor(self) -> Measured:
        return self.kernel(self._state.hashes[0], True)

    def parent(self, id: int) -> Parent:
        """The kernel with this id of the archive, as a parent."""
        state = self._state
        return Parent(self.kernel(state.hashes[id], bool(state.is_measured[id])), state.values[id])

    def others(self, id: int) -> list[Parent]:
        """The best kernels other than this one, then the latest failed kernels, the latest first."""
        best = [self.parent(other) for _, other in reversed(self._state.best[-_OTHERS - 1 :]) if other != id]
        return [*best[:_OTHERS], *self._failed()]

    def _failed(self) -> list[Parent]:
        return [
            Parent(Measured(self._store.kernel(hash), self._store.reports(hash), status=status), None, reason)
            for hash, status, reason in reversed(self._state.failed)
        ]

    def task(self) -> Task:
        """The task for the forecaster. The neighbours are the measured kernels: the best first, then the latest."""
        state = self._state
        best = [state.hashes[id] for _, id in reversed(state.best) if id != 0]
        telling = dict.fromkeys([*best, *reversed(state.recent)])
        telling.pop(state.hashes[0], None)
        neighbours = [self.kernel(hash, True) for hash in telling]
        pending = [self.kernel(hash, False) for hash in state.waiting]
        return Task(self._problem, self.anchor, self._device.hardware, neighbours, self._device.kind, pending)
