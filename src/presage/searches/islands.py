"""The `islands` strategy: several populations that evolve apart, and now and then send their best to a neighbour."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

from presage.core.errors import PresageError
from presage.searches.base import Node, Strategy


class Islands(Strategy):
    """Evolves several populations, and moves the best of each to the next from time to time. A kernel joins the
    population that its parent was chosen from; the anchor is in all. The better of two kernels drawn at random becomes
    the parent."""

    def __init__(self, islands: int = 4, survivors: int = 16, migration: int = 32) -> None:
        """survivors: the best of an island, which may be parents. migration: after so many parents every island's best
        moves on to the next."""
        for name, value in (("islands", islands), ("survivors", survivors), ("migration", migration)):
            if value < 1:
                raise PresageError(f"{name} of the strategy islands is 1 or more, not {value}")
        self.islands, self.survivors, self.migration = islands, survivors, migration
        self._best: list[list[tuple[float, int]]] = [[] for _ in range(islands)]
        """Of each island."""
        self._homes: dict[int, tuple[int, ...]] = {}
        """Where a node was lately a parent, or else was born; its children are born there in turn."""
        self._turn = 0

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        if not self._homes:
            return []
        return [self._choose(rng) for _ in range(count)]

    def visited(self, parents: Sequence[int]) -> None:
        for parent in parents:
            self._count(parent)

    def tell(self, node: Node) -> None:
        if node.id in self._homes:  # it was trusted, and has been measured since
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
