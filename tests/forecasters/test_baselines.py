"""The baselines: each says what it knows, and nothing where it knows nothing."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Candidate, Interval, Kernel, Measured, PresageError, Recording, Status, Task
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.forecasters.forest import FEWEST, ForestForecaster, tunables
from presage.forecasters.nearest import NearestForecaster
from presage.forecasters.prior import PriorForecaster
from presage.forecasters.roofline import RooflineForecaster, log2_headroom
from presage.forecasters.uniform import UniformForecaster
from presage.kernels.kernel import from_source
from presage.kernels.normalise import digest
from presage.problems import registry as problems
from presage.static import hardware

PROBLEM = problems.get("vector_add")
H200 = hardware.find("h200")
CASES = PROBLEM.timed["gpu"]
FAMILY = from_source(
    "// presage: entry add\n// presage: tune BLOCK = 32, 64, 128, 256, 512\n// presage: tune UNROLL = 1, 2, 4, 8\n"
    "// presage: tune KIND = plain, vector\n"
    'extern "C" __global__ void add(float *x) { for (int i = 0; i < UNROLL; i++) x[i * BLOCK] = KIND(i); }\n',
    ".cu",
    "family.cu",
)


def kernel(**values: int | str) -> Kernel:
    return FAMILY.render({"BLOCK": 32, "UNROLL": 1, "KIND": "plain", **values})


def measured(log2_S: float | None, which: Kernel | None = None) -> Measured:
    if log2_S is None:
        return Measured(which or kernel(), status="wrong_result")
    return Measured(which or kernel(), times_ns={case.name: 1e6 / 2**log2_S for case in CASES})


def task(neighbours: list[Measured] | None = None, anchor: Measured | None = None) -> Task:
    return Task(PROBLEM, anchor or measured(0.0), H200, neighbours or [])


def truth(values: dict[str, int | str]) -> float | None:
    """Best at 128 and 4; the largest blocks with the largest unroll fail."""
    if values["BLOCK"] == 512 and values["UNROLL"] == 8:
        return None
    return 1.0 - 0.5 * abs(math.log2(values["BLOCK"] / 128)) - 0.25 * abs(math.log2(values["UNROLL"] / 4))


ALL = [FAMILY.render(values) for values in FAMILY.configurations()]
NEIGHBOURS = [measured(truth(each.values), each) for each in ALL[::2]]
REST = [Candidate(each) for each in ALL[1::2]]


# -- the task ---------------------------------------------------------------------------------------------------------


def test_a_speedup_is_the_geometric_mean_over_cases() -> None:
    first, *rest = (case.name for case in CASES)
    quick = Measured(kernel(), times_ns={first: 0.25e6, **dict.fromkeys(rest, 1e6)})
    assert task().log2_speedup(quick) == pytest.approx(2 / len(CASES))
    assert task().log2_speedup(measured(None)) is None
    assert Task(PROBLEM, Measured(kernel()), H200).log2_speedup(quick) is None


# -- uniform ----------------------------------------------------------------------------------------------------------


def test_uniform_knows_nothing() -> None:
    (prediction,) = UniformForecaster().forecast(task(), [Candidate(kernel())])
    assert prediction.forecast is not None
    assert prediction.forecast.bin_probabilities() == pytest.approx([1 / 8] * 8)
    assert prediction.forecast.p_fail == 0.5


# -- roofline ---------------------------------------------------------------------------------------------------------


@given(st.floats(1.01, 100))
def test_no_speedup_is_above_what_the_hardware_allows(distance: float) -> None:
    assert H200.bandwidth
    floors = {case.name: PROBLEM.bytes(case) / H200.bandwidth * 1e9 for case in CASES}
    asked = task(anchor=Measured(kernel(), times_ns={name: distance * floor for name, floor in floors.items()}))
    assert 2 ** log2_headroom(asked) == pytest.approx(distance)
    (prediction,) = RooflineForecaster().forecast(asked, [Candidate(kernel())])
    assert prediction.forecast is not None
    assert prediction.forecast.exceeds(distance * 1.0001) == 0
    assert prediction.forecast.exceeds(distance * 0.9) > 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hardware": None}, "peaks are not known"),
        ({"hardware": hardware.find("sm_90")}, "peaks are not known"),
        ({"anchor": Measured(kernel())}, "no measured times"),
    ],
)
def test_without_a_floor_or_a_time_there_is_no_roofline(change, why: str) -> None:
    predictions = RooflineForecaster().forecast(replace(task(), **change), REST[:2])
    assert [prediction.forecast for prediction in predictions] == [None, None]
    assert why in predictions[0].notes[0]


# -- prior and nearest, from a recording ------------------------------------------------------------------------------


def row(problem: str, which: Kernel, log2_S: float | None, split: str, seed: Kernel) -> Row:
    S = None if log2_S is None else 2**log2_S
    return Row(
        problem=problem,
        room="made_up",
        split=split,
        family="family.cu",
        language="cuda",
        hash=which.hash,
        source=which.source,
        values=which.values,
        status=Status.OK if S else Status.TIMEOUT,
        reason="" if S else "too slow",
        cases=(RecordedCase("n=1", 1.0, (1e6 / S,) * 8),) if S else (),
        anchor=seed.hash,
        speedup=Interval(S, S, S) if S else None,
    )


SEED = from_source('// presage: entry add\nextern "C" __global__ void add(float *x) { x[0] = 1; }\n', ".cu", "naive.cu")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two train operations, half an octave apart, and one that must not be learnt from."""
    rows = []
    for problem, split, shift in (("a", "train", 0.0), ("b", "train", 0.5), ("c", "test_op", 50.0)):
        rows.append(row(problem, SEED, 0.0, split, SEED))
        for each in ALL:
            y = truth(each.values)
            rows.append(row(problem, each, None if y is None else y + shift, split, SEED))
    return recording.write(tmp_path_factory.mktemp("corpus") / "corpus.parquet", rows, {"name": "c", "kind": "gpu"})


def test_the_prior_is_the_train_split_s_distribution(corpus: Recording) -> None:
    prior = PriorForecaster(corpus)
    seeded, other = (
        prior.forecast(task(anchor=measured(0.0, anchor)), REST[:1])[0].forecast for anchor in (SEED, kernel())
    )
    assert seeded is not None
    assert other is not None
    learnt = [truth(each.values) for each in ALL]
    values = [0.0, 0.0, *(y + shift for y in learnt if y is not None for shift in (0, 0.5))]
    for q in (0.1, 0.5, 0.9):
        assert seeded.quantile(q) == pytest.approx(np.quantile(values, q), abs=0.1)
    assert other.quantile(0.5) == pytest.approx(0.0, abs=0.3)
    failed = 2 * sum(y is None for y in learnt)
    assert seeded.p_fail == pytest.approx((failed + 1) / (2 * len(ALL) + 2 + 2))


def test_a_prior_needs_a_train_split(corpus: Recording, tmp_path: Path) -> None:
    rows = [replace(each, split="") for each in corpus.rows("c")]
    without = recording.write(tmp_path / "without.parquet", rows, {"name": "without"})
    with pytest.raises(PresageError, match="without has no train split"):
        PriorForecaster(without)


def test_nearest_finds_its_twin_among_the_neighbours() -> None:
    asked = [Candidate(each.kernel) for each in NEIGHBOURS]
    predictions = NearestForecaster().forecast(task(NEIGHBOURS), asked)
    said = [(p.forecast, truth(n.kernel.values)) for p, n in zip(predictions, NEIGHBOURS, strict=True) if p.forecast]
    assert len(said) == len(NEIGHBOURS)
    assert max(abs(forecast.mean() - y) for forecast, y in said if y is not None) < 0.3
    failed, worked = ([f.p_fail for f, y in said if (y is None) == failed] for failed in (True, False))
    assert min(failed) > np.median(worked)


def test_nearest_learns_from_other_operations_where_nothing_was_measured(corpus: Recording) -> None:
    asked = [Candidate(each) for each in ALL]
    predictions = NearestForecaster(corpus).forecast(task(anchor=measured(0.0, SEED)), asked)
    said = [(p.forecast, truth(each.values)) for p, each in zip(predictions, ALL, strict=True) if p.forecast]
    means, right = zip(*((forecast.mean(), y) for forecast, y in said if y is not None), strict=True)
    assert np.corrcoef(means, right)[0, 1] > 0.8
    assert max(means) < 3, "the test split is fifty octaves away, and nobody may look there"


def test_nearest_does_not_look_up_the_problem_s_own_kernels(corpus: Recording) -> None:
    problem = copy.copy(PROBLEM)
    problem.name = "a"
    own = replace(task(anchor=measured(0.0, SEED)), problem=problem)
    forecaster = NearestForecaster(corpus)
    means = [
        prediction.forecast.mean()
        for asked in (own, task(anchor=measured(0.0, SEED)))
        for prediction in forecaster.forecast(asked, REST[:1])
        if prediction.forecast
    ]
    assert means[0] - means[1] == pytest.approx(0.25, abs=0.1), (
        "the operation that is left is faster than both together"
    )


@pytest.mark.parametrize("neighbours", [[], [measured(None, each) for each in ALL[:20]]])
def test_where_nothing_worked_nearest_has_no_forecast(neighbours: list[Measured]) -> None:
    (prediction,) = NearestForecaster().forecast(task(neighbours), REST[:1])
    assert prediction.forecast is None
    assert prediction.notes


def test_nearest_takes_source_that_cannot_be_read(corpus: Recording) -> None:
    broken = Kernel("def f(:", "triton", FAMILY.header, "broken.py")
    (prediction,) = NearestForecaster(corpus).forecast(task(), [Candidate(broken)])
    assert prediction.forecast is not None


# -- forest -----------------------------------------------------------------------------------------------------------


def test_a_forest_ranks_what_it_has_not_seen() -> None:
    predictions = ForestForecaster().forecast(task(NEIGHBOURS), REST)
    said = [(p.forecast, truth(c.kernel.values)) for p, c in zip(predictions, REST, strict=True) if p.forecast]
    worked = [(forecast.mean(), y) for forecast, y in said if y is not None]
    assert len(said) == len(REST)
    assert np.corrcoef(*zip(*worked, strict=True))[0, 1] > 0.7
    failing, working = ([f.p_fail for f, y in said if (y is None) == failed] for failed in (True, False))
    assert np.mean(failing) > np.mean(working)


def test_a_forest_gives_the_same_forecast_each_time() -> None:
    first, second = (ForestForecaster().forecast(task(NEIGHBOURS), REST) for _ in range(2))
    assert first == second


def test_a_forest_needs_measurements() -> None:
    predictions = ForestForecaster().forecast(task(NEIGHBOURS[: FEWEST - 1]), REST)
    assert {prediction.forecast for prediction in predictions} == {None}
    assert f"has {FEWEST - 1}" in predictions[0].notes[0]
    assert ForestForecaster().forecast(task(NEIGHBOURS), []) == []


def test_the_names_of_tunables_say_nothing() -> None:
    renamed = replace(ALL[0], values=dict(zip(("FAST", "FASTER", "FASTEST"), ALL[0].values.values(), strict=True)))
    assert np.array_equal(tunables([ALL[0]]), tunables([renamed]), equal_nan=True)
    assert digest(renamed.source, "cuda") == renamed.hash
