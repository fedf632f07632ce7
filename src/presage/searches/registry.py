"""Strategies by name: entry points in the group `presage.strategies`."""

from __future__ import annotations

from typing import Any

from presage.plugins.group import STRATEGIES
from presage.searches.base import Strategy

DEFAULT = "puct"
names = STRATEGIES.names


def get(spec: str = DEFAULT, **settings: Any) -> Strategy:
    """Return a new strategy. Raises PresageError for an unknown name or a wrong setting."""
    strategy: Strategy = STRATEGIES.make(spec, **settings)
    return strategy
