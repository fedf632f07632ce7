"""Building blocks of current research models: triangle updates, gated delta rules, linear attention, experts' gates."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.research import experts, gated_delta, triangles

    yield from experts.OPERATIONS
    yield from gated_delta.OPERATIONS
    yield from triangles.OPERATIONS
