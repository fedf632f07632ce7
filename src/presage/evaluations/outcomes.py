"""Forecasts of recorded kernels with their measurements: the arrays that every suite reads."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.core.scale import BINS, bin_of
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.forecasters.faults import why_broken
from presage.forecasters.uniform import NOTHING_KNOWN
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem
from presage.static.hardware import Hardware

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ALL = "all"
"""The split with every operation of a recording."""
OTHER_ANCHORS = 2
"""The number of measured kernels of an operation, drawn at random, that serve as anchors besides the seed kernel."""
FAILS = replace(NOTHING_KNOWN, p_fail=1.0)
"""The forecast for a kernel that compiling shows to be broken."""
_BASELINES = ("eager.py", "compiled.py")
"""PyTorch's own kernels. They are recorded for comparison, and are not forecast."""


@dataclass(frozen=True)
class Pool:
    """One operation and all its measured kernels."""

    problem: Problem
    hardware: Hardware | None
    kind: str
    kernels: tuple[Measured, ...]
    seed: str
    """The hash of the seed kernel; empty if no seed kernel works."""
    room: str = ""
    """The family of the operation."""

    @cached_property
    def log2_times(self) -> Floats:
        """The mean log2 time over the cases of each kernel; NaN for a kernel that failed."""
        return np.array(
            [np.mean(np.log2(list(each.times_ns.values()))) if each.times_ns else math.nan for each in self.kernels]
        )


@lru_cache(maxsize=2)
def pools(recording: Recording, split: str, problem: str | None = None) -> tuple[Pool, ...]:
    """The operations of a split, each with its kernels, in alphabetical order; or one operation, whatever its split."""
    device = RecordedDevice(recording)
    if problem is not None:
        name = device.problem(problem).name
        return (_pool(device, name, device.rows(name)),)
    columns = recording.columns("problem", "split")
    chosen = sorted({p for p, s in zip(*columns.values(), strict=True) if split in (s, ALL)})
    if not chosen:
        known = ", ".join(sorted({str(s) for s in columns["split"] if s} | {ALL}))
        raise PresageError(f"{recording.name} has no split '{split}'; it has: {known}")
    return tuple(_pool(device, name, rows) for name, rows in device.each(chosen))


def _pool(device: RecordedDevice, name: str, found: Mapping[str, Row]) -> Pool:
    """The operation with the kernels that compiled where they were measured. The compiler tells of the others, for
    reasons that may be the machine's, such as a header that it lacks."""
    rows = [row for row in found.values() if row.family not in _BASELINES and row.status is not Status.COMPILE_ERROR]
    working = {row.hash for row in rows if row.status is Status.OK}
    seeds = {row.anchor for row in rows} & working
    measured = tuple(map(_measured, rows))
    return Pool(
        device.problem(name),
        device.hardware,
        device.kind,
        measured,
        min(seeds, default=""),
        rows[0].room if rows else "",
    )


def _measured(row: Row) -> Measured:
    times = {case.case: case.median.value for case in row.cases}
    return Measured(row.kernel, row.reports, times, str(row.status))


@dataclass(frozen=True)
class Question:
    """One operation, one anchor, and every kernel that is forecast against this anchor."""

    task: Task
    pool: Pool
    seeded: bool
    """Whether the operation is ranked against this anchor: it is the seed, or else the first one drawn."""
    asked: npt.NDArray[np.intp]
    """The indices in the pool of the candidates."""
    truth: Floats
    """The measured log2 S over the anchor, per candidate; NaN for a candidate that failed."""

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates, without their measurements."""
        return [Candidate(self.pool.kernels[i].kernel, self.pool.kernels[i].reports) for i in self.asked]


def questions(pool: Pool, seed: int, neighbours: int = 0) -> Iterator[Question]:
    """The questions about a pool: first with the seed kernel as anchor, then with random others. `neighbours` kernels,
    drawn at random, are shown to the forecaster as measured, and are not scored."""
    rng = random.Random(f"{seed}/{pool.problem.name}")
    working = [i for i in range(len(pool.kernels)) if not math.isnan(pool.log2_times[i])]
    first = [i for i in working if pool.kernels[i].kernel.hash == pool.seed]
    others = [i for i in working if i not in first]
    anchors = [*first, *rng.sample(others, min(len(others), OTHER_ANCHORS))]
    drawable = [i for i in range(len(pool.kernels)) if i not in anchors]
    shown = rng.sample(drawable, min(neighbours, len(drawable)))
    for number, anchor in enumerate(anchors):
        asked = np.array([i for i in range(len(pool.kernels)) if i != anchor and i not in shown], dtype=np.intp)
        known = [pool.kernels[i] for i in shown]
        task = Task(pool.problem, pool.kernels[anchor], pool.hardware, known, pool.kind)
        yield Question(task, pool, number == 0, asked, pool.log2_times[anchor] - pool.log2_times[asked])


def ask(forecaster: Forecaster, task: Task, candidates: Sequence[Candidate]) -> list[Forecast | None]:
    """A forecast for each candidate, or None. A candidate without a forecast that compiling shows to be broken gets
    `FAILS`. If the forecaster crashes, the candidates are asked again in halves, so that only the one that causes the
    crash gets None. A PresageError, which the caller must fix (such as missing settings), is raised."""
    if not candidates:
        return []
    try:
        predictions: Sequence[Prediction] = forecaster.forecast(task, candidates)
        if len(predictions) != len(candidates):
            raise ValueError(f"{len(predictions)} predictions for {len(candidates)} candidates")
        return [
            prediction.forecast or (FAILS if why_broken(candidate.reports) else None)
            for prediction, candidate in zip(predictions, candidates, strict=True)
        ]
    except PresageError:
        raise
    except Exception:
        if len(candidates) == 1:
            return [None]
        half = len(candidates) // 2
        return [*ask(forecaster, task, candidates[:half]), *ask(forecaster, task, candidates[half:])]


@dataclass
class Outcomes:
    """One row per requested forecast, n in all. A missing forecast is NaN in all columns."""

    operation: npt.NDArray[np.intp]
    """The number of the operation (n,)."""
    seeded: Mask
    """Whether the operation is ranked against this row's anchor (n,). Each kernel has at most one such row."""
    truth: Floats
    """The measured log2 S (n,); NaN for a kernel that failed."""
    probabilities: Floats
    """The probability of each bin (n, BINS)."""
    mean: Floats
    low: Floats
    """The 5 % quantile of log2 S (n,); `high` is the 95 % quantile."""
    high: Floats
    p_fail: Floats
    language: npt.NDArray[np.str_]
    """The language of the kernel's source (n,)."""
    length: npt.NDArray[np.intp]
    """Characters of the kernel's source (n,)."""
    operations: tuple[str, ...] = field(default=())
    rooms: tuple[str, ...] = field(default=())
    """The family of each operation."""

    @property
    def ok(self) -> Mask:
        return ~np.isnan(self.truth)

    @property
    def missing(self) -> Mask:
        return np.isnan(self.mean)

    @property
    def confidence(self) -> Floats:
        """The probability of the likeliest bin (n,)."""
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def bins(self) -> npt.NDArray[np.intp]:
        """The true bin (n,). A kernel that failed has none; its value is that of S = 1."""
        return bin_of(np.exp2(np.where(self.ok, self.truth, 0.0)))

    @property
    def score(self) -> Floats:
        """The expected speedup (n,), by which candidates are ranked; a failure counts as 0."""
        return np.asarray((1 - self.p_fail) * np.exp2(self.mean))

    def where(self, chosen: Mask) -> Outcomes:
        arrays = {name: value[chosen] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return Outcomes(**arrays, operations=self.operations, rooms=self.rooms)


def collect(forecaster: Forecaster, among: Sequence[Pool], seed: int, neighbours: int = 0) -> Outcomes:
    """Ask a forecaster all questions of these pools: for each operation and anchor, all candidates at once."""
    found: list[tuple[int, bool, float, Forecast | None]] = []
    kernels: list[Kernel] = []
    for number, pool in enumerate(among):
        for question in questions(pool, seed, neighbours):
            if shown := [Candidate(each.kernel, each.reports) for each in question.task.neighbours]:
                ask(forecaster, replace(question.task, neighbours=()), shown)  # a search would have done so, too
            forecasts = ask(forecaster, question.task, question.candidates)
            truths = question.truth.tolist()
            kernels += [candidate.kernel for candidate in question.candidates]
            found += [(number, question.seeded, y, f) for y, f in zip(truths, forecasts, strict=True)]
    asked = [forecast for *_, forecast in found]
    return Outcomes(
        operation=np.array([row[0] for row in found], dtype=np.intp),
        seeded=np.array([row[1] for row in found], dtype=bool),
        truth=np.array([row[2] for row in found], dtype=np.float64),
        probabilities=np.array([f.bin_probabilities() if f else [math.nan] * BINS for f in asked]).reshape(-1, BINS),
        mean=np.array([f.mean() if f else math.nan for f in asked]),
        low=np.array([f.quantile(0.05) if f else math.nan for f in asked]),
        high=np.array([f.quantile(0.95) if f else math.nan for f in asked]),
        p_fail=np.array([f.p_fail if f else math.nan for f in asked]),
        language=np.array([kernel.language for kernel in kernels], dtype=np.str_),
        length=np.array([len(kernel.source) for kernel in kernels], dtype=np.intp),
        operations=tuple(pool.problem.name for pool in among),
        rooms=tuple(pool.room for pool in among),
    )
