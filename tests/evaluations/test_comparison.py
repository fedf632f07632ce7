"""Whether one forecaster is better than another: shown where it is so in enough operations, and not otherwise."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from presage import Candidate, Evaluation, Forecast, Forecaster, Kernel, Prediction, PresageError, Recording, Task
from presage.cli import documents
from presage.core.scoring import sign_flip_p
from presage.evaluations.comparison import compare
from presage.evaluations.evaluation import evaluate
from presage.forecasters.uniform import UniformForecaster
from presage.report import evaluate_page

SCORES = {"exact", "rps", "nll", "spearman", "recovery 0.05"}


class Knows(Forecaster):
    """Knows that a block of 128 is best, as it is in the made-up recording."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        middles = [_value(each.kernel) - _value(task.anchor.kernel) for each in candidates]
        return [Prediction(Forecast.from_quantiles([0.1, 0.5, 0.9], [m - 1.5, m, m + 1.5], 0.1)) for m in middles]


def _value(kernel: Kernel) -> float:
    block = kernel.values.get("BLOCK")
    return 2.0 - 0.7 * abs(math.log2(int(block) / 128)) - 0.3 if block else 0.0


@pytest.fixture(scope="module")
def judged(truth: Recording) -> Callable[..., Evaluation]:
    @functools.cache
    def judged_once(kind: type[Forecaster], split: str, seed: int) -> Evaluation:
        return evaluate(kind(), truth, split, ("accuracy", "ranking"), seed)

    def judge(forecaster: Forecaster, name: str, split: str = "all", seed: int = 0) -> Evaluation:
        return replace(judged_once(type(forecaster), split, seed), forecaster=name)

    return judge


def test_a_better_forecaster_is_shown_to_be_better_and_the_other_worse(judged: Callable[..., Evaluation]) -> None:
    knows, uniform = judged(Knows(), "knows"), judged(UniformForecaster(), "uniform")
    forth, back = compare([uniform, knows]), compare([uniform, knows], baseline="knows")
    assert {each.score for each in forth} == SCORES
    verdicts = {each.score: each.verdict for each in forth}
    assert verdicts["rps"] == verdicts["spearman"] == "better"
    assert {each.score: each.verdict for each in back}["rps"] == "worse"
    for one, other in zip(forth, back, strict=True):
        assert (one.forecaster, one.baseline) == (other.baseline, other.forecaster) == ("knows", "uniform")
        assert one.difference.value == pytest.approx(-other.difference.value)
        assert one.p == other.p


def test_the_difference_is_that_of_the_published_numbers(judged: Callable[..., Evaluation]) -> None:
    knows, uniform = judged(Knows(), "knows"), judged(UniformForecaster(), "uniform")
    for each in compare([uniform, knows]):
        published = knows.numbers[each.score].value - uniform.numbers[each.score].value
        assert each.difference.value == pytest.approx(published)
        assert each.difference.low <= each.difference.value <= each.difference.high


def test_few_operations_show_nothing(judged: Callable[..., Evaluation]) -> None:
    found = compare([judged(UniformForecaster(), "uniform", "test_op"), judged(Knows(), "knows", "test_op")])
    assert {each.operations for each in found} == {3}
    assert {each.verdict for each in found} == {"no difference shown"}
    assert min(each.p for each in found) == 0.25


def test_a_forecaster_is_as_good_as_itself(judged: Callable[..., Evaluation]) -> None:
    for each in compare([judged(Knows(), "one"), judged(Knows(), "other")]):
        assert each.difference == (0.0, 0.0, 0.0)
        assert (each.p, each.verdict) == (1.0, "no difference shown")


def test_only_what_was_evaluated_is_compared(truth: Recording) -> None:
    both = [evaluate(UniformForecaster(), truth, "all", ("accuracy",), name=name) for name in "ab"]
    assert {each.score for each in compare(both)} == {"exact", "rps", "nll"}
    assert compare(both[:1]) == []


def test_it_is_plain_json(judged: Callable[..., Evaluation]) -> None:
    documents = [each.to_json() for each in compare([judged(Knows(), "one"), judged(Knows(), "other")])]
    assert set(json.loads(json.dumps(documents))[0]) == {
        "forecaster", "baseline", "score", "difference", "p", "operations", "verdict",
    }  # fmt: skip


def test_a_score_that_no_operation_has_is_read_back(judged: Callable[..., Evaluation], tmp_path: Path) -> None:
    """Where each operation has one kernel beside its anchor, nothing can be ranked."""
    one, other = judged(Knows(), "one"), judged(Knows(), "other")
    alone = one.outcomes and one.outcomes.where(np.arange(one.n) == np.flatnonzero(one.outcomes.seeded)[0])
    alike = [replace(each, outcomes=alone) for each in (one, other)]
    (ranked,) = [each for each in compare(alike) if each.score == "spearman"]
    assert math.isnan(ranked.p)
    document = {
        "recording": "made up", "operations": 1, "evaluations": [one.to_json()], "comparisons": [ranked.to_json()]
    }  # fmt: skip
    (tmp_path / "evaluation.json").write_text(documents.text("evaluate", document))
    (read,) = evaluate_page.load(tmp_path / "evaluation.json")[1]
    assert math.isnan(read.p)


def test_other_questions_cannot_be_compared(judged: Callable[..., Evaluation]) -> None:
    with pytest.raises(PresageError, match="were not asked about the same kernels"):
        compare([judged(Knows(), "one"), judged(Knows(), "other", seed=1)])
    with pytest.raises(PresageError, match="the baseline 'third' was not evaluated; there are: one"):
        compare([judged(Knows(), "one")], baseline="third")


@pytest.mark.parametrize("operations", [8, 40])
def test_where_there_is_no_difference_one_is_seldom_shown(operations: int) -> None:
    """Of many comparisons of equals, about 5 % have a p-value under 0.05, whatever the differences look like."""
    rng = np.random.default_rng(operations)
    drawn = rng.standard_t(3, size=(400, operations))
    assert np.mean([sign_flip_p(each, flips=999) < 0.05 for each in drawn]) < 0.08
    assert math.isnan(sign_flip_p([]))
