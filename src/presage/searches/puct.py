"""The `puct` strategy: max-reward PUCT over the whole archive, not only from its root.

    score(node) = Q + c * P * sqrt(1 + T) / (1 + n)

n is how often the node was chosen, and T the number of all choices. Q is the rank, from 0 to 1, of the node's reward
among all rewards. The reward is the best measured value of the node and its children, or the node's own expected value
if none of them was measured. P is the prior: the rank of the node's own value over the sum of all ranks; tied nodes
share their ranks equally.

All nodes are scored at once in numpy. There is no Python loop over nodes.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.searches.base import Node, Strategy
from presage.searches.lineage import Lineage
from presage.searches.ranks import Floats, Ranks, cell

_BLOCK = 64


class Puct(Strategy):
    """Chooses parents that are fast, have fast children, or were seldom chosen. No parent of a batch descends from
    another. If there are too few such parents, some are chosen several times."""

    def __init__(self, c: float = 1.0, window: int = 64) -> None:
        """c: the weight of exploration. window: how many of the nodes with the highest scores are considered as parents
        that do not descend from each other."""
        if not 0 <= c < math.inf:
            raise PresageError(f"c, how much puct explores, is 0 or more, not {c}")
        if window < 1:
            raise PresageError(f"window, how many nodes puct looks at for parents, is 1 or more, not {window}")
        self.c, self.window = c, window
        self._values = array("q")
        self._rewards = array("q")
        self._hoped = bytearray()
        """Whether each node's reward is only expected: neither the node nor any of its children was measured."""
        self._visits = array("d")
        """1 + n of each node."""
        self._total = 0
        self._by_value, self._by_reward = Ranks(), Ranks()
        self._lineage = Lineage()

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        if not self._values or count < 1:
            return []
        chosen: list[int] = []
        for id in _highest(self.scores(), self.window):
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

    def tell(self, node: Node) -> None:
        at = cell(node.value)
        if node.id < len(self._values):
            self._by_value.add(self._values[node.id], -1)
            self._values[node.id] = at
        else:
            self._values.append(at)
            self._rewards.append(at)
            self._hoped.append(not node.measured)
            self._visits.append(1)
            self._by_reward.add(at)
            self._lineage.add(node.parent)
        self._by_value.add(at)
        if node.measured:
            self._reward(node.id, at)
            if node.parent is not None:
                self._reward(node.parent, at)

    def scores(self) -> Floats:
        """The score of every node, shape (nodes,)."""
        nodes = len(self._values)
        first, ranks = self._by_reward.table()
        q = (ranks / nodes)[_numbers(self._rewards) - first]
        first, ranks = self._by_value.table()
        explored = self.c * (ranks / (nodes * (nodes + 1) / 2)) * math.sqrt(1 + self._total)
        scores: Floats = explored[_numbers(self._values) - first]
        scores /= np.frombuffer(self._visits)
        scores += q
        return scores

    def _reward(self, id: int, measured: int) -> None:
        """Update a node's reward with the measured value of the node or of one of its children."""
        if self._hoped[id] or measured > self._rewards[id]:
            self._by_reward.add(self._rewards[id], -1)
            self._by_reward.add(measured)
            self._rewards[id], self._hoped[id] = measured, False


def _highest(scores: Floats, count: int) -> list[int]:
    """Return the indices of the `count` highest scores, the highest first; of tied scores, the lower index first. The
    maxima of `count` blocks are at least `least`, so at least `count` scores are, and only those are sorted."""
    blocks = np.maximum.reduceat(scores, np.arange(0, len(scores), _BLOCK))
    least = np.partition(blocks, -count)[-count] if count < len(blocks) else -math.inf
    found = np.flatnonzero(scores >= least)
    places: list[int] = found[np.argsort(-scores[found], kind="stable")[:count]].tolist()
    return places


def _numbers(column: array[int]) -> npt.NDArray[np.int64]:
    """View a column as a numpy array without copying. The column cannot grow while the view exists."""
    return np.frombuffer(column, dtype=np.int64)
