"""Lists all parts that installed packages declare, with their summaries, their settings and their errors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.plugins.group import GROUPS, OPERATOR_RECORDINGS, PROPOSERS, RECORDINGS, Group, settings_of


@dataclass(frozen=True)
class Declared:
    """One entry point."""

    kind: str
    name: str
    package: str
    version: str
    place: str
    """The object that the entry point refers to, as MODULE:NAME."""
    summary: str = ""
    """The first sentence of the part's docstring."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The settings that can follow the part's name on the command line, with their defaults."""
    error: str | None = None
    """Why the part cannot be used; None if it can."""


def declared(groups: Sequence[Group] = GROUPS) -> Iterator[Declared]:
    """Yield every entry point of these groups. Each part is imported, so that broken ones are reported."""
    for group in groups:
        for point in group.points():
            package, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
            known = (group.noun, point.name, package, version, point.value)
            try:
                part = group.load(point.name)
                if group in (RECORDINGS, OPERATOR_RECORDINGS) and not Path(part).is_file():
                    raise PresageError(f"the {group.noun} '{point.name}' of {package} lacks its file {part}")
                yield Declared(*known, *(_described(group, part) if group.base else ()))
            except PresageError as error:
                yield Declared(*known, error=str(error))


def _described(group: Group, part: Any) -> tuple[str, dict[str, Any]]:
    """The first sentence of the part's docstring, and the settings that can be written as text."""
    text = " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())
    settings = settings_of(part, leading=1 if group is PROPOSERS else 0)
    plain = {
        name: each.default for name, each in settings.items() if isinstance(each.default, str | int | float | None)
    }
    return text.partition(". ")[0].rstrip("."), plain
