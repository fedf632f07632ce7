"""Operations that work on each element by itself."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.elementwise import fused, maps
    from presage_catalogue.elementwise.gelu.problem import Gelu
    from presage_catalogue.elementwise.vector_add.problem import VectorAdd

    yield from fused.OPERATIONS
    yield from maps.OPERATIONS
    yield from (Gelu(), VectorAdd())
