"""Evaluate one forecaster on one split of a recording: the numbers and curves that are published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.core.shown import Shown
from presage.core.statistics import Interval
from presage.devices.recording import Recording
from presage.evaluations import outcomes
from presage.evaluations.injection import injection
from presage.evaluations.outcomes import Outcomes
from presage.evaluations.parts import parts
from presage.evaluations.recalibration import FITTED_ON, recalibration
from presage.evaluations.suites import SUITES, Metric
from presage.forecasters.base import Forecaster

NAMES = (*SUITES, "injection")
MORE = ("parts", "recalibration")
"""Suites that run only if they are named: one gives many numbers, the other needs forecasts of a second split."""


@dataclass(frozen=True)
class Evaluation(Shown):
    """The results of one forecaster for every kernel of a split."""

    forecaster: str
    split: str
    recording: str
    operations: int
    n: int
    """The number of forecasts: every kernel against every anchor of its operation."""
    metrics: Mapping[str, Metric]
    curves: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]
    outcomes: Outcomes | None = None
    """The forecast and the measurement of each kernel, for comparing forecasters."""

    @property
    def numbers(self) -> dict[str, Interval]:
        """Every number by name. A metric with several numbers has names such as `recovery 0.02`."""
        found: dict[str, Interval] = {}
        for name, metric in self.metrics.items():
            parts = {"": metric} if isinstance(metric, Interval) else metric
            found |= {f"{name} {key}".rstrip(): value for key, value in parts.items()}
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "forecaster": self.forecaster,
            "split": self.split,
            "n": self.n,
            "metrics": {name: _plain(metric) for name, metric in self.metrics.items()},
            "curves": {name: {"x": x.tolist(), "y": y.tolist()} for name, (x, y) in self.curves.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], recording: str, operations: int) -> Evaluation:
        """The inverse of `to_json`, without the outcomes. Raises LookupError, TypeError or ValueError for other
        documents."""
        curves = {
            str(name): (np.asarray(curve["x"], dtype=np.float64), np.asarray(curve["y"], dtype=np.float64))
            for name, curve in document.get("curves", {}).items()
        }
        metrics = {str(name): _metric(metric) for name, metric in document["metrics"].items()}
        forecaster, split = str(document["forecaster"]), str(document["split"])
        return cls(forecaster, split, recording, operations, int(document["n"]), metrics, curves)


def evaluate(
    forecaster: Forecaster,
    recording: Recording,
    split: str = "test_op",
    suites: Sequence[str] = NAMES,
    seed: int = 0,
    *,
    name: str | None = None,
    problem: str | None = None,
    neighbours: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Ask a forecaster about every kernel of the split's operations, and score its forecasts.

    neighbours: the number of kernels of each operation that are shown as measured, as in a search that has begun.
    problem: score only this problem's kernels, whatever their split. Raises PresageError.
    """
    if unknown := [suite for suite in suites if suite not in (*NAMES, *MORE)]:
        raise PresageError(f"there is no suite '{unknown[0]}'; there are: {', '.join((*NAMES, *MORE))}")
    if "recalibration" in suites and split in (FITTED_ON, outcomes.ALL):
        raise PresageError(f"a recalibration is fitted on the {FITTED_ON} split, so it is scored on another")
    name = name or type(forecaster).__module__.rpartition(".")[2]
    split = outcomes.ALL if problem is not None else split
    say(f"reading {problem or split} of {recording.name}")
    among = outcomes.pools(recording, split, problem)
    say(f"{name}: forecasting {sum(len(pool.kernels) for pool in among)} kernels of {len(among)} operations")
    found = outcomes.collect(forecaster, among, seed, neighbours)
    metrics: dict[str, Metric] = {}
    curves: dict[str, Any] = {}
    for suite in dict.fromkeys(suites):
        say(f"{name}: {suite}")
        if suite == "injection":
            each = injection(forecaster, among, seed, neighbours)
        elif suite == "recalibration":
            held = outcomes.pools(recording, FITTED_ON)
            each = recalibration(found, outcomes.collect(forecaster, held, seed, neighbours))
        else:
            each = parts(found) if suite == "parts" else SUITES[suite](found)
        metrics |= each.metrics
        curves |= each.curves
    return Evaluation(name, split, recording.name, len(among), found.operation.size, metrics, curves, found)


def _plain(metric: Metric) -> dict[str, Any]:
    if isinstance(metric, Interval):
        return metric._asdict()
    return {key: value._asdict() for key, value in metric.items()}


def _metric(plain: Mapping[str, Any]) -> Metric:
    if set(plain) == set(Interval._fields):
        return _interval(plain)
    return {str(key): _interval(value) for key, value in plain.items()}


def _interval(plain: Mapping[str, Any]) -> Interval:
    return Interval(*(math.nan if plain[end] is None else float(plain[end]) for end in Interval._fields))
