"""What a submission written for GPU MODE imports, where there is no folder of its competition beside it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Task(ModuleType):
    """Any type, whatever it is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Any


def provide_types() -> None:
    """Let `from task import input_t, output_t` work; they are used in annotations only."""
    if "task" not in sys.modules and importlib.util.find_spec("task") is None:
        sys.modules["task"] = _Task("task")
