"""Measurements under way: keep a pool of devices busy. A search submits kernels before the results of earlier ones have
arrived, and learns from each result as it arrives, in any order.

The state does not record which kernels are under way: there, they wait. A killed run therefore measures them again.
Measurements under way count as spent. A kernel that is lost with its worker waits again."""

from __future__ import annotations

import math
from dataclasses import replace

from presage.devices.base import Effort
from presage.devices.pool import LOSSES, Outcome, Pool, given_up
from presage.searches import measuring
from presage.searches.session import Session

_SHARE = 8
"""A step decides on this fraction (1/8) of the free lanes, rounded up, so that results arrive before most kernels are
chosen."""


class UnderWay:
    """The kernels that a pool is measuring for a search."""

    def __init__(self, session: Session, pool: Pool) -> None:
        self._session, self._pool = session, pool
        self._most = session.under_way

    def advance(self, has_to_wait: bool) -> bool:
        """Store a result that has arrived; else submit a waiting kernel; else, if no more kernels can be submitted or
        `has_to_wait` is set, wait for the next result. Return False if there was nothing to do."""
        if self._most and self.collect(0.0):
            return True
        if self._submit():
            return True
        if not self._most or (self._has_room() and not has_to_wait):
            return False
        self.collect()
        return True

    @property
    def consider(self) -> int:
        """How many candidates the next step should decide on, given the free devices of the pool."""
        return max(1, math.ceil((self._pool.lanes - len(self._most)) / _SHARE))

    def collect(self, seconds: float = math.inf) -> bool:
        """Wait for the next result and store it. Return False if none arrives within `seconds`, or before the run's
        time is up. A kernel whose worker was lost LOSSES times gets the status device_fault."""
        outcome = self._pool.collect(max(0.0, min(seconds, self._session.spending.wall_left())))
        if outcome is None:
            return False
        hash = outcome.kernel.hash
        del self._most[hash]
        if outcome.measurement:
            measuring.keep(self._session, outcome.measurement, outcome.seconds)
            return True
        self._lose(outcome)
        if self._session.state.lost[hash] >= LOSSES:
            measurement = given_up(self._pool, outcome.problem, outcome.kernel, outcome.why)
            measuring.keep(self._session, measurement, 0.0)
        return True

    def stop(self) -> None:
        """Cancel all measurements under way."""
        for outcome in self._pool.cancel():
            self._lose(outcome, cancelled=True)
        self._most.clear()

    def _lose(self, outcome: Outcome, cancelled: bool = False) -> None:
        told = {"kernel": outcome.kernel.hash, "seconds": outcome.seconds, "why": outcome.why, "cancelled": cancelled}
        self._session.append("lost", told)

    def _submit(self) -> bool:
        """Submit the first waiting kernel that is not under way, if there is room. Return whether one was submitted."""
        session, state = self._session, self._session.state
        hash = next((hash for hash in state.waiting if hash not in self._most), None)
        if hash is None or not self._has_room():
            return False
        effort, foreign = self._effort()
        kernel = session.store.kernel(hash)
        self._pool.submit(session.parts.problem, kernel, effort, foreign, state.lost[hash])
        self._most[hash] = effort.timeout
        return True

    def _has_room(self) -> bool:
        """Whether another kernel can be submitted: a device is free, the budget covers another measurement, and the
        device time left covers the full timeout of every kernel under way and of this one."""
        effort, _ = self._effort()
        is_covered = not self._most or effort.timeout >= measuring.effort(self._session)[0].timeout
        left = self._session.spending.measurements_left()
        return len(self._most) < self._pool.lanes and left != 0 and is_covered

    def _effort(self) -> tuple[Effort, bool]:
        """Return the effort for the next kernel, and whether kernels are foreign. The timeout is limited to the device
        time left if all kernels under way use their full timeouts."""
        effort, foreign = measuring.effort(self._session)
        spent, budget = self._session.spending.spent(), self._session.budget
        device = budget.left("device_seconds", spent) - sum(self._most.values())
        return replace(effort, timeout=min(effort.timeout, device)), foreign
