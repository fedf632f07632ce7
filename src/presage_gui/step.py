"""Step: an action with what it is meant to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from presage import PresageError
from presage_gui.action import Action


@dataclass(frozen=True)
class Step:
    """What an agent proposes."""

    action: Action
    intent: str = ""
    """What the action is meant to do, in the agent's words; empty where it does not say: the bare call."""

    @property
    def bare(self) -> Step:
        """The same without its intent."""
        return Step(self.action)

    @property
    def words(self) -> str:
        return f"{self.action.words} ({self.intent})" if self.intent else self.action.words

    def to_json(self) -> dict[str, Any]:
        return {"action": self.action.to_json(), "intent": self.intent}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Step:
        intent = kept.get("intent", "")
        if "action" not in kept or not isinstance(intent, str):
            raise PresageError("a step is an object with an 'action' and, where known, an 'intent' in words")
        return cls(Action.parse(kept["action"]), intent)
