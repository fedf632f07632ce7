"""Observations of a timed case on a GPU: times of calls by events, and the parent's clock over many calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, ClassVar

from presage.devices.observation import Observation

WINDOW_CALLS = 8
LEAST_HOLD_NS, MOST_HOLD_NS = 20_000, 50_000_000
"""The least and the most nanoseconds for which the lead holds the GPU while a call is queued behind it. Foreign host
code cannot use that time."""
LATE_SHARE = 0.01
"""A call that was queued after the hold had ended still counts if it was late by at most this share of its time."""
MOST_LATE_NS = 500_000
"""A late call has waited for the host for at most so long. One that fills the GPU's queue waits for the GPU."""
CLOCKED_NS, SPREADS = 3_000_000, 30
"""A window by the parent's clock takes CLOCKED_NS, or SPREADS times the spread of empty windows if that is longer. The
uncertainty of subtracting an empty window is then under 3 % of it."""
MOST_CALLS = 512
AGREES, CLOCK_AGREES = 0.02, 0.01
"""Times of typical calls that are less than the mean of a window by at most AGREES are believed. Times by events that
are less than the parent's clock says by at most CLOCK_AGREES are believed, since the clock is no more exact. This is
all that forged events gain. If they report less, the median by the clock is the result, so CLOCK_AGREES can be as small
as the uncertainty of that median. If it were smaller, chance would often decide against the events of honest
modules."""


@dataclass
class GpuObservation(Observation):
    """The observation of a process in which no foreign host code has run. Its samples are its calls, each timed by
    events."""

    doubted: ClassVar[bool] = False
    may_work_ahead: ClassVar[bool] = True
    """Whether a call might do the work of later calls of its window, whose inputs the GPU can already read."""

    @property
    def whole(self) -> int:
        """Two checked calls are enough, since the outputs of each call are copied before the next begins."""
        return min(2, self.calls)

    @property
    def whole_windows(self) -> int:
        return 1

    def believed(self) -> list[int]:
        return [*range(len(self.windows))]

    def lies(self) -> list[float]:
        return []

    @property
    def is_lied_about(self) -> bool:
        return False

    @property
    def is_disturbed(self) -> bool:
        return False

    def samples(self) -> dict[int, float]:
        """Nanoseconds of each call, by a number for each call. A call that something else on the GPU delayed is an
        outlier and does not affect other calls. Calls that were not queued in time count only if no call was.

        If typical calls take less than the mean of a window, some call may do the work of others. Then no sample is
        less than that mean."""
        calls = [
            (number * WINDOW_CALLS + call, float(ns), is_late)
            for number, window in zip(self.rounds, self.windows, strict=True)
            for call, (ns, is_late) in enumerate(zip(window.answer["samples_ns"], are_late(window.answer), strict=True))
        ]
        in_time = {key: ns for key, ns, is_late in calls if not is_late}
        found = in_time or {key: ns for key, ns, _ in calls}
        if not self.may_work_ahead or not found:
            return found
        least = self._mean_ns()
        if median(found.values()) >= (1 - AGREES) * least:
            return found
        return {key: max(ns, least) for key, ns in found.items()}

    def _mean_ns(self) -> float:
        """Nanoseconds per call of a window that nothing else on the GPU has disturbed: the lower quartile over windows.
        A late call counts without the time that it may have waited for the host."""
        means = sorted(sum(worked) / len(worked) for window in self.windows if (worked := _worked_ns(window.answer)))
        return means[(len(means) - 1) // 4] if means else 0.0

    def tail_ns(self) -> float:
        """The median nanoseconds for which the GPU goes on after a call's own stream has finished."""
        return float(median(tail for window in self.windows for tail in window.answer["tails_ns"]))


@dataclass
class OwnObservation(GpuObservation):
    """The observation of one of our own kernels, whose behaviour does not change, so that only its first window is
    checked."""

    may_work_ahead: ClassVar[bool] = False

    def checks(self) -> int:
        return 0 if self.windows else 1


@dataclass
class WorkerObservation(GpuObservation):
    """The observation of a module in its own process: the times by events, unless the parent's clock says more."""

    clocked_ns: tuple[float, ...] = ()
    """Nanoseconds per call by the parent's clock, one value for each window of many calls."""
    single_ns: float = 0.0
    """The least nanoseconds of a call that is made alone. Calls that are made together may take less by that clock."""

    @property
    def is_clocked(self) -> bool:
        """Whether the parent's clock says more. Then the host code takes longer, or the events cannot be believed."""
        if not self.clocked_ns:
            return False
        return median(super().samples().values()) < (1 - CLOCK_AGREES) * median(self.clocked_ns)

    @property
    def is_raised(self) -> bool:
        """Whether the samples are the least that a call takes alone, since less was found."""
        return median(self._found().values()) < self.single_ns

    def samples(self) -> dict[int, float]:
        return {key: max(ns, self.single_ns) for key, ns in self._found().items()}

    def _found(self) -> dict[int, float]:
        if not self.is_clocked:
            return super().samples()
        return {-1 - at: ns for at, ns in enumerate(self.clocked_ns)}  # negative keys belong to no round


def clocked_calls(call_ns: float, empty_ns: Sequence[float], room: int, least_ns: float = CLOCKED_NS) -> int:
    """The number of calls of a window by the parent's clock. `empty_ns`: the times of empty windows. `room`: how many
    calls there is room for."""
    low, _, high = quantiles(empty_ns, n=4) if len(empty_ns) > 1 else (0.0, 0.0, 0.0)
    wanted = max(least_ns, SPREADS * (high - low)) / max(1.0, call_ns)
    return max(1, min(MOST_CALLS, room, round(wanted + 0.5)))


def are_late(answer: Mapping[str, Any]) -> list[bool]:
    """For each call of a window, whether it was still being queued when the hold ended, so that the GPU may have waited
    for the host."""
    calls = zip(answer["queued_ns"], answer["samples_ns"], strict=True)
    return [queued - answer["hold_ns"] > LATE_SHARE * ns for queued, ns in calls]


def _worked_ns(answer: Mapping[str, Any]) -> list[float]:
    """For each call of a window, the least nanoseconds that the GPU can have worked on it."""
    waited = [min(MOST_LATE_NS, max(0.0, queued - answer["hold_ns"])) for queued in answer["queued_ns"]]
    return [max(0.0, ns - lost) for ns, lost in zip(answer["samples_ns"], waited, strict=True)]


@dataclass
class Hold:
    """How long the lead holds the GPU for the next call: twice as long as queueing took the last time. If a call waits
    for the GPU, a longer hold makes queueing take longer, and in the end longer than any hold. This must happen twice
    in a row, since the host may just be busy."""

    most_ns: int = MOST_HOLD_NS
    ns: int = LEAST_HOLD_NS
    waits: bool = False
    """Whether calls wait for the GPU, so that their times include the host's."""
    _before: tuple[int, float] | None = None
    _followed: int = 0

    def learn(self, queued_ns: Sequence[float]) -> None:
        """Adapt the hold to the times that the calls of a window took to queue."""
        if self.waits:
            return
        typical = median(queued_ns) if queued_ns else 0.0
        held, queued = self._before or (self.ns, typical)
        longer = self.ns - held
        follows = longer > LEAST_HOLD_NS and typical - queued > 0.5 * longer
        self._followed = self._followed + 1 if follows or typical >= MOST_HOLD_NS else 0
        if self._followed == 2:
            self.waits, self.ns = True, LEAST_HOLD_NS
            return
        self._before = self.ns, typical
        self.ns = max(LEAST_HOLD_NS, min(self.most_ns, int(2 * typical)))
