"""The `History` class: the steps that were carried out, and what each of them changed on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from presage_gui.screen import Box, Screen
from presage_gui.step import Step


class Effect(StrEnum):
    """The kind of change that a step made."""

    NOTHING = "nothing"
    EXPECTED = "expected"
    OTHER = "other"
    """Something changed, but not what the step should change."""


@dataclass(frozen=True)
class Entry:
    """One step that was carried out, with the evidence of what it changed."""

    step: Step
    before: Screen
    after: Screen
    effect: Effect
    changed: tuple[Box, ...] = ()
    """The regions where the two screens differ, without spontaneous changes (animations, clocks, cursors)."""
    note: str = ""
    """A description of the changes."""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON data. Screens are given by their digests."""
        return {
            "step": self.step.to_json(), "before": self.before.digest, "after": self.after.digest,
            "effect": str(self.effect), "changed": [box.to_json() for box in self.changed], "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True)
class History(Sequence[Entry]):
    """An immutable sequence of entries, in order. `+` returns a new history with one more entry."""

    entries: tuple[Entry, ...] = field(default=())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: Any) -> Any:
        return self.entries[index]

    def __add__(self, entry: Entry) -> History:
        return History((*self.entries, entry))
