"""Replayers: the processes that repeat what modules were seen to do. No foreign host code has ever run in one, so one
module after the other can have it.

A GPU makes contexts one after the other, and each takes about as long as a measurement. So there are only as many of
these processes as are in use, and a few spare ones.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from presage.devices.child import Child, VerdictError

SPARE = 3
"""So many are ready, or on their way, while others are in use."""
MOST_SERVED = 16
"""A process serves so many modules and then ends, so that what one may have left there does not last."""
_TRIES = 3


class Replayers:
    """Any thread may take one and give it back."""

    def __init__(self, start: Callable[[], Child]) -> None:
        """start: makes one, and waits until it can be used."""
        self._start = start
        self._ready: queue.SimpleQueue[Child | Exception] = queue.SimpleQueue()
        self._on_their_way = 0
        self._changing = threading.Lock()
        self._pool = ThreadPoolExecutor(SPARE + 1)

    def stock(self, wanted: int = SPARE) -> None:
        """See to it that so many are ready or on their way. Does not wait for them."""
        with self._changing:
            missing = wanted - self._ready.qsize() - self._on_their_way
            self._on_their_way += max(0, missing)
        for _ in range(missing):
            self._pool.submit(self._offer, self._start)

    def take(self) -> Child:
        """One that is ready, or the next that will be. Raises VerdictError when none can be started."""
        tries = _TRIES
        while True:
            self.stock(1 + SPARE)
            if isinstance(found := self._ready.get(), Child):
                return found
            tries -= 1
            if not tries:
                raise found

    def give_back(self, child: Child) -> None:
        """The next module can have it, once it is cleared; that happens beside the lane, since it takes a while."""
        if child.served >= MOST_SERVED:
            self._pool.submit(child.kill)
            return
        with self._changing:
            self._on_their_way += 1
        self._pool.submit(self._offer, lambda: _cleared(child))

    def close(self) -> None:
        """End those that nobody has taken."""
        self._pool.shutdown()
        while not self._ready.empty():
            if isinstance(child := self._ready.get(), Child):
                child.kill()

    def _offer(self, make: Callable[[], Child]) -> None:
        try:
            made: Child | Exception = make()
        except Exception as error:  # whoever takes it raises it
            made = error
        with self._changing:
            self._on_their_way -= 1
            self._ready.put(made)


def _cleared(child: Child) -> Child:
    try:
        child.command("close")
        child.command("load", kind="replay")
    except VerdictError:
        child.kill()
        raise
    return child
