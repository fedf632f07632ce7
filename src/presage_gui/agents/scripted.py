"""The `scripted` agent: follows the environment's oracle, and makes errors on purpose at a given rate.

Its random choices depend only on the goal, the seed, the step number and the attempt number, so that an episode can be
continued. After an objection the agent takes the critic's fix, if there is one. Otherwise it draws again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from presage import PresageError
from presage_gui.action import Action, Kind
from presage_gui.agent import Agent, Objection
from presage_gui.data.injection import INJECTORS, Proposed, Situation, good
from presage_gui.environment import Environment
from presage_gui.history import History
from presage_gui.oracles.element import Element
from presage_gui.oracles.right import Right
from presage_gui.screen import Screen
from presage_gui.step import Step


class Guide(Protocol):
    """The interface of an environment's oracle."""

    rng: random.Random

    def right(self) -> list[Right]: ...

    def allows(self, rights: list[Right], action: Action) -> bool: ...

    def elements(self) -> list[Element]: ...


class Scripted(Agent):
    """Follows the oracle. `errors`: the share of steps that get an error; `bare`: propose steps without intents."""

    def __init__(self, environment: Environment, errors: float = 0.0, bare: bool = False) -> None:
        if not 0 <= errors <= 1:
            raise PresageError(f"a share of errors lies between 0 and 1, not {errors:g}")
        guide = getattr(environment, "guide", None)
        if guide is None:
            raise PresageError(f"the scripted agent does not know the way in {type(environment).__name__}")
        self._guide: Guide = guide()
        self._environment, self._errors, self._bare = environment, errors, bare
        self._seed = 0

    def begin(self, goal: str, seed: int) -> None:
        self._seed = seed

    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        if objections and (fix := objections[-1].verdict.fix):
            return fix
        rng = random.Random(f"{goal}:{self._seed}:{len(history)}:{len(objections)}")
        self._guide.rng = rng
        right = self._guide.right()
        if not right:
            finish = Right(Action(Kind.TERMINATE), "", "")
            right = [finish]
        situation = Situation(goal, right, self._guide.elements(), screen.size, rng)
        proposed = self._spoilt(situation) if rng.random() < self._errors else good(situation, right[0])
        action = proposed.action if isinstance(proposed.action, Action) else Action.parse(proposed.action)
        return Step(action, "" if self._bare else proposed.intent)

    def _spoilt(self, s: Situation) -> Proposed:
        """Return an erroneous step of a random class that is possible here, or the correct step if none is."""
        kinds = list(INJECTORS)
        s.rng.shuffle(kinds)
        for kind in kinds:
            made = INJECTORS[kind](s)
            if made and not (isinstance(made.action, Action) and self._fine(s, made.action)):
                return made
        return good(s, s.right[0])

    def _fine(self, s: Situation, action: Action) -> bool:
        return self._guide.allows(list(s.right), action)
