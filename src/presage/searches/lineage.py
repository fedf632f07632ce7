"""Lineage: tests in logarithmic time whether one node descends from another."""

from __future__ import annotations

from array import array


class Lineage:
    """A tree of nodes. Each node stores its parent and one farther ancestor (jump), placed such that any depth is
    reached in O(log depth) jumps."""

    def __init__(self) -> None:
        self._parent, self._jump, self._depth = array("l"), array("l"), array("l")

    def add(self, parent: int | None) -> None:
        """Add the next node. `parent` is the index of its parent; None for a root."""
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
        """Whether two nodes are the same, or one descends from the other."""
        high, low = sorted((one, other), key=lambda id: self._depth[id])
        while self._depth[low] > self._depth[high]:
            jump = self._jump[low]
            low = jump if self._depth[jump] >= self._depth[high] else self._parent[low]
        return low == high
