"""The blend: an exact pool, whose weights move to whoever was right."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Candidate, Forecast, Forecaster, Kernel, Measured, Prediction, PresageError, Task
from presage.forecasters import registry
from presage.forecasters.blend import BlendForecaster, pool
from presage.kernels.kernel import from_source
from presage.llm.cost import Cost
from presage.problems import registry as problems

PROBLEM = problems.get("vector_add")


class Says(Forecaster):
    """Says of a kernel what a function of its hash says; None is no forecast."""

    def __init__(self, says: Callable[[str], Forecast | None], dollars: float = 0.0) -> None:
        self.says, self.dollars, self.closed = says, dollars, False

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(self.says(candidate.kernel.hash), ("a note",)) for candidate in candidates]

    def spent(self) -> Cost:
        return Cost(10, self.dollars)

    def close(self) -> None:
        self.closed = True


def kernel(number: int) -> Kernel:
    return from_source(f"// presage: entry f\nvoid f(float *x) {{ x[0] = {number}; }}", ".c", f"{number}.c")


def around(middle: float, reach: float = 0.5, p_fail: float = 0.1) -> Forecast:
    return Forecast((middle - reach, middle + reach), (0.0, 1.0), p_fail)


ANCHOR = Measured(kernel(-1), times_ns={"n": 1e6})
KERNELS = [kernel(number) for number in range(60)]
rng = random.Random(0)
TRUTH = {each.hash: rng.uniform(-2, 2) for each in KERNELS}


def outcome(each: Kernel, fails: bool = False) -> Measured:
    if fails:
        return Measured(each, status="timeout")
    return Measured(each, times_ns={"n": 1e6 / 2 ** TRUTH[each.hash]})


def learn(
    blend: BlendForecaster, kernels: Sequence[Kernel], fails: Callable[[Kernel], bool] = lambda each: False
) -> Task:
    """Drive it as a search does: forecast, measure, and show what was measured, the latest first."""
    known: list[Measured] = []
    for each in kernels:
        blend.forecast(Task(PROBLEM, ANCHOR, None, known), [Candidate(each)])
        known = [outcome(each, fails(each)), *known]
    return Task(PROBLEM, ANCHOR, None, known)


# -- the pool ---------------------------------------------------------------------------------------------------------

forecasts = st.builds(around, st.floats(-3, 3), st.floats(0.01, 2), st.floats(0, 1))


@given(st.lists(st.tuples(forecasts, st.floats(0.01, 1)), min_size=1, max_size=5), st.floats(-6, 6))
def test_the_pool_is_the_weighted_mean_of_the_cdfs(parts, at: float) -> None:
    each, weights = zip(*parts, strict=True)
    pooled = pool(each, weights)
    share = np.array(weights) / sum(weights)
    assert pooled.cdf_at(at) == pytest.approx(share @ [forecast.cdf_at(at) for forecast in each], abs=1e-9)
    assert pooled.mean() == pytest.approx(share @ [forecast.mean() for forecast in each], abs=1e-9)
    assert pooled.p_fail == pytest.approx(share @ [forecast.p_fail for forecast in each])


# -- learning ---------------------------------------------------------------------------------------------------------


def test_it_begins_with_the_weights_that_it_is_given() -> None:
    members = {"low": Says(lambda hash: around(-1.0, p_fail=0.0)), "high": Says(lambda hash: around(1.0, p_fail=1.0))}
    blend = BlendForecaster(members, speed=(9, 1), failure=(1, 3))
    (said,) = blend.forecast(Task(PROBLEM, ANCHOR), [Candidate(KERNELS[0])])
    assert said.forecast.cdf_at(0.0) == pytest.approx(0.9)
    assert said.forecast.p_fail == pytest.approx(0.75)
    assert blend.weights == pytest.approx({"low": 0.9, "high": 0.1})


@pytest.mark.parametrize("weights", [(1.0,), (1, 0), (2, -1), (1, float("nan"))])
def test_a_member_without_a_weight_is_refused(weights: tuple[float, ...]) -> None:
    members = {"low": Says(lambda hash: None), "high": Says(lambda hash: None)}
    with pytest.raises(PresageError, match="a weight above 0 for each"):
        BlendForecaster(members, failure=weights)


def test_it_approaches_the_better_one() -> None:
    good, bad = Says(lambda hash: around(TRUTH[hash])), Says(lambda hash: around(TRUTH[hash] + 2))
    blend = BlendForecaster({"bad": bad, "good": good})
    assert blend.weights == {"bad": 0.5, "good": 0.5}
    task = learn(blend, KERNELS[:40])
    (prediction,) = blend.forecast(task, [Candidate(KERNELS[50])])
    assert blend.weights["good"] > 0.95
    assert prediction.forecast is not None
    assert prediction.forecast.mean() == pytest.approx(TRUTH[KERNELS[50].hash], abs=0.15)
    assert prediction.notes[0].startswith("weights: bad 0.0")


def test_it_follows_when_the_better_one_changes() -> None:
    late = {each.hash for each in KERNELS[30:]}
    first = Says(lambda hash: around(TRUTH[hash] + 2 * (hash in late)))
    second = Says(lambda hash: around(TRUTH[hash] + 2 * (hash not in late)))
    blend = BlendForecaster({"first": first, "second": second})
    blend.forecast(learn(blend, KERNELS[:30]), [])
    assert blend.weights["first"] > 0.9
    blend.forecast(learn(blend, KERNELS[30:]), [])
    assert blend.weights["second"] > 0.9


def test_a_wide_forecast_that_is_right_loses_to_a_sharp_one_that_is_right() -> None:
    blend = BlendForecaster({"wide": Says(lambda hash: around(0, 5)), "sharp": Says(lambda hash: around(TRUTH[hash]))})
    blend.forecast(learn(blend, KERNELS[:30]), [])
    assert blend.weights["sharp"] > 0.95


def test_failure_has_weights_of_its_own() -> None:
    def fails(each: Kernel) -> bool:
        return int(each.hash, 16) % 2 == 0

    sure = Says(lambda hash: around(5, p_fail=0.95 if int(hash, 16) % 2 == 0 else 0.05))
    blend = BlendForecaster({"speed": Says(lambda hash: around(TRUTH[hash], p_fail=0.5)), "failure": sure})
    task = learn(blend, KERNELS[:50], fails)
    predictions = blend.forecast(task, [Candidate(each) for each in KERNELS[50:]])
    for each, prediction in zip(KERNELS[50:], predictions, strict=True):
        assert prediction.forecast is not None
        assert (prediction.forecast.p_fail > 0.8) == fails(each)
        assert prediction.forecast.mean() == pytest.approx(TRUTH[each.hash], abs=0.5)


def test_a_missing_forecast_has_no_weight() -> None:
    silent = Says(lambda hash: None)
    blend = BlendForecaster({"silent": silent, "good": Says(lambda hash: around(TRUTH[hash]))})
    task = learn(blend, KERNELS[:20])
    (prediction,) = blend.forecast(task, [Candidate(KERNELS[50])])
    assert prediction.forecast is not None
    assert prediction.forecast.cdf == around(0).cdf
    assert blend.weights == {"silent": 0.5, "good": 0.5}, "who says nothing neither gains nor loses"
    nothing = BlendForecaster({"a": silent, "b": silent})
    assert nothing.forecast(task, [Candidate(KERNELS[50])])[0].forecast is None


def test_a_forecast_is_scored_against_the_anchor_it_was_made_for() -> None:
    blend = BlendForecaster({"good": Says(lambda hash: around(TRUTH[hash])), "bad": Says(lambda hash: around(9))})
    other = Task(PROBLEM, Measured(kernel(-2), times_ns={"n": 7e9}), None, [outcome(each) for each in KERNELS[:20]])
    blend.forecast(Task(PROBLEM, ANCHOR), [Candidate(each) for each in KERNELS[:20]])
    blend.forecast(other, [])
    assert blend.weights["good"] == 0.5


def test_costs_are_summed_and_all_are_closed() -> None:
    members = {"a": Says(lambda hash: None, 0.5), "b": Says(lambda hash: None, 0.25)}
    blend = BlendForecaster(members)
    assert blend.spent() == Cost(20, 0.75)
    blend.close()
    assert all(member.closed for member in members.values())


# -- names ------------------------------------------------------------------------------------------------------------


def test_forecasters_are_found_by_their_file_s_name() -> None:
    assert {"uniform", "prior", "roofline", "nearest", "forest", "blend", "llm"} <= set(registry.names())
    assert not {"base", "registry", "llm_prompt", "question"} & set(registry.names())
    assert type(registry.get("forest")).__name__ == "ForestForecaster"
    blend = registry.get("blend:uniform,roofline")
    assert isinstance(blend, BlendForecaster)
    assert list(blend.weights) == ["uniform", "roofline"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("guess", "there is no forecaster 'guess'; there are: .*blend, "),
        ("uniform:forest", "'forest' is not a setting of the forecaster uniform"),
        ("blend:uniform", "two or more"),
        ("blend:uniform,guess", "there is no forecaster 'guess'"),
        ("prior", "prior learns from a recording"),
        ("surrogate:nowhere.parquet", "there is no recording nowhere.parquet"),
    ],
)
def test_what_cannot_be_had_is_said(name: str, said: str) -> None:
    with pytest.raises(PresageError, match=said):
        registry.get(name)
