"""Strategies: puct against its definition, lineages, and that asking and telling rebuild the same thing."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage import Node, PresageError, Strategy
from presage.searches import registry
from presage.searches.puct import Puct
from presage.searches.puct import _highest as highest
from presage.searches.random import Random
from presage.searches.ranks import cell

ISLANDS, EXPLORATION, WINDOW = 4, 1.0, 64
NAMES = ["greedy", "islands", "puct", "random"]


class BruteForce:
    """Max-reward PUCT as it is defined, every node looked at every time."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.visits: Counter[int] = Counter()

    def tell(self, node: Node) -> None:
        self.nodes[node.id] = node

    def scores(self) -> dict[int, float]:
        nodes, total = self.nodes.values(), sum(self.visits.values())
        values = {node.id: cell(node.value) for node in nodes}
        rewards = {}
        for node in nodes:
            family = [node, *(child for child in nodes if child.parent == node.id)]
            measured = [cell(one.value) for one in family if one.measured]
            rewards[node.id] = max(measured, default=values[node.id])
        n = len(values)
        scores = {}
        for id in values:
            q = _mid_rank(rewards[id], list(rewards.values())) / n
            prior = _mid_rank(values[id], list(values.values())) / (n * (n + 1) / 2)
            scores[id] = q + EXPLORATION * prior * math.sqrt(1 + total) / (1 + self.visits[id])
        return scores

    def ask(self, count: int) -> list[int]:
        scores = self.scores()
        chosen: list[int] = []
        for id in sorted(scores, key=lambda id: (-scores[id], id))[:WINDOW]:
            if len(chosen) < count and not any(self.related(id, other) for other in chosen):
                chosen.append(id)
        parents = [chosen[i % len(chosen)] for i in range(count)]
        self.visits.update(parents)
        return parents

    def ancestors(self, id: int | None) -> set[int]:
        found = set()
        while id is not None:
            found.add(id)
            id = self.nodes[id].parent
        return found

    def related(self, one: int, other: int) -> bool:
        return one in self.ancestors(other) or other in self.ancestors(one)


def _mid_rank(value: int, among: list[int]) -> float:
    return sum(other < value for other in among) + (sum(other == value for other in among) + 1) / 2


def grow(strategy: Strategy, steps: int, seed: int, told: list[Node] | None = None) -> list[list[int]]:
    """A search of made-up values: some children fail, some are trusted first and measured later."""
    rng = random.Random(seed)
    nodes = [Node(0, None, 0.0, True)]
    strategy.tell(nodes[0])
    asked = []
    for step in range(steps):
        parents = list(strategy.ask(3, random.Random(f"{seed}/{step}")))
        asked.append(parents)
        for parent in parents:
            if rng.random() < 0.2:
                continue
            value = round(nodes[parent].value + rng.gauss(-0.1, 0.5), rng.choice([seed % 2, 6 * (seed % 3 > 0)]))
            nodes.append(Node(len(nodes), parent, value, rng.random() < 0.5))
            strategy.tell(nodes[-1])
        trusted = [node for node in nodes if not node.measured]
        if trusted and rng.random() < 0.3:
            node = rng.choice(trusted)
            nodes[node.id] = Node(node.id, node.parent, node.value + rng.gauss(0, 0.3), True)
            strategy.tell(nodes[node.id])
    if told is not None:
        told += nodes
    return asked


def test_of_many_tied_nodes_the_oldest_are_first() -> None:
    """Compilers make the same of many kernels: all of them are equally fast."""
    puct = Puct()
    for id in range(16_000):
        puct.tell(Node(id, 0 if id else None, 1.0 if id else 0.0, id % 3 != 0))
    for first in range(1, 40, 4):
        assert list(puct.ask(4, random.Random(0))) == [first, first + 1, first + 2, first + 3]


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), min_size=1, max_size=400), st.integers(1, 70))
def test_the_highest_scores_are_found_in_order(scores: list[float], count: int) -> None:
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    assert highest(np.array(scores), count) == ranked[:count]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("puct:c=-1", "c, how much puct explores, is 0 or more"),
        ("puct:window=0", "window, .* is 1 or more, not 0"),
        ("islands:islands=0", "islands of the strategy islands is 1 or more, not 0"),
        ("islands:migration=x", "migration of the strategy islands must be a whole number, not 'x'"),
        ("greedy:c=1", "the strategy greedy has no setting 'c'; it has: none"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(spec: str, complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        registry.get(spec)


def test_settings_are_arguments_of_the_constructor() -> None:
    puct = registry.get("puct:c=0")
    for id, value in enumerate([0.0, 2.0, 1.0]):
        puct.tell(Node(id, 0 if id else None, value, True))
    assert [list(puct.ask(1, random.Random(0))) for _ in range(5)] == [[0]] * 5, "without exploring it never moves on"
    assert len(registry.get("islands:islands=2").ask(3, random.Random(0))) == 0


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_puct_chooses_what_its_definition_says(seed: int) -> None:
    class Both(Strategy):
        def __init__(self) -> None:
            self.quick, self.slow = Puct(), BruteForce()

        def tell(self, node: Node) -> None:
            self.quick.tell(node)
            self.slow.tell(node)

        def ask(self, count: int, rng: random.Random) -> list[int]:
            assert dict(enumerate(self.quick.scores().tolist())) == self.slow.scores()
            parents = list(self.quick.ask(count, rng))
            assert parents == self.slow.ask(count)
            return parents

    grow(Both(), steps=12, seed=seed)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_parents_of_a_puct_batch_are_never_on_one_lineage(seed: int) -> None:
    told: list[Node] = []
    asked = grow(Puct(), steps=40, seed=seed, told=told)
    tree = BruteForce()
    for node in told:
        tree.tell(node)
    for parents in asked:
        different = set(parents)
        assert not any(tree.related(one, other) for one in different for other in different if one != other)


def test_puct_priors_sum_to_one_and_tied_nodes_share_them_equally() -> None:
    puct = Puct()
    for id, value in enumerate([0.0, 1.0, 1.0, 2.0]):
        puct.tell(Node(id, 0 if id else None, value, True))
    # With T = 0 and n = 0 the score is Q + P; Q's mid-ranks sum to (n + 1) / 2. Node 0 has its best child's reward.
    scores = puct.scores().tolist()
    assert sum(scores) == pytest.approx(5 / 2 + 1)
    assert scores[1] == scores[2]
    assert scores[0] == pytest.approx(3.5 / 4 + 0.1)


def test_a_parent_whose_children_all_fail_is_left_alone() -> None:
    puct = Puct()
    for id, value in enumerate([0.0, 1.0, 0.9]):
        puct.tell(Node(id, 0 if id else None, value, True))
    assert {puct.ask(1, random.Random(0))[0] for _ in range(30)} == {0, 1, 2}


@pytest.mark.parametrize("name", NAMES)
def test_telling_the_same_rebuilds_the_same(name: str) -> None:
    class Recorded(Strategy):
        """Keeps all that was asked and told, to tell another."""

        def __init__(self, inner: Strategy) -> None:
            self.inner = inner
            self.log: list[Node | list[int]] = []

        def tell(self, node: Node) -> None:
            self.log.append(node)
            self.inner.tell(node)

        def ask(self, count: int, rng: random.Random) -> list[int]:
            parents = list(self.inner.ask(count, rng))
            self.log.append(parents)
            return parents

    first = Recorded(registry.get(name))
    grow(first, steps=40, seed=5)
    second = registry.get(name)
    for entry in first.log:
        if isinstance(entry, Node):
            second.tell(entry)
        else:
            second.visited(entry)
    for seed in range(5):
        assert list(first.inner.ask(3, random.Random(seed))) == list(second.ask(3, random.Random(seed)))


@pytest.mark.parametrize("name", NAMES)
def test_before_the_anchor_there_are_no_parents_and_then_it_is_the_only_one(name: str) -> None:
    strategy = registry.get(name)
    assert list(strategy.ask(3, random.Random(0))) == []
    strategy.tell(Node(0, None, 0.0, True))
    assert list(strategy.ask(3, random.Random(0))) == [0, 0, 0]


def test_greedy_takes_the_best_that_was_measured() -> None:
    greedy = registry.get("greedy")
    for id, (value, measured) in enumerate([(0.0, True), (1.0, True), (3.0, False), (0.5, True)]):
        greedy.tell(Node(id, 0 if id else None, value, measured))
    assert list(greedy.ask(2, random.Random(0))) == [1, 1]
    greedy.tell(Node(2, 0, 2.0, True))
    assert list(greedy.ask(1, random.Random(0))) == [2]


def test_random_takes_any_that_was_measured() -> None:
    strategy = Random()
    for id in range(6):
        strategy.tell(Node(id, 0 if id else None, float(id), id % 2 == 0))
    assert set(strategy.ask(200, random.Random(0))) == {0, 2, 4}


def test_islands_are_apart_until_migration() -> None:
    islands = registry.get("islands")
    islands.tell(Node(0, None, 0.0, True))
    assert list(islands.ask(ISLANDS, random.Random(0))) == [0] * ISLANDS
    for id in range(1, ISLANDS + 1):
        islands.tell(Node(id, 0, 1.0 + id, True))
    seen = [set(islands.ask(ISLANDS, random.Random(seed))) for seed in range(2)]
    assert all(parents <= {0, 1, 2, 3, 4} for parents in seen)
    by_island = [{0}, {0}, {0}, {0}]
    for seed in range(5):
        for place, parent in enumerate(islands.ask(ISLANDS, random.Random(seed))):
            by_island[place].add(parent)
    assert by_island == [{0, 1}, {0, 2}, {0, 3}, {0, 4}]


def test_an_unknown_strategy_is_named_with_those_that_are() -> None:
    with pytest.raises(PresageError, match=r"no strategy 'best'; there are: .*greedy, .*islands, .*puct, .*random"):
        registry.get("best")
