"""Acquisitions: what each puts first, and that a search decides in that order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sweeps import others_in_sweeps

from presage import Forecast, PresageError
from presage.searches import acquisition as acquisitions
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.store.store import Store

MakeParts = Callable[..., Parts]


def spread(middle: float, width: float, p_fail: float = 0.0) -> Forecast:
    return Forecast.from_quantiles([0.16, 0.5, 0.84], [middle - width, middle, middle + width], p_fail)


SAFE, BOLD, BROKEN = spread(0.9, 0.1), spread(0.5, 1.0), spread(2.0, 0.1, p_fail=0.95)


def first(name: str, best: float = 1.0) -> Forecast:
    acquisition, rng = acquisitions.get(name), random.Random(0)
    return max((SAFE, BOLD, BROKEN), key=lambda forecast: acquisition.score(forecast, best, rng))


@pytest.mark.parametrize(
    ("name", "best", "expected"),
    [
        ("expected_improvement", 1.0, BOLD),
        ("expected_improvement", 0.0, SAFE),
        ("mean", 1.0, SAFE),
        ("upper_bound", 1.0, BOLD),
        ("upper_bound:beta=0", 1.0, SAFE),
        ("upper_bound:beta=3", 1.0, BROKEN),
    ],
)
def test_what_comes_first(name: str, best: float, expected: Forecast) -> None:
    assert first(name, best) is expected


def test_thompson_puts_each_first_as_often_as_it_may_be_the_best() -> None:
    thompson, rng = acquisitions.get("thompson"), random.Random(0)
    drawn = Counter(
        max(("safe", SAFE), ("bold", BOLD), ("broken", BROKEN), key=lambda each: thompson.score(each[1], 0.0, rng))[0]
        for _ in range(2_000)
    )
    assert 0.03 < drawn["broken"] / 2_000 < 0.07, "it works 5 % of the time, and is then the best"
    assert 0.2 < drawn["bold"] / 2_000 < 0.5


def test_one_that_always_fails_is_last() -> None:
    hopeless = spread(3.0, 0.1, p_fail=1.0)
    for name in ("expected_improvement", "mean"):
        assert acquisitions.get(name).score(hopeless, 0.0, random.Random(0)) == 0
    for name in ("upper_bound:beta=9", "thompson"):
        assert acquisitions.get(name).score(hopeless, 0.0, random.Random(0)) == -64


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (
            "hope",
            "there is no acquisition 'hope'; there are: .*expected_improvement, .*thompson, .*upper_bound",
        ),
        ("upper_bound:beta=-1", "beta, how optimistic the bound is, is 0 or more"),
        ("mean:beta=1", "the acquisition mean has no setting 'beta'; it has: none"),
    ],
)
def test_a_mistake_is_explained(spec: str, complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        acquisitions.get(spec)


@pytest.mark.parametrize(
    "name", others_in_sweeps({name: name for name in acquisitions.names()}, "expected_improvement", "thompson")
)
def test_a_search_decides_in_its_order_and_goes_on_as_if_not_interrupted(
    tmp_path: Path, make_parts: MakeParts, knowing: Any, name: str
) -> None:
    def told(folder: Path, cut: bool) -> list[tuple[str, Any]]:
        def stop(event: Any, state: Any) -> None:
            if cut and event.kind not in ("session", "finished"):
                raise KeyboardInterrupt

        finished = False
        while not finished:
            with Store(folder) as store:
                search = Search(
                    store, make_parts(knowing(), acquisition=acquisitions.get(name)), Budget(14), 12, 0, stop
                )
                try:
                    search.run()
                    finished = True
                except KeyboardInterrupt:
                    pass
        with Store(folder, writes=False) as store:
            return [
                (event.kind, event.payload)
                for event in store.events()
                if event.kind in ("asked", "forecast", "decided")
            ]

    whole = told(tmp_path / "whole", cut=False)
    assert told(tmp_path / "cut", cut=True) == whole
    hopes = next(payload for kind, payload in whole if kind == "forecast")["hopes"]
    decided = next(payload for kind, payload in whole if kind == "decided")["decisions"]
    ranked = sorted(hopes, key=lambda hash: hopes[hash], reverse=True)
    assert [hash for hash, _, _ in decided] == ranked[: len(decided)]
