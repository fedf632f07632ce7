"""Evaluating forecasters whose worth is known: an oracle, chance, one who always says the same, one who crashes."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from presage import (
    Candidate,
    Evaluation,
    Forecast,
    Forecaster,
    Interval,
    Prediction,
    PresageError,
    Recording,
    Status,
    Task,
)
from presage.core import scoring
from presage.devices import recording
from presage.evaluations import outcomes
from presage.evaluations.evaluation import NAMES, evaluate
from presage.evaluations.outcomes import OTHER_ANCHORS
from presage.evaluations.suites import SHARES
from presage.forecasters.uniform import NOTHING_KNOWN

WANTED = (
    "exact", "within_one", "ece", "rps", "half_brier", "nll", "spearman", "aurc", "failure_auroc", "coverage_90",
)  # fmt: skip
Say = Callable[[Task, Candidate], Forecast | None]


class Says(Forecaster):
    """Says what a function says."""

    def __init__(self, says: Say) -> None:
        self.says = says

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(self.says(task, candidate)) for candidate in candidates]


@pytest.fixture(scope="session")
def oracle(truth: Recording) -> Say:
    """Knows the recording by heart: a forecast as narrow as can be around the truth."""
    rows = {(row.problem, row.hash): row for row in truth.rows()}

    def says(task: Task, candidate: Candidate) -> Forecast:
        row = rows[task.problem.name, candidate.kernel.hash]
        if row.status is not Status.OK:
            return Forecast((-0.1, 0.1), (0.0, 1.0), p_fail=1.0)
        anchor = rows[task.problem.name, task.anchor.kernel.hash]
        y = math.log2(anchor.total_ns / row.total_ns)
        return Forecast((y - 1e-7, y + 1e-7), (0.0, 1.0))

    return says


def at_random(seed: int) -> Say:
    def says(task: Task, candidate: Candidate) -> Forecast:
        rng = random.Random(f"{seed} {task.problem.name} {candidate.kernel.hash}")
        y = rng.uniform(-2, 2)
        return Forecast((y - 0.5, y + 0.5), (0.0, 1.0), p_fail=rng.random())

    return says


def value(evaluation: Evaluation, name: str) -> float:
    return evaluation.numbers[name].value


# -- what is known --------------------------------------------------------------------------------------------------


def test_a_perfect_forecaster_scores_perfectly(truth: Recording, oracle: Say) -> None:
    found = evaluate(Says(oracle), truth, suites=[name for name in NAMES if name != "injection"])
    for name in ("exact", "within_one", "coverage_90", "spearman", "failure_auroc", "accuracy_at_50"):
        assert value(found, name) == pytest.approx(1.0, abs=0.03), name
    for name in ("rps", "half_brier", "nll", "ece", "aurc", "missing", *(f"recovery {share}" for share in SHARES)):
        assert value(found, name) == pytest.approx(0.0, abs=0.05), name
    assert value(found, "recovery_random 0.02") > 1


def test_chance_scores_like_chance(truth: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    def value_alone(metric: Callable[[np.ndarray], float], groups: np.ndarray, **_: int) -> Interval:
        return Interval(metric(np.arange(len(groups))), math.nan, math.nan)

    monkeypatch.setattr(scoring, "bootstrap", value_alone)  # of many evaluations, intervals would take long
    many = [evaluate(Says(at_random(seed)), truth, suites=["ranking", "failures"]) for seed in range(30)]
    for name, right in (("spearman", 0.0), ("failure_auroc", 0.5), *((f"recovery_vs_random {s}", 1.0) for s in SHARES)):
        values = np.array([value(found, name) for found in many])
        assert abs(values.mean() - right) < 4 * values.std() / math.sqrt(values.size), name


def test_one_who_always_says_the_same_never_looks_good(truth: Recording) -> None:
    always = Forecast((0.9, 1.0), (0.0, 1.0), p_fail=0.0)
    found = evaluate(Says(lambda task, candidate: always), truth, suites=NAMES)
    assert value(found, "spearman") == 0
    assert value(found, "failure_auroc") == 0.5
    assert all(value(found, f"recovery_vs_random {share}") == pytest.approx(1) for share in SHARES)
    assert value(found, "aurc") == pytest.approx(1 - value(found, "exact"))
    assert value(found, "ece") == pytest.approx(1 - value(found, "exact"))
    assert value(found, "coverage_90") < 0.2


def test_one_who_never_answers_never_looks_good(truth: Recording) -> None:
    found = evaluate(Says(lambda task, candidate: None), truth, suites=NAMES)
    guess = evaluate(Says(lambda task, candidate: NOTHING_KNOWN), truth, suites=NAMES)
    for name in ("exact", "within_one", "coverage_90", "accuracy_at_50", "failure_auroc", "spearman"):
        assert value(found, name) == 0, name
    assert (value(found, "missing"), value(found, "aurc")) == (1, 1)
    assert value(found, "ece") > value(guess, "ece")
    assert value(found, "nll") == pytest.approx(value(guess, "nll"))
    assert value(found, "injection names") == 1


def test_not_answering_about_what_works_does_not_help(truth: Recording, oracle: Say) -> None:
    def says(task: Task, candidate: Candidate) -> Forecast | None:
        forecast = oracle(task, candidate)
        return forecast if forecast and forecast.p_fail == 1 else None

    assert value(evaluate(Says(says), truth, suites=["failures"]), "failure_auroc") < 0.5


def test_a_crash_costs_only_the_kernel_it_is_about(truth: Recording, oracle: Say) -> None:
    unlucky = outcomes.pools(truth, "test_op")[0].kernels[5].kernel.hash
    calls = []

    def says(task: Task, candidate: Candidate) -> Forecast | None:
        calls.append(candidate)
        if candidate.kernel.hash == unlucky:
            raise ZeroDivisionError
        return oracle(task, candidate)

    found = evaluate(Says(says), truth, suites=["accuracy"])
    lost = value(found, "missing") * found.n
    assert lost == pytest.approx(sum(each.kernel.hash == unlucky for each in outcomes_asked(truth)))
    assert len(calls) < 3 * found.n


def outcomes_asked(truth: Recording) -> list[Candidate]:
    questions = [q for pool in outcomes.pools(truth, "test_op") for q in outcomes.questions(pool, 0)]
    return [candidate for question in questions for candidate in question.candidates]


def test_settings_that_are_missing_stop_everything(truth: Recording) -> None:
    def says(task: Task, candidate: Candidate) -> Forecast:
        raise PresageError("no key")

    with pytest.raises(PresageError, match="no key"):
        evaluate(Says(says), truth)


# -- what is asked ----------------------------------------------------------------------------------------------------


def test_every_kernel_is_asked_against_the_seed_and_others(truth: Recording) -> None:
    for pool in outcomes.pools(truth, "test_op"):
        first, *others = outcomes.questions(pool, seed=0)
        assert first.task.anchor.kernel.hash == pool.seed
        assert (first.seeded, [each.seeded for each in others]) == (True, [False] * OTHER_ANCHORS)
        for question in (first, *others):
            assert len(question.asked) == len(pool.kernels) - 1
            assert question.task.anchor.kernel.hash not in {c.kernel.hash for c in question.candidates}
            assert not any(hasattr(candidate, "times_ns") for candidate in question.candidates), "times are not given"
            assert question.truth[~np.isnan(question.truth)] == pytest.approx(
                [question.task.log2_speedup(pool.kernels[i]) for i in question.asked if pool.kernels[i].times_ns]
            )


def test_only_the_split_is_asked(truth: Recording) -> None:
    assert {pool.problem.name for pool in outcomes.pools(truth, "test_op")} == {"op_d", "op_e", "op_f"}
    assert len(outcomes.pools(truth, "all")) == 6
    with pytest.raises(PresageError, match="truth has no split 'test'; it has: all, test_op, train"):
        outcomes.pools(truth, "test")


def test_what_did_not_compile_where_it_was_measured_is_not_asked(truth: Recording, tmp_path: Path) -> None:
    """The machine may have lacked a header; and compiling, which would tell, costs no measurement."""
    first, second, *others = truth.rows("op_d")
    rows = [first, replace(second, status=Status.COMPILE_ERROR, reason="cannot open mma.h", cases=()), *others]
    written = recording.write(tmp_path / "r.parquet", rows, {"name": "r", "kind": "gpu", "hardware": "h200"})
    (pool,) = outcomes.pools(written, "test_op")
    assert [each.kernel.hash for each in pool.kernels] == [row.hash for row in rows if row is not rows[1]]


def test_what_is_shown_is_not_scored(truth: Recording) -> None:
    shown: list[int] = []

    def says(task: Task, candidate: Candidate) -> Forecast:
        shown.append(len(task.neighbours))
        known = {each.kernel.hash for each in task.neighbours}
        assert candidate.kernel.hash not in known
        return NOTHING_KNOWN

    found = evaluate(Says(says), truth, suites=["accuracy"], neighbours=10)
    assert set(shown) == {0, 10}, "what is shown was itself forecast first, as in a search"
    assert found.n == 3 * 3 * (35 - 10)


def test_the_same_seed_gives_the_same_numbers(truth: Recording) -> None:
    first, again, other = (
        json.dumps(evaluate(Says(at_random(1)), truth, suites=NAMES, seed=seed).to_json()) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_an_unknown_suite_is_named(truth: Recording) -> None:
    with pytest.raises(PresageError, match="there is no suite 'vibes'; there are: accuracy, calibration"):
        evaluate(Says(at_random(0)), truth, suites=["vibes"])


def test_the_document_has_the_promised_names(truth: Recording, oracle: Say) -> None:
    document = evaluate(Says(oracle), truth, name="oracle").to_json()
    assert set(document) == {"forecaster", "split", "n", "metrics", "curves"}
    assert (document["forecaster"], document["split"], document["n"]) == ("oracle", "test_op", 3 * 3 * 35)
    for name in WANTED:
        assert set(document["metrics"][name]) == {"value", "low", "high"}
    for name in ("recovery", "recovery_vs_random", "recovery_random"):
        assert list(document["metrics"][name]) == list(SHARES)
        assert all(set(each) == {"value", "low", "high"} for each in document["metrics"][name].values())


def test_a_forecaster_that_crashes_is_not_asked_about_nothing(truth: Recording) -> None:
    class Crashes(Forecaster):
        def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
            raise ValueError(len(candidates))

    (pool, *_) = outcomes.pools(truth, "test_op")
    task = next(outcomes.questions(pool, 0)).task
    assert outcomes.ask(Crashes(), task, []) == []
