"""Problems whose kernels are being measured: made ready once, few at a time, let go of after their last kernel."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from presage import PresageError
from presage.devices import posing as module
from presage.devices.plan import Plan
from presage.devices.posing import Posing


class Posed:
    """Counts what is open, and fails for problems with a bad name."""

    def __init__(self) -> None:
        self.open, self.most, self.opened = 0, 0, []  # type: ignore[var-annotated]
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self, problem: Any) -> Iterator[Any]:
        if problem.name == "bad":
            raise PresageError("its reference failed")
        with self._lock:
            self.opened.append(problem.name)
            self.open += 1
            self.most = max(self.most, self.open)
        try:
            yield problem
        finally:
            with self._lock:
                self.open -= 1


@pytest.fixture
def posed(monkeypatch: pytest.MonkeyPatch) -> Posed:
    monkeypatch.setattr(Plan, "draw", lambda problem, kind: Plan((), ()))
    return Posed()


def problem(name: str) -> Any:
    return SimpleNamespace(name=name)


def measured(posing: Posing, names: list[str], threads: int = 4) -> None:
    """Kernels of these problems: so many at a time, each measured as soon as its problem is ready."""
    left = iter(names)
    with ThreadPoolExecutor(threads) as pool:
        ahead: dict[Any, str] = {}
        while True:
            for name in itertools.islice(left, threads - len(ahead)):
                posing.announce(problem(name))
                ahead[pool.submit(posing.get, problem(name))] = name
            if not ahead:
                return
            done, _ = wait(ahead, return_when=FIRST_COMPLETED)
            future = done.pop()
            future.result()
            posing.leave(ahead.pop(future))


def test_a_problem_is_made_ready_once_and_let_go_of_after_its_last_kernel(posed: Posed) -> None:
    with ThreadPoolExecutor(1) as undertaker:
        posing = Posing(posed, "gpu", undertaker)  # type: ignore[arg-type]
        measured(posing, ["a"] * 5 + ["b"] * 5 + ["c"])
    assert posed.opened == ["a", "b", "c"]
    assert posed.open == 1  # the last one, of which more may come
    posing.close()
    assert posed.open == 0


def test_few_are_open_at_a_time(posed: Posed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 2)
    with ThreadPoolExecutor(1) as undertaker:
        posing = Posing(posed, "gpu", undertaker)  # type: ignore[arg-type]
        measured(posing, [str(number) for number in range(20)])
        posing.close()
    assert len(posed.opened) == 20
    assert posed.most <= 2
    assert posed.open == 0


def test_a_problem_that_cannot_be_measured_says_so_to_each_of_its_kernels(posed: Posed) -> None:
    with ThreadPoolExecutor(1) as undertaker:
        posing = Posing(posed, "gpu", undertaker)  # type: ignore[arg-type]
        for _ in range(2):
            posing.announce(problem("bad"))
            with pytest.raises(PresageError, match="its reference failed"):
                posing.get(problem("bad"))
        posing.close()


def test_nobody_waits_after_the_end(posed: Posed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 1)
    with ThreadPoolExecutor(2) as pool:
        posing = Posing(posed, "gpu", pool)  # type: ignore[arg-type]
        posing.announce(problem("a"))
        posing.get(problem("a"))
        posing.announce(problem("b"))
        waiting = pool.submit(posing.get, problem("b"))
        posing.stop()
        with pytest.raises(PresageError, match="stopped"):
            waiting.result(timeout=10)
        posing.close()
    assert posed.open == 0
