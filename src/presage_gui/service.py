"""The check service for external agents: takes a request as JSON data and returns a verdict. Used over HTTP and MCP.

A request has `goal`, `screen` (a PNG file in base64, or the digest of a screen sent before), `action` and, if known,
`intent` and `history`: the steps carried out so far, each with `action`, `intent`, `before` and `after`.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from presage import PresageError
from presage_gui.action import Action, ActionError
from presage_gui.changes import Watcher
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.deciding import Gate
from presage_gui.history import History
from presage_gui.macros import told
from presage_gui.screen import Screen
from presage_gui.step import Step

KEPT = 128
"""The number of screens in the cache. A cached screen can be named by its digest instead of being sent again."""
LONGEST_GOAL = 20_000
MOST_STEPS = 200
REQUEST: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string", "description": "What the agent is asked to do."},
        "screen": {
            "type": "string",
            "description": "The screen now: a PNG in base64, or the digest of one sent before.",
        },
        "action": {"description": "The action to check: an object with a kind, or a call such as click(120, 33)."},
        "intent": {"type": "string", "description": "What the action is meant to do, in the agent's words."},
        "history": {"type": "array", "description": "Steps carried out so far: action, intent, before, after."},
    },
    "required": ["goal", "screen", "action"],
}


class Service:
    """One critic and one gate, shared by all callers. A lock serialises the checks."""

    def __init__(self, critic: Critic, gate: Gate, fixes: bool = True) -> None:
        self._critic, self._gate, self._fixes = critic, gate, fixes
        self._screens: OrderedDict[str, Screen] = OrderedDict()
        self._lock = Lock()

    def check(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check a request. Return the verdict and the decision as JSON data. Raises PresageError if it is invalid."""
        if not isinstance(request, Mapping):
            raise PresageError("a request is an object with a goal, a screen and an action")
        goal = request.get("goal")
        if not isinstance(goal, str) or not goal.strip() or len(goal) > LONGEST_GOAL:
            raise PresageError(f"'goal' is a text of 1 to {LONGEST_GOAL} characters")
        with self._lock:
            screen = self._screen(request.get("screen"), "screen")
            history = self._history(request.get("history", []))
            verdict = self._verdict(goal, history, screen, request)
            decided = self._gate.decide(verdict)
        kept = verdict.to_json()
        if not self._fixes:
            kept.pop("fix")
        return {
            **kept, "choice": str(decided.choice), "reason": decided.reason,
            "screen": screen.digest, "history": told(history),
        }  # fmt: skip

    def _verdict(self, goal: str, history: History, screen: Screen, request: Mapping[str, Any]) -> Verdict:
        intent = request.get("intent", "")
        if not isinstance(intent, str):
            raise PresageError("'intent' is a text")
        action = request.get("action")
        if not isinstance(action, str | Mapping):
            raise PresageError("'action' is an object with a kind, or a call such as click(120, 33)")
        try:
            step = Step(Action.parse(action).on(screen.size), intent)
        except ActionError as error:
            return Verdict(0.0, ErrorClass.MALFORMED, str(error))
        return self._critic.check(goal, history, screen, step)

    def _screen(self, sent: object, what: str) -> Screen:
        if not isinstance(sent, str) or not sent:
            raise PresageError(f"'{what}' is a PNG file in base64, or the digest of a screen that was sent before")
        if len(sent) == 32 and all(letter in "0123456789abcdef" for letter in sent):
            if sent not in self._screens:
                raise PresageError(f"the {what} {sent} is not known any more; send the PNG file")
            self._screens.move_to_end(sent)
            return self._screens[sent]
        try:
            content = base64.b64decode(sent.removeprefix("data:image/png;base64,"), validate=True)
        except (binascii.Error, ValueError):
            raise PresageError(f"'{what}' is not base64") from None
        screen = Screen.from_png(content)
        self._screens[screen.digest] = screen
        while len(self._screens) > KEPT:
            self._screens.popitem(last=False)
        return screen

    def _history(self, sent: object) -> History:
        if not isinstance(sent, list) or len(sent) > MOST_STEPS:
            raise PresageError(f"'history' is a list of at most {MOST_STEPS} steps")
        watcher, history = Watcher(), History()
        for each in sent:
            if not isinstance(each, Mapping):
                raise PresageError("a step of the history is an object with action, intent, before and after")
            step = Step.from_json(each)
            before, after = self._screen(each.get("before"), "before"), self._screen(each.get("after"), "after")
            if history and history[-1].after.size == before.size:
                watcher.idle(history[-1].after, before)
            history += watcher.entry(step, before, after, history)
        return history
