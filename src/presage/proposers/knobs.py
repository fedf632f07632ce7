"""The `knobs` proposer: change the tunables of kernel families, and switch between families. The families are the
problem's own or those given to the search."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path

from presage.core.errors import PresageError
from presage.kernels.header import Value
from presage.kernels.kernel import Kernel, split_spec
from presage.problems import registry as problems
from presage.proposers.base import Ground, Parent, Proposal, Proposer

_TRIES = 12
"""Random draws per candidate. After these, the proposer falls back to listing every remaining configuration."""
_STEPS, _JUMPS = 0.6, 0.8
"""A draw below the first is a step to a neighbouring value, a draw below the second a jump to any value, and any other
draw a crossing to another family."""

Values = Mapping[str, Value]
Move = tuple[Kernel, Values, str]
"""A family, values for its tunables, and the idea."""


class Knobs(Proposer):
    """Changes the tunables of the problem's kernels, or of the families given to the search. Mostly it moves one or two
    tunables a step from the parent's values. Sometimes it jumps to any other value, or crosses to another family and
    keeps the values of the tunables that both families have."""

    foreign = False

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._families = _runnable(ground) if ground.families is None else list(ground.families)
        self.foreign = ground.families is not None
        if not self._families:
            raise PresageError(
                f"{ground.problem.name} has no family with tunables that {ground.device.name} can run; use another"
                " proposer: llm writes kernels for any problem, pool searches a recording"
            )
        self._rendered: dict[tuple[str, tuple[Value, ...]], Kernel] = {}

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        found: dict[str, Proposal] = {}
        moves = itertools.chain(self._moves(parent.measured.kernel, _TRIES * count, rng), self._all(rng))
        for family, values, why in moves:
            if len(found) == count:
                break
            kernel = self._render(family, values)
            if kernel.hash not in known:
                found.setdefault(kernel.hash, Proposal(kernel, why))
        return list(found.values())

    def _moves(self, kernel: Kernel, tries: int, rng: random.Random) -> Iterator[Move]:
        family = self._family(kernel)
        for _ in range(tries):
            draw = rng.random()
            if family is None or draw >= _JUMPS:
                moved = self._cross(kernel, family, rng)
            else:
                moved = _turn(family, kernel.values, _step if draw < _STEPS else _jump, rng)
            if moved is not None:
                yield moved

    def _all(self, rng: random.Random) -> Iterator[Move]:
        """Every configuration, family by family, in random order."""
        for family in rng.sample(self._families, len(self._families)):
            configurations = list(family.configurations())
            for values in rng.sample(configurations, len(configurations)):
                yield family, values, f"{_file(family)}, of what is left"

    def _family(self, kernel: Kernel) -> Kernel | None:
        """The family of this proposer that a kernel was rendered from; None if there is none."""
        for family in self._families:
            tunables = family.header.tunables
            if _file(family) == _file(kernel) and family.language == kernel.language:
                admitted = all(kernel.values.get(name) in tunables[name] for name in tunables)
                return family if admitted and kernel.values.keys() == tunables.keys() else None
        return None

    def _cross(self, kernel: Kernel, family: Kernel | None, rng: random.Random) -> Move | None:
        """Move to another family: keep the values of shared tunables and draw the others."""
        others = [each for each in self._families if each is not family]
        if not others:
            return None
        other = rng.choice(others)
        tunables = other.header.tunables
        shared = {name: kernel.values[name] for name in tunables if kernel.values.get(name) in tunables[name]}
        values = {name: shared.get(name, rng.choice(choices)) for name, choices in tunables.items()}
        taken = ", ".join(f"{name}={value}" for name, value in shared.items())
        return _admitted(other, values, f"crossed to {_file(other)}" + (f" with {taken}" if taken else ""))

    def _render(self, family: Kernel, values: Values) -> Kernel:
        key = (family.name, tuple(values[name] for name in family.header.tunables))
        if key not in self._rendered:
            self._rendered[key] = family.render(values)
        return self._rendered[key]


def _runnable(ground: Ground) -> list[Kernel]:
    """The problem's own families that the device can run."""
    if ground.problem.name not in problems.names():
        return []
    seeds = problems.seed_kernels(ground.problem)
    return [family for family in seeds if family.is_family and family.language in ground.device.languages]


def _turn(
    family: Kernel, values: Values, turn: Callable[[Sequence[Value], Value, random.Random], Value], rng: random.Random
) -> Move | None:
    """Change one or two tunables with `turn`. Return None if the family does not admit the result."""
    tunables = {name: choices for name, choices in family.header.tunables.items() if len(choices) > 1}
    if not tunables:
        return None
    names = rng.sample(list(tunables), min(rng.choice((1, 1, 2)), len(tunables)))
    turned = {name: turn(tunables[name], values[name], rng) for name in names}
    why = ", ".join(f"{name} {values[name]} → {value}" for name, value in turned.items())
    return _admitted(family, {**values, **turned}, why)


def _step(choices: Sequence[Value], value: Value, rng: random.Random) -> Value:
    """A value one or two steps away from this one. Numbers are ordered by size, then strings alphabetically."""
    ordered = sorted(choices, key=_size)
    place = ordered.index(value)
    reach = rng.choice((1, 1, 2))
    near, far = ([at for at in (place - by, place + by) if 0 <= at < len(ordered)] for by in (1, reach))
    return ordered[rng.choice(far or near)]


def _jump(choices: Sequence[Value], value: Value, rng: random.Random) -> Value:
    return rng.choice([choice for choice in choices if choice != value])


def _size(value: Value) -> tuple[bool, float, str]:
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")


def _admitted(family: Kernel, values: Values, why: str) -> Move | None:
    return (family, values, why) if family.header.admits(values) else None


def _file(kernel: Kernel) -> str:
    return Path(split_spec(kernel.name)[0]).name
