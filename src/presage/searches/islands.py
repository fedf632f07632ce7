"""The `islands` strategy: several populations evolve separately and regularly send their best kernel to a neighbour."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

from presage.core.errors import PresageError
from presage.searches.base import Node, Strategy


class Islands(Strategy):
    """Evolves several populations, and regularly copies the best kernel of each to the next. A kernel joins the
    population that its parent was chosen from. The anchor is in all populations. The better of two kernels drawn at
    random becomes the parent."""

    def __init__(self, islands: int = 4, survivors: int = 16, migration: int = 32) -> None:
        """islands: the number of populations. survivors: the size of a population; only its best kernels are kept.
        migration: every island's best is copied to the next island after this many parents."""
        for name, value in (("islands", islands), ("survivors", survivors), ("migration", migration)):
            if value < 1:
                raise PresageError(f"{name} of the strategy islands is 1 or more, not {value}")
        self.islands, self.survivors, self.migration = islands, survivors, migration
        self._best: list[list[tuple[float, int]]] = [[] for _ in range(islands)]
        """The value and id of the kernels on each island, the best last."""
        self._homes: dict[int, tuple[int, ...]] = {}
        """The islands on which a node was recently chosen as a parent, or the island where it was born. Its children
        are born on these islands in turn."""
        self._turn = 0

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        if not self._homes:
            return []
        return [self._choose(rng) for _ in range(count)]

    def visited(self, parents: Sequence[int]) -> None:
        for parent in parents:
            self._count(parent)

    def tell(self, node: Node) -> None:
        if node.id in self._homes:  # a trusted kernel has been measured
            for island in self._best:
                if any(id == node.id for _, id in island):
                    island[:] = [entry for entry in island if entry[1] != node.id]
                    bisect.insort(island, (node.value, node.id))
            return
        if node.parent is None:
            self._homes[node.id] = tuple(range(self.islands))
        else:
            place, *others = self._homes[node.parent]
            self._homes[node.parent] = (*others, place)
            self._homes[node.id] = (place,)
        for place in self._homes[node.id]:
            self._settle(place, (node.value, node.id))

    def _choose(self, rng: random.Random) -> int:
        island = self._best[self._turn % self.islands]
        _, parent = max(rng.choice(island), rng.choice(island))
        self._count(parent)
        return parent

    def _count(self, parent: int) -> None:
        self._homes[parent] = (*self._homes[parent], self._turn % self.islands)[-self.islands :]
        self._turn += 1
        if self._turn % self.migration == 0:
            best = [island[-1] for island in self._best]
            for place, emigrant in enumerate(best):
                self._settle((place + 1) % self.islands, emigrant)

    def _settle(self, place: int, entry: tuple[float, int]) -> None:
        island = self._best[place]
        if entry not in island:
            bisect.insort(island, entry)
            del island[: -self.survivors]
