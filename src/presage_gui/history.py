"""History: what was done and what it changed on the screen. Only actions that were carried out are in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from presage_gui.screen import Box, Screen
from presage_gui.step import Step


class Effect(StrEnum):
    """What a step changed."""

    NOTHING = "nothing"
    EXPECTED = "expected"
    OTHER = "other"
    """Something changed, but not what the step is meant to change."""


@dataclass(frozen=True)
class Entry:
    """One step that was carried out, with the evidence of what it changed."""

    step: Step
    before: Screen
    after: Screen
    effect: Effect
    changed: tuple[Box, ...] = ()
    """Where the two screens differ, without what moves by itself: animations, clocks, cursors."""
    note: str = ""
    """What is seen there, in words."""

    def to_json(self) -> dict[str, Any]:
        """Screens by their digests."""
        return {
            "step": self.step.to_json(), "before": self.before.digest, "after": self.after.digest,
            "effect": str(self.effect), "changed": [box.to_json() for box in self.changed], "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True)
class History(Sequence[Entry]):
    """The entries in their order; immutable."""

    entries: tuple[Entry, ...] = field(default=())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: Any) -> Any:
        return self.entries[index]

    def __add__(self, entry: Entry) -> History:
        return History((*self.entries, entry))
