"""The stages that measure: the anchor, the chosen candidates, and the finalists beside the anchor."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.core.statistics import Interval
from presage.devices.base import Effort, Measurement, speedup
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.searches import forecasting
from presage.searches.session import Session

EFFORT = Effort(precision=0.02, case_seconds=1.0, processes=1)
"""The effort for a candidate. The anchor and the finalists get the full effort."""


def measure_anchor(session: Session) -> None:
    """Measure the anchor, the first measurement of a run. Raises PresageError if the anchor fails."""
    anchor = session.parts.anchor
    (measurement,), seconds = _side_by_side(session, [anchor])
    if measurement.status is not Status.OK:
        raise PresageError(
            f"the anchor {anchor.name} is {measurement.status}: {measurement.reason}; without its time there are no"
            " speedups"
        )
    (reports,) = forecasting.reports(session, [anchor])
    session.append(
        "measured",
        _result(measurement, 0.0, None, None, seconds),
        kernels=[anchor],
        reports={anchor.hash: reports} if reports else None,
        measurements=[measurement],
    )


def measure_waiting(session: Session, is_enough: Callable[[], object]) -> None:
    """Measure the waiting kernels, as far as the budget allows. Each result is stored at once. Stops when `is_enough`
    returns a true value."""
    usual, foreign = effort(session)
    kernels = [session.store.kernel(hash) for hash in itertools.islice(session.state.waiting, _affordable(session))]
    start = time.monotonic()
    work = ((session.parts.problem, kernel) for kernel in kernels)
    for measurement in session.parts.device.measure_each(work, usual, foreign):
        keep(session, measurement, time.monotonic() - start)
        start = time.monotonic()
        if is_enough():
            break


def _affordable(session: Session) -> int | None:
    """How many kernels the budget covers, even if each takes as long as it may; None without a limit."""
    seconds, left = session.spending.seconds_left(), session.spending.measurements_left()
    in_time = None if math.isinf(seconds) else max(1, int(seconds // EFFORT.timeout))
    return min((each for each in (in_time, left) if each is not None), default=None)


def effort(session: Session) -> tuple[Effort, bool]:
    """Return the effort for a candidate in the time that is left, and whether candidates are foreign."""
    own = None if session.proposer.foreign else session.parts.device.own_effort
    usual = _as_asked(session, own or EFFORT)
    return replace(usual, timeout=min(usual.timeout, session.spending.seconds_left())), own is None


def keep(session: Session, measurement: Measurement, seconds: float) -> None:
    """Store the measurement of a kernel that waited for it. The strategy and the policy learn from it."""
    hash, value = measurement.kernel.hash, _value(session, measurement)
    told = _expected(session, hash), _surprise(session, hash, value)
    session.append("measured", _result(measurement, value, *told, seconds), measurements=[measurement])


def measure_finalists(session: Session) -> None:
    """Measure the best kernels again, side by side with the anchor, as far as the budget allows."""
    state, budget = session.state, session.budget
    mean = max(state.spent.device_seconds / state.spent.measurements, 1e-9)
    room = min(budget.left("measurements", state.spent), session.spending.seconds_left() / mean) - 1
    count = max(0, int(min(budget.finalists, room)))
    finalists = [state.hashes[id] for _, id in reversed(state.best) if id != 0][:count]
    if not finalists:
        return
    hashes = [state.hashes[0], *finalists]
    measured, seconds = _side_by_side(session, [session.store.kernel(hash) for hash in hashes])
    results = []
    for hash, measurement in zip(hashes, measured, strict=True):
        interval = speedup(measured[0], measurement)
        ends = interval._asdict() if interval else dict.fromkeys(Interval._fields)
        results.append({"kernel": hash, "status": str(measurement.status), **ends})
    session.append("finals", {"results": results, "seconds": seconds}, measurements=measured)


def _side_by_side(session: Session, kernels: Sequence[Kernel]) -> tuple[list[Measurement], float]:
    """Measure kernels side by side with full effort. Return the measurements and the seconds that they took."""
    effort = _as_asked(session, Effort(further_processes=0)).within(session.spending.seconds_left() / len(kernels))
    start = time.monotonic()
    measured = session.parts.device.measure(session.parts.problem, kernels, effort, lambda doing, share: None)
    return measured, time.monotonic() - start


def _as_asked(session: Session, usual: Effort) -> Effort:
    return replace(usual, case_seconds=session.parts.seconds or usual.case_seconds)


def _expected(session: Session, hash: str) -> float | None:
    """The mean of the forecast on which the decision to measure this kernel was based."""
    waiting = session.state.waiting[hash]
    if waiting.node is not None:
        return session.state.values[waiting.node]
    return Forecast.from_json(waiting.forecast).mean() if waiting.forecast else None


def _surprise(session: Session, hash: str, value: float | None) -> float | None:
    """The distance of the value from the median of the forecast on which the decision was based, as a multiple of the
    distance from the median to the forecast's end on that side. Both sides count: the kernels measured first are rather
    those that were forecast too high than too low."""
    kept = session.state.waiting[hash].forecast
    if kept is None or value is None:
        return None
    forecast = Forecast.from_json(kept)
    middle = forecast.quantile(0.5)
    return (value - middle) / (forecast.knots[-1 if value > middle else 0] - middle)


def _value(session: Session, measurement: Measurement) -> float | None:
    """log2 S from the medians, because the kernel was not measured in the anchor's rounds; None if it failed."""
    if measurement.status is not Status.OK:
        return None
    anchor = session.briefing.anchor.times_ns
    ratios = [anchor[case.case] / case.median.value for case in measurement.cases]
    return sum(map(math.log2, ratios)) / len(ratios)


def _result(
    measurement: Measurement, value: float | None, expected: float | None, surprise: float | None, seconds: float
) -> dict[str, Any]:
    return {
        "kernel": measurement.kernel.hash,
        "name": Path(measurement.kernel.name).name,
        "status": str(measurement.status),
        "reason": measurement.reason,
        "value": value,
        "expected": expected,
        "surprise": surprise,
        "seconds": seconds,
    }
