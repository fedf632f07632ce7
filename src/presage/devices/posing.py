"""Posing: the problems whose kernels are being measured. Each is prepared once and closed after its last kernel.

A problem from elsewhere has a child that runs its reference, and memory on the device. So only a few of hundreds of
problems are open at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from presage.core.errors import PresageError
from presage.devices.plan import Plan
from presage.problems.base import Problem

MOST_OPEN = 8


@dataclass
class _Open:
    """A problem while it has kernels to be measured."""

    kernels: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)
    """The thread that holds this lock prepares the problem. Other threads wait for it."""
    posed: tuple[Problem, Plan] | None = None
    stack: ExitStack = field(default_factory=ExitStack)


class Posing:
    """The main thread announces the problem of each kernel, and other threads get the problem. The last announced
    problem stays open until another is announced, since more of its kernels may come."""

    def __init__(
        self, pose: Callable[[Problem], AbstractContextManager[Problem]], kind: str, undertaker: Executor
    ) -> None:
        self._pose, self._kind, self._undertaker = pose, kind, undertaker
        self._changed = threading.Condition()
        self._open: dict[str, _Open] = {}
        self._latest, self._closing = "", 0
        self._is_closing = False

    def announce(self, problem: Problem) -> None:
        """Announce a kernel of this problem. Call `leave` when the kernel is done."""
        with self._changed:
            self._latest = problem.name
            self._open.setdefault(problem.name, _Open()).kernels += 1
            self._let_go()

    def get(self, problem: Problem) -> tuple[Problem, Plan]:
        """Return the problem in a form that can be measured, and its plan. Waits while too many problems are open.
        Raises PresageError."""
        entry = self._open[problem.name]
        with entry.turn:
            if entry.posed is None:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing or self._count() < MOST_OPEN)
                    if self._is_closing:
                        raise PresageError("the measurement was stopped")
                    entry.posed = problem, Plan((), ())  # it counts as open from here on
                try:
                    posed = entry.stack.enter_context(self._pose(problem))
                    entry.posed = posed, Plan.draw(posed, self._kind)
                except PresageError:
                    entry.posed = None
                    raise
            return entry.posed

    def leave(self, problem: str) -> None:
        """Report that a kernel of this problem is done."""
        with self._changed:
            self._open[problem].kernels -= 1
            self._let_go()

    def stop(self) -> None:
        """End all waiting: threads that wait get a PresageError."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def close(self) -> None:
        """Close all problems. No thread may call `get` any more."""
        for entry in self._open.values():
            entry.stack.close()
        self._open.clear()

    def _count(self) -> int:
        return self._closing + sum(entry.posed is not None for entry in self._open.values())

    def _let_go(self) -> None:
        for name, entry in list(self._open.items()):
            if not entry.kernels and (name != self._latest or self._count() >= MOST_OPEN):
                del self._open[name]
                self._closing += 1
                self._undertaker.submit(self._close, entry)

    def _close(self, entry: _Open) -> None:
        try:
            entry.stack.close()
        finally:
            with self._changed:
                self._closing -= 1
                self._changed.notify_all()
