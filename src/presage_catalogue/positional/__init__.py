"""Positional encodings: tell a model the position of each element in its sequence."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.positional import biases, rotations

    yield from biases.OPERATIONS
    yield from rotations.OPERATIONS
