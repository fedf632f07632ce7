"""Lineage: who descends from whom, answered in logarithmic time."""

from __future__ import annotations

from array import array


class Lineage:
    """Each node has its parent and one further ancestor, so placed that a few jumps lead to any depth."""

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
