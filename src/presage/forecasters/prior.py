"""The `prior` baseline: the distribution of results of a language in the train split. It ignores the candidate."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices.recording import Recording
from presage.devices.status import Status
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task

_LEVELS = tuple((2 * i + 1) / 64 for i in range(32))
_FEW = 30
"""A language with fewer speedups than this gets the distribution over all languages."""
_PAIRS = 4
"""The number of anchors other than the seed that each kernel is compared with."""
_ANY = ""


class PriorForecaster(Forecaster):
    """Expects what recorded kernels of the same language did. It also knows whether the anchor is a seed kernel."""

    def __init__(self, recording: Recording) -> None:
        columns = recording.columns("problem", "split", "language", "status", "speedup", "anchor")
        self._seeds = {anchor for anchor in columns["anchor"] if anchor}
        train = [row for row in zip(*columns.values(), strict=True) if row[1] == "train"]
        speedups: dict[tuple[bool, str], list[float]] = defaultdict(list)
        failed: dict[str, list[bool]] = defaultdict(list)
        for _, _, language, status, _, _ in train:
            failed[language].append(status != Status.OK)
            failed[_ANY].append(status != Status.OK)
        logs = [(problem, language, math.log2(S)) for problem, _, language, _, S, _ in train if S]
        for seeded, language, log2_S in _questions(logs):
            speedups[seeded, language].append(log2_S)
            speedups[seeded, _ANY].append(log2_S)
        if not logs:
            raise PresageError(f"{recording.name} has no train split with speedups, which the prior is made from")
        self._forecasts = {
            (seeded, language): Forecast.from_quantiles(_LEVELS, np.quantile(values, _LEVELS), _rate(failed[language]))
            for (seeded, language), values in speedups.items()
            if language == _ANY or len(values) >= _FEW
        }

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        seeded = task.anchor.kernel.hash in self._seeds
        any_language = self._forecasts[seeded, _ANY]
        return [Prediction(self._forecasts.get((seeded, c.kernel.language), any_language)) for c in candidates]


def _questions(logs: Sequence[tuple[str, str, float]]) -> Iterator[tuple[bool, str, float]]:
    """Triples of whether the anchor is the seed, the candidate's language, and log2 S. Each kernel is compared with its
    operation's seed and with a few other kernels of the operation."""
    by_problem: dict[str, list[float]] = defaultdict(list)
    for problem, _, log2_S in logs:
        by_problem[problem].append(log2_S)
    rng = np.random.default_rng(0)
    for problem, language, log2_S in logs:
        yield True, language, log2_S
        for anchor in rng.choice(by_problem[problem], size=_PAIRS).tolist():
            yield False, language, log2_S - anchor


def _rate(failed: Sequence[bool]) -> float:
    return (sum(failed) + 1) / (len(failed) + 2)
