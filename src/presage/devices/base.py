"""Device, the base class of all devices, and Measurement, the result of measuring a kernel."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from presage.core.errors import PresageError
from presage.core.shown import Shown
from presage.core.statistics import Interval, Parts, median_of_processes, speedup_interval
from presage.devices.child import VerdictError
from presage.devices.examiner import ChildExaminer, ProblemError
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems import registry as problems
from presage.problems import static
from presage.problems.base import Case, Problem
from presage.problems.external import ExternalProblem
from presage.problems.kernel_file import KernelProblem
from presage.static.hardware import Hardware
from presage.static.report import StaticReport


@dataclass(frozen=True)
class CaseTiming:
    """One timed case of one kernel."""

    case: str
    samples_ns: tuple[float, ...]
    """Nanoseconds per call: one sample per window, or, on a GPU, where events time each call, one sample per call."""
    rounds: tuple[int, ...]
    """The number of the round in which each sample was taken. Kernels measured together share these numbers."""
    floor_ns: float
    """The roofline: the least nanoseconds that the case can take at the device's measured peaks."""
    calls: int
    """The number of calls of a window."""
    processes: tuple[int, ...] = ()
    """The number of samples from each process, in their order, if the case was timed in several processes."""
    wait_ns: float | None = None
    """For a module on a GPU: nanoseconds that a caller waits for a call, including the host code."""

    @property
    def parts(self) -> list[np.ndarray]:
        """The samples of each process."""
        if len(self.processes) < 2:
            return [np.asarray(self.samples_ns)]
        return np.split(np.asarray(self.samples_ns), np.cumsum(self.processes[:-1], dtype=int))

    @property
    def median(self) -> Interval:
        return median_of_processes(self.parts)

    def to_json(self) -> dict[str, Any]:
        value, low, high = self.median
        return {
            "case": self.case,
            "median_ns": value,
            "ci_low_ns": low,
            "ci_high_ns": high,
            "samples": len(self.samples_ns),
            "samples_ns": list(self.samples_ns),
            "processes": max(1, len(self.processes)),
            "calls": self.calls,
            "floor_ns": self.floor_ns,
            "roofline": self.floor_ns / value,
            "wait_ns": self.wait_ns,
        }


@dataclass(frozen=True)
class Measurement(Shown):
    """The result of measuring one kernel. There are timings if and only if the status is ok; otherwise there is a
    reason."""

    problem: str
    kernel: Kernel
    device: str
    status: Status
    reason: str = ""
    cases: tuple[CaseTiming, ...] = ()
    speedup: Interval | None = None
    """The speedup over the anchor that was measured in the same rounds, if there was one."""
    output: str = ""
    """The end of the output of the kernel or its compiler on stdout and stderr."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    believed: str | None = None
    """On a GPU, the process whose times these are. `replay`: a process in which no foreign host code has run. `worker`:
    the module's own process, checked by the parent's clock. None if the device makes no such distinction."""
    not_replayed: str = ""
    """Why a module was timed in its worker; empty if it was not."""

    def __post_init__(self) -> None:
        ok = self.status is Status.OK
        if ok != bool(self.cases) or ok == bool(self.reason):
            raise ValueError(f"a measurement with status {self.status} has {'no reason' if ok else 'no cases'}")

    def to_json(self) -> dict[str, Any]:
        kernel = {"hash": self.kernel.hash, "language": self.kernel.language, "name": self.kernel.name}
        return {
            "problem": self.problem,
            "kernel": kernel | ({"values": dict(self.kernel.values)} if self.kernel.values else {}),
            "device": self.device,
            "status": str(self.status),
            "reason": self.reason,
            "cases": [case.to_json() for case in self.cases],
            "speedup": self.speedup._asdict() if self.speedup else None,
            "output": self.output,
            "facts": dict(self.facts),
            "believed": self.believed,
            "not_replayed": self.not_replayed,
        }


@dataclass(frozen=True)
class Effort:
    """How much to measure, and when to stop."""

    precision: float = 0.01
    """Stop sampling a case when the 95 % interval of every median is within this fraction of it."""
    case_seconds: float = 3.0
    """Stop sampling a case after this many seconds even if the precision is not reached."""
    timeout: float = 60.0
    """The most seconds that one kernel may keep the device, checks included, before it is killed."""
    rounds: int = 8
    """The least number of windows that must be believed."""
    checks: int | None = None
    """For our own kernels: how many of the problem's checks to run. None: all of them, and some drawn at random."""
    processes: int = 4
    """The number of processes in which a case is timed whose time differs by process: on a GPU, if it takes less than
    100 us or waits for the host."""
    further_processes: int = 4
    """How many more processes to use while the interval over all of them is wider than `precision`."""

    @property
    def most_processes(self) -> int:
        return self.processes + (self.further_processes if self.processes > 1 else 0)

    def within(self, seconds: float) -> Effort:
        """This effort if `seconds` suffice for it; otherwise one with a single process and a shorter timeout."""
        if seconds >= self.processes * self.timeout:
            return self
        return replace(self, timeout=min(self.timeout, seconds), processes=1)


COMPILING = 60.0
"""The most seconds for compiling one kernel for its static report."""
_TOGETHER = 8
"""How many of our own kernels are measured side by side on shared inputs, if the device has no faster way."""

Progress = Callable[[str, float], None]
"""Called with a description of the current work and the share of the work that is done."""


class Device(ABC):
    """A place where kernels compile and run."""

    kind: str
    """Which of a problem's timed cases it runs: `cpu` or `gpu`."""
    languages: tuple[str, ...]
    bulk_effort = Effort(precision=0.05, case_seconds=0.3, timeout=30.0)
    """The effort for measuring thousands of our own kernels."""
    own_effort: Effort | None = None
    """The effort for one of our own kernels in a search; None if it is measured like any other."""
    notes: Sequence[str] = ()
    """Notes that a user should read before anything is measured."""
    at_once = 4
    """How many kernels a search should submit together, since compiling them in parallel saves time."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def model(self) -> str:
        """The name of the hardware, so that times of different hardware are not compared; empty if it has none."""
        return ""

    @property
    def hardware(self) -> Hardware | None:
        """The description of the GPU; None for a CPU or an unknown GPU."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Facts for users and data sets: the hardware, the toolchain, measured peaks, the sandbox's layers."""

    def problem(self, name: str) -> Problem:
        """The problem of this name, in a form whose kernels can be measured here."""
        return problems.get(name)

    def kernel(self, problem: Problem, spec: str) -> Kernel:
        """A kernel of the problem, by path or name."""
        return problems.find_kernel(problem, spec)

    def anchor(self, problem: Problem) -> Kernel | None:
        """The kernel that speedups are relative to by default, or None."""
        return problems.anchor(problem, self.kind)

    def reports(
        self, problem: Problem, kernels: Sequence[Kernel], seconds: float = COMPILING
    ) -> list[tuple[StaticReport, ...]]:
        """Compile each kernel without running it, and return its static reports, one per timed case; none for a kernel
        that cannot be compiled without running it. `seconds`: the most time for compiling one kernel. Does not use the
        device."""
        compiled = [kernel for kernel in kernels if static.is_reported(problem, kernel)]
        if self.hardware is None or not compiled:
            return [()] * len(kernels)
        found = static.reports(problem, compiled, problem.timed[self.kind], self.hardware, min(COMPILING, seconds))
        by_hash = {kernel.hash: tuple(each) for kernel, each in zip(compiled, found, strict=True)}
        return [by_hash.get(kernel.hash, ()) for kernel in kernels]

    def measure_each(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        """Measure kernels one by one, in any order. `foreign` kernels may be hostile; our own are trusted where that is
        faster. The next work is taken from `work` only when there is room for it."""
        together = 1 if foreign else _TOGETHER
        for _, pairs in itertools.groupby(work, key=lambda pair: id(pair[0])):
            while some := list(itertools.islice(pairs, together)):
                kernels = [kernel for _, kernel in some]
                yield from self.measure(some[0][0], kernels, effort, lambda doing, share: None)

    def resume(self, measured: Iterable[str]) -> None:  # noqa: B027  only what replays has to remember
        """A search starts or resumes, and has measured the kernels with these hashes so far. A recorded device
        continues from there."""

    def close(self) -> None:  # noqa: B027  most devices keep nothing
        """Release the processes and memory that are kept warm between measurements."""

    @abstractmethod
    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        """Measure kernels side by side: each round runs every one of them on the same inputs."""

    @contextmanager
    def posed(self, problem: Problem, seconds: float) -> Iterator[Problem]:
        """The problem in a form that can be measured here. A problem from elsewhere is described by its own code, in a
        child that lives as long as this context and may take `seconds` for each answer."""
        if isinstance(problem, KernelProblem):
            with self._reference_trial(problem, seconds) as trial:
                yield problem.answered_by(_Reference(problem, trial))
            return
        if not isinstance(problem, ExternalProblem):
            if self.kind not in problem.timed:
                raise PresageError(f"{problem.name} has no cases for a {self.kind} device; it is for a GPU")
            yield problem
            return
        with self._examiner_child() as child:
            try:
                examiner = ChildExaminer(problem, child, seconds)
                described = examiner.describe()
            except ProblemError:
                raise
            except PresageError as error:
                raise ProblemError(problem.name, str(error)) from error
            examiner.share(self._examiner_arena(described))
            yield described

    def _reference_trial(self, problem: KernelProblem, seconds: float) -> AbstractContextManager[Any]:
        """A trial of the problem's reference that is ready to answer. Each answer may take `seconds`."""
        raise PresageError(f"the {self.name} device cannot run {problem.path}")

    def _examiner_child(self) -> AbstractContextManager[Any]:
        """A worker for the user's own code."""
        raise PresageError(f"the {self.name} device cannot run problems from elsewhere")

    def _examiner_arena(self, problem: Problem) -> Any:
        """An arena that one call of each case fits into; None if workers have arenas of their own."""
        return None


class _Reference:
    """Computes the right answers of a problem that a kernel file defines. An error in it ends the measurement, since it
    is not a candidate's fault."""

    def __init__(self, problem: KernelProblem, trial: Any) -> None:
        self._path, self._trial, self._lock = problem.path, trial, threading.Lock()

    def __call__(self, case: Case, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Answers of several threads wait for each other, since the reference has a single child."""
        try:
            with self._lock:
                answer: tuple[Any, ...] = self._trial.answer(case, inputs)
        except VerdictError as fault:
            raise PresageError(f"{self._path}: its first configuration is {fault.status}: {fault.reason}") from fault
        return answer


def speedup(anchor: Measurement, candidate: Measurement) -> Interval | None:
    """Anchor time over candidate time, from the rounds in which both were measured, or from all rounds if there are
    none in common. None unless both are ok."""
    if anchor.status is not Status.OK or candidate.status is not Status.OK:
        return None
    pairs = list(zip(anchor.cases, candidate.cases, strict=True))
    paired = all(set(one.rounds) & set(other.rounds) for one, other in pairs)
    samples = [_paired(*pair) if paired else (pair[0].parts, pair[1].parts) for pair in pairs]
    return speedup_interval([a for a, _ in samples], [c for _, c in samples], paired=paired)


def _paired(one: CaseTiming, other: CaseTiming) -> tuple[Parts, Parts]:
    """The samples of common rounds, by process. Kernels measured together changed processes in the same rounds."""
    _, at_one, at_other = np.intersect1d(one.rounds, other.rounds, return_indices=True)
    process = np.repeat(np.arange(max(1, len(one.processes))), one.processes or len(one.rounds))[at_one]
    parts = [(at_one[process == each], at_other[process == each]) for each in np.unique(process)]
    a, c = np.asarray(one.samples_ns), np.asarray(other.samples_ns)
    return [a[i] for i, _ in parts], [c[j] for _, j in parts]
