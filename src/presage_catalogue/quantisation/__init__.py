"""Quantisation to few bits, and dequantisation."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.quantisation import groups, recodes

    yield from groups.OPERATIONS
    yield from recodes.OPERATIONS
