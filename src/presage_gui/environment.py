"""Environment: a place where actions are carried out, such as a browser or a desktop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType

from presage_gui.action import Action
from presage_gui.screen import Screen


@dataclass(frozen=True)
class Outcome:
    """Where a task stands."""

    over: bool
    success: bool = False
    note: str = ""


class Environment(ABC):
    """One task at a time. Its name on the command line is its entry point's, in the group `presage.environments`."""

    goal: str = ""
    """What is asked for, in words; known after `reset`."""

    @abstractmethod
    def reset(self, seed: int) -> str:
        """Start the task anew and return its goal; the same seed makes the same task."""

    @abstractmethod
    def screen(self) -> Screen:
        """What is seen now."""

    @abstractmethod
    def do(self, action: Action) -> None:
        """Carry out an action whose coordinates are pixels; returns when the screen has settled."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """Where the task stands. Critics never see it."""

    def close(self) -> None:  # noqa: B027  some hold nothing
        """Let go of what it holds."""

    def __enter__(self) -> Environment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
