"""The entry points of installed packages, and those of this checkout if presage runs from it without being installed.

Nothing is imported.
"""

from __future__ import annotations

import functools
import importlib.metadata
import tomllib
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError
from pathlib import Path
from typing import Any

DISTRIBUTION = "presage-kernels"
_PROJECT = Path(__file__).parents[3] / "pyproject.toml"
"""Of the checkout; an installed package has no such file."""


def entry_points(group: str) -> list[EntryPoint]:
    """Every entry point of a group such as `presage.policies`."""
    return [*importlib.metadata.entry_points(group=group), *_of_checkout(group)]


def _of_checkout(group: str) -> list[EntryPoint]:
    """Our own, where `PYTHONPATH=src python -m presage` runs and no installed package declares them."""
    try:
        importlib.metadata.distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return list(Checkout().entry_points.select(group=group)) if _project() else []
    return []


class Checkout(Distribution):
    """What `pip install -e .` would install, as pyproject.toml declares it."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            from presage import __version__

            return f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {__version__}\n"
        if filename != "entry_points.txt":
            return None
        groups = _project().get("entry-points", {})
        return "\n".join(
            line for group, parts in groups.items() for line in (f"[{group}]", *map(" = ".join, parts.items()))
        )

    def locate_file(self, path: Any) -> Any:
        return _PROJECT.parent / path


@functools.cache
def _project() -> dict[str, Any]:
    """The table `project` of our pyproject.toml; empty if there is none."""
    try:
        project: dict[str, Any] = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return {}
    return project if project.get("name") == DISTRIBUTION else {}
