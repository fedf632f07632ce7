"""Normalisations: scale rows or channels by their statistics."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.normalisations import batches, rows

    yield from batches.OPERATIONS
    yield from rows.OPERATIONS
