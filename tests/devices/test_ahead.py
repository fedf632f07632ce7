"""What is made ready ahead of need is taken as it becomes ready, and given up where there is no room for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from presage.devices.ahead import Ahead


def numbers(count: int) -> list[Callable[[], int]]:
    return [lambda number=number: number for number in range(count)]  # type: ignore[misc]


def taken(ahead: Ahead[int]) -> list[int]:
    found = []
    while (number := ahead.take()) is not None:
        found.append(number)
    return found


def test_each_is_taken_once() -> None:
    ahead = Ahead(iter(numbers(20)), room=3)
    assert sorted(taken(ahead)) == [*range(20)]
    assert ahead.stop(lambda: None) == []


def test_what_is_urgent_is_taken_before_what_was_ready_sooner() -> None:
    ahead = Ahead(iter(numbers(6)), room=6)
    assert ahead.take() is not None
    urgent = ahead.add(lambda: 100, urgent=True)
    urgent.result()
    assert ahead.take() == 100
    assert len(taken(ahead)) == 5


def test_what_is_given_up_is_begun_again_with_less_room() -> None:
    begun, given_up = [], []

    def give_up(number: int) -> Callable[[], int]:
        given_up.append(number)
        return lambda: 100 + number

    def begin(number: int) -> int:
        begun.append(number)
        return number

    ahead = Ahead((lambda number=number: begin(number) for number in range(8)), room=4)  # type: ignore[misc]
    first = ahead.take()
    while len(begun) < 4:
        pass
    ahead.postpone(give_up)
    assert given_up
    assert ahead.room == 2
    rest = {*range(8)} - {first, *given_up}
    assert {*taken(ahead)} == rest | {100 + number for number in given_up}


def test_what_was_given_up_is_not_kept_waiting_by_what_waits_for_it() -> None:
    freed = threading.Event()

    def free() -> int:
        freed.set()
        return 1

    def wait() -> int:
        assert freed.wait(30)
        return 2

    ahead = Ahead(iter([lambda: 0, lambda: 0, wait, wait, wait]), room=4)
    assert ahead.take() == 0
    while not any(future.done() for future in ahead._futures):
        pass
    ahead.postpone(lambda number: free)
    assert sorted(taken(ahead)) == [1, 2, 2, 2]


def test_what_fails_is_raised_and_what_is_left_is_returned() -> None:
    def fail() -> int:
        raise ValueError("it cannot be had")

    ahead = Ahead(iter([fail, *numbers(1)]), room=1)
    with pytest.raises(ValueError, match="it cannot be had"):
        ahead.take()
    ahead.add(lambda: 7)
    stopped = list[str]()
    ahead.stop(lambda: stopped.append("now"))
    assert stopped == ["now"]
