"""The learned forecaster, on a GPU that is a formula: what it has learnt can be compared with the truth."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from presage import Candidate, Measured, PresageError, Recording, StaticReport, Status, Task
from presage.devices import recording
from presage.devices.recorded import RecordedDevice, RecordedProblem
from presage.devices.recording import RecordedCase, Row
from presage.forecasters import learned_training
from presage.forecasters.learned import LearnedForecaster, Noise, residual
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.static.report import LaunchReport

TRAIN = ("vector_add", "gelu", "sum", "softmax", "rmsnorm", "transpose", "cumsum", "layernorm")
UNSEEN = "argmax"


def report(rng: random.Random, sectors: float, instructions: float, stores: float) -> StaticReport:
    executed = {
        "instructions": instructions, "integer": instructions / 2, "lanes": 32 * instructions, "global_load": 8.0,
        "load_sectors": sectors, "store_sectors": stores,
    }  # fmt: skip
    launch = LaunchReport(
        name="k", grid=(4096, 1, 1), block=(rng.choice((64, 128, 256)), 1, 1), count=1, registers=rng.randrange(16, 64),
        spill_bytes=0, stack_bytes=0, shared_bytes=0, code_bytes=1000, occupancy=1.0, occupancy_limiter="warps",
        blocks_per_sm=8, waves=4.0, loops=1, instructions={"integer": 20}, instructions_in_loops={}, options={},
        executed=executed,
    )  # fmt: skip
    return StaticReport("h200", "sm_90a", "ok", "formula", (launch,))


def kernels(name: str, count: int = 30) -> Iterator[Row]:
    """Kernels whose times follow from what they execute, from their operation, and a little from chance."""
    rng = random.Random(name)
    problem = registry.get(name)
    nature = rng.uniform(-1, 1)
    written = [sum(problem.array_bytes(array, case) for array in problem.outputs) for case in problem.timed["gpu"]]
    stores = 4 + max(written) / (32 * 4096 * 2)  # all of the output, by two warps a block
    for number in range(count):
        code = f'extern "C" __global__ {problem.signature("k")} {{ int units = UNITS; }}'
        source = f"// presage: entry k\n#define UNITS {number + 1}\n{code}\n"
        kernel = from_source(source, ".cu", f"k{number}.cu")
        sectors, instructions = 2 ** rng.uniform(2, 6), 2 ** rng.uniform(5, 9)
        reports = tuple(report(rng, sectors, instructions, stores) for _ in problem.timed["gpu"])
        fails = number and instructions > 430
        cases = tuple(
            RecordedCase(
                case.name,
                1.0,
                tuple(
                    [
                        problem.bytes(case)
                        / 4800
                        * 2**nature
                        * (sectors / 4 + instructions / 60)
                        * rng.uniform(0.98, 1.02)
                    ]
                    * 3
                ),
            )
            for case in problem.timed["gpu"]
        )
        yield Row(
            problem=name, room=problem.room, split="train" if name != UNSEEN else "test_op", family="k.cu",
            language="cuda", hash=kernel.hash, source=source, values={}, reports=reports, anchor="",
            status=Status.RUNTIME_ERROR if fails else Status.OK, reason="too much" if fails else "",
            cases=() if fails else cases,
        )  # fmt: skip


def written(path: Path) -> Recording:
    rows = []
    for name in (*TRAIN, UNSEEN):
        of_one = list(kernels(name))
        rows += [replace(row, anchor=of_one[0].hash) for row in of_one]
    return recording.write(path, rows, {"name": "formula", "kind": "gpu", "hardware": "h200"})


@pytest.fixture(scope="module")
def formula(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return written(tmp_path_factory.mktemp("formula") / "formula.parquet")


@pytest.fixture(scope="module")
def folder(formula: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    learned_training.train([formula], folder, lambda line: None, trees=60)
    return folder


def question(formula: Recording, neighbours: int = 0) -> tuple[Task, list[Row]]:
    device = RecordedDevice(formula)
    rows = list(device.rows(UNSEEN).values())
    anchor = next(row for row in rows if row.hash == row.anchor)
    task = learned_training.task_of(device, UNSEEN, anchor)
    ok = [row for row in rows if row.status is Status.OK and row is not anchor]
    known = [Measured(r.kernel, r.reports, {c.case: c.median.value for c in r.cases}) for r in ok[:neighbours]]
    return replace(task, neighbours=known), ok[neighbours:]


def truth(task: Task, row: Row) -> float:
    times = task.anchor.times_ns
    return float(np.mean([math.log2(times[case.case] / case.median.value) for case in row.cases]))


def test_an_unseen_operation_is_ranked_and_the_intervals_hold(formula: Recording, folder: Path) -> None:
    task, rows = question(formula)
    found = LearnedForecaster(folder).forecast(task, [Candidate(row.kernel, row.reports) for row in rows])
    forecasts = [prediction.forecast for prediction in found]
    assert all(forecasts)
    assert not any(prediction.notes for prediction in found)
    actual = np.array([truth(task, row) for row in rows])
    said = np.array([forecast.mean() for forecast in forecasts if forecast])
    assert np.corrcoef(np.argsort(np.argsort(said)), np.argsort(np.argsort(actual)))[0, 1] > 0.85
    inside = [f.quantile(0.05) <= a <= f.quantile(0.95) for f, a in zip(forecasts, actual, strict=True) if f]
    assert np.mean(inside) > 0.7


def test_a_problem_of_unknown_cost_is_forecast_from_reports_but_not_from_the_texts_alone(
    formula: Recording, folder: Path
) -> None:
    task, rows = question(formula)
    nameless = replace(task, problem=RecordedProblem(UNSEEN, RecordedDevice(formula)))
    forecaster = LearnedForecaster(folder)
    found = forecaster.forecast(nameless, [Candidate(row.kernel, row.reports) for row in rows])
    assert all(prediction.forecast for prediction in found)
    assert any("what the problem must cost is not known" in note for note in found[0].notes)
    declined = forecaster.forecast(nameless, [Candidate(row.kernel) for row in rows])
    assert not any(prediction.forecast for prediction in declined)
    assert "would mislead" in declined[0].notes[0]


def test_what_was_measured_makes_it_surer_and_better(formula: Recording, folder: Path) -> None:
    forecaster = LearnedForecaster(folder)
    few, _ = question(formula)
    many, left = question(formula, neighbours=12)
    candidates = [Candidate(row.kernel, row.reports) for row in left]
    actual = np.array([truth(few, row) for row in left])
    before = [p.forecast for p in forecaster.forecast(few, candidates) if p.forecast]
    after = [p.forecast for p in forecaster.forecast(many, candidates) if p.forecast]
    assert np.mean([f.confidence("width") for f in after]) > np.mean([f.confidence("width") for f in before])
    error = [np.mean(np.abs([f.mean() for f in each] - actual)) for each in (before, after)]
    assert error[1] < error[0]


def test_an_anchor_of_pytorchs_own_says_nothing_of_the_trees(formula: Recording, folder: Path) -> None:
    """It is what speedups are over, and no kernel like those that the trees know."""
    task, rows = question(formula)
    forecaster, eager = LearnedForecaster(folder), from_source("import torch\n", ".py", "eager.py")
    candidates = [Candidate(row.kernel, row.reports) for row in rows]
    means = []
    for slower in (1, 2):
        times = {case: slower * time for case, time in task.anchor.times_ns.items()}
        found = forecaster.forecast(replace(task, anchor=Measured(eager, (), times)), candidates)
        means.append([prediction.forecast.mean() for prediction in found if prediction.forecast])
    assert np.array(means[1]) - np.array(means[0]) == pytest.approx(1.0)


def test_failures_are_forecast(formula: Recording, folder: Path) -> None:
    task, _ = question(formula)
    rows = list(RecordedDevice(formula).rows(UNSEEN).values())
    found = LearnedForecaster(folder).forecast(task, [Candidate(row.kernel, row.reports) for row in rows])
    p_fail = np.array([p.forecast.p_fail for p in found if p.forecast])
    failed = np.array([row.status is not Status.OK for row in rows])
    assert p_fail[failed].mean() > 2 * p_fail[~failed].mean()


def test_without_a_report_it_says_so(formula: Recording, folder: Path) -> None:
    task, rows = question(formula)
    (found,) = LearnedForecaster(folder).forecast(task, [Candidate(rows[0].kernel)])
    assert found.forecast is not None
    assert "without a compiler's report" in found.notes[0]
    error = "numba is not installed\n  at line 1"
    reports = [replace(report, status="unknown", error=error) for report in rows[0].reports]
    (unknown,) = LearnedForecaster(folder).forecast(task, [Candidate(rows[0].kernel, reports)])
    assert unknown.forecast == found.forecast
    assert unknown.notes == (found.notes[0], "why there is no report: numba is not installed", *found.notes[1:])


def test_training_again_gives_the_same_files(formula: Recording, folder: Path, tmp_path: Path) -> None:
    learned_training.train([formula], tmp_path, lambda line: None, trees=60)
    names = sorted(file.name for file in folder.iterdir())
    assert names == sorted(file.name for file in tmp_path.iterdir())
    assert all((folder / name).read_bytes() == (tmp_path / name).read_bytes() for name in names)


def test_nothing_is_learned_from_what_did_not_compile_where_it_was_measured(tmp_path: Path) -> None:
    """The machine may have lacked a header that others have."""
    first, *others = kernels(TRAIN[0])
    rows = [first, *(replace(row, status=Status.COMPILE_ERROR, reason="no mma.h", cases=()) for row in others[:3])]
    found = recording.write(tmp_path / "r.parquet", rows, {"name": "r", "kind": "gpu", "hardware": "h200"})
    assert len(list(learned_training.read(found, "compiled", "train"))) == 1


@pytest.mark.parametrize("damage", ["missing", "cut", "version"])
def test_a_model_that_cannot_be_read_says_what_to_do(
    formula: Recording, folder: Path, tmp_path: Path, damage: str
) -> None:
    for file in folder.iterdir():
        text = file.read_text()
        if file.name == "compiled_time.txt":
            if damage == "missing":
                continue
            text = text[: len(text) // 2] if damage == "cut" else text
        (tmp_path / file.name).write_text(
            text.replace('"version": 2', '"version": 99') if damage == "version" else text
        )
    task, rows = question(formula)
    with pytest.raises(PresageError, match="train"):
        LearnedForecaster(tmp_path).forecast(task, [Candidate(rows[0].kernel, rows[0].reports)])


def test_the_more_alike_the_more_is_learnt() -> None:
    leaves = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [9, 9, 9, 9]], dtype=np.int32)
    noise = Noise(operation=0.1, alike=1.0, own=0.1)
    mean, variance = residual(noise, leaves, leaves[:1], np.array([1.0]))
    assert mean[0] > mean[1] > mean[2] > 0
    assert variance[0] < variance[1] < variance[2]
    nothing, prior = residual(noise, leaves, leaves[:0], np.zeros(0))
    assert nothing.tolist() == [0, 0, 0]
    assert prior.tolist() == pytest.approx([1.2] * 3)


def test_where_residuals_are_larger_than_it_expects_it_is_less_sure() -> None:
    leaves = np.arange(24, dtype=np.int32).reshape(6, 4)
    noise = Noise(operation=0.1, alike=1.0, own=0.1)
    _, expected = residual(noise, leaves, leaves[1:], np.full(5, 0.5))
    _, smaller = residual(noise, leaves, leaves[1:], np.zeros(5))
    _, larger = residual(noise, leaves, leaves[1:], np.array([5.0, -5.0, 5.0, -5.0, 5.0]))
    assert smaller.tolist() == expected.tolist()
    assert np.all(larger > 2 * expected)


def test_a_trained_model_says_what_it_is(folder: Path) -> None:
    card, picture = (folder / "CARD.md").read_text(), (folder / "importance.svg").read_text()
    assert "| `compiled` | GPU kernels with a static report |" in card
    assert "formula" in card
    assert picture.startswith("<svg")
    assert picture.count("<rect") > 2


def test_no_forecast_is_much_faster_than_the_busiest_unit_allows(formula: Recording, folder: Path) -> None:
    """Trees say of a kernel with far more work than any that they have seen what they say of the largest of those."""
    task, rows = question(formula)
    reports = rows[0].reports

    def with_work(factor: float) -> tuple[StaticReport, ...]:
        grown = []
        for each in reports:
            launch = each.launches[0]
            executed = {name: factor * count for name, count in (launch.executed or {}).items()}
            grown.append(replace(each, launches=(replace(launch, executed=executed),)))
        return tuple(grown)

    asked = [Candidate(row.kernel, with_work(2.0**power)) for row, power in zip(rows, (12, 16), strict=False)]
    found = [p.forecast.quantile(0.5) for p in LearnedForecaster(folder).forecast(task, asked) if p.forecast]
    assert found[0] - found[1] == pytest.approx(4, abs=0.5)


def test_forecasts_have_tails(formula: Recording, folder: Path) -> None:
    """What hardly ever happens is not impossible: half of the range is for one kernel in a hundred on either side."""
    task, rows = question(formula)
    (found,) = LearnedForecaster(folder).forecast(task, [Candidate(rows[0].kernel, rows[0].reports)])
    assert found.forecast
    inner = found.forecast.quantile(0.99) - found.forecast.quantile(0.01)
    assert found.forecast.knots[-1] - found.forecast.knots[0] > 1.2 * inner
