"""Gathers and scatters: reads and writes at addresses that depend on the data."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.gather_scatter import gathers, lists, scatters

    yield from gathers.OPERATIONS
    yield from lists.OPERATIONS
    yield from scatters.OPERATIONS
