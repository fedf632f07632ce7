"""Observation: what was seen of one timed case of one kernel, and which of its times are believed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar

from presage.devices.child import Window

CHECKED_SHARE = 0.25
WHOLE_CALLS, MOST_WHOLE = 24, 128
"""The share of the later windows of which calls are checked. Of the first rounds each is, and of them so many wholly
that they have about so many calls. Of a window with very many calls this many are: who leaves out three in a hundred
is found out 98 times in a hundred."""
SURPRISES, SURPRISING_SHARE = 2, 0.1
"""After so many of the first windows, and such a share of all, there is one on inputs of other styles. It is no sample,
so that times are those of one kind of input."""
CLOCK_SLACK = 0.05
"""How far the child's clock may lag the parent's, as a share of the window, beyond what talking to it costs."""
LIE_SHARE, BLIND_LIE_SHARE = 0.25, 0.9
"""The share of windows that hide time beyond which that is no chance, and where the system does not tell how long
threads wait for a processor. Fewer gain nothing: they count at the parent's time."""

_secret = random.SystemRandom()


@dataclass
class Observation:
    """What was seen of one timed case: a window each round, beside a pulse, which is a window that calls nothing."""

    calls: int
    least_rounds: int
    rounds: list[int] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    pulses: list[Window] = field(default_factory=list)
    checked_wholly: frozenset[int] = frozenset()
    surprised: frozenset[int] = frozenset()
    """After which windows there is one with other inputs, which is no sample."""
    doubted: ClassVar[bool] = True
    """Whether the worker's clock is held against the parent's."""

    def __post_init__(self) -> None:
        self.checked_wholly = frozenset(_secret.sample(range(self.least_rounds), self.whole_windows))
        self.surprised = frozenset(_secret.sample(range(self.least_rounds), min(SURPRISES, self.least_rounds)))

    @property
    def whole(self) -> int:
        """How many calls of a window are checked when it is checked wholly."""
        return min(self.calls, MOST_WHOLE)

    @property
    def whole_windows(self) -> int:
        """How many windows are checked wholly: of short ones more, so that leaving out one call in five shows."""
        return min(self.least_rounds, math.ceil(WHOLE_CALLS / self.calls))

    def checks(self) -> int:
        """How many calls of the next window to check, which the kernel cannot foresee."""
        if len(self.windows) in self.checked_wholly:
            return self.whole
        return 1 if len(self.windows) < self.least_rounds or _secret.random() < CHECKED_SHARE else 0

    def surprises(self) -> bool:
        """Whether a window with other inputs follows, which the kernel cannot foresee."""
        return len(self.windows) - 1 in self.surprised or _secret.random() < SURPRISING_SHARE

    @property
    def unexplained_ns(self) -> float:
        """The most that may pass on the parent's clock and not on the child's; a busy machine slows pulses too."""
        return 3 * median(pulse.unseen_ns for pulse in self.pulses) + 30_000

    def talk(self, times: float) -> tuple[float, float]:
        """So many times what talking to a worker takes, on the parent's clock and in processor time."""
        wall = median(pulse.unseen_ns for pulse in self.pulses)
        used = [pulse.cpu_ns - pulse.child_ns for pulse in self.pulses]
        cpu = median([ns for ns in used if ns > 0] or [wall])  # less than nothing: another process had its processor
        return times * wall + 30_000, times * cpu + 30_000

    def hidden(self) -> list[float]:
        """How much of each window passed outside the time that the worker reported, beyond what talking takes: on the
        parent's clock and in processor time, since a worker that only waits for its processor hides nothing."""
        wall, (_, cpu) = self.unexplained_ns, self.talk(3.0)
        return [min(w.unseen_ns - wall, w.cpu_ns - w.child_ns - cpu) for w in self.windows]

    def believed(self) -> list[int]:
        """The windows in which both clocks agree. Others were interrupted, or are lies."""
        return [i for i, ns in enumerate(self.hidden()) if ns <= CLOCK_SLACK * self.windows[i].child_ns]

    def lies(self) -> list[float]:
        """How much each window hides for which no busy machine is an explanation. The thread that reads the clock
        cannot have used its processor for longer than the clock says, however busy the machine is. What others did
        meanwhile is hidden if neither that thread nor ours waited so long, and the pulse beside it was not late."""
        _, cpu = self.talk(3.0)
        found = []
        for w, hidden, calm in zip(self.windows, self.hidden(), self.calm(), strict=True):
            alone = w.main_ns if w.main_ns is not None else w.cpu_ns if w.threads == 1 else 0
            ns = max(alone - w.child_ns - cpu, hidden - w.waited_ns if calm else 0.0)
            if ns > CLOCK_SLACK * w.child_ns:
                found.append(ns)
        return found

    def calm(self) -> list[bool]:
        """Beside which windows the machine did not keep a worker waiting that computes nothing."""
        allowed = self.unexplained_ns
        return [pulse.unseen_ns - pulse.waited_ns <= allowed for pulse in self.pulses]

    @property
    def is_lied_about(self) -> bool:
        """Whether more windows hide time than chance explains: where the system does not say how long threads waited,
        nearly all."""
        known = all(window.main_ns is not None for window in self.windows)
        return len(self.lies()) > (LIE_SHARE if known else BLIND_LIE_SHARE) * len(self.windows)

    @property
    def is_disturbed(self) -> bool:
        """Whether so many windows were interrupted that those that were not do not decide the median."""
        believed = len(self.believed())
        return believed < self.least_rounds or 2 * believed < len(self.windows)

    def samples(self) -> dict[int, float]:
        """Nanoseconds a call, by round. The child's clock is the finer one, but no sample is less than the parent's
        clock and the processor time used make plausible; and where they do not agree, the parent's counts, so that a
        kernel cannot choose which of its windows are samples."""
        wall, cpu = self.talk(1.5)
        believed = set(self.believed())
        return {
            self.rounds[i]: max(w.child_ns, min(w.parent_ns - wall, w.cpu_ns - cpu if i in believed else math.inf))
            / w.calls
            for i, w in enumerate(self.windows)
        }

    def typical_ns(self) -> float:
        return median(self.samples().values())
