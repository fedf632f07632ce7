"""Proposers by name, which is their file's."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core.errors import PresageError

if TYPE_CHECKING:
    from presage.proposers.base import Ground, Proposer

_FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Every file here that defines a proposer; none is imported for that."""
    return tuple(file.stem for file in sorted(_FOLDER.glob("*.py")) if "(Proposer):\n" in file.read_text())


def get(name: str, ground: Ground, **settings: Any) -> Proposer:
    """A new proposer of this name for a search, or a PresageError that says what there is."""
    if name not in names():
        raise PresageError(f"there is no proposer '{name}'; there are: {', '.join(names())}")
    make = _class(name)
    known = [setting for setting in inspect.signature(make).parameters if setting != "ground"]
    for setting in sorted(settings.keys() - known):
        raise PresageError(f"the proposer {name} has no setting '{setting}'; it has: {', '.join(known) or 'none'}")
    return make(ground, **settings)


def _class(name: str) -> type[Proposer]:
    from presage.proposers.base import Proposer

    module = importlib.import_module(f"presage.proposers.{name}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, Proposer) and thing.__module__ == module.__name__:
            return thing
    raise PresageError(f"{module.__file__} defines no Proposer")
