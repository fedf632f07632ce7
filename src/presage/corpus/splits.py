"""The split of each problem, for training or for tests, fixed in splits.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from presage.problems.base import Problem

NAMES = ("train", "validation", "test_op", "test_family")


@cache
def _table() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_name("splits.toml").read_text())


def of(problem: Problem) -> str:
    """The split of a problem: that of its room if the whole room is unseen, else its own, else `train`."""
    return split(problem.name, problem.room)


def split(name: str, room: str) -> str:
    table = _table()
    if room in table["test_family_rooms"]:
        return "test_family"
    return next((split for split in ("validation", "test_op") if name in table[split]), "train")
