"""Objects in the place of names: what a run keeps of them, and with what it goes on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from presage import (
    Acquisition,
    Action,
    Decision,
    Forecast,
    Parent,
    Policy,
    PresageError,
    Proposal,
    Proposer,
    Recording,
    Standing,
    search,
)
from presage.devices.recorded import RecordedDevice
from presage.policies.topk import TopK
from presage.problems import registry as problems
from presage.searches.acquisition import UpperBound
from presage.searches.objects import describe
from presage.searches.puct import Puct
from presage.store.store import Store


class Some(Policy):
    """Measures at a rate, and counts what it heard of."""

    def __init__(self, rate: float = 0.5) -> None:
        self._rate = rate
        self.heard = 0

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [Decision(Action.MEASURE if rng.random() < self._rate else Action.TRUST, "so") for _ in forecasts]

    def observe(self, *told: Any) -> None:
        self.heard += 1


class Backwards(Acquisition):
    def score(self, forecast: Forecast, best: float, rng: random.Random) -> float:
        return -forecast.mean()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_part_can_be_an_object(toy: Recording, draws: Any, knowing: Any, device: RecordedDevice) -> None:
    problem = device.problem("toy")
    run = search(
        problem,
        device=RecordedDevice(toy),
        forecaster=knowing(width=0.1),
        policy=Some(rate=0.7),
        strategy=Puct(c=2.0),
        acquisition=UpperBound(beta=2.0),
        proposer=draws,
        anchor=device.kernel(problem, "toy.c@A=2,B=0"),
        budget=16,
    )
    assert run.measurements == 16
    assert run.folder == Path("presage-runs/toy-recorded-toy-0")
    kept = run.configuration
    here = f"<{__name__}"
    assert kept["problem"] == "<presage.devices.recorded.RecordedProblem toy>"
    assert kept["device"] == "<presage.devices.recorded.RecordedDevice(recording=toy, seed=0)>"
    assert kept["policy"] == f"{here}.Some(rate=0.7)>"
    assert kept["strategy"] == "<presage.searches.puct.Puct(c=2.0, window=64)>"
    assert kept["acquisition"] == "<presage.searches.acquisition.UpperBound(beta=2.0)>"
    assert kept["proposer"].endswith(".Draws>")
    assert ".Knowing(width=0.1, cost=presage." in kept["forecaster"]
    assert kept["anchor"].startswith("<toy.c@A=2,B=0 ")


@pytest.mark.parametrize("stops", [False, True], ids=["ends", "is stopped"])
def test_a_search_closes_its_proposer(toy: Recording, draws: Any, knowing: Any, stops: bool) -> None:
    closed = []

    class Closing(draws):  # type: ignore[misc]
        def close(self) -> None:
            closed.append(self)

    def watch(event: Any, state: Any) -> None:
        if stops and event.kind == "measured" and state.spent.measurements == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) if stops else nullcontext():
        search("toy", device=RecordedDevice(toy), forecaster=knowing(), proposer=Closing, budget=8, watch=watch)
    assert len(closed) == 1


def test_a_search_with_objects_is_the_one_with_their_names(toy: Recording) -> None:
    asked: dict[str, Any] = {"forecaster": "surrogate", "budget": 20}
    search("toy", device=f"recorded:{toy.path}", policy="topk:k=3", strategy="puct:c=0.5", run="names", **asked)
    search("toy", device=RecordedDevice(toy), policy=TopK(k=3), strategy=Puct(c=0.5), run="objects", **asked)
    measured = []
    for folder in ("names", "objects"):
        with Store(Path(folder), writes=False) as store:
            measured.append([(event.payload["kernel"], event.payload["value"]) for event in store.events("measured")])
    assert measured[0] == measured[1]


def test_the_same_object_goes_on_with_its_run_in_the_same_process(toy: Recording, knowing: Any) -> None:
    """It is a copy that learns, so nothing is told it twice."""
    policy, device = Some(), RecordedDevice(toy)

    def stop(event: Any, state: Any) -> None:
        if event.kind == "measured" and state.spent.measurements == 7:
            raise KeyboardInterrupt

    asked: dict[str, Any] = {"device": device, "policy": policy, "forecaster": knowing(), "budget": 16}
    with pytest.raises(KeyboardInterrupt):
        search("toy", run="cut", watch=stop, **asked)
    cut = search("toy", run="cut", **asked)
    whole = search("toy", run="whole", **asked)
    assert policy.heard == 0
    for name in ("decisions", "measurements"):
        assert cut.summary()[name] == whole.summary()[name]
    assert cut.best.speedup == whole.best.speedup


def test_a_run_that_was_begun_with_an_object_goes_on_with_one_like_it_only(toy: Recording, knowing: Any) -> None:
    asked: dict[str, Any] = {"device": f"recorded:{toy.path}", "forecaster": knowing(), "run": "run"}
    search("toy", policy=Some(0.5), budget=8, **asked)
    assert search("toy", policy=Some(0.5), budget=12, **asked).measurements == 12
    with pytest.raises(PresageError, match=r"policy was <.*Some\(rate=0\.5\)>, is <.*Some\(rate=0\.9\)>\. .* object"):
        search("toy", policy=Some(0.9), budget=12, **asked)
    with pytest.raises(PresageError, match=r"policy was <.*Some\(rate=0\.5\)>, is topk:k=4\. A run that was begun"):
        search("toy", policy="topk:k=4", budget=12, **asked)


def test_an_acquisition_of_one_s_own_changes_the_order(toy: Recording, knowing: Any) -> None:
    asked: dict[str, Any] = {"device": f"recorded:{toy.path}", "policy": "always", "budget": 12}
    usual = search("toy", forecaster=knowing(), run="usual", **asked)
    worst = search("toy", forecaster=knowing(), acquisition=Backwards(), run="worst", **asked)
    assert worst.best.speedup.value < usual.best.speedup.value


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"policy": TopK}, "policy must be a name or a Policy object, not <class"),
        ({"strategy": TopK()}, "strategy must be a name or a Strategy object"),
        ({"proposer": 3}, "proposer must be a name or a Proposer class"),
        ({"policy": TopK(), "alpha": 0.1}, "alpha are settings of a policy that is named"),
    ],
)
def test_what_is_no_such_object_is_refused(toy: Recording, settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        search("toy", device=f"recorded:{toy.path}", **settings)


class Writes(Proposer):
    """Writes kernels that nobody has recorded."""

    def propose(self, parent: Parent, *_: Any) -> list[Proposal]:
        raise AssertionError("it must not be asked")


@pytest.mark.parametrize("proposer", [Writes, partial(Writes)])
def test_a_proposer_that_writes_kernels_is_refused_on_a_recorded_device(
    toy: Recording, proposer: Any, here: Path
) -> None:
    with pytest.raises(PresageError, match=r"can measure only what was recorded, and <.*Writes.*> writes kernels"):
        search("toy", device=f"recorded:{toy.path}", proposer=proposer)
    with pytest.raises(PresageError, match="can measure only what was recorded, and <"):
        search("toy", device=RecordedDevice(toy), proposer=proposer)
    assert not list(here.iterdir())


def test_a_part_that_cannot_be_copied_is_refused(toy: Recording) -> None:
    policy = Some()
    policy.generator = (each for each in ())  # type: ignore[attr-defined]
    with pytest.raises(PresageError, match="Some cannot be copied, and each search needs one of its own"):
        search("toy", device=f"recorded:{toy.path}", policy=policy)


def test_a_catalogue_s_problem_is_its_name() -> None:
    run = search(problems.get("softmax"), device="recorded:h200", forecaster="none", budget=4)
    assert run.configuration["problem"] == "softmax"


def test_descriptions_are_the_same_in_every_process() -> None:
    def make(ground: object) -> object:
        return ground

    assert describe(make).startswith(f"<{__name__}.test_descriptions")
    assert describe(partial(TopK, k=4)) == "<presage.policies.topk.TopK(k=4)>"
    assert "0x" not in describe(partial(make, object()))
