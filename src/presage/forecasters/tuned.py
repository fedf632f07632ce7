"""Forecasts of modules whose Triton kernels are tuned when they run. A GPU times every configuration and takes the
fastest, so the forecast is that of the configuration with the best forecast."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from presage.core import machine
from presage.core.errors import PresageError
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task
from presage.problems import static
from presage.static.report import StaticReport
from presage.static.trace import Tuned

MOST = 8
"""The most configurations of a module that are forecast."""
_SECONDS = 2.0
"""No further configurations are compiled once this much time has passed."""


def fastest(
    task: Task, candidates: Sequence[Candidate], said: Sequence[Prediction], forecaster: Forecaster
) -> list[Prediction]:
    """The predictions; of modules that are tuned, those of their fastest configuration. A forecaster that costs tokens
    is not asked again."""
    best = list(said)
    if task.hardware is None or forecaster.is_paid:
        return best
    known = {i: found for i, each in enumerate(candidates) if said[i].forecast and (found := _tuned(each.reports))}
    tried = {i: [(said[i], found)] for i, found in known.items()}
    others = {i: _others(found[0].number, max(each.count for each in found)) for i, found in known.items()}
    waiting = [(i, numbers[turn]) for turn in range(MOST) for i, numbers in others.items() if turn < len(numbers)]
    at_once, end = max(len(known), machine.cores()), time.monotonic() + _SECONDS
    while waiting and time.monotonic() < end:
        some, waiting = waiting[:at_once], waiting[at_once:]
        wanted = [(candidates[i].kernel, number) for i, number in some]
        try:
            reports = static.as_tuned(task.problem, wanted, task.cases, task.hardware)
        except PresageError:
            break
        for (i, _), told in zip(some, reports, strict=True):
            if (found := _tuned(told)) and all(found != before for _, before in tried[i]):
                (prediction,) = forecaster.forecast(task, [replace(candidates[i], reports=tuple(told))])
                tried[i].append((prediction, found))
    for i, each in tried.items():
        prediction, found = max(each, key=lambda one: one[0].forecast.mean() if one[0].forecast else -math.inf)
        best[i] = replace(prediction, notes=(*prediction.notes, _note(found, len(each))))
    return best


def _tuned(reports: Sequence[StaticReport]) -> list[Tuned]:
    """The kernels that are tuned, in a module that was traced at every case. Kernels may be tuned for each case."""
    if any(report.trace is None for report in reports):
        return []
    found = (each for report in reports for each in Tuned.of_notes(report.notes))
    return list(dict.fromkeys(each for each in found if each.count > 1))


def _others(first: int, count: int) -> list[int]:
    """The numbers of other configurations to forecast, those far apart first.

    >>> _others(0, 4), _others(0, 100)
    ([2, 1, 3], [50, 25, 75, 12, 37, 62, 87])
    """
    found: list[int] = []
    parts = 1
    while len(found) < min(count, MOST) - 1 and parts <= 2 * count:
        places = (count * (2 * part + 1) // (2 * parts) for part in range(parts))
        found += [each for each in dict.fromkeys(places) if each not in (first, *found)]
        parts *= 2
    return found[: MOST - 1]


def _note(tuned: Sequence[Tuned], tried: int) -> str:
    ours = tuned[0]
    others = f", and {len(tuned) - 1} others likewise" if len(tuned) > 1 else ""
    return (
        f"{ours.name} is tuned when it runs: the forecast is for configuration {ours.number + 1} of {ours.count}"
        f" ({ours.configuration}{others}), the fastest of the {tried} that were forecast"
    )
