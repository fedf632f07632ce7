"""The base classes of a search. A Strategy chooses parents; it has an ask-and-tell interface, so any loop can drive it.
An Acquisition orders candidates."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from presage.core.forecast import Forecast


class Node(NamedTuple):
    """A kernel in the archive of a search."""

    id: int
    """Consecutive numbers from 0. The anchor has the id 0."""
    parent: int | None
    """The id of the parent; None for the anchor."""
    value: float
    """log2 S: measured, or expected if the forecast was trusted."""
    measured: bool


class Strategy(ABC):
    """Keeps the archive and chooses parents. The name of a strategy on the command line is the name of its entry point.

    `tell` is never called for failed kernels or duplicates. When a run resumes, the strategy is rebuilt: the search
    makes the same calls in the same order, with `visited` in place of `ask`. A strategy must therefore take all
    randomness from `rng`. There may be 100,000 nodes, so no call may loop over all of them in Python.
    """

    @abstractmethod
    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        """Choose the parents of a batch.

        count: how many parents to return. rng: the only source of randomness.

        Returns ids of the archive; the same id may occur several times. An empty answer means that there is no kernel
        to continue from."""

    def visited(self, parents: Sequence[int]) -> None:  # noqa: B027  most strategies do not count
        """Called when a run resumes, in place of `ask`, with the parents that `ask` returned at that time."""

    @abstractmethod
    def tell(self, node: Node) -> None:
        """Add a kernel to the archive. If its id is known, update it: a trusted kernel has been measured."""


class Acquisition(ABC):
    """Scores forecasts. The name of an acquisition on the command line is the name of its entry point in
    `presage.acquisitions`.

    The run stores the scores, so a random acquisition is not called again for them when the run resumes.
    """

    @abstractmethod
    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        """Score a candidate. Candidates with higher scores are decided on first; the forecast's mean breaks ties.

        best: log2 S of the best kernel measured so far; 0 while the anchor is the best.
        rng: the only source of randomness."""
