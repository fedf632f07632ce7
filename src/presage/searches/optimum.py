"""How near a search on a recorded device came to the fastest recorded kernel, compared with random choice.

This is computed after the search has ended. The search itself does not see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from presage.devices.base import Device
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.problems.base import Problem
from presage.proposers.pool import candidates


def known(device: Device, problem: Problem, best: str, measured: int) -> dict[str, Any] | None:
    """Compare the best kernel of a search with all recorded kernels, and with random choice of as many kernels.

    best: the kernel's hash. measured: the number of kernels that the search measured.

    Returns `behind` (how much slower than the fastest, as a share), `rank`, `of` (the number of recorded kernels) and
    `random`. Returns None if the device is not a recorded one, or if the times are not known."""
    if not isinstance(device, RecordedDevice):
        return None
    rows = device.rows(problem.name)
    times = sorted(time for row in candidates(rows.values()) if (time := _time(row)) is not None)
    found, of = _time(rows[best]), len(candidates(rows.values()))
    if not times or found is None:
        return None
    fastest, as_good = min(times[0], found), int(np.searchsorted(times, found, side="right"))
    return {
        "behind": math.exp(found - fastest) - 1,
        "rank": 1 + int(np.searchsorted(times, found, side="left")),
        "of": of,
        "random": {
            "measurements": (of + 1) / (as_good + 1),
            "behind": expected_behind(times, of, min(measured, of)),
        },
    }


def _time(row: Row) -> float | None:
    """The mean over cases of the logarithm of a kernel's time; None for a kernel that failed."""
    logs = [math.log(case.median.value) for case in row.cases]
    return sum(logs) / len(logs) if logs else None


def expected_behind(times: Sequence[float], of: int, draws: int) -> float:
    """The expected share by which the best of `draws` random kernels is slower than the fastest, given that at least
    one of the drawn kernels works. The draws are without replacement from `of` kernels. `times` are the logarithms of
    the working kernels' times, increasing; the other kernels fail.

    >>> round(expected_behind([0.0, math.log(2.0)], of=2, draws=1), 9)
    0.5
    """
    total, mean, p = 0.0, 0.0, draws / of
    for place, time in enumerate(times, start=1):  # p: the probability that this kernel is the best one drawn
        total, mean = total + p, mean + p * (math.exp(time - times[0]) - 1)
        p = p * max(0, of - place - draws + 1) / (of - place) if place < of else 0.0
    return mean / total
