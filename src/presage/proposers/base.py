"""Proposer: the small base class. Writes candidates from a parent."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass

from presage.devices.base import Device
from presage.forecasters.base import Measured
from presage.kernels.kernel import Kernel
from presage.llm.cost import Allowance, Cost
from presage.problems.base import Problem


@dataclass(frozen=True)
class Ground:
    """What a proposer knows of the search it works for."""

    problem: Problem
    device: Device
    anchor: Measured
    families: tuple[Kernel, ...] | None = None
    """Whose tunables are turned; None for the problem's own."""


@dataclass(frozen=True)
class Parent:
    """A kernel to start from: what was measured of it, or what is expected of it where its forecast was trusted."""

    measured: Measured
    """Its status is `trusted` where it was not measured."""
    value: float | None
    """log2 S, measured or expected; None for one that failed."""
    reason: str = ""
    """Why it failed, as the device or the compiler said."""


@dataclass(frozen=True)
class Proposal:
    """A candidate and what it was made from."""

    kernel: Kernel
    why: str = ""
    """The idea, in a few words for people; no forecaster sees it."""


class Proposer(ABC):
    """Writes candidates. Its name on the command line is its entry point's."""

    foreign = True
    """Whether what it writes may be hostile; the catalogue's own families are not."""
    is_list = False
    """Whether all that it can write is at hand and costs nothing, so that a search may ask for everything at once."""
    seconds = math.inf
    """How long it may take over its next answer: a search says what is left of its time."""
    is_paid = False
    """Whether its answers cost tokens; it then asks for nothing that its allowance does not cover."""
    allowance: Allowance | None = None
    """What it may spend on its next answer: a search says what is left of its budget. None: as much as it takes."""
    notes: tuple[str, ...] = ()
    """What went wrong with its last answer, for people."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    @classmethod  # noqa: B027  most need nothing
    def check(cls, in_dollars: bool = False) -> None:
        """Say what is missing here, if anything: a search asks before it measures. A budget in dollars needs prices."""

    @abstractmethod
    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        """Up to `count` candidates from a parent; fewer, or none, where ideas run out. `others` are the best kernels so
        far, then the latest that failed, which have no value but a reason. `known` holds the hashes of all kernels that
        the search has seen, which are not proposed again."""

    def spent(self) -> Cost:
        """What the last `propose` has cost."""
        return Cost()
