"""The `islands` strategy: several populations that evolve apart, and now and then send their best to a neighbour."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

from presage.searches.base import Node, Strategy

ISLANDS = 4
SURVIVORS = 16
"""The best of an island, which may be parents."""
MIGRATION = 32
"""After so many parents every island's best moves on to the next."""


class Islands(Strategy):
    """A kernel is born where its parent was chosen; the anchor lives everywhere. Within an island, the better of two
    that are drawn at random becomes the parent."""

    def __init__(self) -> None:
        self._islands: list[list[tuple[float, int]]] = [[] for _ in range(ISLANDS)]
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
            for island in self._islands:
                if any(id == node.id for _, id in island):
                    island[:] = [entry for entry in island if entry[1] != node.id]
                    bisect.insort(island, (node.value, node.id))
            return
        if node.parent is None:
            self._homes[node.id] = tuple(range(ISLANDS))
        else:
            place, *others = self._homes[node.parent]
            self._homes[node.parent] = (*others, place)
            self._homes[node.id] = (place,)
        for place in self._homes[node.id]:
            self._settle(place, (node.value, node.id))

    def _choose(self, rng: random.Random) -> int:
        island = self._islands[self._turn % ISLANDS]
        _, parent = max(rng.choice(island), rng.choice(island))
        self._count(parent)
        return parent

    def _count(self, parent: int) -> None:
        self._homes[parent] = (*self._homes[parent], self._turn % ISLANDS)[-ISLANDS:]
        self._turn += 1
        if self._turn % MIGRATION == 0:
            best = [island[-1] for island in self._islands]
            for place, emigrant in enumerate(best):
                self._settle((place + 1) % ISLANDS, emigrant)

    def _settle(self, place: int, entry: tuple[float, int]) -> None:
        island = self._islands[place]
        if entry not in island:
            bisect.insort(island, entry)
            del island[:-SURVIVORS]
