"""The split of the tasks into train, validation and test, by family (`splits.toml`). It was fixed before any rule was
written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from presage import PresageError
from presage.core.errors import hint

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@cache
def families() -> Mapping[Split, Mapping[str, tuple[str, ...]]]:
    """Return the tasks of each family of each split."""
    kept = tomllib.loads((Path(__file__).parent / "splits.toml").read_text())
    return {split: {family: tuple(tasks) for family, tasks in kept[split].items()} for split in SPLITS}


def tasks(split: Split) -> tuple[str, ...]:
    return tuple(task for each in families()[split].values() for task in each)


def where(task: str) -> tuple[Split, str]:
    """Return the split and the family of a task. Raises PresageError for a task in no split.

    >>> where("click-tab-2")
    ('test', 'tab')
    """
    for split in SPLITS:
        for family, members in families()[split].items():
            if task in members:
                return split, family
    known = [each for split in SPLITS for each in tasks(split)]
    raise PresageError(f"no split has a task '{task}'; {hint(task, known, 'see splits.toml')}")
