"""Convolutions, dense and depthwise."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.convolutions import dense, depthwise

    yield from dense.OPERATIONS
    yield from depthwise.OPERATIONS
