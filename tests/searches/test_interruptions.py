"""A search that is interrupted anywhere ends as one that was not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from searching import MakeParts, events, finish, interrupted, of_kind

from presage import (
    Candidate,
    Forecast,
    Forecaster,
    Ground,
    Prediction,
    Proposer,
    Task,
)
from presage.forecasters.blend import BlendForecaster
from presage.forecasters.surrogate import SurrogateForecaster
from presage.llm.cost import Cost
from presage.searches.budget import Budget
from presage.searches.session import Parts
from presage.store.store import Store


@pytest.mark.parametrize(
    ("policy", "strategy", "budget"), [("always", "islands", 12), ("topk", "puct", 12), ("risk", "puct", 24)]
)
def test_a_search_interrupted_after_every_event_ends_as_one_that_was_not(
    tmp_path: Path, make_parts: MakeParts, knowing: Any, policy: str, strategy: str, budget: int
) -> None:
    forecasters = []

    def make() -> Parts:
        forecasters.append(knowing())
        return make_parts(forecasters[-1], policy, strategy)

    finish(tmp_path / "whole", make(), Budget(budget), batch=12)
    whole = forecasters.pop()
    count = len(list(interrupted(tmp_path / "cut", make, Budget(budget), batch=12)))
    assert count > 20
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    asked = [hash for forecaster in forecasters for hash in forecaster.asked]
    assert asked == whole.asked


def test_one_that_sees_the_whole_space_goes_on_as_if_it_had_not_been_interrupted(
    tmp_path: Path, make_parts: MakeParts
) -> None:
    """The surrogate learns from one measurement to the next; what it must know again is kept with the forecasts."""
    finish(tmp_path / "whole", make_parts(SurrogateForecaster(), "risk"), Budget(30))
    proposed = of_kind(tmp_path / "whole", "proposed")
    assert len(proposed[0]["candidates"]) > 40, "all at once"
    assert all(len(each["hopes"]) <= 1 for each in of_kind(tmp_path / "whole", "forecast"))
    list(interrupted(tmp_path / "cut", lambda: make_parts(SurrogateForecaster(), "risk"), Budget(30), 8, after=7))
    assert events(tmp_path / "cut") == events(tmp_path / "whole")


def test_a_blend_goes_on_with_the_weights_it_had(tmp_path: Path, make_parts: MakeParts, knowing: Any) -> None:
    class Wrong(Forecaster):
        def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
            return [Prediction(Forecast((3.0, 4.0), (0.0, 1.0))) for _ in candidates]

    def make() -> Parts:
        return make_parts(BlendForecaster({"knowing": knowing(), "wrong": Wrong()}))

    finish(tmp_path / "whole", make(), Budget(24), batch=12)
    assert len(list(interrupted(tmp_path / "cut", make, Budget(24), batch=12))) > 20
    assert events(tmp_path / "cut") == events(tmp_path / "whole")
    *_, last = of_kind(tmp_path / "whole", "forecast")
    knowing_weight, wrong_weight = last["memory"]["speed"]
    assert knowing_weight > 10 * wrong_weight


def test_what_a_language_model_wrote_is_paid_once(tmp_path: Path, make_parts: MakeParts, draws: Any) -> None:
    calls: list[str] = []

    class Counted(Proposer):
        def __init__(self, ground: Ground) -> None:
            super().__init__(ground)
            self._inner = draws(ground, Cost(10))

        def propose(self, parent: Any, others: Any, count: Any, known: Any, rng: Any) -> Any:
            calls.append(parent.measured.kernel.hash)
            return self._inner.propose(parent, others, count, known, rng)

        def spent(self) -> Cost:
            return Cost(10)

    list(interrupted(tmp_path / "cut", lambda: make_parts(proposer=Counted), Budget(10), 4))
    with Store(tmp_path / "cut") as store:
        proposed = len(list(store.events("proposed")))
    assert len(calls) == proposed


def test_a_proposer_is_told_what_failed_and_why(folder: Path, make_parts: MakeParts, draws: Any) -> None:
    told: list[list[Any]] = []

    class Listening(Proposer):
        def __init__(self, ground: Ground) -> None:
            super().__init__(ground)
            self._inner = draws(ground)

        def propose(self, parent: Any, others: Any, count: Any, known: Any, rng: Any) -> Any:
            told.append([other for other in others if other.value is None])
            return self._inner.propose(parent, others, count, known, rng)

    finish(folder, make_parts(proposer=Listening, forecaster=None), Budget(60), 8)
    failures = [each for those in told for each in those]
    assert failures
    assert {(each.measured.status, each.reason) for each in failures} == {("wrong_result", "y[0] is 1, not 2")}


def test_a_finished_search_has_nothing_more_to_do(folder: Path, make_parts: MakeParts) -> None:
    finish(folder, make_parts(), Budget(12))
    before = events(folder)
    finish(folder, make_parts(), Budget(12))
    assert events(folder) == before


def test_the_seed_decides(tmp_path: Path, make_parts: MakeParts) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finish(tmp_path / name, make_parts(), Budget(12), seed=seed)
    assert events(tmp_path / "a") == events(tmp_path / "b")
    assert events(tmp_path / "a") != events(tmp_path / "c")
