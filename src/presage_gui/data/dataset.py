"""Read recorded states: the screen, the history and labelled steps. No browser is needed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from presage import PresageError
from presage_gui.action import Action, ActionError
from presage_gui.critic import ErrorClass
from presage_gui.data.splits import SPLITS, Split
from presage_gui.history import Effect, Entry, History
from presage_gui.oracles.right import Right
from presage_gui.screen import Screen
from presage_gui.step import Step

SHIPPED = Path(__file__).parent / "recorded.zip"
"""A part of the recorded set, for tests and tutorials: as much of train and validation as fits, a sample of test."""


@dataclass(frozen=True)
class Labelled:
    """A proposed step with its label."""

    action: str | Mapping[str, Any]
    """The action as the agent wrote it. May be malformed."""
    intent: str
    good: bool
    error: ErrorClass | None

    @property
    def step(self) -> Step | None:
        """The parsed step, or None if the action is malformed."""
        try:
            return Step(Action.parse(self.action), self.intent)
        except ActionError:
            return None


@dataclass(frozen=True)
class State:
    """A state of an episode, with the steps proposed in it."""

    task: str
    family: str
    split: Split
    seed: int
    phase: str
    """`task`: a usual state; `busy`: only waiting is right; `over`: only ending the task is right."""
    goal: str
    right: tuple[Right, ...]
    proposals: tuple[Labelled, ...]
    _screen: str
    _history: tuple[Mapping[str, Any], ...]
    _source: Source

    @property
    def screen(self) -> Screen:
        return self._source.screen(self._screen)

    @property
    def digest(self) -> str:
        return self._screen

    @property
    def history(self) -> History:
        """The steps carried out before, with their true effects."""
        return History(tuple(self._entry(kept) for kept in self._history))

    @property
    def says_what_was_meant(self) -> bool:
        """Whether the effects in the history are relative to each step's intent. Older recordings lack this."""
        return bool(self._history) and all("error" in kept for kept in self._history)

    def _entry(self, kept: Mapping[str, Any]) -> Entry:
        step = Step(Action.parse(kept["action"]), kept["intent"])
        before, after = self._source.screen(kept["before"]), self._source.screen(kept["after"])
        return Entry(step, before, after, Effect(kept["effect"]))

    def allows(self, action: Action) -> bool:
        """Whether an action is one of the right steps. Positions are checked by the steps' boxes."""
        return any(each.allows(action) for each in self.right)


class Source:
    """A recorded set: a folder that a recorder wrote, or a packed zip file."""

    def __init__(self, place: Path = SHIPPED) -> None:
        self._zip = zipfile.ZipFile(place) if place.is_file() else None
        self._place = place
        if not self._zip and not place.is_dir():
            raise PresageError(f"there is no recorded set in {place}; 'presage-gui record' makes one")

    def _read(self, name: str) -> bytes:
        return self._zip.read(name) if self._zip else (self._place / name).read_bytes()

    def files(self, split: Split) -> list[str]:
        if self._zip:
            return sorted(name for name in self._zip.namelist() if name.startswith(f"{split}/"))
        return sorted(f"{split}/{file.name}" for file in (self._place / split).glob("*.jsonl"))

    @lru_cache(maxsize=256)  # noqa: B019  a source lives as long as what reads it
    def screen(self, digest: str) -> Screen:
        return Screen.from_png(self._read(f"screens/{digest}.{'webp' if self._zip else 'png'}"))

    def states(self, split: Split) -> Iterator[State]:
        for name in self.files(split):
            for line in self._read(name).decode().splitlines():
                yield _state(json.loads(line), self)


def load(split: Split, place: Path | str = SHIPPED) -> Iterator[State]:
    """Return the states of a split, task by task. Raises PresageError for an unknown split or a missing set."""
    if split not in SPLITS:
        raise PresageError(f"there is no split '{split}'; there are: {', '.join(SPLITS)}")
    return Source(Path(place)).states(split)


def _state(kept: Mapping[str, Any], source: Source) -> State:
    labelled = tuple(
        Labelled(each["action"], each["intent"], each["good"], ErrorClass(each["error"]) if each["error"] else None)
        for each in kept["proposals"]
    )
    right = tuple(Right.from_json(each) for each in kept["right"])
    return State(
        kept["task"], kept["family"], kept["split"], kept["seed"], kept["phase"], kept["goal"],
        right, labelled, kept["screen"], tuple(kept["history"]), source,
    )  # fmt: skip
