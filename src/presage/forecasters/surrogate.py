"""The `surrogate` forecaster: learns from nothing but the search's own measurements, on tunables, launch shape and,
where they exist, static reports. It is at home inside one tuning space, where tens tell of thousands."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices import recorded
from presage.devices.recording import Recording
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task
from presage.forecasters.gaussian_process import Beliefs, Floats, Surface
from presage.kernels import expression
from presage.kernels.header import Value
from presage.kernels.kernel import Kernel
from presage.static.hardware import WARP

OPENING = 8
"""How many kernels `opening` should choose before forecasts do."""
_LEVELS = (0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
_CDF = (0.0, *_LEVELS, 1.0)
_WIDE, _WIDE_FIRST = (
    Forecast.from_quantiles([0.05, 0.25, 0.5, 0.75, 0.95], [-4.0, -1.5, -0.5, 0.25, most], p_fail=0.1)
    for most in (1.5, 1.75)
)
"""Before anything is measured: most variants of a good kernel are slower than it. There is a little more hope for those
that are to be tried first."""
_GAP = 1e-6
_MOST_OCTAVES = 64.0
_FEW, _MANY = 64, 512
"""Threads per block that most good kernels have."""


class SurrogateForecaster(Forecaster):
    """A Gaussian process, trained on the measurements of the search. It can start from times of the same kernels on
    other devices."""

    at_once = 1

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Forecaster]) -> SurrogateForecaster:
        """One that starts from the recordings of `surrogate:FILE,FILE`."""
        return cls([recorded.find(name) for name in text.split(",")] if text else ())

    def __init__(self, recordings: Sequence[Recording] = ()) -> None:
        """recordings: of the same problem on other devices."""
        self._recordings = recordings
        self._elsewhere = cache(self._measured_elsewhere)
        self._learnt: _Learnt | None = None

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        if not candidates:
            return []
        left = OPENING - len(task.neighbours)
        if left == OPENING or (left > 0 and not self._recordings):
            kernels = [each.kernel for each in candidates]
            first = set(opening(kernels, left, random.Random(0), self._others(task, candidates)))
            forecasts = [_WIDE_FIRST if index in first else _WIDE for index in range(len(candidates))]
            return [Prediction(each, ("little was measured yet: a wide forecast",)) for each in forecasts]
        known = tuple((each.kernel.hash, task.log2_speedup(each)) for each in task.neighbours)
        pool = [*task.neighbours, *candidates]
        learnt = self._learnt if self._learnt and self._learnt.known == known else None
        encoding = learnt.encoding if learnt else Encoding.of(pool)
        surface = Surface(encoding.points(pool), self._others(task, pool), learnt.lengths if learnt else None)
        for index, (_, log2_speedup) in enumerate(known):
            surface.tell(index, math.inf if log2_speedup is None else -log2_speedup)
        forecasts = _forecasts(surface.beliefs(), len(known))
        self._learnt = _Learnt(known, encoding, surface.lengths)
        return [Prediction(each) for each in forecasts]

    def _others(self, task: Task, pool: Sequence[Candidate]) -> Floats | None:
        """log2 times on the other devices, shape (pool, devices)."""
        if not self._recordings:
            return None
        devices, kernels = self._elsewhere(task.problem.name), [each.kernel for each in pool]
        keys = [_identity(kernel.hash, kernel.family, kernel.values) for kernel in kernels]
        return np.array([[device.get(key, math.nan) for device in devices] for key in keys])

    def _measured_elsewhere(self, problem: str) -> list[dict[Hashable, float]]:
        found = []
        for recording in self._recordings:
            rows = recording.rows(problem, reports=False)
            if not rows:
                raise PresageError(f"{recording.path} has nothing of {problem}, so that surrogate cannot start from it")
            found.append({_identity(row.hash, row.family, row.values): math.log2(row.total_ns) for row in rows})
        return found


@dataclass(frozen=True)
class _Learnt:
    """What is kept between calls, and used again until something new is measured."""

    known: tuple[tuple[str, float | None], ...]
    encoding: Encoding
    lengths: Floats


def _identity(hash: str, family: str, values: Mapping[str, Value]) -> Hashable:
    """The same kernel on another device has the same family and values; its text may be another language's."""
    return (family, *sorted(values.items())) if values else hash


def _forecasts(beliefs: Beliefs, first: int) -> list[Forecast]:
    """Of the pool from `first` on. Times relative to the anchor's are speedups with the sign turned; both tails end
    where their slope takes them."""
    values = -beliefs.quantiles([1 - level for level in _LEVELS])[first:]
    below = values[:, :1] - (values[:, 1:2] - values[:, :1]) * _LEVELS[0] / (_LEVELS[1] - _LEVELS[0])
    above = values[:, -1:] + (values[:, -1:] - values[:, -2:-1]) * _LEVELS[0] / (_LEVELS[1] - _LEVELS[0])
    knots = np.clip(np.hstack([below, values, above]), -_MOST_OCTAVES, _MOST_OCTAVES)
    ramp = _GAP * np.arange(knots.shape[1])
    knots = np.maximum.accumulate(knots - ramp, axis=1) + ramp
    return [
        Forecast(tuple(row), _CDF, p_fail)
        for row, p_fail in zip(knots.tolist(), beliefs.p_fail[first:].tolist(), strict=True)
    ]


# -- the opening -------------------------------------------------------------------------------------------------------


def opening(kernels: Sequence[Kernel], count: int, rng: random.Random, elsewhere: Floats | None = None) -> list[int]:
    """Which kernels of a space to measure before anything is known, by their index: what an experienced person would
    try first (64 to 512 threads in whole warps, powers of two), then any with as many threads, then any at all. With
    log2 times on other devices, shape (kernels, devices), every other one is the fastest of one of them, in turn."""
    varied = [name for name, values in _levels(kernels).items() if len(values) > 1]
    order = rng.sample(range(len(kernels)), len(kernels))
    order.sort(key=lambda index: _strangeness(kernels[index], varied))
    if elsewhere is not None:
        known = np.where(np.isnan(elsewhere), math.inf, elsewhere)
        fastest = dict.fromkeys(np.argsort(known, axis=0, kind="stable").ravel().tolist())
        order = list(dict.fromkeys(index for pair in zip(fastest, order, strict=True) for index in pair))
    return order[:count]


def _strangeness(kernel: Kernel, varied: Sequence[str]) -> int:
    threads = _threads(kernel)
    if threads is not None and not (_FEW <= threads <= _MANY and threads % WARP == 0):
        return 2
    return 0 if _is_tidy(kernel, varied) else 1


def _is_tidy(kernel: Kernel, varied: Sequence[str]) -> bool:
    """Whether every size that the space varies is a power of two."""
    values = [kernel.values.get(name) for name in varied]
    numbers = [value for value in values if isinstance(value, int) and value > 0]
    return all(number & (number - 1) == 0 for number in numbers)


def _threads(kernel: Kernel) -> int | None:
    """How many threads a block has: as the header launches it, or by the names that Kernel Tuner and Triton give."""
    values = kernel.values
    if kernel.header.launches:
        sizes = kernel.header.launches[0].block
        if all(expression.names(size) <= values.keys() for size in sizes):
            return math.prod(int(expression.evaluate(size, values)) for size in sizes)
    if isinstance(warps := values.get("num_warps"), int):
        return WARP * warps
    blocks = [value for name, value in values.items() if name.startswith("block_size_") and isinstance(value, int)]
    return math.prod(blocks) if blocks else None


# -- kernels as points -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How kernels become points: which columns tell kernels of a pool apart, and how each is centred and scaled."""

    labels: tuple[str, ...]
    centre: Floats
    scale: Floats
    levels: Mapping[str, tuple[Value, ...]]
    """The values that each tunable had in the pool, which decide how it is read."""

    @classmethod
    def of(cls, pool: Sequence[Candidate]) -> Encoding:
        levels = _levels([each.kernel for each in pool])
        columns = _columns(pool, levels)
        labels, seen = [], set()
        for label, column in columns.items():
            shape = np.round(column - np.nanmin(column), 9).tobytes() if not np.all(np.isnan(column)) else b""
            if shape and np.nanmax(column) > np.nanmin(column) and shape not in seen:
                labels.append(label)
                seen.add(shape)
        chosen = np.array([columns[label] for label in labels]).reshape(len(labels), len(pool))
        return cls(tuple(labels), np.nanmean(chosen, axis=1), np.nanstd(chosen, axis=1), levels)

    def points(self, pool: Sequence[Candidate]) -> Floats:
        """Shape (pool, labels): standardised; what is unknown or does not apply lies in the middle."""
        columns = _columns(pool, self.levels)
        nothing = np.full(len(pool), np.nan)
        found = np.array([columns.get(label, nothing) for label in self.labels]).reshape(len(self.labels), len(pool))
        return np.nan_to_num((found.T - self.centre) / self.scale)


def _levels(kernels: Sequence[Kernel]) -> dict[str, tuple[Value, ...]]:
    found: dict[str, dict[Value, None]] = {}
    for kernel in kernels:
        for name, value in kernel.values.items():
            found.setdefault(name, {})[value] = None
    return {name: tuple(sorted(values, key=lambda v: (isinstance(v, str), v))) for name, values in found.items()}


def _columns(pool: Sequence[Candidate], levels: Mapping[str, tuple[Value, ...]]) -> dict[str, Floats]:
    """Sizes in octaves, the products of sizes, what is not a power of two in each, and choices as one column per level.
    Hardware is organised in powers of two, so that the odd part of a size says much of how well it fits."""
    columns: dict[str, Floats] = {}
    sizes: dict[str, Floats] = {}
    for name, values in levels.items():
        given = [each.kernel.values.get(name) for each in pool]
        if all(isinstance(value, int) and value > 0 for value in values):
            sizes[name] = np.array([math.nan if v is None else float(v) for v in given])
        else:
            for value in values if len(values) > 2 else values[1:]:
                columns[f"{name} is {value}"] = np.array([math.nan if v is None else float(v == value) for v in given])
    sizes |= _products(sizes)
    threads = [_threads(each.kernel) for each in pool]
    sizes["threads"] = np.array([math.nan if not t else float(t) for t in threads])
    columns |= {name: np.log2(size) for name, size in sizes.items()}
    columns |= {f"odd part of {name}": np.log2(_odd_part(size)) for name, size in sizes.items()}
    for name, words in (
        ("family", [each.kernel.family for each in pool]),
        ("language", [each.kernel.language for each in pool]),
    ):
        columns |= {f"{name} {word}": np.array([float(w == word) for w in words]) for word in dict.fromkeys(words)}
    return columns | _report_columns(pool)


def _products(sizes: Mapping[str, Floats]) -> dict[str, Floats]:
    """Of sizes whose names share a word, as in block_size_x and block_size_y, or block_size_x and tile_size_x."""
    sharing: dict[str, list[str]] = {}
    for name in sizes:
        for word in dict.fromkeys(name.lower().split("_")):
            sharing.setdefault(word, []).append(name)
    groups = {tuple(names) for names in sharing.values() if len(names) > 1}
    return {" * ".join(names): np.prod([sizes[name] for name in names], axis=0) for names in sorted(groups)}


def _odd_part(sizes: Floats) -> Floats:
    """The largest odd divisor.

    >>> _odd_part(np.array([1.0, 48.0, 64.0, 7.0])).tolist()
    [1.0, 3.0, 1.0, 7.0]
    """
    whole = np.nan_to_num(sizes, nan=1.0).astype(np.int64)
    return np.where(np.isnan(sizes), np.nan, whole / (whole & -whole))


def _report_columns(pool: Sequence[Candidate]) -> dict[str, Floats]:
    """What compiling told of each kernel's first case, in octaves; nothing where none was compiled."""
    if not any(each.reports and each.reports[0].launches for each in pool):
        return {}
    found: dict[str, list[float]] = {}
    for index, each in enumerate(pool):
        launches = each.reports[0].launches if each.reports else ()
        for launch in launches:
            told = {
                "registers": launch.registers,
                "shared": launch.shared_bytes,
                "spills": launch.spill_bytes,
                "code": launch.code_bytes,
                "resident threads": launch.occupancy * 1024,
                "waves": launch.waves or 0.0,
                "in loops": sum(launch.instructions_in_loops.values()),
                "block": math.prod(launch.block),
            }
            for name, value in told.items():
                column = found.setdefault(f"report {name}", [math.nan] * len(pool))
                column[index] = float(np.nanmax([column[index], math.log2(1 + value)]))
    return {name: np.array(column) for name, column in found.items()}
