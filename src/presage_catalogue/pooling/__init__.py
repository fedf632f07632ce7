"""Reductions over sliding windows."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.pooling import whole_planes, windows

    yield from whole_planes.OPERATIONS
    yield from windows.OPERATIONS
