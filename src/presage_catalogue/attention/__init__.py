"""Attention: averages of values, weighted by the similarity of their keys to a query."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.attention import heads

    yield from heads.OPERATIONS
