"""Elementwise operations."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.elementwise import fused, maps

    yield from fused.OPERATIONS
    yield from maps.OPERATIONS
