"""Things by name, which is their file's: a new forecaster, policy, proposer or strategy is a new file in its folder."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from presage.core.errors import PresageError

T = TypeVar("T")


@cache
def names(folder: Path, kind: str) -> tuple[str, ...]:
    """Every file there that defines a class of this kind; none is imported for that."""
    return tuple(file.stem for file in sorted(folder.glob("*.py")) if f"({kind}):\n" in file.read_text("utf-8"))


def find(package: str, name: str, kind: Callable[..., T]) -> type[T]:
    """The class of this kind, itself a class, that the package's file of this name defines."""
    base: Any = kind
    module = importlib.import_module(f"{package}.{name}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, base) and thing.__module__ == module.__name__:
            return thing
    raise PresageError(f"{module.__file__} defines no {base.__name__}")
