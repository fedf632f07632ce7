"""Presage forecasts what a costly action will do before anyone pays for it.

The nouns and verbs of the package by name; what is not listed in `__all__` may change. Nothing is imported before it is
asked for, so `import presage` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presage.searches.run import Run, search

__version__ = "0.1.0"
__all__ = ["Run", "search"]

_HOMES = {
    "presage.searches.run": ("Run", "search"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'presage' has no attribute '{name}'")
    thing = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
