"""The `puct` strategy: max-reward PUCT over the whole archive, not only from its root.

    score(node) = Q + EXPLORATION * P * sqrt(1 + T) / (1 + n)

n counts how often the node was chosen, T all choices. Q is the rank, from 0 to 1, of the node's reward among all: the
best measured value among the node and its children, or its own expected value where none was measured. P is the prior:
the node's own rank, over the sum of all ranks; tied nodes share theirs equally.

No list of all nodes is ever walked. Nodes with the same n differ only in reward and value, and the score rises with
both: of each n there are two heaps, one by reward and one by value, and the best are found from their tops.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from array import array
from collections.abc import Iterator, Sequence

from presage.search.base import Node, Strategy
from presage.search.ranks import Ranks, cell

EXPLORATION = 1.0
_SHIFT = 40
_MASK = (1 << _SHIFT) - 1
WINDOW = 64
"""So many of the best-scoring nodes are looked at for parents that are not of one lineage."""


class Puct(Strategy):
    """Parents of one batch are never on one lineage: where too few such are found, the batch has fewer, named again."""

    def __init__(self) -> None:
        self._values = array("l")
        self._rewards = array("l")
        self._hoped = bytearray()
        """Whether a reward is only expected: nothing was measured of the node or its children."""
        self._visits = array("l")
        self._total = 0
        self._by_value, self._by_reward = Ranks(), Ranks()
        self._lineage = _Lineage()
        self._classes: dict[int, _Class] | None = None
        """By how often nodes were visited; made when first needed, and so only once in a run that resumes."""

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        if not self._values or count < 1:
            return []
        chosen: list[int] = []
        for _, id in itertools.islice(self._best_first(), WINDOW):
            if not any(self._lineage.related(id, other) for other in chosen):
                chosen.append(id)
            if len(chosen) == count or chosen == [0]:  # everything descends from the anchor
                break
        parents = [chosen[i % len(chosen)] for i in range(count)]
        self.visited(parents)
        return parents

    def visited(self, parents: Sequence[int]) -> None:
        self._total += len(parents)
        for id in parents:
            self._visits[id] += 1
        for id in dict.fromkeys(parents):
            self._file(id)

    def tell(self, node: Node) -> None:
        at = cell(node.value)
        if node.id < len(self._values):
            self._by_value.add(self._values[node.id], -1)
            self._values[node.id] = at
            self._file(node.id)
        else:
            self._values.append(at)
            self._rewards.append(at)
            self._hoped.append(not node.measured)
            self._visits.append(0)
            self._by_reward.add(at)
            self._lineage.add(node.parent)
            self._file(node.id)
        self._by_value.add(at)
        if node.measured:
            self._reward(node.id, at)
            if node.parent is not None:
                self._reward(node.parent, at)

    def score(self, id: int) -> float:
        """What the choice goes by."""
        return self._score(self._rewards[id], self._values[id], self._visits[id])

    def _score(self, reward: int, value: int, visits: int) -> float:
        nodes = len(self._values)
        q = self._by_reward.rank(reward) / nodes
        prior = self._by_value.rank(value) / (nodes * (nodes + 1) / 2)
        return q + EXPLORATION * prior * math.sqrt(1 + self._total) / (1 + visits)

    def _reward(self, id: int, measured: int) -> None:
        """A value was measured of a node or of its child."""
        if self._hoped[id] or measured > self._rewards[id]:
            self._by_reward.add(self._rewards[id], -1)
            self._by_reward.add(measured)
            self._rewards[id], self._hoped[id] = measured, False
            self._file(id)

    def _file(self, id: int) -> None:
        """Put a node where it is found by what it is now; what is filed of it elsewhere is out of date from here on."""
        if self._classes is None:
            return
        visits = self._visits[id]
        same = self._classes.get(visits)
        if same is None:
            same = self._classes[visits] = _Class()
        heapq.heappush(same.by_reward, id - (self._rewards[id] << _SHIFT))
        heapq.heappush(same.by_value, id - (self._values[id] << _SHIFT))

    def _filed(self) -> dict[int, _Class]:
        if self._classes is None:
            self._classes = {}
            for id, visits in enumerate(self._visits):
                same = self._classes.setdefault(visits, _Class())
                same.by_reward.append(id - (self._rewards[id] << _SHIFT))
                same.by_value.append(id - (self._values[id] << _SHIFT))
            for same in self._classes.values():
                heapq.heapify(same.by_reward)
                heapq.heapify(same.by_value)
        return self._classes

    def _best_first(self) -> Iterator[tuple[float, int]]:
        """All nodes with the negative of their scores, the best first."""
        classes = self._filed()
        for visits in [visits for visits, same in classes.items() if not self._trim(same, visits)]:
            del classes[visits]
        return heapq.merge(*(self._of_class(same, visits) for visits, same in classes.items()))

    def _of_class(self, same: _Class, visits: int) -> Iterator[tuple[float, int]]:
        """The nodes that were visited so often, the best first. What is not yet seen scores no better than the tops of
        the two heaps together."""
        found: list[tuple[float, int]] = []
        seen: set[int] = set()
        popped: list[tuple[list[int], int]] = []
        try:
            while self._trim(same, visits):
                tops = same.by_reward[0] & _MASK, same.by_value[0] & _MASK
                bound = self._score(self._rewards[tops[0]], self._values[tops[1]], visits)
                while found and -found[0][0] > bound:
                    yield heapq.heappop(found)
                for heap in (same.by_reward, same.by_value):
                    entry = heapq.heappop(heap)
                    popped.append((heap, entry))
                    if (id := entry & _MASK) not in seen:
                        seen.add(id)
                        heapq.heappush(found, (-self.score(id), id))
            while found:
                yield heapq.heappop(found)
        finally:
            for heap, entry in popped:
                heapq.heappush(heap, entry)

    def _trim(self, same: _Class, visits: int) -> bool:
        """Drop what is out of date from the tops of the heaps; whether anything is left."""
        for heap, now in ((same.by_reward, self._rewards), (same.by_value, self._values)):
            while heap and (self._visits[id := heap[0] & _MASK] != visits or id - (now[id] << _SHIFT) != heap[0]):
                heapq.heappop(heap)
        return bool(same.by_reward and same.by_value)


class _Class:
    """The nodes that were visited equally often, in two heaps. An entry is one number, which has the larger reward or
    value first and then the smaller id: id - (reward << _SHIFT)."""

    __slots__ = ("by_reward", "by_value")

    def __init__(self) -> None:
        self.by_reward: list[int] = []
        self.by_value: list[int] = []


class _Lineage:
    """Who descends from whom, answered in logarithmic time: each node has its parent and one further ancestor, so
    placed that a few jumps lead to any depth."""

    def __init__(self) -> None:
        self._parent, self._jump, self._depth = array("l"), array("l"), array("l")

    def add(self, parent: int | None) -> None:
        """The next node."""
        if parent is None:
            for column, value in ((self._parent, len(self._parent)), (self._jump, len(self._jump)), (self._depth, 0)):
                column.append(value)
            return
        near, depth = self._jump[parent], self._depth
        far = self._jump[near]
        self._jump.append(far if depth[parent] - depth[near] == depth[near] - depth[far] else parent)
        self._parent.append(parent)
        depth.append(depth[parent] + 1)

    def related(self, one: int, other: int) -> bool:
        """Whether they are the same, or one descends from the other."""
        high, low = sorted((one, other), key=lambda id: self._depth[id])
        while self._depth[low] > self._depth[high]:
            jump = self._jump[low]
            low = jump if self._depth[jump] >= self._depth[high] else self._parent[low]
        return low == high
