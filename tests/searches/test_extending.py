"""A run that is given a larger budget goes on where it ended; it is never given a smaller one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from presage import PresageError, Recording, Run, search
from presage.store.store import Event, Store


@pytest.fixture
def asked(toy: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    return {"device": f"recorded:{toy.path}", "forecaster": "none", "run": "run"}


def kinds(folder: str = "run") -> list[str]:
    with Store(Path(folder), writes=False) as store:
        return [event.kind for event in store.events()]


def measured(folder: str = "run") -> list[str]:
    with Store(Path(folder), writes=False) as store:
        return [event.payload["kernel"] for event in store.events("measured")]


def test_a_finished_run_goes_on_with_a_larger_budget(asked: dict[str, Any]) -> None:
    first = search("toy", **asked, budget=12)
    before = measured()
    more = search("toy", **asked, budget=30)
    assert (first.measurements, more.measurements) == (12, 30)
    assert measured()[: len(before)] == before
    assert len(set(measured())) == len(measured()), "nothing is measured again but the finalists"
    assert more.configuration["budget"] == 30
    assert more.best.speedup.value >= first.best.speedup.value * 0.95
    assert kinds().count("finished") == 2
    assert kinds().count("begun") == 1
    assert search("toy", **asked, budget=30).summary() == more.summary(), "and is handed back as it is"


def test_it_can_be_killed_while_it_goes_on(asked: dict[str, Any]) -> None:
    search("toy", **asked, budget=12)
    search("toy", **{**asked, "run": "whole"}, budget=12)
    whole = search("toy", **{**asked, "run": "whole"}, budget=30)

    def stop(event: Event, state: object) -> None:
        if event.kind not in ("session", "finished"):
            raise KeyboardInterrupt

    for _ in range(200):
        try:
            more = search("toy", **asked, budget=30, watch=stop)
            break
        except KeyboardInterrupt:
            assert Run(Path("run")).result is None
            assert Run(Path("run")).configuration["budget"] == 30
    assert measured() == measured("whole")
    assert more.summary()["best"]["kernel"] == whole.summary()["best"]["kernel"]


def test_a_run_that_was_stopped_may_be_given_more_when_it_goes_on(asked: dict[str, Any]) -> None:
    def stop(event: Event, state: object) -> None:
        if event.kind == "decided":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search("toy", **asked, budget=8, watch=stop)
    assert search("toy", **asked, budget=20).measurements == 20


def test_other_limits_can_be_raised_or_lifted(asked: dict[str, Any]) -> None:
    search("toy", **asked, budget=8, wall=600.0)
    search("toy", **asked, budget=10, wall=900.0)
    found = search("toy", **asked, budget=12)
    assert (found.measurements, found.configuration["wall"]) == (12, None)


def test_where_nothing_is_left_to_do_the_finals_are_not_measured_again(asked: dict[str, Any]) -> None:
    first = search("toy", **asked, budget=200)
    assert first.summary()["why"] == "nothing new was proposed any more"
    more = search("toy", **asked, budget=300)
    assert more.measurements == first.measurements
    assert more.summary()["best"] == first.summary()["best"]


def test_a_run_that_stopped_early_goes_on_if_it_may_not(asked: dict[str, Any]) -> None:
    first = search("softmax", device="recorded:h200", run="run")
    stop = first.summary()["early_stop"]
    assert stop["stopped"]
    assert stop["saved"] == 64 - first.measurements
    finer = search("softmax", device="recorded:h200", run="run", until=0.01)
    assert finer.measurements >= first.measurements
    more = search("softmax", device="recorded:h200", run="run", budget=64)
    assert more.measurements == 64
    with pytest.raises(PresageError, match=r"until was the end of the budget, is 0\.05"):
        search("softmax", device="recorded:h200", run="run")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"budget": 10}, r"budget was 12, is 10\. A run can be given a larger budget, not a smaller one\."),
        ({"budget": 12, "wall": 60.0}, r"wall was unlimited, is 60\.0\. A run can be given a larger budget, not a"),
        ({"budget": 30, "seed": 1}, r"another configuration: seed was 0, is 1\. Ask as before"),
    ],
)
def test_less_is_refused_and_so_is_anything_else(asked: dict[str, Any], settings: Any, complaint: str) -> None:
    search("toy", **asked, budget=12)
    before = kinds()
    with pytest.raises(PresageError, match=complaint):
        search("toy", **asked, **settings)
    assert kinds() == before


def test_the_time_between_is_not_spent(asked: dict[str, Any]) -> None:
    search("toy", **asked, budget=8)
    with Store(Path("run")) as store:
        store._database.execute("UPDATE events SET time = time - 1000")
        store._database.commit()
    assert search("toy", **asked, budget=12).summary()["spent"]["wall_seconds"] < 500
