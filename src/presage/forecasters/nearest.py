"""The `nearest` baseline: forecasts the results of the most similar measured kernels."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from presage.core.forecast import Forecast
from presage.devices.recording import Recording, Row
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task
from presage.forecasters.blend import pool
from presage.forecasters.forest import tunables
from presage.kernels.header import Header
from presage.kernels.kernel import Kernel
from presage.llm.anonymise import Unreadable, anonymise

Floats = npt.NDArray[np.float64]

_COUNT = 8
_CORPUS = 2048
"""The most kernels of a corpus that are compared, spread evenly over it."""
_DIMENSIONS = 512
_SAME_SOURCE = 0.999
_FAR = 0.5
"""The distance in tunables that kernels with different sources get."""
_NEAR = 0.05
_NUMBER = re.compile(r"\b\d[\w.]*")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_NAME = re.compile(r"n\d+")


class NearestForecaster(Forecaster):
    """Expects what the most similar measured kernels did. They come from the search, or before it has any, from the
    train split of a recording."""

    def __init__(self, recording: Recording | None = None) -> None:
        self._recording = recording
        self._known: dict[str, _Known] = {}

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        kernels = [candidate.kernel for candidate in candidates]
        if task.neighbours:
            outcome = [task.log2_speedup(measured) for measured in task.neighbours]
            known = _Known([measured.kernel for measured in task.neighbours], _floats(outcome))
            return known.predictions(kernels)
        if self._recording is None:
            return [Prediction(None, ("no forecast: nothing was measured to compare with",))] * len(candidates)
        known = self._corpus(task.problem.name)
        return known.predictions(kernels, known.expected(task.anchor.kernel))

    @cached_property
    def _rows(self) -> list[Row]:
        assert self._recording is not None
        rows = [row for row in self._recording.rows(reports=False) if row.split == "train" and row.anchor]
        return rows[:: max(1, math.ceil(len(rows) / _CORPUS))]

    def _corpus(self, problem: str) -> _Known:
        """The kernels of all other problems. Those of the problem itself are excluded, because they hold the answer."""
        excluded = problem if any(row.problem == problem for row in self._rows) else ""
        if excluded not in self._known:
            rows = [row for row in self._rows if row.problem != excluded]
            outcome = [math.log2(row.speedup.value) if row.speedup else None for row in rows]
            self._known[excluded] = _Known([row.kernel for row in rows], _floats(outcome))
        return self._known[excluded]


@dataclass(frozen=True)
class _Known:
    """Kernels and their results: log2 S over the anchor, or over their own seed in a corpus; NaN for failures."""

    kernels: Sequence[Kernel]
    outcome: Floats

    def predictions(self, kernels: Sequence[Kernel], anchor: float = 0.0) -> list[Prediction]:
        """A prediction for each; `anchor` is log2 S of the anchor on the scale of the outcomes."""
        if np.isnan(self.outcome).all():
            return [Prediction(None, ("no forecast: nothing that was measured worked",))] * len(kernels)
        return [Prediction(self._forecast(distance, anchor)) for distance in self._distances(kernels)]

    def expected(self, kernel: Kernel) -> float:
        """The weighted mean of log2 S of the most similar kernels that worked."""
        if np.isnan(self.outcome).all():
            return 0.0
        (distance,) = self._distances([kernel])
        near, weights = self._nearest(distance, ~np.isnan(self.outcome))
        return float(weights @ self.outcome[near] / weights.sum())

    def _forecast(self, distance: Floats, anchor: float) -> Forecast:
        """A pool of uniform distributions around the results of the nearest kernels, wider for more distant ones."""
        worked, weights = self._nearest(distance, ~np.isnan(self.outcome))
        reach = _NEAR + distance[worked]
        around = [
            Forecast((y - r, y + r), (0.0, 1.0)) for y, r in zip(self.outcome[worked] - anchor, reach, strict=True)
        ]
        near, votes = self._nearest(distance, np.ones(distance.size, dtype=bool))
        failed = float(votes @ np.isnan(self.outcome[near]))
        p_fail = (failed + votes.mean() / 2) / (votes.sum() + votes.mean())
        pooled = pool(around, weights)
        return Forecast(pooled.knots, pooled.cdf, float(p_fail))

    def _nearest(self, distance: Floats, among: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], Floats]:
        rows = np.flatnonzero(among)
        near = rows[np.argsort(distance[rows], kind="stable")[:_COUNT]]
        return near, 1 / (_NEAR + distance[near]) ** 2

    def _distances(self, kernels: Sequence[Kernel]) -> Floats:
        """The distance of each kernel from each known one, shape (kernels, known): 0 to 1 for the source, plus the
        distance in tunables, which is `_FAR` unless the sources are the same."""
        alike = np.clip(_structures(kernels) @ self._structures.T, 0, 1)
        numbers = tunables([*kernels, *self.kernels])
        apart = np.full(alike.shape, _FAR)
        ours, theirs = np.nonzero(alike > _SAME_SOURCE)
        apart[ours, theirs] = _steps(numbers[ours], numbers[len(kernels) + theirs])
        return np.asarray(1 - alike + apart)

    @cached_property
    def _structures(self) -> Floats:
        return _structures(self.kernels)


def _steps(some: Floats, others: Floats) -> Floats:
    """The mean difference of tunables, row by row. Three octaves count as 1, which is also the limit per tunable."""
    gaps = np.minimum(np.abs(some - others) / 3, 1.0)
    missing = np.isnan(some) != np.isnan(others)
    return np.asarray(np.where(missing, 1.0, np.nan_to_num(gaps)).sum(axis=1) / max(1, some.shape[1] - 2))


def _structures(kernels: Sequence[Kernel]) -> Floats:
    found = [_structure(_NUMBER.sub("0", kernel.source), kernel.language) for kernel in kernels]
    return np.array(found).reshape(-1, _DIMENSIONS)


@lru_cache(maxsize=1 << 14)
def _structure(source: str, language: str) -> Floats:
    """The three-token sequences of a source, without names, hashed into a vector of length 1. The caller has replaced
    all numbers by 0, so that all configurations of a family share one cache entry."""
    try:
        text = anonymise(Kernel(source, language, Header(), ""))
    except Unreadable:
        return np.zeros(_DIMENSIONS)
    tokens = ["n" if _NAME.fullmatch(token) else token for token in _TOKEN.findall(text)]
    vector = np.zeros(_DIMENSIONS)
    for sequence in {" ".join(tokens[i : i + 3]) for i in range(len(tokens))}:
        code = zlib.crc32(sequence.encode())
        vector[code % _DIMENSIONS] += 1 if code >> 16 & 1 else -1
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([math.nan if value is None else value for value in values])
