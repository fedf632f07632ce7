"""The `Step` class: an action and its intent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from presage import PresageError
from presage_gui.action import Action


@dataclass(frozen=True)
class Step:
    """An action that an agent proposes, with its intent."""

    action: Action
    intent: str = ""
    """The purpose of the action in the agent's words. Empty for a bare call, that is, a step without an intent."""

    @property
    def bare(self) -> Step:
        """The step without its intent."""
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
