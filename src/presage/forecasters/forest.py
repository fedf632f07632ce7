"""The `forest` baseline: a random forest on tunables alone, trained on the search's own measurements."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.forecast import Forecast
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.kernels.header import Value
from presage.kernels.kernel import LANGUAGES, Kernel

Floats = npt.NDArray[np.float64]

FEWEST = 8
"""The least number of measured neighbours for a forecast."""
_LEVELS = np.array([0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95])
_NOISE = 0.05
"""The least standard deviation of a forecast, in octaves: two measurements of the same kernel never agree exactly."""
_TREES = 100
_SETTINGS = {
    "boosting": "rf",
    "objective": "regression",
    "bagging_freq": 1,
    "bagging_fraction": 0.63,
    "feature_fraction": 0.7,
    "num_leaves": 64,
    "min_data_in_leaf": 2,
    "min_data_in_bin": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 0,
    "verbosity": -1,
}


class ForestForecaster(Forecaster):
    """A random forest on tunables, trained on the measurements of the search. It is a quantile regression forest
    (Meinshausen, 2006): a candidate resembles the measured kernels in its leaves, and each tree has one vote. Failed
    kernels take part; they count as slower than all others."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        neighbours = [(measured, task.log2_speedup(measured)) for measured in task.neighbours]
        worked = [log2_S for _, log2_S in neighbours if log2_S is not None]
        if len(neighbours) < FEWEST or not worked or not candidates:
            note = f"no forecast: it learns from {FEWEST} or more measured neighbours, and has {len(neighbours)}"
            return [Prediction(None, (note,))] * len(candidates)
        outcome = np.array([math.nan if log2_S is None else log2_S for _, log2_S in neighbours])
        likeness = _likeness([measured for measured, _ in neighbours], outcome, candidates)
        return [Prediction(forecast) for forecast in _forecasts(likeness, outcome)]


def _likeness(measured: Sequence[Measured], outcome: Floats, candidates: Sequence[Candidate]) -> Floats:
    """The similarity of each candidate to each measured kernel, shape (candidates, measured); rows sum to 1."""
    features = tunables([each.kernel for each in (*measured, *candidates)])
    known, asked = features[: len(measured)], features[len(measured) :]
    target = np.where(np.isnan(outcome), np.nanmin(outcome) - 1, outcome)
    forest = _grow(known, target)
    leaves, asked_leaves = (forest.predict(each, pred_leaf=True).astype(np.int32) for each in (known, asked))
    votes = np.zeros((len(candidates), len(measured)))
    for tree in range(leaves.shape[1]):
        shared = asked_leaves[:, tree, None] == leaves[None, :, tree]
        votes += shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
    total = votes.sum(axis=1, keepdims=True)
    return np.where(total > 0, votes / np.maximum(total, 1e-12), 1 / len(measured))


def _grow(features: Floats, target: Floats) -> Any:
    import lightgbm

    data = lightgbm.Dataset(features, target, params={"verbosity": -1, "min_data_in_bin": 1})
    return lightgbm.train(_SETTINGS, data, num_boost_round=_TREES)


def _forecasts(likeness: Floats, outcome: Floats) -> list[Forecast]:
    """The distribution of the outcomes, weighted by similarity: quantiles of those that worked, share that failed."""
    n = outcome.size
    p_fail = (n * likeness[:, np.isnan(outcome)].sum(axis=1) + 0.5) / (n + 1)
    order = np.argsort(outcome)[: int(np.sum(~np.isnan(outcome)))]
    weights = likeness[:, order] + 1e-9
    mass = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    noise = _NOISE * np.array([NormalDist().inv_cdf(level) for level in _LEVELS])
    at = np.stack([np.sum(mass < level, axis=1) for level in _LEVELS], axis=1)
    values = outcome[order][np.minimum(at, order.size - 1)] + noise
    return [Forecast.from_quantiles(_LEVELS, v, float(p)) for v, p in zip(values, p_fail, strict=True)]


def tunables(kernels: Sequence[Kernel]) -> Floats:
    """A row per kernel: its language, the number of tunables, and their values in the order of declaration, padded with
    NaN. Names are left out, because the author chose them."""
    width = max((len(kernel.values) for kernel in kernels), default=0)
    rows = np.full((len(kernels), 2 + width), np.nan)
    for row, kernel in zip(rows, kernels, strict=True):
        row[:2] = LANGUAGES.index(kernel.language), len(kernel.values)
        row[2 : 2 + len(kernel.values)] = [_number(value) for value in kernel.values.values()]
    return rows


def _number(value: Value) -> float:
    """A number in octaves; for a string, a hash that lies far from all numbers."""
    if isinstance(value, str):
        return 100.0 + zlib.crc32(value.encode()) % 100_000
    return math.copysign(math.log2(1 + abs(value)), value)
