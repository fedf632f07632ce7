"""KernelBench's score: fast_p, the share of attempts that are right and more than p times as fast as the reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from presage.devices.recording import Recording
from presage.devices.status import Status

THRESHOLDS = (0.0, 1.0, 1.5, 2.0)


def fast_p(speedups: Sequence[float | None], thresholds: Sequence[float] = THRESHOLDS) -> dict[str, float]:
    """fast_p for each threshold; None stands for an attempt that failed. fast_0 is the share that is right.

    >>> fast_p([None, 0.5, 1.25, 3.0])
    {'fast_0': 0.75, 'fast_1': 0.5, 'fast_1.5': 0.25, 'fast_2': 0.25}
    """
    total = len(speedups)
    return {
        f"fast_{p:g}": sum(each is not None and each > p for each in speedups) / total if total else 0.0
        for p in thresholds
    }


def scores(recording: Recording, thresholds: Sequence[float] = THRESHOLDS) -> dict[str, Any]:
    """fast_p over every attempt in a recording, and over each problem's best attempt.

    The kernel that speedups are relative to is not an attempt. A problem without another kernel, or whose reference has
    no time, has no attempts."""
    attempts = _attempts(recording)
    every = [each for found in attempts.values() for each in found]
    best = [max((each for each in found if each is not None), default=None) for found in attempts.values()]
    return {
        "recording": recording.name,
        "problems": len(attempts),
        "attempts": len(every),
        "each": fast_p(every, thresholds),
        "best": fast_p(best, thresholds),
    }


def _attempts(recording: Recording) -> Mapping[str, list[float | None]]:
    found: dict[str, list[float | None]] = defaultdict(list)
    columns = recording.columns("problem", "hash", "anchor", "status", "speedup")
    for problem, hash, anchor, status, speedup in zip(*columns.values(), strict=True):
        if anchor and hash != anchor:
            found[problem].append(speedup if status == Status.OK else None)
    return found
