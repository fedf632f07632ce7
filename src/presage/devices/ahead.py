"""What is made ready ahead of need: workers start, load and compile in threads, while the lane has another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

Ready = TypeVar("Ready")


class Ahead(Generic[Ready]):
    """Calls each of `begins` in a thread. No more are made ready, or wait to be taken, than there is room for."""

    def __init__(self, begins: Iterator[Callable[[], Ready]], room: int) -> None:
        self.room = room
        self._begins, self._again = begins, deque[Callable[[], Ready]]()
        self._futures: set[Future[Ready]] = set()
        self._renewed: set[Future[Ready]] = set()
        """Those of them that were postponed once."""
        self._urgent: set[Future[Ready]] = set()
        """Those that are taken before all others."""
        self._pool = ThreadPoolExecutor(room)

    def take(self) -> Ready | None:
        """Whatever is ready first, and what is urgent before all that is ready; None if there is nothing left. Raises
        what making it ready raised."""
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
        """One that is begun already: there is room for it."""
        future = self._pool.submit(begin)
        self._futures.add(future)
        if urgent:
            self._urgent.add(future)
        return future

    def postpone(self, give_up: Callable[[Ready], Callable[[], Ready]]) -> None:
        """Give up what is ready and waits, as it keeps memory that is needed now. It is begun again later, by what
        `give_up` returns, and from here on there is less room. One of these is always on its way: what others wait for
        may be theirs."""
        waiting = [future for future in self._futures if future.done() and not future.exception()]
        for future in waiting:
            self._drop(future)
            self._again.append(give_up(future.result()))
        if waiting:
            self.room = max(1, self.room // 2)

    def stop(self, interrupt: Callable[[], None]) -> list[Ready]:
        """Begin nothing more. What is being made ready is interrupted: compiling can take minutes. Returns what was
        ready and is no longer wanted."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        interrupt()
        self._pool.shutdown()
        return [future.result() for future in self._futures if not future.cancelled() and not future.exception()]

    def _drop(self, future: Future[Ready]) -> None:
        self._futures.discard(future)
        self._renewed.discard(future)
        self._urgent.discard(future)
