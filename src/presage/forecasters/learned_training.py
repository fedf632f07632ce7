"""Train the `learned` forecaster from recordings. The same recording gives the same files, byte for byte.

All measures of uncertainty come from cross-validation: the train split is divided into folds, once by operation and
once by whole rooms, and each fold is predicted by trees grown on the other folds.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.errors import PresageError
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.forecasters import features, learned_card
from presage.forecasters.base import Candidate, Measured, Task
from presage.forecasters.learned import (
    FAMILIAR,
    KINDS,
    MANY,
    PARTS,
    VERSION,
    Floats,
    Leaves,
    Model,
    Noise,
    case_floors,
    familiarity,
    likeness,
    residual,
)
from presage.forecasters.trees import digest, matrix

FOLDS = 4
LEVELS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
TAILED = (0.0002, 0.001, 0.005, *LEVELS, 0.995, 0.999, 0.9998)
"""The levels with tails. Without them, forecasts give no probability to what one kernel in a hundred does."""
_PARAMETERS: Mapping[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 127,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 1,
    "verbosity": -1,
}
TREES = 600
_SHARES = {"time": 1.0, "spread": 0.15, "fail": 0.25}
"""The share of `TREES` that each model gets."""
_OBJECTIVES = {"time": "regression", "spread": "regression", "fail": "binary"}
_SLOW, _NEAR = 0.1, 0.5
"""Sample weights: what is added for every kernel, and the octaves above an operation's best that halve the rest."""
_SAMPLED = 60
"""The most kernels of each operation that are used to fit the noise."""
_REMEMBERED = 4
"""Kernels of each operation that are stored, to compute the familiarity of new kernels."""
_ANCHORS = 4
"""Random anchors, in addition to the seed kernel, for which residuals are collected."""
_TAIL = 0.05
"""The probability on either side of a 90 % interval."""
_LEAST = 0.02
"""Octaves by which two runs of the same kernel differ. Added to residuals before their logarithm is taken."""


@dataclass(frozen=True)
class Example:
    """A kernel of the training data."""

    problem: str
    room: str
    rows: tuple[features.Row, ...]
    """The features for each case."""
    distances: tuple[float, ...]
    """Octaves above the roofline for each case; empty if the kernel failed."""
    seed: bool
    """Whether this is the seed kernel of its operation."""

    @property
    def distance(self) -> float:
        return sum(self.distances) / len(self.distances)

    def with_familiarity(self, familiar: float) -> Example:
        return replace(self, rows=tuple({**row, FAMILIAR: familiar} for row in self.rows))


def train(
    recordings: Sequence[Recording], folder: Path, say: Callable[[str], None] = print, trees: int = TREES
) -> None:
    """Train a model of every kind that the recordings have kernels of, and write them to a folder."""
    made = 0
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        samples, held = (read_all(recordings, kind, split) for split in ("train", "validation"))
        if samples:
            train_kind(kind, samples, held, folder, [each.name for each in of_kind(recordings, kind)], say, trees)
            made += 1
    if made:
        learned_card.write(folder)
    else:
        raise PresageError("these recordings have no kernels in their train split; 'presage corpus collect' makes some")


def train_kind(
    kind: str,
    samples: Sequence[Example],
    held: Sequence[Example],
    folder: Path,
    sources: list[str],
    say: Callable[[str], None] = print,
    trees: int = TREES,
) -> None:
    """Train the model of one kind on samples, widen its intervals until they cover the held-out samples, and write it
    to a folder."""
    say(f"{kind}: learning from {len(samples):,} kernels of {len({s.problem for s in samples})} operations")
    facts, boosters = _learn(samples, say, trees)
    stretch = _stretch(Model(kind, facts, boosters), [sample for sample in held if sample.distances])
    say(f"  validation: intervals are stretched by {stretch:.3f}")
    facts["residuals"] = [stretch * each for each in facts["residuals"]]
    _write(folder, kind, facts, boosters, sources)


def of_kind(recordings: Sequence[Recording], kind: str) -> list[Recording]:
    """The recordings with kernels of a kind."""
    return [each for each in recordings if (each.facts["kind"] == "cpu") == (kind == "cpu")]


def read_all(recordings: Sequence[Recording], kind: str, split: str) -> list[Example]:
    return [sample for recording in of_kind(recordings, kind) for sample in read(recording, kind, split)]


def read(recording: Recording, kind: str, split: str) -> Iterator[Example]:
    """The kernels of one split as examples for this kind of model."""
    device = RecordedDevice(recording)
    for problem, found in device.each(list(recording.counts)):
        # What does not compile is told by the compiler, which may have lacked a header where the others were measured.
        rows = [row for row in found.values() if row.split == split and row.status is not Status.COMPILE_ERROR]
        if not rows or device.problem(problem).is_foreign:
            continue
        task = task_of(device, problem, rows[0])
        floors = case_floors(task)
        for row in rows:
            if row.cases and [case.case for case in row.cases] != list(floors):
                raise PresageError(f"{recording.name} has other cases of {problem} than the catalogue; record it again")
            if kind != "compiled" or row.reports:
                candidate = Candidate(row.kernel, row.reports if kind == "compiled" else ())
                distances = tuple(math.log2(case.median.value / floors[case.case]) for case in row.cases)
                seed = row.hash == row.anchor
                rows_of_cases = tuple(features.case_rows(task, candidate, kind == "compiled"))
                yield Example(problem, row.room, rows_of_cases, distances, seed)


def task_of(device: RecordedDevice, problem: str, anchor: Row) -> Task:
    """A task with this kernel as the anchor."""
    times = {case.case: case.median.value for case in anchor.cases}
    status = "ok" if anchor.status is Status.OK else str(anchor.status)
    measured = Measured(anchor.kernel, anchor.reports, times, status)
    return Task(device.problem(problem), measured, device.hardware, kind=device.kind)


# -- growing trees ----------------------------------------------------------------------------------------------------


def _learn(samples: Sequence[Example], say: Callable[[str], None], trees: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts and the boosters of one kind."""
    names = sorted({name for sample in samples for row in sample.rows for name in row})
    worked = [sample for sample in samples if sample.distances]
    several = [group for group in ("problem", "room") if len({getattr(sample, group) for sample in worked}) > 1]
    views = []
    for group in several or ("problem",):
        views.append(_unseen(worked, names, trees, group))
        say(f"  with each {group} unseen: residuals of {np.std(views[-1].off):.3f} octaves")
    sizes = [[math.log2(_LEAST + abs(off)) for off in view.off] for view in views]
    usual = float(np.median(sizes))
    told = [sample.with_familiarity(f) for view in views for sample, f in zip(worked, view.familiar, strict=True)]
    spread = _grow("spread", trees, [*names, FAMILIAR], told, [size - usual for view in sizes for size in view])
    relative = np.exp2(_case_means(spread, told, [*names, FAMILIAR])).reshape(len(views), -1)
    noise = _fit_noise(worked, views, relative)
    time = _grow("time", trees, names, worked)
    facts = {
        "version": VERSION,
        "names": names,
        "noise": vars(noise),
        "levels": list(TAILED),
        "residuals": _standard_residuals(worked, views, relative, noise),
        "seen": _packed(_leaves(time, _some_of_each(worked), names)),
        "kernels": len(samples),
        "failed": len(samples) - len(worked),
        "operations": len({sample.problem for sample in samples}),
    }
    boosters = {
        "time": time,
        "spread": spread,
        "fail": _grow("fail", trees, names, samples, [float(not sample.distances) for sample in samples]),
    }
    facts["importance"] = _importance(boosters["time"])
    return facts, boosters


def _grow(
    part: str, trees: int, names: Sequence[str], samples: Sequence[Example], targets: Sequence[float] | None = None
) -> Any:
    """A booster for one of `PARTS`. Each case of a kernel is a row; every operation has about the same total weight.

    targets: one per sample; by default, the distances from the roofline, in which fast kernels weigh more."""
    import lightgbm

    count: defaultdict[str, int] = defaultdict(int)
    for sample in samples:
        count[sample.problem] += len(sample.rows)
    matters = _how_much_each_matters(samples) if targets is None else [1.0] * len(samples)
    rows, wanted, weights = [], [], []
    for number, sample in enumerate(samples):
        for case, row in enumerate(sample.rows):
            rows.append(row)
            wanted.append(sample.distances[case] if targets is None else targets[number])
            weights.append(matters[number] / count[sample.problem])
    scale = len(weights) / sum(weights)
    data = lightgbm.Dataset(
        matrix(rows, names), np.array(wanted), weight=np.array(weights) * scale, feature_name=list(names),
        params={"max_bin": _PARAMETERS["max_bin"], "verbosity": -1},
    )  # fmt: skip
    threads = 1 if len(rows) < MANY else 2
    parameters = {**_PARAMETERS, "objective": _OBJECTIVES[part], "num_threads": threads}
    return lightgbm.train(parameters, data, round(trees * _SHARES[part]))


def _how_much_each_matters(samples: Sequence[Example]) -> list[float]:
    """Sample weights for the time trees: kernels near the best of their operation weigh most, as slow ones are not
    wanted."""
    best: dict[str, float] = defaultdict(lambda: math.inf)
    for sample in samples:
        best[sample.problem] = min(best[sample.problem], sample.distance)
    return [_SLOW + 2 ** ((best[sample.problem] - sample.distance) / _NEAR) for sample in samples]


@dataclass(frozen=True)
class _Unseen:
    """Cross-validated predictions: each kernel's operation, or its whole room, was not in the training data."""

    off: Floats
    """The residual of each kernel in octaves: measured less predicted."""
    leaves: Leaves
    familiar: Floats


def _unseen(samples: Sequence[Example], names: Sequence[str], trees: int, group: str) -> _Unseen:
    groups = [str(getattr(sample, group)) for sample in samples]
    fold = folds(groups)
    off, familiar = np.zeros(len(samples)), np.zeros(len(samples))
    leaves = np.zeros((len(samples), trees), dtype=np.uint8)
    for number in sorted(set(fold.values())):
        seen = [sample for sample, name in zip(samples, groups, strict=True) if fold[name] != number]
        held = [i for i, name in enumerate(groups) if fold[name] == number]
        if not seen or not held:
            continue
        booster = _grow("time", trees, names, seen)
        chosen = [samples[i] for i in held]
        off[held] = [sample.distance for sample in chosen] - _case_means(booster, chosen, names)
        found = _leaves(booster, chosen, names)
        leaves[held, : found.shape[1]] = found
        familiar[held] = familiarity(found, _leaves(booster, _some_of_each(seen), names))
    return _Unseen(off, leaves, familiar)


def folds(groups: Iterable[str]) -> dict[str, int]:
    """The fold of each group, drawn at random with a fixed seed.

    >>> sorted(folds("abcdef").values())
    [0, 0, 1, 1, 2, 3]
    """
    every = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(every))
    return {every[at]: number % FOLDS for number, at in enumerate(order)}


def _some_of_each(samples: Sequence[Example]) -> list[Example]:
    """A few kernels of each operation."""
    rng = np.random.default_rng(2)
    groups = _by_problem(samples).values()
    return [samples[i] for members in groups for i in sorted(rng.permutation(members)[:_REMEMBERED])]


def _leaves(booster: Any, samples: Sequence[Example], names: Sequence[str]) -> Leaves:
    """The leaf of each tree that each kernel's first case ends in."""
    found = booster.predict(matrix([sample.rows[0] for sample in samples], names), pred_leaf=True)
    return np.asarray(found, dtype=np.uint8).reshape(len(samples), -1)


def _packed(leaves: Leaves) -> dict[str, Any]:
    return {"shape": leaves.shape, "zlib": base64.b64encode(zlib.compress(leaves.tobytes(), 9)).decode()}


def _case_means(booster: Any, samples: Sequence[Example], names: Sequence[str]) -> Floats:
    """The prediction for each kernel, averaged over its cases."""
    said = booster.predict(matrix([row for sample in samples for row in sample.rows], names))
    starts = np.cumsum([0, *(len(sample.rows) for sample in samples[:-1])])
    return np.asarray(np.add.reduceat(said, starts) / [len(sample.rows) for sample in samples])


def _importance(booster: Any) -> dict[str, float]:
    gains = booster.feature_importance("gain")
    total = max(1e-9, float(gains.sum()))
    ranked = sorted(zip(booster.feature_name(), gains, strict=True), key=lambda each: -each[1])
    return {name: round(float(gain) / total, 5) for name, gain in ranked if gain > 0}


# -- how sure it may be -----------------------------------------------------------------------------------------------


def _by_problem(samples: Sequence[Example]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for i, sample in enumerate(samples):
        found[sample.problem].append(i)
    return found


def _fit_noise(samples: Sequence[Example], views: Sequence[_Unseen], relative: Floats) -> Noise:
    """The variances that maximise the likelihood of the residuals, by grid search."""
    rng = np.random.default_rng(0)
    groups = []
    for view, scale in zip(views, relative, strict=True):
        for members in _by_problem(samples).values():
            chosen = rng.permutation(members)[:_SAMPLED]
            groups.append((likeness(view.leaves[chosen], view.leaves[chosen]), (view.off / scale)[chosen]))
    total = max(1e-6, float(np.var(np.concatenate([view.off for view in views]) / relative.ravel())))
    shares = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8)
    grid = [Noise(total * a, total * b, total * c) for a, b, c in itertools.product(shares, repeat=3)]
    return min(grid, key=lambda noise: sum(_surprise(noise, *group) for group in groups))


def _surprise(noise: Noise, alike: Floats, off: Floats) -> float:
    """The negative log likelihood of one operation's residuals."""
    covariance = noise.operation + noise.alike * alike + noise.own * np.eye(len(off))
    factor = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(factor, off)
    return float(0.5 * solved @ solved + np.log(np.diag(factor)).sum())


def _standard_residuals(
    samples: Sequence[Example], views: Sequence[_Unseen], relative: Floats, noise: Noise
) -> list[float]:
    """Quantiles of the error of log2 S in units of the forecast's scale, over all kernels against the seed and a few
    other anchors. Every operation and anchor has the same weight."""
    found = [
        _off_by(samples, unseen.off, unseen.leaves, scale, noise) for unseen, scale in zip(views, relative, strict=True)
    ]
    values, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return weighted_quantiles(values, weights, TAILED)


def _off_by(
    samples: Sequence[Example], off: Floats, leaves: Leaves, scale: Floats, noise: Noise
) -> tuple[Floats, Floats]:
    """For every kernel against every anchor: the error of log2 S in units of the forecast's scale, and its weight."""
    rng = np.random.default_rng(1)
    found, weights = [np.zeros(0)], [np.zeros(0)]
    for members in _by_problem(samples).values():
        seeds = [i for i in members if samples[i].seed]
        for anchor in (*seeds, *rng.choice(members, size=min(_ANCHORS, len(members)), replace=False)):
            others = [i for i in members if i != anchor]
            if others:
                shift, variance = residual(noise, leaves[others], leaves[[anchor]], off[[anchor]] / scale[anchor])
                found.append((shift - off[others] / scale[others]) / np.sqrt(variance))
                weights.append(np.full(len(others), 1.0 / len(others)))
    return np.concatenate(found), np.concatenate(weights)


def _stretch(model: Model, samples: Sequence[Example]) -> float:
    """The factor by which intervals must be widened to have their nominal coverage on the validation split, which was
    not used for growing trees: the conformal factor of the 90 % interval, at least 1."""
    if not samples:
        return 1.0
    said = model.answer([sample.rows for sample in samples])
    off = np.array([sample.distance for sample in samples]) - said.mean
    values, weights = _off_by(samples, off, said.leaves, said.spread, model.noise)
    low, high = np.interp([_TAIL, 1 - _TAIL], model.facts["levels"], model.facts["residuals"])
    if not values.size or not low < 0 < high:
        return 1.0
    needed = np.where(values < 0, values / low, values / high)
    return max(1.0, *weighted_quantiles(needed, weights, [1 - 2 * _TAIL]))


def weighted_quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> list[float]:
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return [float(each) for each in np.interp(levels, reached, values[order])]


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: Path, kind: str, facts: Mapping[str, Any], boosters: Mapping[str, Any], sources: list[str]) -> None:
    texts = {part: trees_text(boosters[part]) for part in PARTS}
    for part, text in texts.items():
        (folder / f"{kind}_{part}.txt").write_text(text)
    more = {"recordings": sources, "digests": {part: digest(text) for part, text in texts.items()}}
    (folder / f"{kind}.json").write_text(json.dumps({**facts, **more}, indent=1) + "\n")


def trees_text(booster: Any) -> str:
    """The trees as text, without the parts that do not affect predictions."""
    text: str = booster.model_to_string(num_iteration=-1, importance_type="gain")
    return text.split("\nfeature_importances:")[0] + "\n\npandas_categorical:null\n"
