"""The `replay` agent: repeats the steps of a recorded episode in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from presage import PresageError
from presage_gui.action import Action, Kind
from presage_gui.agent import Agent, Objection
from presage_gui.environment import Environment
from presage_gui.episode import read_events
from presage_gui.history import History
from presage_gui.screen import Screen
from presage_gui.step import Step


class Replay(Agent):
    """Repeats the steps of the episode in a folder: `replay:FOLDER`."""

    def __init__(self, folder: str, environment: Environment) -> None:
        events = read_events(Path(folder))
        self._steps = [Step.from_json(event["step"]) for event in events if event["event"] == "dispatched"]
        if not self._steps:
            raise PresageError(f"there is no episode with steps in {folder}")

    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        if len(history) >= len(self._steps):
            return Step(Action(Kind.TERMINATE), "the recorded steps are done")
        return self._steps[len(history)]
