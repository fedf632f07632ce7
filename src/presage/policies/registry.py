"""Policies by name, which is their file's."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core import plugins
from presage.core.errors import PresageError

if TYPE_CHECKING:
    from presage.policies.base import Policy

DEFAULT = "risk"
_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Every file here that defines a policy; none is imported for that."""
    return plugins.names(_FOLDER, "Policy")


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

    return plugins.find("presage.policies", name, Policy)
