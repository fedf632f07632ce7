"""Stencils: compute each point of a grid from the points around it."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.stencils import planes, upsampling, volumes

    yield from planes.OPERATIONS
    yield from upsampling.OPERATIONS
    yield from volumes.OPERATIONS
