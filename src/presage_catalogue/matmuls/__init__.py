"""Matrix products."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.matmuls import products, vectors

    yield from products.OPERATIONS
    yield from vectors.OPERATIONS
