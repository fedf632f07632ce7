"""Operations that move data and compute nothing."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.layout import moves

    yield from moves.OPERATIONS
