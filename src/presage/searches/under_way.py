"""Keeping a pool of devices busy: a search hands in what it has chosen before earlier results are there, and learns
from each result when it comes, in any order.

What is under way is no part of the state, which says only that it waits. So a run that is killed measures it again. It
counts as spent meanwhile, and a kernel that is lost with its worker waits again."""

from __future__ import annotations

import math
from dataclasses import replace

from presage.devices.base import Effort
from presage.devices.pool import LOSSES, Outcome, Pool, given_up
from presage.searches import measuring
from presage.searches.session import Session

_SHARE = 8
"""A step decides on so large a part of the room there is: what each of them teaches is heard before most are chosen."""


class UnderWay:
    """What a pool is measuring for a search."""

    def __init__(self, session: Session, pool: Pool) -> None:
        self._session, self._pool = session, pool
        self._most = session.under_way

    def advance(self, has_to_wait: bool) -> bool:
        """Learn from a result that is there, or else hand in what waits, or else, where there is no room or no more to
        choose from, wait for the next result. False where there was none of that to do."""
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
        """How many candidates the next step should decide on, as far as the pool is concerned."""
        return max(1, math.ceil((self._pool.lanes - len(self._most)) / _SHARE))

    def collect(self, seconds: float = math.inf) -> bool:
        """Keep the next result. False where there is none in so many seconds, or before the run's time is up."""
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
        """Give up what is under way."""
        for outcome in self._pool.cancel():
            self._lose(outcome, cancelled=True)
        self._most.clear()

    def _lose(self, outcome: Outcome, cancelled: bool = False) -> None:
        told = {"kernel": outcome.kernel.hash, "seconds": outcome.seconds, "why": outcome.why, "cancelled": cancelled}
        self._session.append("lost", told)

    def _submit(self) -> bool:
        """Hand in the first that waits and is not under way, where the budget covers it."""
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
        """Whether another can be under way: there is a device for it, and each may take as long as it may."""
        effort, _ = self._effort()
        is_covered = not self._most or effort.timeout >= measuring.effort(self._session)[0].timeout
        left = self._session.spending.measurements_left()
        return len(self._most) < self._pool.lanes and left != 0 and is_covered

    def _effort(self) -> tuple[Effort, bool]:
        """How hard to try, and whether kernels are foreign. No longer than what is left if all others take as long as
        they may."""
        effort, foreign = measuring.effort(self._session)
        spent, budget = self._session.spending.spent(), self._session.budget
        device = budget.left("device_seconds", spent) - sum(self._most.values())
        return replace(effort, timeout=min(effort.timeout, device)), foreign
