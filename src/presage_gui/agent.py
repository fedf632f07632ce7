"""The `Agent` base class. An agent proposes steps. Rejected steps are returned to the agent as objections."""

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
    """A proposed step that was not carried out, with the verdict that says why."""

    step: Step | None
    """None if the agent's answer could not be parsed as an action."""
    verdict: Verdict


class Agent(ABC):
    """Proposes the next step. Its name on the command line is its entry point's name in the group `presage.agents`."""

    def begin(self, goal: str, seed: int) -> None:  # noqa: B027  most agents have no state
        """Start a new episode. The agent must forget the previous episode."""

    @abstractmethod
    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        """Return the next step. `objections`: the steps already rejected on this screen, with their verdicts.

        May raise ActionError if the agent's answer is not an action. The error then becomes an objection, too."""

    def close(self) -> None:  # noqa: B027  most agents hold nothing
        """Release the agent's resources."""
