"""Proposers by name: entry points in the group `presage.proposers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.plugins.group import PROPOSERS

if TYPE_CHECKING:
    from presage.proposers.base import Ground, Proposer

names = PROPOSERS.names


def get(spec: str, ground: Ground, **settings: Any) -> Proposer:
    """Return a new proposer for a search. Raises PresageError for an unknown name or a wrong setting."""
    proposer: Proposer = PROPOSERS.make(spec, ground, **settings)
    return proposer


def check(spec: str, in_dollars: bool = False) -> None:
    """Raise PresageError if this proposer cannot work here, or if its prices are unknown and the budget needs them."""
    PROPOSERS.load(spec.partition(":")[0]).check(in_dollars)
