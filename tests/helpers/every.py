"""Tests that ask one thing of very many: as one test each, since thousands of small ones take longer than what they
test. All that fail are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")


def of_every(
    things: Iterable[T], name: Callable[[T], str] = str
) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Makes of a test of one thing a test of all of them."""

    def decorate(check: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            failed = {}
            for each in things:
                try:
                    check(each)
                except (Exception, pytest.fail.Exception) as error:
                    failed[name(each)] = f"{type(error).__name__}: {error}"
            assert not failed, "\n".join(f"{what}: {why}" for what, why in failed.items())

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
