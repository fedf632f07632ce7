"""The cases of a measurement, and the inputs that are drawn for them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from presage.problems.backend import Backend
from presage.problems.base import Case, Problem
from presage.problems.compare import Answer, difference, solve
from presage.problems.external import ExternalProblem
from presage.problems.sampler import Sampler

FRESH_CHECKS = 4
"""The number of checking cases that are drawn at random for every measurement."""
SURPRISING_INPUTS = 6
"""The number of different inputs in a window on inputs of other styles."""

_secret = random.SystemRandom()


@dataclass(frozen=True)
class Plan:
    """The cases of one measurement: the checks, which are the problem's own and some drawn at random, shuffled; and the
    cases to be timed."""

    checks: tuple[Case, ...]
    timed: tuple[Case, ...]

    @classmethod
    def draw(cls, problem: Problem, kind: str) -> Plan:
        """All checks, including the timed sizes in every style, in an unpredictable order."""
        styled = [case for timed in problem.timed[kind] for case in problem.restyled(timed)]
        return cls._drawn(problem, kind, _secret, styled)

    @classmethod
    def fixed(cls, problem: Problem, kind: str, checks: int) -> Plan:
        """The same `checks` cases every time. For our own kernels, which are compared on the same checks."""
        drawn = cls._drawn(problem, kind, random.Random(problem.name))
        return cls(drawn.checks[:checks], drawn.timed)

    @classmethod
    def _drawn(cls, problem: Problem, kind: str, rng: random.Random, more: Sequence[Case] = ()) -> Plan:
        every = [*problem.checks, *(problem.draw_case(rng) for _ in range(FRESH_CHECKS)), *more]
        rng.shuffle(every)
        return cls(tuple(every), problem.timed[kind])


class Inputs:
    """The inputs of one round. They are made once per slot and shared by all kernels. The right answers are computed on
    demand."""

    def __init__(self, problem: Problem, case: Case, backend: Backend) -> None:
        self._problem, self._case, self._backend = problem, case, backend
        self._inputs: list[tuple[Any, ...]] = []
        self._answers: dict[int, Answer] = {}

    def case(self, slot: int) -> Case:
        return self._case

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        while len(self._inputs) <= slot:
            case = self.case(len(self._inputs))
            self._inputs.append(self._problem.make_inputs(case, self._sampler(case)))
        return self._inputs[slot]

    def _sampler(self, case: Case) -> Sampler:
        style = "uniform" if isinstance(self._problem, ExternalProblem) else case.values  # it only draws seeds
        sampler: Sampler = self._backend.sampler(secrets.randbits(63), style)
        return sampler

    def reserve(self, slots: int) -> None:
        """Make the inputs of this many slots together, if the problem makes several inputs faster than one by one."""
        if isinstance(self._problem, ExternalProblem) and (missing := slots - len(self._inputs)) > 0:
            samplers = [self._sampler(self._case) for _ in range(missing)]
            self._inputs += self._problem.make_several(self._case, samplers)

    def answer(self, slot: int) -> Answer:
        if slot not in self._answers:
            self._answers[slot] = solve(self._problem, self.case(slot), self[slot], self._backend.xp)
        return self._answers[slot]

    @cached_property
    def surprises(self) -> Inputs:
        """Inputs of the same round in other styles. They, too, are shared by all kernels."""
        return Surprises(self._problem, self._case, self._backend)

    def difference(self, slot: int, outputs: tuple[Any, ...]) -> str | None:
        """Return why these outputs of a slot are wrong, or None."""
        if isinstance(self._problem, ExternalProblem):
            return self._problem.difference(self.case(slot), self[slot], outputs)
        return difference(self._problem, self.case(slot), self.answer(slot), outputs, self._backend.xp)


class Surprises(Inputs):
    """Inputs of a timed case's size in other styles. The slots share SURPRISING_INPUTS inputs in turn, which does no
    harm because these windows are not timed."""

    def __init__(self, problem: Problem, case: Case, backend: Backend) -> None:
        super().__init__(problem, case, backend)
        self._styled = problem.restyled(case)
        self._drawn: dict[int, Case] = {}

    def reserve(self, slots: int) -> None:
        """Do nothing: there are few, and each may be of another style."""

    def case(self, slot: int) -> Case:
        return self._drawn.setdefault(slot % SURPRISING_INPUTS, _secret.choice(self._styled))

    def __getitem__(self, slot: int) -> tuple[Any, ...]:
        return super().__getitem__(slot % SURPRISING_INPUTS)

    def answer(self, slot: int) -> Answer:
        return super().answer(slot % SURPRISING_INPUTS)
