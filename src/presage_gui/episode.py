"""The `Episode` class: stores one run of a task in a folder. The state is computed by folding over the events.

EPISODE/configuration.json   the settings of the run; a different configuration in the same folder is refused
EPISODE/events.jsonl         one event per line, in order; an incomplete last line (killed process) is ignored
EPISODE/screens/DIGEST.png   each screen that an event names, stored once
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from presage import PresageError
from presage.core.files import write_whole
from presage.store.lock import Lock
from presage_gui.critic import Verdict
from presage_gui.history import Effect, Entry, History
from presage_gui.screen import Box, Screen
from presage_gui.step import Step


class Choice(StrEnum):
    """The decision on a proposed step."""

    TRUST = "trust"
    """The step is carried out."""
    REVISE = "revise"
    """The step goes back to the agent with the verdict."""
    ASK = "ask"
    """A person decides."""


@dataclass(frozen=True)
class Proposal:
    """A step that an agent proposed, the critic's verdict and the gate's decision."""

    step: Step | None
    """None if the agent's answer could not be parsed as an action."""
    screen: str
    """The digest of the screen on which the step was proposed."""
    verdict: Verdict
    choice: Choice
    reason: str = ""
    seconds: float = 0.0
    """The duration of the check."""

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step and self.step.to_json(), "screen": self.screen, "verdict": self.verdict.to_json(),
            "choice": str(self.choice), "reason": self.reason, "seconds": self.seconds,
        }  # fmt: skip

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Proposal:
        step = Step.from_json(kept["step"]) if kept["step"] else None
        verdict = Verdict.from_json(kept["verdict"])
        return cls(step, kept["screen"], verdict, Choice(kept["choice"]), kept["reason"], kept["seconds"])


@dataclass
class State:
    """The state of an episode."""

    goal: str = ""
    begun: bool = False
    proposals: list[Proposal] = field(default_factory=list)
    """All proposals, in order."""
    waiting: list[Proposal] = field(default_factory=list)
    """The proposals since the last step that was carried out."""
    dispatched: list[Mapping[str, Any]] = field(default_factory=list)
    ended: Mapping[str, Any] | None = None

    def fold(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "began":
                self.goal, self.begun = event["goal"], True
            case "proposed":
                proposal = Proposal.from_json(event)
                self.proposals.append(proposal)
                self.waiting.append(proposal)
            case "dispatched":
                self.dispatched.append(event)
                self.waiting.clear()
            case "ended":
                self.ended = event


class Episode:
    """The folder of an episode. Open it in a `with` statement: it is locked, and one process at a time may write."""

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        self.folder = folder
        (folder / "screens").mkdir(parents=True, exist_ok=True)
        self._lock = Lock(folder / "lock")
        try:
            self.configuration = self._agreed(dict(configuration))
            self.events = read_events(folder)
            self._cut_torn_line()
        except BaseException:
            self._lock.close()
            raise
        self.state = State()
        for event in self.events:
            self.state.fold(event)

    def _agreed(self, wanted: dict[str, Any]) -> dict[str, Any]:
        file = self.folder / "configuration.json"
        if not file.exists():
            write_whole(file, json.dumps(wanted, indent=1) + "\n")
            return wanted
        kept: dict[str, Any] = json.loads(file.read_text())
        for name in sorted(kept.keys() | wanted.keys()):
            if kept.get(name) != wanted.get(name):
                was = f"{name} {kept.get(name)!r}, not {wanted.get(name)!r}"
                raise PresageError(f"the episode in {self.folder} has {was}; name another folder, or ask for the same")
        return kept

    def _cut_torn_line(self) -> None:
        file = self.folder / "events.jsonl"
        if file.exists() and not (content := file.read_bytes()).endswith(b"\n"):
            with file.open("r+b") as torn:
                torn.truncate(content.rfind(b"\n") + 1)

    def append(self, kind: str, **fields: Any) -> None:
        """Add an event. It is on disk when this method returns."""
        event = {"event": kind, **fields}
        with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, ensure_ascii=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.events.append(event)
        self.state.fold(event)

    def keep(self, screen: Screen) -> str:
        """Store a screen unless it is stored already, and return its digest."""
        return screen.keep(self.folder)

    def history(self) -> History:
        return history_of(self.folder, self.state.dispatched)

    def close(self) -> None:
        self._lock.close()

    def __enter__(self) -> Episode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of an episode, without an incomplete last line. Raises PresageError for a damaged file."""
    file = folder / "events.jsonl"
    if not file.exists():
        return []
    whole = file.read_bytes().split(b"\n")[:-1]
    try:
        events = [json.loads(line) for line in whole]
        if not all(isinstance(event, dict) and "event" in event for event in events):
            raise ValueError("a line is no event")
    except ValueError as error:
        raise PresageError(f"{file} is damaged: {error}; name another folder") from None
    return events


def read_screen(folder: Path, digest: str) -> Screen:
    if not (len(digest) == 32 and all(letter in "0123456789abcdef" for letter in digest)):
        raise PresageError(f"'{digest[:40]}' is not the name of a screen")
    return Screen.from_file(folder / "screens" / f"{digest}.png")


def history_of(folder: Path, dispatched: Sequence[Mapping[str, Any]]) -> History:
    """Return the history of these `dispatched` events, with its screens."""
    entries = [
        Entry(
            Step.from_json(event["step"]), read_screen(folder, event["before"]), read_screen(folder, event["after"]),
            Effect(event["effect"]), tuple(Box(*box) for box in event["changed"]), event["note"],
        )
        for event in dispatched
    ]  # fmt: skip
    return History(tuple(entries))
