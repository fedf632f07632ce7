"""Ahead: prepares kernels in threads while another kernel holds the lane. Preparing starts workers, loads and
compiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

Ready = TypeVar("Ready")


class Ahead(Generic[Ready]):
    """Calls each of `begins` in a thread. At most `room` results are being prepared or wait to be taken."""

    def __init__(self, begins: Iterator[Callable[[], Ready]], room: int) -> None:
        self.room = room
        self._begins, self._again = begins, deque[Callable[[], Ready]]()
        self._futures: set[Future[Ready]] = set()
        self._renewed: set[Future[Ready]] = set()
        """The futures that were postponed once."""
        self._urgent: set[Future[Ready]] = set()
        """The futures that are taken before all others."""
        self._pool = ThreadPoolExecutor(room)

    def take(self) -> Ready | None:
        """Wait for the first result and return it, urgent results before others; None if there is nothing left. Raises
        what the function raised."""
        while self._again and (len(self._futures) < self.room or not self._renewed):
            self._renewed.add(self.add(self._again.popleft()))
        while len(self._futures) < self.room and (begin := next(self._begins, None)):
            self.add(begin)
        if not self._futures:
            return None
        done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
        future = next(iter(done & self._urgent or done))
        self._drop(future)
        return future.result()

    def add(self, begin: Callable[[], Ready], urgent: bool = False) -> Future[Ready]:
        """Call a function in a thread at once. The caller sees to it that there is room."""
        future = self._pool.submit(begin)
        self._futures.add(future)
        if urgent:
            self._urgent.add(future)
        return future

    def postpone(self, give_up: Callable[[Ready], Callable[[], Ready]]) -> None:
        """Give up results that are ready and wait to be taken, because they keep memory that is needed now. Each is
        prepared again later, by the function that `give_up` returns, and from here on there is half the room. One of
        these functions is always running, room or not, because other threads may wait for its kernel to be done."""
        waiting = [future for future in self._futures if future.done() and not future.exception()]
        for future in waiting:
            self._drop(future)
            self._again.append(give_up(future.result()))
        if waiting:
            self.room = max(1, self.room // 2)

    def stop(self, interrupt: Callable[[], None]) -> list[Ready]:
        """Start nothing more, and interrupt what is being prepared, since compiling can take minutes. Returns the
        results that were ready and are no longer wanted."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        interrupt()
        self._pool.shutdown()
        return [future.result() for future in self._futures if not future.cancelled() and not future.exception()]

    def _drop(self, future: Future[Ready]) -> None:
        self._futures.discard(future)
        self._renewed.discard(future)
        self._urgent.discard(future)
