"""The `Environment` base class: carries out actions, for example in a browser or on a desktop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType

from presage_gui.action import Action
from presage_gui.screen import Screen


@dataclass(frozen=True)
class Outcome:
    """The state of a task: whether it is over, and whether it succeeded."""

    over: bool
    success: bool = False
    note: str = ""


class Environment(ABC):
    """Runs one task at a time. Its name on the command line is its entry point's, in group `presage.environments`."""

    goal: str = ""
    """The task in words. Set by `reset`."""

    @abstractmethod
    def reset(self, seed: int) -> str:
        """Restart the task and return its goal. The same seed gives the same task."""

    @abstractmethod
    def screen(self) -> Screen:
        """Return the current screen."""

    @abstractmethod
    def do(self, action: Action) -> None:
        """Carry out an action whose coordinates are in pixels, and return when the screen has settled."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """Return the state of the task. Critics never see it."""

    def close(self) -> None:  # noqa: B027  some hold nothing
        """Release the environment's resources."""

    def __enter__(self) -> Environment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
