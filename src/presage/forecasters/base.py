"""Forecaster: the small base class. What is asked, what is known, and what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from presage.core.forecast import Forecast
from presage.kernels.hardware import Hardware
from presage.kernels.kernel import Kernel
from presage.kernels.report import StaticReport
from presage.problems.base import Case, Problem


@dataclass(frozen=True)
class Candidate:
    """A kernel to forecast, and what compiling it told, where it was compiled: a report per case, in their order."""

    kernel: Kernel
    reports: Sequence[StaticReport] = ()


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
    """The GPU; None for this computer's CPU."""
    neighbours: Sequence[Measured] = ()
    """What a search has measured so far, the most telling first."""

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.problem.timed["gpu" if self.hardware else "cpu"]


@dataclass(frozen=True)
class Prediction:
    """A forecast, or None where the forecaster has none to give; the notes say what a person should know of it."""

    forecast: Forecast | None
    notes: tuple[str, ...] = ()


class Forecaster(ABC):
    """Makes forecasts. Its name on the command line is its file's."""

    @abstractmethod
    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        """One prediction per candidate, in their order. What goes wrong with one is a note on it, not an exception."""

    def close(self) -> None:  # noqa: B027  most forecasters keep nothing
        """Let go of what is kept between calls."""
