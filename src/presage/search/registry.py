"""Strategies by name, which is their file's."""

from __future__ import annotations

from pathlib import Path

from presage.core import plugins
from presage.core.errors import PresageError
from presage.search.base import Strategy

DEFAULT = "puct"
_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Every file here that defines a strategy; none is imported for that."""
    return plugins.names(_FOLDER, "Strategy")


def get(name: str = DEFAULT) -> Strategy:
    """A new strategy of this name."""
    if name not in names():
        raise PresageError(f"there is no strategy '{name}'; there are: {', '.join(names())}")
    return plugins.find("presage.search", name, Strategy)()
