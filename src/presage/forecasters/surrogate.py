"""The `surrogate` forecaster: learns only from the search's own measurements, on tunables, launch shape and, where they
exist, static reports. It is meant for one tuning space, where tens of measurements predict thousands of kernels."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices import recorded
from presage.devices.recording import Recording
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.forecasters.gaussian_process import Beliefs, Floats, Surface
from presage.kernels import expression
from presage.kernels.header import Value
from presage.kernels.kernel import Kernel
from presage.static.hardware import WARP

OPENING = 8
"""The number of kernels that `opening` chooses before forecasts take over."""
_LEVELS = (0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
_CDF = (0.0, *_LEVELS, 1.0)
_WIDE, _WIDE_FIRST = (
    Forecast.from_quantiles([0.05, 0.25, 0.5, 0.75, 0.95], [-4.0, -1.5, -0.5, 0.25, most], p_fail=0.1)
    for most in (1.5, 1.75)
)
"""The forecasts before anything is measured: most variants of a good kernel are slower than it. Kernels of the opening
get a slightly higher upper quantile."""
_GAP = 1e-6
_DIGITS = 9
_GROWN = 2
"""The encoding is made again when the pool has grown by more than this factor, or has values that were not seen."""
_MOST_OCTAVES = 64.0
_FEW, _MANY = 64, 512
"""The range of threads per block that most good kernels have."""


class SurrogateForecaster(Forecaster):
    """A Gaussian process, trained on the measurements of the search. It can start from times of the same kernels on
    other devices."""

    at_once = 1
    sees_all = True

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Forecaster]) -> SurrogateForecaster:
        """A forecaster that starts from the recordings of `surrogate:FILE,FILE`."""
        return cls([recorded.find(name) for name in text.split(",")] if text else ())

    def __init__(self, recordings: Sequence[Recording] = ()) -> None:
        """recordings: measurements of the same problem on other devices."""
        self._recordings = recordings
        self._elsewhere = cache(self._measured_elsewhere)
        self._space: _Space | None = None
        self._learnt = _Learnt()
        self._told: _Learnt | None = None
        """The part of `_learnt` that `memory` has already returned."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        if not candidates:
            return []
        space = self._at(task, {each.kernel.hash: each for each in candidates})
        if space.is_opening:
            first = set(self._learnt.opening)
            forecasts = [_WIDE_FIRST if each.kernel.hash in first else _WIDE for each in candidates]
            return [Prediction(each, ("little was measured yet: a wide forecast",)) for each in forecasts]
        return [
            Prediction(each)
            for each in _forecasts(space.beliefs, space.places(each.kernel.hash for each in candidates))
        ]

    def favourites(self, task: Task, candidates: Mapping[str, Candidate], count: int) -> list[str]:
        space = self._at(task, candidates)
        if space.is_opening:
            first = [hash for hash in self._learnt.opening if hash in candidates]
            return list(dict.fromkeys([*first, *itertools.islice(candidates, count)]))[:count]
        # Rounded, so that the order of the measurements, which differs after a restart, does not change the result.
        beliefs = space.beliefs_beside({each.kernel.hash: each for each in task.pending})
        gain = np.round(beliefs.expected_improvement()[space.places(candidates)], _DIGITS)
        hashes = list(candidates)
        return [hashes[index] for index in np.argsort(-gain, kind="stable")[:count].tolist()]

    def memory(self) -> Any:
        """The opening, the encoding and the last fit of the Gaussian process; only what is new since the last call."""
        told, self._told = self._told or _Learnt(), replace(self._learnt)
        return self._learnt.since(told) or None

    def remember(self, memory: Any) -> None:
        self._learnt.update(memory)
        self._told = replace(self._learnt)

    def _at(self, task: Task, candidates: Mapping[str, Candidate]) -> _Space:
        """The space of the search, with these candidates and all measurements of the task added."""
        known = {each.kernel.hash: each for each in _known(task, next(iter(candidates.values()), None))}
        space = self._space
        if space is None or not space.is_of(task, known):
            if space is not None:  # another search: what was learned from the previous one does not apply
                self._learnt, self._told = _Learnt(), None
            space = self._space = _Space(task, self._learnt, self._others)
        space.see(known)
        space.see(candidates)
        if not self._learnt.opening:
            self._learnt.opening = self._opening(task, list(candidates.values()))
            space.encode()
        space.tell(known)
        space.is_opening = len(task.neighbours) < OPENING
        return space

    def _opening(self, task: Task, candidates: Sequence[Candidate]) -> list[str]:
        kernels = [each.kernel for each in candidates]
        first = opening(kernels, OPENING, random.Random(0), self._others(task, candidates))
        return [kernels[index].hash for index in first]

    def _others(self, task: Task, pool: Sequence[Candidate]) -> Floats | None:
        """log2 times on the other devices, shape (pool, devices), NaN where unknown; None without recordings."""
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


def _known(task: Task, candidate: Candidate | None) -> list[Measured]:
    """The measured kernels. The anchor is included if it has the same family and tunables as the candidates."""
    anchor, like = task.anchor.kernel, candidate.kernel if candidate else None
    if like and anchor.values and (anchor.family, anchor.values.keys()) == (like.family, like.values.keys()):
        return [task.anchor, *task.neighbours]
    return list(task.neighbours)


@dataclass
class _Learnt:
    """State that a search cannot compute again from its measurements when it resumes in another process."""

    opening: list[str] = field(default_factory=list)
    """The kernels to measure first, by hash."""
    encoding: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    """Hashes of the measured kernels, in the order in which the process was told of them."""
    lengths: list[float] = field(default_factory=list)
    fitted: int = 0

    def since(self, told: _Learnt) -> dict[str, Any]:
        """What differs from `told`, as plain values."""
        new = {name: getattr(self, name) for name in ("opening", "encoding", "lengths", "fitted")}
        changed = {name: value for name, value in new.items() if value != getattr(told, name)}
        order = self.order[len(told.order) :]
        return changed | ({"order": order} if order else {})

    def update(self, new: Mapping[str, Any]) -> None:
        for name, value in new.items():
            setattr(self, name, [*self.order, *value] if name == "order" else value)


class _Space:
    """The kernels that a search has seen, as points of one surface. The surface is told of each measurement once."""

    def __init__(
        self, task: Task, learnt: _Learnt, others: Callable[[Task, Sequence[Candidate]], Floats | None]
    ) -> None:
        self._task, self._learnt, self._elsewhere = task, learnt, others
        self._pool: list[Candidate] = []
        self._places: dict[str, int] = {}
        self._encoding = Encoding.from_json(learnt.encoding) if learnt.encoding else None
        self._encoded = 0
        """The size of the pool when the encoding was made."""
        self._is_outgrown = False
        """Whether the encoding must be made again. This happens only when a new measurement arrives."""
        self._surface: Surface | None = None
        self._known: dict[str, float | None] = {}
        self._beliefs: Beliefs | None = None
        self.is_opening = True
        """Whether fewer than `OPENING` kernels were measured, which is too few for forecasts."""

    def is_of(self, task: Task, known: Mapping[str, Measured]) -> bool:
        """Whether this is the space of the task, and `known` holds every measurement that this space was told of."""
        mine, its = self._task.anchor, task.anchor
        is_same = (self._task.problem.name, mine.kernel.hash, mine.times_ns) == (
            task.problem.name, its.kernel.hash, its.times_ns,
        )  # fmt: skip
        return is_same and self._known.keys() <= known.keys()

    def places(self, hashes: Iterable[str]) -> list[int]:
        return list(map(self._places.__getitem__, hashes))

    def see(self, candidates: Mapping[str, Candidate]) -> None:
        """Add the candidates that are new to the pool."""
        if candidates.keys() <= self._places.keys():
            return
        new = {hash: each for hash, each in candidates.items() if hash not in self._places}
        added = list(new.values())
        self._pool += added
        self._places |= {hash: len(self._places) + index for index, hash in enumerate(new)}
        self._beliefs = None
        if self._encoding is None or self._surface is None:
            return
        self._is_outgrown |= len(self._pool) > _GROWN * self._encoded or not self._encoding.covers(added)
        if self._elsewhere(self._task, added[:1]) is None:
            self._surface.widen(self._encoding.points(added))
        else:
            self._surface = None

    def tell(self, known: Mapping[str, Measured]) -> None:
        """Tell the surface of the measurements that it does not know yet. An outgrown encoding is dropped first."""
        new = [hash for hash in dict.fromkeys([*self._learnt.order, *known]) if hash in known]
        new = [hash for hash in new if hash not in self._known]
        if not new:
            return
        if self._is_outgrown:
            self._encoding = self._surface = None
            self._learnt.lengths, self._learnt.fitted, self._is_outgrown = [], 0, False
        for hash in new:
            self._known[hash] = self._task.log2_speedup(known[hash])
            if self._surface:
                self._tell(hash)
        self._beliefs = None
        if len(self._known) > len(self._learnt.order):
            self._learnt.order = list(self._known)

    @property
    def beliefs(self) -> Beliefs:
        """The beliefs about the whole pool, computed once after each change."""
        if self._beliefs is None:
            learnt, surface = self._learnt, self._surface or self._made()
            self._beliefs = surface.beliefs()
            learnt.lengths, learnt.fitted = surface.lengths.tolist(), surface.fitted
        return self._beliefs

    def beliefs_beside(self, pending: Mapping[str, Candidate]) -> Beliefs:
        """The beliefs as if the pending kernels turned out as expected, so that kernels like them can wait."""
        self.see(pending)  # new to this pool if another process chose them before the run was resumed here
        places = self.places(hash for hash in pending if hash not in self._known)
        beliefs, surface = self.beliefs, self._surface
        return surface.narrowed(beliefs, places) if places and surface else beliefs

    def encode(self) -> Encoding:
        """The encoding of kernels as points. It is made from the current pool if there is none yet."""
        if self._encoding is None:
            self._encoding, self._encoded = Encoding.of(self._pool), len(self._pool)
            self._learnt.encoding = self._encoding.to_json()
        self._encoded = self._encoded or len(self._pool)
        return self._encoding

    def _made(self) -> Surface:
        learnt, encoding = self._learnt, self.encode()
        lengths = np.array(learnt.lengths) if learnt.lengths else None
        others = self._elsewhere(self._task, self._pool)
        self._surface = Surface(encoding.points(self._pool), others, lengths, learnt.fitted)
        for hash in self._known:
            self._tell(hash)
        return self._surface

    def _tell(self, hash: str) -> None:
        assert self._surface is not None
        log2_speedup = self._known[hash]
        self._surface.tell(self._places[hash], math.inf if log2_speedup is None else -log2_speedup)


def _identity(hash: str, family: str, values: Mapping[str, Value]) -> Hashable:
    """A key that is equal for the same kernel on other devices: family and values, or the hash if there are no values.
    The text is not compared, because it may be in another language."""
    return (family, *sorted(values.items())) if values else hash


def _forecasts(beliefs: Beliefs, places: Sequence[int]) -> list[Forecast]:
    """The forecasts of these kernels of the pool. log2 S is the negated log2 time relative to the anchor. The tails are
    extended linearly to the probabilities 0 and 1."""
    values = -beliefs.of(places).quantiles([1 - level for level in _LEVELS])
    below = values[:, :1] - (values[:, 1:2] - values[:, :1]) * _LEVELS[0] / (_LEVELS[1] - _LEVELS[0])
    above = values[:, -1:] + (values[:, -1:] - values[:, -2:-1]) * _LEVELS[0] / (_LEVELS[1] - _LEVELS[0])
    knots = np.clip(np.hstack([below, values, above]), -_MOST_OCTAVES, _MOST_OCTAVES)
    ramp = _GAP * np.arange(knots.shape[1])
    knots = np.round(np.maximum.accumulate(knots - ramp, axis=1) + ramp, _DIGITS)
    p_fail = np.round(beliefs.p_fail[places], _DIGITS)
    return [Forecast(tuple(row), _CDF, fails) for row, fails in zip(knots.tolist(), p_fail.tolist(), strict=True)]


# -- the opening -------------------------------------------------------------------------------------------------------


def opening(kernels: Sequence[Kernel], count: int, rng: random.Random, elsewhere: Floats | None = None) -> list[int]:
    """The indices of the kernels to measure before anything is known: first those that an experienced person would try
    (64 to 512 threads in whole warps, powers of two), then any with that many threads, then the rest. elsewhere: log2
    times on other devices, shape (kernels, devices); every second choice is then the fastest of one device, in turn."""
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
    """Whether every size that varies in the space is a power of two in this kernel."""
    values = [kernel.values.get(name) for name in varied]
    numbers = [value for value in values if isinstance(value, int) and value > 0]
    return all(number & (number - 1) == 0 for number in numbers)


def _threads(kernel: Kernel) -> int | None:
    """The threads of a block, from the header's launch or from tunable names of Kernel Tuner and Triton; else None."""
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
    """How kernels become points: the columns that distinguish the kernels of a pool, with their centre and scale."""

    labels: tuple[str, ...]
    centre: Floats
    scale: Floats
    levels: Mapping[str, tuple[Value, ...]]
    """The values of each tunable in the pool. They decide whether it is encoded as a size or as a choice."""

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
        # Rounded, so that the result does not depend on the order of the pool.
        centre, scale = np.nanmean(chosen, axis=1), np.nanstd(chosen, axis=1)
        return cls(tuple(labels), np.asarray(centre).round(_DIGITS), np.asarray(scale).round(_DIGITS), levels)

    def to_json(self) -> dict[str, Any]:
        numbers = {"centre": self.centre.tolist(), "scale": self.scale.tolist()}
        return {"labels": list(self.labels), **numbers, "levels": {k: list(v) for k, v in self.levels.items()}}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Encoding:
        levels = {name: tuple(values) for name, values in kept["levels"].items()}
        return cls(tuple(kept["labels"]), np.array(kept["centre"]), np.array(kept["scale"]), levels)

    def covers(self, pool: Sequence[Candidate]) -> bool:
        """Whether all tunables of these kernels have values that the encoding was made from."""
        return all(value in self.levels.get(n, ()) for each in pool for n, value in each.kernel.values.items())

    def points(self, pool: Sequence[Candidate]) -> Floats:
        """Standardised points, shape (pool, labels). Values that are unknown or do not apply are 0, the centre."""
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
    """The unscaled columns: sizes and products of sizes in octaves, the odd part of each, and one column for each level
    of a choice. Hardware is organised in powers of two, so the odd part of a size says much about how well it fits."""
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
    """Products of sizes whose names share a word, such as block_size_x and block_size_y, or block_size_x and
    tile_size_x."""
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
    """Columns from the static report of each kernel's first case, in octaves; empty if no kernel has a report."""
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
