"""The small base classes of a search. A Strategy chooses parents; it is asked and told, so anyone's loop can drive it.
An Acquisition puts candidates in order."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from presage.core.forecast import Forecast


class Node(NamedTuple):
    """A kernel in the archive."""

    id: int
    """Counts up from 0, which is the anchor."""
    parent: int | None
    value: float
    """log2 S, measured, or expected where the forecast was trusted."""
    measured: bool


class Strategy(ABC):
    """Keeps the archive and chooses parents. Its name on the command line is its entry point's.

    Failed kernels are never told, so they never take a slot; nor are duplicates. Everything is rebuilt on resuming by
    telling the same things in the same order, with `visited` in place of `ask`, so all chance comes from `rng`. There
    may be a hundred thousand nodes: no call may walk all of them in Python.
    """

    @abstractmethod
    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        """The parents of a batch, by id; one may be named twice."""

    def visited(self, parents: Sequence[int]) -> None:  # noqa: B027  most strategies do not count
        """On resuming: what `ask` answered then."""

    @abstractmethod
    def tell(self, node: Node) -> None:
        """A kernel is new in the archive, or, if its id is known, a trusted one has been measured since."""


class Acquisition(ABC):
    """Scores a forecast. Its name on the command line is its entry point's in `presage.acquisitions`.

    Scores are kept with the run, so one that draws is not asked again when the run goes on.
    """

    @abstractmethod
    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        """How soon a candidate should be decided on; higher is sooner. Of equal scores, the higher mean is first.
        `best` is log2 S of the best kernel measured so far, 0 while that is the anchor. All chance comes from `rng`."""
