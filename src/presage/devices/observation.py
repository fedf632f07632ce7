"""Observation: the windows of one timed case of one kernel, and which of their times are believed."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar

from presage.devices.child import Window

CHECKED_SHARE = 0.25
WHOLE_CALLS, MOST_WHOLE = 24, 128
"""In each of the first windows calls are checked, later in CHECKED_SHARE of them. Of the first windows, so many are
checked wholly that they have about WHOLE_CALLS calls. A wholly checked window has at most MOST_WHOLE checked calls: a
kernel that leaves out three calls in a hundred is then found out 98 times in a hundred."""
SURPRISES, SURPRISING_SHARE = 2, 0.1
"""A window on inputs of other styles follows SURPRISES of the first windows and SURPRISING_SHARE of all. It is not a
sample, so that all samples are of one kind of input."""
CLOCK_SLACK = 0.05
"""How far the child's clock may lag the parent's beyond the cost of messages, as a share of the window."""
LIE_SHARE, BLIND_LIE_SHARE = 0.25, 0.9
"""If more than this share of the windows hide time, that is not chance. BLIND_LIE_SHARE applies if the system does not
report how long threads wait for a processor. Fewer windows gain nothing, since they count at the parent's time."""

_secret = random.SystemRandom()

round_numbers = itertools.count()
"""Numbers every round uniquely, so that only samples taken side by side are compared as such."""


@dataclass
class Observation:
    """The observation of one timed case: a window in each round, with a pulse beside it, which is a window that calls
    nothing."""

    calls: int
    least_rounds: int
    rounds: list[int] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    pulses: list[Window] = field(default_factory=list)
    checked_wholly: frozenset[int] = frozenset()
    surprised: frozenset[int] = frozenset()
    """The windows that are followed by one with other inputs, which is not a sample."""
    doubted: ClassVar[bool] = True
    """Whether the worker's clock is compared with the parent's."""

    def __post_init__(self) -> None:
        self.checked_wholly = frozenset(_secret.sample(range(self.least_rounds), self.whole_windows))
        self.surprised = frozenset(_secret.sample(range(self.least_rounds), min(SURPRISES, self.least_rounds)))

    @property
    def whole(self) -> int:
        """The number of checked calls in a wholly checked window."""
        return min(self.calls, MOST_WHOLE)

    @property
    def whole_windows(self) -> int:
        """How many windows are checked wholly. If windows have few calls there are more, so that a kernel that leaves
        out one call in five is found out."""
        return min(self.least_rounds, math.ceil(WHOLE_CALLS / self.calls))

    def checks(self) -> int:
        """How many calls of the next window to check. The kernel cannot foresee it."""
        if len(self.windows) in self.checked_wholly:
            return self.whole
        return 1 if len(self.windows) < self.least_rounds or _secret.random() < CHECKED_SHARE else 0

    def surprises(self) -> bool:
        """Whether a window with other inputs follows. The kernel cannot foresee it."""
        return len(self.windows) - 1 in self.surprised or _secret.random() < SURPRISING_SHARE

    @property
    def unexplained_ns(self) -> float:
        """The most nanoseconds that may honestly pass on the parent's clock and not on the child's. A busy machine
        slows pulses, too."""
        return 3 * median(pulse.unseen_ns for pulse in self.pulses) + 30_000

    def talk(self, times: float) -> tuple[float, float]:
        """The cost of messages with a worker, in nanoseconds of the parent's clock and of CPU time, multiplied by
        `times`."""
        wall = median(pulse.unseen_ns for pulse in self.pulses)
        used = [pulse.cpu_ns - pulse.child_ns for pulse in self.pulses]
        cpu = median([ns for ns in used if ns > 0] or [wall])  # negative if another process had the worker's processor
        return times * wall + 30_000, times * cpu + 30_000

    def hidden(self) -> list[float]:
        """Nanoseconds of each window that passed outside of the time that the worker reported, beyond the cost of
        messages. This is the lesser of the parent's clock and CPU time, since a worker that only waits for its
        processor hides nothing."""
        wall, (_, cpu) = self.unexplained_ns, self.talk(3.0)
        return [min(w.unseen_ns - wall, w.cpu_ns - w.child_ns - cpu) for w in self.windows]

    def believed(self) -> list[int]:
        """The numbers of the windows in which both clocks agree. The others were interrupted, or are lies."""
        return [i for i, ns in enumerate(self.hidden()) if ns <= CLOCK_SLACK * self.windows[i].child_ns]

    def lies(self) -> list[float]:
        """Nanoseconds that a window hides and that a busy machine does not explain, for each such window. The thread
        that reads the clock cannot have used more CPU time than its clock says, however busy the machine is. Time of
        other threads is hidden if neither that thread nor ours waited so long for a processor, and the pulse beside the
        window was not late."""
        _, cpu = self.talk(3.0)
        found = []
        for w, hidden, calm in zip(self.windows, self.hidden(), self.calm(), strict=True):
            alone = w.main_ns if w.main_ns is not None else w.cpu_ns if w.threads == 1 else 0
            ns = max(alone - w.child_ns - cpu, hidden - w.waited_ns if calm else 0.0)
            if ns > CLOCK_SLACK * w.child_ns:
                found.append(ns)
        return found

    def calm(self) -> list[bool]:
        """For each window, whether the machine let the idle worker run without delay in the pulse beside it."""
        allowed = self.unexplained_ns
        return [pulse.unseen_ns - pulse.waited_ns <= allowed for pulse in self.pulses]

    @property
    def is_lied_about(self) -> bool:
        """Whether more windows hide time than chance explains. If the system does not report how long threads waited,
        nearly all windows must."""
        known = all(window.main_ns is not None for window in self.windows)
        return len(self.lies()) > (LIE_SHARE if known else BLIND_LIE_SHARE) * len(self.windows)

    @property
    def is_disturbed(self) -> bool:
        """Whether so many windows were interrupted that the others do not decide the median."""
        believed = len(self.believed())
        return believed < self.least_rounds or 2 * believed < len(self.windows)

    def samples(self) -> dict[int, float]:
        """Nanoseconds per call, by round. The child's clock is more exact, but no sample is less than the parent's
        clock and the CPU time make plausible. If the clocks do not agree, the parent's counts, so that a kernel cannot
        choose which of its windows are samples."""
        wall, cpu = self.talk(1.5)
        believed = set(self.believed())
        return {
            self.rounds[i]: max(w.child_ns, min(w.parent_ns - wall, w.cpu_ns - cpu if i in believed else math.inf))
            / w.calls
            for i, w in enumerate(self.windows)
        }

    def typical_ns(self) -> float:
        return median(self.samples().values())
