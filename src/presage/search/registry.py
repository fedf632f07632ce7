"""Strategies by name, which is their file's."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError
from presage.search.base import Strategy

DEFAULT = "puct"
_FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Every file here that defines a strategy; none is imported for that."""
    return tuple(file.stem for file in sorted(_FOLDER.glob("*.py")) if "(Strategy):\n" in file.read_text())


def get(name: str = DEFAULT) -> Strategy:
    """A new strategy of this name."""
    if name not in names():
        raise PresageError(f"there is no strategy '{name}'; there are: {', '.join(names())}")
    module = importlib.import_module(f"presage.search.{name}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, Strategy) and thing.__module__ == module.__name__:
            return thing()
    raise PresageError(f"{module.__file__} defines no Strategy")
