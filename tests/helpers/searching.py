"""Runs whole searches in tests, and tells what happened in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.searches.state import State
from presage.store.store import Event, Store

MakeParts = Callable[..., Parts]


def finish(folder: Path, parts: Parts, budget: Budget, batch: int = 8, seed: int = 0) -> Search:
    with Store(folder) as store:
        search = Search(store, parts, budget, batch, seed)
        search.run()
        return search


def events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """What happened, without what differs between two runs of the same thing: processes and times."""
    with Store(folder, writes=False) as store:
        told = [(event.kind, event.payload) for event in store.events() if event.kind != "session"]
    for _, payload in told:
        payload.pop("seconds", None)
        payload.get("spent", {}).pop("device_seconds", None)
        payload.get("spent", {}).pop("wall_seconds", None)
    return told


def of_kind(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [payload for name, payload in events(folder) if name == kind]


class InterruptionError(Exception):
    pass


def interrupted(
    folder: Path, make: Callable[[], Parts], budget: Budget, batch: int, after: int = 2, until: float | None = None
) -> Iterator[int]:
    """Run a search so many events at a time, each time in a process of its own as it were; count the interruptions."""
    for number in itertools.count(1):
        with Store(folder) as store:
            try:
                Search(store, make(), budget, batch, watch=_stopping_after(after), until=until).run()
            except InterruptionError:
                yield number
            else:
                return


def _stopping_after(count: int) -> Callable[[Event, State], None]:
    seen = itertools.count(1)

    def watch(event: Event, state: State) -> None:
        if next(seen) == count:
            raise InterruptionError

    return watch
