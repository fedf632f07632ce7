"""Agent: the policy that is watched. It proposes steps; what a critic objects to comes back to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from presage_gui.critic import Verdict
from presage_gui.history import History
from presage_gui.screen import Screen
from presage_gui.step import Step


@dataclass(frozen=True)
class Objection:
    """A step of the agent's that was not let through, and why."""

    step: Step | None
    """None where the agent's words were no action."""
    verdict: Verdict


class Agent(ABC):
    """Proposes the next step. Its name on the command line is its entry point's, in the group `presage.agents`."""

    def begin(self, goal: str, seed: int) -> None:  # noqa: B027  most agents have no state
        """A new episode; what the agent remembers of the last one is over."""

    @abstractmethod
    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        """The next step. `objections`: what it has proposed on this screen already, and what was wrong with it.

        May raise ActionError where the agent's own words are no action: that is an objection, too."""

    def close(self) -> None:  # noqa: B027  most agents hold nothing
        """Let go of what it holds."""
