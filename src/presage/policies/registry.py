"""Policies by name, which is their file's."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core.errors import PresageError

if TYPE_CHECKING:
    from presage.policies.base import Policy

DEFAULT = "risk"
_FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Every file here that defines a policy; none is imported for that."""
    return tuple(file.stem for file in sorted(_FOLDER.glob("*.py")) if "(Policy):\n" in file.read_text())


def get(name: str = DEFAULT, **settings: Any) -> Policy:
    """A new policy of this name with these settings, or a PresageError that says what there is."""
    if name not in names():
        raise PresageError(f"there is no policy '{name}'; there are: {', '.join(names())}")
    make = _class(name)
    known = list(inspect.signature(make).parameters)
    for setting in sorted(settings.keys() - known):
        raise PresageError(f"the policy {name} has no setting '{setting}'; it has: {', '.join(known) or 'none'}")
    return make(**settings)


def _class(name: str) -> type[Policy]:
    from presage.policies.base import Policy

    module = importlib.import_module(f"presage.policies.{name}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, Policy) and thing.__module__ == module.__name__:
            return thing
    raise PresageError(f"{module.__file__} defines no Policy")
