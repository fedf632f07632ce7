"""Replayers: a pool of processes that repeat the recorded steps of modules. No foreign host code has ever run in a
replayer, so one module after another can use it.

A GPU creates contexts one after another, and each takes about as long as a measurement. So there are only as many
replayers as are in use, and a few spare ones.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from presage.devices.child import Child, VerdictError

SPARE = 3
"""How many replayers are ready or starting while others are in use."""
MOST_SERVED = 16
"""How many modules a replayer serves before it ends, so that nothing that a module may have left there lasts."""
_TRIES = 3


class Replayers:
    """The pool. Any thread may take a replayer and give it back."""

    def __init__(self, start: Callable[[], Child]) -> None:
        """start: starts a replayer and waits until it can be used."""
        self._start = start
        self._ready: queue.SimpleQueue[Child | Exception] = queue.SimpleQueue()
        self._on_their_way = 0
        self._changing = threading.Lock()
        self._pool = ThreadPoolExecutor(SPARE + 1)

    def stock(self, wanted: int = SPARE) -> None:
        """Start replayers until `wanted` are ready or starting. Does not wait for them."""
        with self._changing:
            missing = wanted - self._ready.qsize() - self._on_their_way
            self._on_their_way += max(0, missing)
        for _ in range(missing):
            self._pool.submit(self._offer, self._start)

    def take(self) -> Child:
        """Return a replayer that is ready, or wait for the next. Raises VerdictError if none can be started."""
        tries = _TRIES
        while True:
            self.stock(1 + SPARE)
            if isinstance(found := self._ready.get(), Child):
                return found
            tries -= 1
            if not tries:
                raise found

    def give_back(self, child: Child) -> None:
        """Clear a replayer for the next module, in a thread that does not hold the lane, since that takes a while. A
        replayer that has served MOST_SERVED modules is killed."""
        if child.served >= MOST_SERVED:
            self._pool.submit(child.kill)
            return
        with self._changing:
            self._on_their_way += 1
        self._pool.submit(self._offer, lambda: _cleared(child))

    def close(self) -> None:
        """End the replayers that are not in use."""
        self._pool.shutdown()
        while not self._ready.empty():
            if isinstance(child := self._ready.get(), Child):
                child.kill()

    def _offer(self, make: Callable[[], Child]) -> None:
        try:
            made: Child | Exception = make()
        except Exception as error:  # `take` raises it
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
