"""Tests of many things of one kind: `./presage test` runs a part of them, and `./presage test -m sweep` the others.

What looks through all of a recording, which changes only when somebody records anew, is a sweep, too, and so is the
site of the documentation, which CI builds by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest


def mostly_in_sweeps(names: Iterable[Any], every: int = 4) -> list[Any]:
    """Parameters, of which all but one in so many are left to sweeps."""
    return [pytest.param(name, marks=_marks(number % every == 0)) for number, name in enumerate(names)]


def others_in_sweeps(table: Mapping[str, Any], *kept: str) -> list[Any]:
    """The rows of a table as parameters, named by their keys. All but those that are kept are left to sweeps."""
    assert set(kept) <= set(table)
    rows = {name: row if isinstance(row, tuple) else (row,) for name, row in table.items()}
    return [pytest.param(*row, id=name, marks=_marks(name in kept)) for name, row in rows.items()]


def _marks(is_kept: bool) -> Collection[pytest.MarkDecorator]:
    return [] if is_kept else [pytest.mark.sweep]
