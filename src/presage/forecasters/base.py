"""The base class of forecasters, and its inputs and outputs: Candidate, Measured, Task and Prediction."""

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
    """A kernel to forecast, with a static report for each case, in order; no reports if it was not compiled."""

    kernel: Kernel
    reports: Sequence[StaticReport] = ()
    rehearsal: Rehearsal | None = field(default=None, kw_only=True)
    """The result of a trial on the CPU, if there was one."""
    unreadable: str = field(default="", kw_only=True)
    """The error in its header, if there is one. It was not compiled then."""


@dataclass(frozen=True)
class Measured(Candidate):
    """A kernel that was measured: its times if it worked, else the status that says how it failed."""

    times_ns: Mapping[str, float] = field(default_factory=dict)
    """The median of each timed case, by the case's name."""
    status: str = "ok"


@dataclass(frozen=True)
class Task:
    """The problem, the anchor and the hardware of a forecast: S = the anchor's time / the candidate's time."""

    problem: Problem
    anchor: Measured
    hardware: Hardware | None = None
    """The GPU; None for a CPU, and for a GPU that nothing is known about."""
    neighbours: Sequence[Measured] = ()
    """The kernels that a search has measured so far, the most informative first."""
    kind: str = ""
    """`cpu` or `gpu`; needed only for a GPU that nothing is known about."""

    pending: Sequence[Candidate] = ()
    """The kernels that are being measured at this moment, if a search has several devices."""

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
    """A forecast, or None if the forecaster has none. notes: remarks for the user."""

    forecast: Forecast | None
    notes: tuple[str, ...] = ()
    why_broken: str = ""
    """Why the kernel cannot work, if compiling it has shown that. There is no forecast then."""


class Forecaster(ABC):
    """Makes forecasts. Its name on the command line is its entry point's."""

    at_once = 4
    """How many favourites a search may decide on before it asks again: as many as a measurement in between would not
    change. 1 for a forecaster that learns only from the search, since each measurement changes its choice."""
    sees_all = False
    """Whether it can score a whole space of thousands of candidates after each measurement, and name favourites."""
    seconds = math.inf
    """Timeout of the next answer. A search sets it to the time that it has left."""
    is_paid = False
    """Whether its answers cost tokens. It then makes only requests that its allowance covers."""
    allowance: Allowance | None = None
    """What the next answer may cost. A search sets it to the rest of its budget. None: no limit."""

    @abstractmethod
    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        """One prediction per candidate, in order. A problem with one candidate is a note on it, not an exception."""

    def favourites(self, task: Task, candidates: Mapping[str, Candidate], count: int) -> list[str]:
        """The hashes of the candidates that are worth a forecast, the most promising first. candidates: by the hashes
        of their kernels. A search calls this only if the forecaster `sees_all`."""
        return list(candidates)[:count]

    def is_sure(self, task: Task) -> bool:
        """Whether a search may stop because this forecaster expects nothing better. True only where recorded pools have
        shown that at most a share alpha of the searches that stopped in this way missed a better kernel."""
        return False

    def spent(self) -> Cost:
        """The cost of the last `forecast`."""
        return Cost()

    def check_priced(self) -> None:  # noqa: B027  most cost nothing
        """Raise PresageError if a setting is missing that a budget in dollars needs."""

    def memory(self) -> Any:
        """What it has learned since the last call, as plain values; None if each task tells it everything. A search
        stores these values, and passes them to `remember` in the same order when it resumes in another process."""
        return None

    def remember(self, memory: Any) -> None:  # noqa: B027
        """Restore what `memory` returned."""

    def close(self) -> None:  # noqa: B027  most forecasters keep nothing
        """Release the resources that are kept between calls."""
