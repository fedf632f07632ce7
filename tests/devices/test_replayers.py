"""Replayers are started ahead of need, shared by modules in turn, and ended when they have served enough."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from presage import Status
from presage.devices import replayers
from presage.devices.child import Child, VerdictError
from presage.devices.replayers import Replayers


class FakeChild(Child):
    """A replayer that closes what it had, or cannot."""

    def __init__(self, fails: bool = False) -> None:
        self.told: list[str] = []
        self.is_dead, self._fails = False, fails

    def command(self, do: str, **details: Any) -> dict[str, Any]:
        self.told.append(do)
        if self._fails:
            raise VerdictError(Status.RUNTIME_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS")
        return {}

    def kill(self) -> None:
        self.is_dead = True


class Started:
    """Counts what it starts; the first so many fail."""

    def __init__(self, failures: int = 0) -> None:
        self.children: list[FakeChild] = []
        self._failures, self._lock = failures, threading.Lock()

    def __call__(self) -> Child:
        with self._lock:
            if self._failures:
                self._failures -= 1
                raise VerdictError(Status.DEVICE_FAULT, "a worker process did not start")
            self.children.append(FakeChild())
            return self.children[-1]


def test_as_many_are_started_as_are_in_use_and_a_few() -> None:
    start = Started()
    pool = Replayers(start)
    pool.stock()
    pool.stock()
    taken = {id(pool.take()) for _ in range(3)}
    assert len(taken) == 3
    pool.close()
    assert len(start.children) == 3 + replayers.SPARE
    assert sum(child.is_dead for child in start.children) == replayers.SPARE


def test_one_that_is_given_back_is_cleared_and_taken_again() -> None:
    start = Started()
    pool = Replayers(start)
    for _ in range(5 * replayers.SPARE):
        pool.give_back(pool.take())
    pool.close()
    assert len(start.children) <= 1 + replayers.SPARE
    assert any(child.told[:2] == ["close", "load"] for child in start.children)
    assert all(child.is_dead for child in start.children)


def test_one_that_cannot_be_cleared_ends() -> None:
    pool = Replayers(Started())
    broken = FakeChild(fails=True)
    pool.give_back(broken)
    assert pool.take() is not broken
    pool.close()
    assert broken.is_dead


def test_none_serves_for_ever() -> None:
    pool = Replayers(Started())
    worn = FakeChild()
    worn.served = replayers.MOST_SERVED
    pool.give_back(worn)
    pool.close()
    assert worn.is_dead
    assert worn.told == []


def test_one_that_does_not_start_is_tried_again_and_then_said_to_be_missing() -> None:
    pool = Replayers(Started(failures=1))
    assert pool.take()
    pool.close()
    pool = Replayers(Started(failures=100))
    with pytest.raises(VerdictError, match="did not start"):
        pool.take()
    pool.close()
