"""The splits name what exists, overlap nowhere and are large enough."""

from __future__ import annotations

from collections import Counter

from presage.problems import registry
from presage.problems.base import SPLITS
from presage_catalogue import operation


def test_every_named_operation_exists_once() -> None:
    table = operation._splits()
    named = [*table["test_op"], *table["validation"]]
    assert len(set(named)) == len(named)
    assert set(named) <= set(registry.names())
    rooms = {registry.get(name).room for name in registry.names()}
    assert set(table["test_family_rooms"]) <= rooms
    assert not [name for name in named if registry.get(name).room in table["test_family_rooms"]]


def test_the_splits_are_large_enough_to_tell_something() -> None:
    counts = Counter(registry.get(name).split for name in registry.names())
    assert set(counts) == set(SPLITS) - {"test_problem"}
    assert counts["train"] > counts["test_op"] + counts["test_family"] + counts["validation"]
    assert counts["test_family"] >= 15
    assert min(counts.values()) >= 15
