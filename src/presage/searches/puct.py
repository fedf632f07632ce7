"""The `puct` strategy: max-reward PUCT over the whole archive, not only from its root.

    score(node) = Q + EXPLORATION * P * sqrt(1 + T) / (1 + n)

n counts how often the node was chosen, T all choices. Q is the rank, from 0 to 1, of the node's reward among all: the
best measured value among the node and its children, or its own expected value where none was measured. P is the prior:
the node's own rank, over the sum of all ranks; tied nodes share theirs equally.

No list of all nodes is ever walked. Nodes with the same n differ only in reward and value, and the score rises with
both: of each n there are two heaps, one by reward and one by value, and the best are found from their tops. Nodes that
are tied in both are one entry there, so that many of them cost no more than one.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from array import array
from collections.abc import Iterator, Sequence

from presage.searches.base import Node, Strategy
from presage.searches.ranks import Ranks, cell

EXPLORATION = 1.0
_SHIFT = 20
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
        same.add(id, self._rewards[id], self._values[id])

    def _filed(self) -> dict[int, _Class]:
        if self._classes is None:
            self._classes = {}
            for id, visits in enumerate(self._visits):
                self._classes.setdefault(visits, _Class()).add(id, self._rewards[id], self._values[id])
        return self._classes

    def _best_first(self) -> Iterator[tuple[float, int]]:
        """All nodes with the negative of their scores, the best first; of tied ones, the oldest."""
        classes = self._filed()
        for visits in [visits for visits, same in classes.items() if not self._trim(same, visits)]:
            del classes[visits]
        return heapq.merge(*(self._of_class(same, visits) for visits, same in classes.items()))

    def _of_class(self, same: _Class, visits: int) -> Iterator[tuple[float, int]]:
        """The nodes that were visited so often, the best first. What is not yet seen scores no better than the tops of
        the two heaps together."""
        found: list[tuple[float, int, Iterator[int]]] = []
        seen: set[tuple[int, int]] = set()
        popped: list[tuple[list[int], int]] = []

        def taken() -> tuple[float, int]:
            score, id, others = found[0]
            if (other := next(others, None)) is None:
                heapq.heappop(found)
            else:
                heapq.heapreplace(found, (score, other, others))
            return score, id

        try:
            while self._trim(same, visits):
                (reward, its_value), (value, its_reward) = _both(same.by_reward[0]), _both(same.by_value[0])
                bound = self._score(reward, value, visits)
                while found and -found[0][0] > bound:
                    yield taken()
                for heap, tied in ((same.by_reward, (reward, its_value)), (same.by_value, (its_reward, value))):
                    popped.append((heap, heapq.heappop(heap)))
                    if tied not in seen:
                        seen.add(tied)
                        ids = self._still(same.tied[tied], visits, tied)
                        heapq.heappush(found, (-self._score(*tied, visits), next(ids), ids))
            while found:
                yield taken()
        finally:
            for heap, entry in popped:
                heapq.heappush(heap, entry)

    def _still(self, ids: list[int], visits: int, tied: tuple[int, int]) -> Iterator[int]:
        """Those of a heap's nodes that are still what they are filed as, the oldest first; the heap stays as it is."""
        front, last = [(ids[0], 0)], -1
        while front:
            id, at = heapq.heappop(front)
            for below in range(2 * at + 1, min(2 * at + 3, len(ids))):
                heapq.heappush(front, (ids[below], below))
            if id != last and self._is_now(id, visits, tied):
                yield id
            last = id

    def _is_now(self, id: int, visits: int, tied: tuple[int, int]) -> bool:
        return self._visits[id] == visits and (self._rewards[id], self._values[id]) == tied

    def _trim(self, same: _Class, visits: int) -> bool:
        """Drop what is out of date from the tops of the heaps; whether anything is left."""
        for heap in (same.by_reward, same.by_value):
            while heap:
                first, second = _both(heap[0])
                tied = (first, second) if heap is same.by_reward else (second, first)
                ids = same.tied.get(tied, [])
                while ids and not self._is_now(ids[0], visits, tied):
                    heapq.heappop(ids)
                if ids:
                    break
                same.tied.pop(tied, None)
                heapq.heappop(heap)
        return bool(same.by_reward and same.by_value)


class _Class:
    """The nodes that were visited equally often. Those that are tied, in reward and in value, are one heap of ids;
    there are two heaps of such pairs, one with the largest reward first and one with the largest value."""

    __slots__ = ("by_reward", "by_value", "tied")

    def __init__(self) -> None:
        self.tied: dict[tuple[int, int], list[int]] = {}
        self.by_reward: list[int] = []
        self.by_value: list[int] = []

    def add(self, id: int, reward: int, value: int) -> None:
        ids = self.tied.get((reward, value))
        if ids is None:
            self.tied[reward, value] = [id]
            heapq.heappush(self.by_reward, _entry(reward, value))
            heapq.heappush(self.by_value, _entry(value, reward))
        else:
            heapq.heappush(ids, id)


def _entry(first: int, second: int) -> int:
    """Two cells as one number, the largest first."""
    return -(first << _SHIFT | second)


def _both(entry: int) -> tuple[int, int]:
    return -entry >> _SHIFT, -entry & _MASK


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
