"""Prefix sums and other scans, sorting and selecting."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.scans import running, sorting

    yield from running.OPERATIONS
    yield from sorting.OPERATIONS
