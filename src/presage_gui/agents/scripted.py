"""`scripted`: does what the oracle of the environment says, with a share of errors on purpose.

What it proposes depends only on the goal, the seed, the number of the step and the number of the attempt, so that an
episode can be continued. After an objection it takes the critic's fix, if there is one; otherwise it tries again.
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
    """What knows the way: the oracle of an environment."""

    rng: random.Random

    def right(self) -> list[Right]: ...

    def allows(self, rights: list[Right], action: Action) -> bool: ...

    def elements(self) -> list[Element]: ...


class Scripted(Agent):
    """`errors`: the share of steps that are spoilt; `bare`: says no intents."""

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
        """An error of some class that is possible here; the right step where none is."""
        kinds = list(INJECTORS)
        s.rng.shuffle(kinds)
        for kind in kinds:
            made = INJECTORS[kind](s)
            if made and not (isinstance(made.action, Action) and self._fine(s, made.action)):
                return made
        return good(s, s.right[0])

    def _fine(self, s: Situation, action: Action) -> bool:
        return self._guide.allows(list(s.right), action)
