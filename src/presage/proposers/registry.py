"""Proposers by name: entry points in the group `presage.proposers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.plugins.group import PROPOSERS

if TYPE_CHECKING:
    from presage.proposers.base import Ground, Proposer

names = PROPOSERS.names


def get(spec: str, ground: Ground, **settings: Any) -> Proposer:
    """A new proposer of this name for a search, or a PresageError that says what there is."""
    proposer: Proposer = PROPOSERS.make(spec, ground, **settings)
    return proposer


def check(spec: str, in_dollars: bool = False) -> None:
    """A PresageError where this one could not work here, or could not say what it costs where a budget asks that."""
    PROPOSERS.load(spec.partition(":")[0]).check(in_dollars)
