"""The base class Proposer. A proposer writes candidate kernels from a parent kernel."""

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
    """What a proposer is told about the search it works for."""

    problem: Problem
    device: Device
    anchor: Measured
    families: tuple[Kernel, ...] | None = None
    """The kernels whose tunables are searched; None for the problem's own."""


@dataclass(frozen=True)
class Parent:
    """A kernel to start from, with its measurement, or with its expected speedup if its forecast was trusted."""

    measured: Measured
    """The kernel. Its status is `trusted` if it was not measured."""
    value: float | None
    """log2 S, measured or expected; None for a kernel that failed."""
    reason: str = ""
    """Why the kernel failed, in the words of the device or the compiler."""


@dataclass(frozen=True)
class Proposal:
    """A candidate and the idea behind it."""

    kernel: Kernel
    why: str = ""
    """The idea in a few words, for the user. Forecasters do not see it."""


class Proposer(ABC):
    """Writes candidates. The name of a proposer on the command line is the name of its entry point."""

    foreign = True
    """Whether the proposer's kernels may be hostile. The catalogue's own families are not."""
    is_list = False
    """Whether the proposer draws from a fixed list at no cost, so that a search may request everything at once."""
    seconds = math.inf
    """The time limit for the next `propose`, in seconds. A search sets it to the time it has left."""
    is_paid = False
    """Whether answers cost tokens. Such a proposer must not send a request that its allowance does not cover."""
    allowance: Allowance | None = None
    """What the next `propose` may spend. A search sets it to what is left of its budget. None: no limit."""
    fruitless = 0
    """How many candidates were proposed since the best kernel was measured. A search sets it before each `propose`."""
    notes: tuple[str, ...] = ()
    """What went wrong in the last `propose`, for the user."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    @classmethod  # noqa: B027  most need nothing
    def check(cls, in_dollars: bool = False) -> None:
        """Raise PresageError if something that the proposer needs is missing. A search calls this before it measures.

        in_dollars: whether the budget is in dollars, which requires known prices."""

    @abstractmethod
    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        """Write candidates from a parent.

        others: the best kernels so far, then the latest that failed, which have a reason instead of a value.
        count: the most candidates to return.
        known: the hashes of all kernels that the search has seen. Do not propose these again.
        rng: the only source of randomness.

        Returns up to `count` proposals; fewer or none if the proposer runs out of ideas."""

    def spent(self) -> Cost:
        """The cost of the last `propose`."""
        return Cost()

    def close(self) -> None:  # noqa: B027  most keep nothing
        """Release the resources that are kept between calls. A search calls this when it ends."""
