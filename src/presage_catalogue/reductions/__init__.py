"""Reductions of many values to one."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.reductions import columns, rows

    yield from columns.OPERATIONS
    yield from rows.OPERATIONS
