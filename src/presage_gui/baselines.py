"""Baseline critics: `none` accepts every step, `random` draws a probability, `unchanged` rejects a step that had no
effect before, as the loop detectors of browser agents do."""

from __future__ import annotations

import random

from presage_gui.changes import same
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.history import Effect, History
from presage_gui.screen import Screen
from presage_gui.step import Step


class Nothing(Critic):
    """Accepts every step."""

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        return Verdict(1.0, expected="whatever it does")


class Chance(Critic):
    """Draws a probability for each step, reproducibly from the seed, the screen and the step."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        drawn = random.Random(f"{self._seed}:{screen.digest}:{step.to_json()}").random()
        error = ErrorClass.MEANING if drawn < 0.5 else None
        return Verdict(drawn, error, "drawn by chance" if error else "")


class Unchanged(Critic):
    """Rejects a step if the same action was already carried out on the current screen and changed nothing."""

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        for entry in reversed(history):
            if entry.effect is not Effect.NOTHING:
                break
            if same(entry.step.action, step.action):
                return Verdict(0.05, ErrorClass.OBSERVATION, "this was carried out on this screen and changed nothing")
        return Verdict(0.9)
