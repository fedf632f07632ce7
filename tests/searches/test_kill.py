"""A search that is killed again and again, at random instants, ends as one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presage import PresageError
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.store.store import Store

BUDGET = Budget(30)
KILLS = int(os.environ.get("PRESAGE_KILLS", "20"))
"""PRESAGE_KILLS=200 takes a quarter of a minute."""


def work(folder: Path, parts: Parts, seed: int) -> None:
    with Store(folder) as store:
        Search(store, parts, BUDGET, batch=8, seed=seed).run()


def is_killed(folder: Path, parts: Parts, seed: int, after: float) -> bool:
    """Work in a process of its own, and kill that after so many seconds; whether it was still at work then."""
    child = os.fork()
    if child == 0:
        try:
            work(folder, parts, seed)
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def history(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    with Store(folder, writes=False) as store:
        told = [(event.kind, event.payload) for event in store.events() if event.kind != "session"]
    for _, payload in told:
        payload.pop("seconds", None)
        for name in ("device_seconds", "wall_seconds"):
            payload.get("spent", {}).pop(name, None)
    return told


def test_kills_lose_nothing_repeat_nothing_and_change_nothing(
    tmp_path: Path, make_parts: Callable[..., Parts], knowing: Any
) -> None:
    rng = random.Random(0)
    kills = seed = 0
    while kills < KILLS:
        start = time.monotonic()
        work(tmp_path / f"whole{seed}", make_parts(knowing(), "risk"), seed)
        whole = time.monotonic() - start
        cut = tmp_path / f"cut{seed}"
        seen: list[tuple[str, dict[str, Any]]] = []
        patience = whole / 8
        while is_killed(cut, make_parts(knowing(), "risk"), seed, rng.uniform(0, patience)):
            kills += 1
            now = history(cut) if (cut / "run.db").exists() and _begun(cut) else []
            assert now[: len(seen)] == seen, "something that was kept is gone"
            patience = whole / 8 if len(now) > len(seen) else 1.5 * patience  # a busy machine gets nowhere else
            seen = now
        assert history(cut) == history(tmp_path / f"whole{seed}")
        measured = Counter(payload["kernel"] for kind, payload in history(cut) if kind == "measured")
        assert set(measured.values()) == {1}
        seed += 1


def _begun(folder: Path) -> bool:
    """Whether the process lived long enough to make its database."""
    with Store(folder) as store:
        return len(store) > 0


def test_two_processes_on_one_run_the_second_is_refused(tmp_path: Path, make_parts: Callable[..., Parts]) -> None:
    with Store(tmp_path), pytest.raises(PresageError, match=f"process {os.getpid()} is working on {tmp_path}"):
        work(tmp_path, make_parts(), 0)
