"""Proposers by name, which is their file's."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core import plugins
from presage.core.errors import PresageError

if TYPE_CHECKING:
    from presage.proposers.base import Ground, Proposer

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Every file here that defines a proposer; none is imported for that."""
    return plugins.names(_FOLDER, "Proposer")


def get(name: str, ground: Ground, **settings: Any) -> Proposer:
    """A new proposer of this name for a search, or a PresageError that says what there is."""
    if name not in names():
        raise PresageError(f"there is no proposer '{name}'; there are: {', '.join(names())}")
    make = _class(name)
    known = [setting for setting in inspect.signature(make).parameters if setting != "ground"]
    for setting in sorted(settings.keys() - known):
        raise PresageError(f"the proposer {name} has no setting '{setting}'; it has: {', '.join(known) or 'none'}")
    return make(ground, **settings)


def check(name: str, in_dollars: bool = False) -> None:
    """A PresageError where this one could not work here, or could not say what it costs where a budget asks that."""
    _class(name).check(in_dollars)


def _class(name: str) -> type[Proposer]:
    from presage.proposers.base import Proposer

    return plugins.find("presage.proposers", name, Proposer)
