"""Search: parents, the archive, the loop and its budgets. The package can be called: `presage.search("softmax")`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package is an object of its class; this one has the function of its name."""

    def __call__(self, problem: str, **settings: Any) -> Any:
        """Search for a faster kernel, and return the run; see presage.search.run.search."""
        from presage.search.run import search

        return search(problem, **settings)


sys.modules[__name__].__class__ = _Callable
