"""The `greedy` strategy: the best measured kernel is always the parent."""

from __future__ import annotations

import random
from collections.abc import Sequence

from presage.searches.base import Node, Strategy


class Greedy(Strategy):
    """Takes the best measured kernel as the only parent."""

    def __init__(self) -> None:
        self._best: Node | None = None

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        return [self._best.id] * count if self._best else []

    def tell(self, node: Node) -> None:
        if node.measured and (self._best is None or node.value > self._best.value):
            self._best = node
