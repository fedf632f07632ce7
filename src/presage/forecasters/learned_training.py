"""Trains the `learned` forecaster from recordings: the same recording gives the same files, byte for byte.

Everything that says how sure the trees are comes from operations that they had not seen: the train split is parted by
operation into folds, and each fold is answered by trees grown on the others.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.forecasters import features, learned_card
from presage.forecasters.base import Candidate, Measured, Task
from presage.forecasters.learned import (
    KINDS,
    MANY,
    PARTS,
    VERSION,
    Floats,
    Noise,
    case_floors,
    digest,
    likeness,
    matrix,
    residual,
)

FOLDS = 5
LEVELS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
_PARAMETERS: Mapping[str, Any] = {
    "learning_rate": 0.08,
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
TREES = 400
_SHARES = {"time": 1.0, "spread": 0.25, "fail": 0.4}
"""Of that many trees, how many each question gets."""
_OBJECTIVES = {"time": "regression", "spread": "regression", "fail": "binary"}
_SAMPLED = 60
"""Kernels of an operation that its share in fitting the noise is worked out from."""
_ANCHORS = 4
"""Anchors beside the seed kernel for which residuals are collected."""
_LEAST = 0.02
"""Octaves; two runs of the same kernel differ by about as much."""


@dataclass(frozen=True)
class Sample:
    """A kernel to learn from."""

    problem: str
    rows: tuple[features.Row, ...]
    """Its features at each case."""
    distances: tuple[float, ...]
    """Octaves above the roofline at each case; none where it failed."""
    seed: bool
    """Whether it is its operation's seed kernel."""

    @property
    def distance(self) -> float:
        return sum(self.distances) / len(self.distances)


def train(
    recordings: Sequence[Recording], folder: Path, say: Callable[[str], None] = print, trees: int = TREES
) -> None:
    """Train every model that the recordings have kernels for, and put them into a folder."""
    made = 0
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        chosen = [r for r in recordings if (r.facts["kind"] == "cpu") == (kind == "cpu")]
        samples = [sample for recording in chosen for sample in read(recording, kind, "train")]
        if not samples:
            continue
        say(f"{kind}: learning from {len(samples):,} kernels of {len({s.problem for s in samples})} operations")
        _write(folder, kind, *_learn(samples, say, trees), [recording.name for recording in chosen])
        made += 1
    if made:
        learned_card.write(folder)
    else:
        raise PresageError("these recordings have no kernels in their train split; 'presage corpus collect' makes some")


def read(recording: Recording, kind: str, split: str) -> Iterator[Sample]:
    """The kernels of one split, as this kind of model sees them."""
    device = RecordedDevice(recording)
    for problem in recording.counts:
        rows = [row for row in device.rows(problem).values() if row.split == split]
        if not rows:
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
                yield Sample(problem, tuple(features.case_rows(task, candidate, kind == "compiled")), distances, seed)


def task_of(device: RecordedDevice, problem: str, anchor: Row) -> Task:
    """A task with this kernel as the anchor."""
    times = {case.case: case.median.value for case in anchor.cases}
    status = "ok" if anchor.status is Status.OK else str(anchor.status)
    measured = Measured(anchor.kernel, anchor.reports, times, status)
    return Task(device.problem(problem), measured, device.hardware)


# -- growing trees ----------------------------------------------------------------------------------------------------


def _learn(samples: Sequence[Sample], say: Callable[[str], None], trees: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts and the trees of one kind."""
    names = sorted({name for sample in samples for row in sample.rows for name in row})
    worked = [sample for sample in samples if sample.distances]
    unseen = _unseen(worked, names, trees)
    say(f"  unseen operations: residuals of {np.std(unseen.off):.3f} octaves")
    sizes = [math.log2(_LEAST + abs(off)) for off in unseen.off]
    usual = float(np.median(sizes))
    spread = _grow("spread", trees, names, worked, [size - usual for size in sizes])
    relative = np.exp2(_case_means(spread, worked, names))
    noise = _fit_noise(worked, unseen, relative)
    facts = {
        "version": VERSION,
        "names": names,
        "noise": vars(noise),
        "levels": list(LEVELS),
        "residuals": _standard_residuals(worked, unseen, relative, noise),
        "kernels": len(samples),
        "failed": len(samples) - len(worked),
        "operations": len({sample.problem for sample in samples}),
    }
    boosters = {
        "time": _grow("time", trees, names, worked),
        "spread": spread,
        "fail": _grow("fail", trees, names, samples, [float(not sample.distances) for sample in samples]),
    }
    facts["importance"] = _importance(boosters["time"])
    return facts, boosters


def _grow(
    part: str, trees: int, names: Sequence[str], samples: Sequence[Sample], targets: Sequence[float] | None = None
) -> Any:
    """Trees for one question. A kernel's cases are rows of their own; every operation weighs the same."""
    import lightgbm

    count: defaultdict[str, int] = defaultdict(int)
    for sample in samples:
        count[sample.problem] += len(sample.rows)
    rows, wanted, weights = [], [], []
    for number, sample in enumerate(samples):
        for case, row in enumerate(sample.rows):
            rows.append(row)
            wanted.append(sample.distances[case] if targets is None else targets[number])
            weights.append(1.0 / count[sample.problem])
    scale = len(weights) / sum(weights)
    data = lightgbm.Dataset(
        matrix(rows, names), np.array(wanted), weight=np.array(weights) * scale, feature_name=list(names),
        params={"max_bin": _PARAMETERS["max_bin"], "verbosity": -1},
    )  # fmt: skip
    threads = 1 if len(rows) < MANY else 2
    parameters = {**_PARAMETERS, "objective": _OBJECTIVES[part], "num_threads": threads}
    return lightgbm.train(parameters, data, round(trees * _SHARES[part]))


@dataclass(frozen=True)
class _Unseen:
    """What trees say of operations that they had not seen."""

    off: Floats
    """How far each kernel was from what was said of it, in octaves."""
    leaves: npt.NDArray[np.int32]


def _unseen(samples: Sequence[Sample], names: Sequence[str], trees: int) -> _Unseen:
    problems = sorted({sample.problem for sample in samples})
    order = np.random.default_rng(0).permutation(len(problems))
    fold = {problems[at]: number % FOLDS for number, at in enumerate(order)}
    off, leaves = np.zeros(len(samples)), np.zeros((len(samples), trees), dtype=np.int32)
    for number in range(min(FOLDS, len(problems))):
        seen = [sample for sample in samples if fold[sample.problem] != number]
        held = [i for i, sample in enumerate(samples) if fold[sample.problem] == number]
        if not seen or not held:
            continue
        booster = _grow("time", trees, names, seen)
        said = _case_means(booster, [samples[i] for i in held], names)
        off[held] = [samples[i].distance for i in held] - said
        found = booster.predict(matrix([samples[i].rows[0] for i in held], names), pred_leaf=True)
        leaves[held, : found.shape[1]] = found
    return _Unseen(off, leaves)


def _case_means(booster: Any, samples: Sequence[Sample], names: Sequence[str]) -> Floats:
    """What trees say of each kernel, the mean over its cases."""
    said = booster.predict(matrix([row for sample in samples for row in sample.rows], names))
    starts = np.cumsum([0, *(len(sample.rows) for sample in samples[:-1])])
    return np.asarray(np.add.reduceat(said, starts) / [len(sample.rows) for sample in samples])


def _importance(booster: Any) -> dict[str, float]:
    gains = booster.feature_importance("gain")
    total = max(1e-9, float(gains.sum()))
    ranked = sorted(zip(booster.feature_name(), gains, strict=True), key=lambda each: -each[1])
    return {name: round(float(gain) / total, 5) for name, gain in ranked if gain > 0}


# -- how sure it may be -----------------------------------------------------------------------------------------------


def _by_problem(samples: Sequence[Sample]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for i, sample in enumerate(samples):
        found[sample.problem].append(i)
    return found


def _fit_noise(samples: Sequence[Sample], unseen: _Unseen, relative: Floats) -> Noise:
    """The variances under which what was seen is likeliest, found on a grid."""
    rng = np.random.default_rng(0)
    groups = []
    for members in _by_problem(samples).values():
        chosen = rng.permutation(members)[:_SAMPLED]
        groups.append((likeness(unseen.leaves[chosen], unseen.leaves[chosen]), (unseen.off / relative)[chosen]))
    total = max(1e-6, float(np.var(unseen.off / relative)))
    shares = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8)
    grid = [Noise(total * a, total * b, total * c) for a, b, c in itertools.product(shares, repeat=3)]
    return min(grid, key=lambda noise: sum(_surprise(noise, *group) for group in groups))


def _surprise(noise: Noise, alike: Floats, off: Floats) -> float:
    """The negative log likelihood of one operation's residuals."""
    covariance = noise.operation + noise.alike * alike + noise.own * np.eye(len(off))
    factor = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(factor, off)
    return float(0.5 * solved @ solved + np.log(np.diag(factor)).sum())


def _standard_residuals(samples: Sequence[Sample], unseen: _Unseen, relative: Floats, noise: Noise) -> list[float]:
    """How far log2 S was from its forecast, in units of what the forecast called its scale: the quantiles, over all
    kernels against the seed and a few other anchors, every operation weighing the same."""
    rng = np.random.default_rng(1)
    found, weights = [], []
    for members in _by_problem(samples).values():
        seeds = [i for i in members if samples[i].seed]
        for anchor in (*seeds, *rng.choice(members, size=min(_ANCHORS, len(members)), replace=False)):
            others = [i for i in members if i != anchor]
            if not others:
                continue
            known, seen = unseen.leaves[[anchor]], unseen.off[[anchor]]
            shift, variance = residual(noise, unseen.leaves[others], known, seen)
            off = shift - unseen.off[others]
            found.append(off / (np.sqrt(variance) * relative[others]))
            weights.append(np.full(len(others), 1.0 / len(others)))
    return _weighted_quantiles(np.concatenate(found), np.concatenate(weights))


def _weighted_quantiles(values: Floats, weights: Floats) -> list[float]:
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return [float(each) for each in np.interp(LEVELS, reached, values[order])]


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: Path, kind: str, facts: Mapping[str, Any], boosters: Mapping[str, Any], sources: list[str]) -> None:
    texts = {part: _text(boosters[part]) for part in PARTS}
    for part, text in texts.items():
        (folder / f"{kind}_{part}.txt").write_text(text)
    more = {"recordings": sources, "digests": {part: digest(text) for part, text in texts.items()}}
    (folder / f"{kind}.json").write_text(json.dumps({**facts, **more}, indent=1) + "\n")


def _text(booster: Any) -> str:
    """The trees as text, without what does not matter for answers."""
    text: str = booster.model_to_string(num_iteration=-1, importance_type="gain")
    return text.split("\nfeature_importances:")[0] + "\n\npandas_categorical:null\n"
