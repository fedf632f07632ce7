"""The `random` strategy: choose parents at random from the measured kernels. A baseline."""

from __future__ import annotations

import random
from collections.abc import Sequence

from presage.searches.base import Node, Strategy


class Random(Strategy):
    """Takes any measured kernel as a parent, each with the same probability."""

    def __init__(self) -> None:
        self._measured: list[int] = []

    def ask(self, count: int, rng: random.Random) -> Sequence[int]:
        return [rng.choice(self._measured) for _ in range(count)] if self._measured else []

    def tell(self, node: Node) -> None:
        if node.measured:
            self._measured.append(node.id)
