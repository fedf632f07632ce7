"""Recorded states: screens, histories, and proposed steps with labels, read from a folder; no browser is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from presage import PresageError

from presage_gui.action import Action, ActionError
from presage_gui.critic import ErrorClass
from presage_gui.history import Effect, Entry, History
from presage_gui.oracles.oracle import Right
from presage_gui.screen import Screen
from presage_gui.step import Step


@dataclass(frozen=True)
class Proposal:
    """A step that an agent might take, and what it is."""

    step: Step | None
    """None where the action cannot even be read."""
    complaint: str
    """What is wrong with one that cannot be read."""
    intent: str
    good: bool
    error: ErrorClass | None


@dataclass(frozen=True)
class State:
    """One moment of one episode."""

    task: str
    family: str
    split: str
    seed: int
    phase: str
    goal: str
    screen: Screen
    history: History
    right: tuple[Right, ...]
    proposals: tuple[Proposal, ...]


def read_states(folder: Path, split: str, tasks: frozenset[str] | None = None) -> Iterator[State]:
    """The states of a split, task by task. Raises PresageError where there are none."""
    files = sorted((folder / split).glob("*.jsonl"))
    if not files:
        raise PresageError(f"there are no recorded states in {folder / split}; 'presage-gui record' makes them")
    for file in files:
        if tasks is None or file.stem in tasks:
            for line in file.read_text().splitlines():
                try:
                    yield _state(folder, json.loads(line))
                except (ValueError, KeyError, TypeError, OSError) as error:
                    raise PresageError(f"{file} is damaged: {error!r}") from error


def _state(folder: Path, kept: dict[str, Any]) -> State:
    entries = [
        Entry(
            Step(Action.parse(each["action"]), each["intent"]),
            _screen(folder, each["before"]),
            _screen(folder, each["after"]),
            Effect.NOTHING if each["before"] == each["after"] else Effect.EXPECTED,
        )
        for each in kept["history"]
    ]
    return State(
        kept["task"], kept["family"], kept["split"], kept["seed"], kept["phase"], kept["goal"],
        _screen(folder, kept["screen"]), History(tuple(entries)),
        tuple(Right.from_json(each) for each in kept["right"]), tuple(map(_proposal, kept["proposals"])),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _screen(folder: Path, digest: str) -> Screen:
    return Screen.from_file(folder / "screens" / f"{digest}.png")


def _proposal(kept: dict[str, Any]) -> Proposal:
    error = ErrorClass(kept["error"]) if kept["error"] else None
    try:
        step, complaint = Step(Action.parse(kept["action"]), kept["intent"]), ""
    except ActionError as wrong:
        step, complaint = None, str(wrong)
    return Proposal(step, complaint, kept["intent"], kept["good"], error)
