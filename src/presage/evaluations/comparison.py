"""Compare two forecasters on the same kernels.

Both are asked the same questions, so their scores are compared operation by operation. The interval resamples
operations. The p-value is that of a sign-flip test: if both were equally good, each operation's difference could as
well have the opposite sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core import scoring
from presage.core.errors import PresageError
from presage.core.statistics import Interval
from presage.evaluations.evaluation import Evaluation
from presage.evaluations.outcomes import Outcomes
from presage.evaluations.suites import pool_losses

LEVEL = 0.05
"""A difference counts as shown if its p-value is below this and its 95 % interval excludes 0."""
SHARE = "0.05"
"""The share of the pool that is measured, for the recovery score."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """The difference of one score: that of a forecaster less that of the baseline."""

    forecaster: str
    baseline: str
    score: str
    difference: Interval
    p: float
    operations: int
    verdict: str
    """`better`, `worse` or `no difference shown`."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "difference": self.difference._asdict()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Comparison:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for other documents."""
        *ends, p = (
            math.nan if number is None else float(number)
            for number in (*(document["difference"][end] for end in Interval._fields), document["p"])
        )
        forecaster, baseline, score, verdict = (
            str(document[name]) for name in ("forecaster", "baseline", "score", "verdict")
        )
        return cls(forecaster, baseline, score, Interval(*ends), p, int(document["operations"]), verdict)


@dataclass(frozen=True)
class _Values:
    """A score for each operation, NaN where it is not defined, and the weight of each operation."""

    value: Floats
    weight: Floats


def _by_rows(score: Callable[[Floats, npt.NDArray[np.intp]], float]) -> Callable[[Outcomes], _Values]:
    """A score per operation whose mean over all kernels that work is published; operations are weighted by size."""

    def values(outcomes: Outcomes) -> _Values:
        ok = outcomes.where(outcomes.ok)
        groups = [np.flatnonzero(ok.operation == number) for number in np.unique(ok.operation)]
        scored = [score(ok.probabilities[rows], ok.bins[rows]) for rows in groups]
        return _Values(np.array(scored), np.array([rows.size for rows in groups], dtype=np.float64))

    return values


def _spearman(outcomes: Outcomes) -> _Values:
    ok = outcomes.where(outcomes.seeded & outcomes.ok)
    found = scoring.spearman(ok.mean, ok.truth, ok.operation)
    return _Values(found, np.ones(found.size))


def _recovery(outcomes: Outcomes) -> _Values:
    found, _ = pool_losses(outcomes.where(outcomes.seeded), float(SHARE))
    return _Values(found, np.ones(found.size))


_SCORES: Mapping[str, tuple[bool, Callable[[Outcomes], _Values]]] = {
    "exact": (True, _by_rows(scoring.exact)),
    "rps": (False, _by_rows(scoring.rps)),
    "nll": (False, _by_rows(scoring.nll)),
    "spearman": (True, _spearman),
    f"recovery {SHARE}": (False, _recovery),
}
"""The main scores: whether a higher value is better, and the function for the score of each operation."""


def compare(evaluations: Sequence[Evaluation], baseline: str | None = None) -> list[Comparison]:
    """Compare every forecaster with the baseline in every main score that was evaluated. The baseline is the first
    unless another is named. Raises PresageError if the baseline was not evaluated, or not on the same kernels."""
    names = [each.forecaster for each in evaluations]
    if baseline is not None and baseline not in names:
        raise PresageError(f"the baseline '{baseline}' was not evaluated; there are: {', '.join(names)}")
    base = evaluations[names.index(baseline) if baseline else 0]
    return [
        _compared(each, base, score)
        for score in _SCORES
        for each in evaluations
        if each is not base and score in each.numbers and score in base.numbers
    ]


def _compared(evaluation: Evaluation, base: Evaluation, score: str) -> Comparison:
    ours, theirs = evaluation.outcomes, base.outcomes
    if ours is None or theirs is None or not np.array_equal(ours.truth, theirs.truth, equal_nan=True):
        raise PresageError(f"{evaluation.forecaster} and {base.forecaster} were not asked about the same kernels")
    more_is_better, values = _SCORES[score]
    one, other = values(ours), values(theirs)
    known = ~np.isnan(one.value - other.value)
    difference, weight = (one.value - other.value)[known], one.weight[known]

    def mean(drawn: npt.NDArray[np.intp]) -> float:
        return float(difference[drawn] @ weight[drawn] / weight[drawn].sum())

    interval = scoring.bootstrap(mean, np.arange(weight.size))
    p = scoring.sign_flip_p(difference * weight)
    verdict = "no difference shown"
    if p < LEVEL and not interval.low <= 0 <= interval.high:
        verdict = "better" if (interval.value > 0) == more_is_better else "worse"
    return Comparison(evaluation.forecaster, base.forecaster, score, interval, p, int(weight.size), verdict)
