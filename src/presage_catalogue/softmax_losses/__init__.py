"""Softmax and the losses built on it."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.softmax_losses import losses, maps

    yield from losses.OPERATIONS
    yield from maps.OPERATIONS
