"""Everything that installed packages declare: what it does, its settings, and what is wrong with it."""

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
    """The module and the name in it."""
    summary: str = ""
    """What it does, in a sentence."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What can be written after its name on the command line, with the defaults."""
    error: str | None = None
    """Why it cannot be used; None where it can."""


def declared(groups: Sequence[Group] = GROUPS) -> Iterator[Declared]:
    """Every entry point of these groups. Each is imported, so that what is broken is seen."""
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
    """The first sentence of its docstring, and the settings that can be written as text."""
    text = " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())
    settings = settings_of(part, leading=1 if group is PROPOSERS else 0)
    plain = {
        name: each.default for name, each in settings.items() if isinstance(each.default, str | int | float | None)
    }
    return text.partition(". ")[0].rstrip("."), plain
