"""Forecaster: the small base class. What is asked, what is known, and what comes back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from presage.core.forecast import Forecast
from presage.core.shown import Shown
from presage.devices.rehearsal import Rehearsal
from presage.kernels.kernel import Kernel
from presage.llm.cost import Allowance, Cost
from presage.problems.base import Case, Problem
from presage.static.hardware import Hardware
from presage.static.report import StaticReport


@dataclass(frozen=True)
class Candidate:
    """A kernel to forecast, and what compiling it told, where it was compiled: a report per case, in their order."""

    kernel: Kernel
    reports: Sequence[StaticReport] = ()
    rehearsal: Rehearsal | None = field(default=None, kw_only=True)
    """What became of it on the CPU, where it was tried there."""


@dataclass(frozen=True)
class Measured(Candidate):
    """A kernel that was measured: its times where it worked, and else how it failed."""

    times_ns: Mapping[str, float] = field(default_factory=dict)
    """The median of each timed case, by the case's name."""
    status: str = "ok"


@dataclass(frozen=True)
class Task:
    """Where and against what kernels are forecast: S = the anchor's time / the candidate's."""

    problem: Problem
    anchor: Measured
    hardware: Hardware | None = None
    """The GPU; None for a CPU, and for a GPU that nothing is known of."""
    neighbours: Sequence[Measured] = ()
    """What a search has measured so far, the most telling first."""
    kind: str = ""
    """`cpu` or `gpu`; needed only for a GPU that nothing is known of."""

    pending: Sequence[Candidate] = ()
    """What is being measured at this moment, where a search has several devices."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or ("gpu" if self.hardware else "cpu"))

    @property
    def is_unknown_gpu(self) -> bool:
        return self.kind == "gpu" and self.hardware is None

    @property
    def cases(self) -> tuple[Case, ...]:
        timed = self.problem.timed
        return timed.get(self.kind) or next(iter(timed.values()))

    def log2_speedup(self, measured: Measured) -> float | None:
        """log2 of a measured kernel's speedup over the anchor, the mean over cases; None for one that failed."""
        times = [(time, measured.times_ns.get(case)) for case, time in self.anchor.times_ns.items()]
        logs = [math.log2(one / other) for one, other in times if other is not None]
        return sum(logs) / len(logs) if measured.status == "ok" and logs else None


@dataclass(frozen=True)
class Prediction(Shown):
    """A forecast, or None where the forecaster has none to give; the notes say what a person should know of it."""

    forecast: Forecast | None
    notes: tuple[str, ...] = ()
    why_broken: str = ""
    """Why the kernel cannot work, where compiling it has shown that; there is no forecast then."""


class Forecaster(ABC):
    """Makes forecasts. Its name on the command line is its entry point's."""

    at_once = 4
    """How many of its favourites may be decided on together: as many as it would choose anyway before it changed its
    mind. One that learns from nothing but the search does with each measurement."""
    sees_all = False
    """Whether it can look at a whole space, thousands of candidates, after each measurement, and name favourites."""
    seconds = math.inf
    """How long it may take over its next answer: a search says what is left of its time."""
    is_paid = False
    """Whether its answers cost tokens; it then asks for nothing that its allowance does not cover."""
    allowance: Allowance | None = None
    """What it may spend on its next answer: a search says what is left of its budget. None: as much as it takes."""

    @abstractmethod
    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        """One prediction per candidate, in their order. What goes wrong with one is a note on it, not an exception."""

    def favourites(self, task: Task, candidates: Mapping[str, Candidate], count: int) -> list[str]:
        """Of many candidates, by their kernels' hashes, those that are worth a forecast, the most promising first. A
        search asks for them where it `sees_all`."""
        return list(candidates)[:count]

    def is_sure(self, task: Task) -> bool:
        """Whether a search may stop on its word that nothing better is left: where recorded pools have shown that at
        most a share alpha of the searches that stopped so had left something better."""
        return False

    def spent(self) -> Cost:
        """What the last `forecast` has cost."""
        return Cost()

    def check_priced(self) -> None:  # noqa: B027  most cost nothing
        """Say what is missing, if anything, for a budget in dollars."""

    def memory(self) -> Any:
        """What it has learned since it was last asked for this, if it learns from more than it is told with each task:
        plain values, which a search keeps and gives to `remember`, in their order, where it goes on elsewhere."""
        return None

    def remember(self, memory: Any) -> None:  # noqa: B027
        """What `memory` gave."""

    def close(self) -> None:  # noqa: B027  most forecasters keep nothing
        """Let go of what is kept between calls."""
