"""Train the model of operators from recordings. The same recording gives the same files, byte for byte.

Uncertainty comes from cross-validation by problem and by operator. The trees are trained on calls of the train split
only; calls of the validation split give the factor by which spreads are widened.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.errors import PresageError
from presage.devices.operator_recording import TimedCall
from presage.forecasters.learned_training import LEVELS, trees_text, weighted_quantiles
from presage.forecasters.operator_model import KEY, MEASURED, PARTS, VERSION, Floats, KindModel, Known, with_operator
from presage.forecasters.trees import digest, matrix
from presage.problems import splits
from presage.static import operator_features
from presage.static.operator_features import KINDS, Row

FOLDS = 4
TREES = 400
_SHARES = {"time": 1.0, "warm": 0.3, "spread": 0.2}
"""The share of `TREES` that each of `PARTS` gets."""
_PARAMETERS: Mapping[str, Any] = {
    "objective": "huber",
    "alpha": 0.5,
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 3,
    "extra_trees": True,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 1,
    "verbosity": -1,
}
_MANY_OPERATORS = {"alpha": 1.0, "num_leaves": 63, "min_data_in_leaf": 2, "lambda_l2": 0.3}
"""For the time of the kind `other`, in which a hundred operators share the trees."""
_SIMPLE = {"objective": "regression", "num_leaves": 15, "min_data_in_leaf": 20}
"""For the parts `warm` and `spread`."""
_BINS = {"max_bin": 255, "min_data_in_bin": 1, "verbosity": -1}
_LEAST = 0.02
"""Octaves by which two measurements of a call differ. Added to residuals before their logarithm is taken."""
_FEW = 3
"""An operator with fewer calls counts as unknown."""
_CLIP = 3.0
_ENOUGH = 200
_TAIL = 0.05


@dataclass(frozen=True)
class Example:
    """A call of the training data."""

    operator: str
    kind: str
    group: str
    """Calls of one group stay in one fold: the problem, or the operator and its shapes for a call from a list."""
    origins: tuple[str, ...]
    row: Row
    distance: float
    """Octaves above the least time."""
    warm: float
    """Octaves by which a warm cache changes the time; negative if it is faster."""
    host_ns: float
    kernels: int | None


def examples(timed: Sequence[TimedCall], split: str) -> list[Example]:
    """The calls of one split as examples."""
    found = []
    for each in timed:
        if each.split != split:
            continue
        row, least = operator_features.features(each.call, each.hardware)
        operator = operator_features.family(each.call)
        problems = [splits.canonical(origin) for origin in each.origins if not splits.is_list(origin)]
        shapes = str([tensor.shape for tensor in each.call.tensors])
        found.append(
            Example(
                operator,
                operator_features.kind_of(each.call),
                problems[0] if problems else operator + shapes,
                each.origins,
                row,
                math.log2(each.cold_ns / least),
                math.log2(each.warm_ns / each.cold_ns),
                each.host_ns,
                each.kernels,
            )
        )
    return found


def train(timed: Sequence[TimedCall], folder: Path, say: Callable[[str], None] = print, trees: int = TREES) -> None:
    """Train on recorded calls, and write the model to a folder."""
    samples = examples(timed, splits.TRAIN)
    if not samples:
        raise PresageError("there are no calls in the train split; 'presage corpus operators' measures some")
    held = examples(timed, splits.VALIDATION)
    known, usual = _seen(samples)
    kinds: dict[str, dict[str, Any]] = {}
    boosters: dict[str, dict[str, Any]] = {}
    views: list[_Off] = []
    for kind in KINDS:
        own = [sample for sample in samples if sample.kind == kind]
        if own:
            say(f"{kind}: learning from {len(own):,} calls of {len({each.operator for each in own})} operators")
            kinds[kind], boosters[kind], off = _learn(own, trees, known, usual, say)
            views += off
            own_held = [sample for sample in held if sample.kind == kind]
            stretch = _stretch(KindModel(kinds[kind], boosters[kind]), own_held, known, usual)
            kinds[kind]["stretch"] = stretch
            say(f"  validation, {len(own_held)} calls: spreads are stretched by {stretch:.3f}")
    boosters = {kind: {part: trees_text(booster) for part, booster in own.items()} for kind, own in boosters.items()}
    shared, alike = _correlations([view for view in views if view.group == "group"])
    say(f"errors in one module correlate by {shared:.2f}, those of one operator by {alike:.2f}")
    standard = _standard([view for view in views if view.group == "group"])
    unseen = [view.off for view in views if view.group == "operator"]
    facts = {
        "version": VERSION,
        "calls": len(samples),
        "kinds": kinds,
        "operators": {name: asdict(each) for name, each in sorted(known.items()) if each.calls >= _FEW},
        "usual": asdict(usual),
        "unseen": float(np.sqrt(np.mean(np.concatenate(unseen) ** 2))) if unseen else 2.0,
        "shared": shared,
        "alike": alike,
        "levels": list(LEVELS),
        "residuals": weighted_quantiles(standard, np.ones(len(standard)), LEVELS),
    }
    _write(folder, facts, boosters, _measured(timed))


def _measured(timed: Sequence[TimedCall]) -> str:
    """The measured times of the calls of the train split, by GPU and hash, as JSON."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for each in timed:
        if each.split == splits.TRAIN:
            logs = [round(math.log2(ns), 3) for ns in (each.cold_ns, each.warm_ns)]
            found[each.hardware.name][each.call.hash[:KEY]] = logs
    return json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n"


def _seen(samples: Sequence[Example]) -> tuple[dict[str, Known], Known]:
    """The statistics of each operator, and their medians over operators."""
    by_operator: dict[str, list[Example]] = defaultdict(list)
    for sample in samples:
        by_operator[sample.operator].append(sample)
    known = {name: _known(some) for name, some in by_operator.items()}
    middle = {
        name: float(np.median([getattr(each, name) for each in known.values()]))
        for name in ("small", "large", "kernels", "host_ns")
    }
    return known, Known(0, **middle, least=(0.0, 0.0))


def _known(samples: Sequence[Example]) -> Known:
    return Known.of(
        [sample.distance for sample in samples],
        [sample.row["least_ns"] for sample in samples],
        [float(sample.kernels) for sample in samples if sample.kernels],
        float(np.median([sample.host_ns for sample in samples])),
    )


# -- growing trees ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Off:
    """Cross-validated errors of calls: their problem, or their operator, was not in the training data."""

    group: str
    samples: Sequence[Example]
    rows: Sequence[Row]
    off: Floats
    deviation: Floats


def _grow(kind: str, part: str, trees: int, rows: Sequence[Row], names: Sequence[str], wanted: Sequence[float]) -> Any:
    import lightgbm

    table = matrix(rows, names)
    data = lightgbm.Dataset(table, np.asarray(wanted), feature_name=list(names), params=_BINS)
    many = _MANY_OPERATORS if kind == "other" else {}
    parameters = {**_PARAMETERS, **(many if part == "time" else _SIMPLE)}
    return lightgbm.train(parameters, data, max(1, round(trees * _SHARES[part])))


def _told(samples: Sequence[Example], known: Mapping[str, Known], usual: Known) -> list[Row]:
    enough = {name: each for name, each in known.items() if each.calls >= _FEW}
    return [with_operator(sample.row, sample.operator, enough, usual) for sample in samples]


def _learn(
    samples: Sequence[Example], trees: int, known: Mapping[str, Known], usual: Known, say: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any], list[_Off]]:
    """The facts and the trees of one kind, and their cross-validated errors."""
    kind, rows = samples[0].kind, _told(samples, known, usual)
    names = sorted({name for row in rows for name in row})
    unseen = {group: _unseen(samples, names, trees, group) for group in ("group", "operator")}
    views = {group: found for group, found in unseen.items() if found is not None}
    told = [row for _, seen_as, _ in views.values() for row in seen_as]
    sizes = [math.log2(_LEAST + abs(each)) for _, _, off in views.values() for each in off]
    spread = _grow(kind, "spread", trees, told, names, sizes)
    found = []
    for group, (chosen, seen_as, off) in views.items():
        scale = np.exp2(spread.predict(matrix(seen_as, names), num_threads=1))
        found.append(_Off(group, chosen, seen_as, off, scale))
        error = 100 * np.abs(np.exp2(off) - 1)
        say(f"  with each {_WORDS[group]} unseen: off by {np.median(error):.1f} % (median), {np.std(off):.3f} octaves")
    # Scale the targets so that the spread trees predict a standard deviation.
    unit = float(np.sqrt(np.mean(np.clip(found[0].off / found[0].deviation, -2 * _CLIP, 2 * _CLIP) ** 2)))
    found = [_Off(each.group, each.samples, each.rows, each.off, each.deviation * unit) for each in found]
    spread = _grow(kind, "spread", trees, told, names, [size + math.log2(unit) for size in sizes])
    boosters = {
        "time": _grow(kind, "time", trees, rows, names, [sample.distance for sample in samples]),
        "warm": _grow(kind, "warm", trees, rows, names, [sample.warm for sample in samples]),
        "spread": spread,
    }
    return {"names": names, "calls": len(samples)}, boosters, found


_WORDS = {"group": "problem", "operator": "operator"}


def _unseen(
    samples: Sequence[Example], names: Sequence[str], trees: int, group: str
) -> tuple[list[Example], list[Row], Floats] | None:
    """Cross-validate by group. Returns the calls, their rows with the operator statistics of the training folds, and
    the errors; None if there is only one group."""
    every = sorted({getattr(sample, group) for sample in samples})
    if len(every) < 2:
        return None
    order = np.random.default_rng(0).permutation(len(every))
    fold = {every[at]: number % FOLDS for number, at in enumerate(order)}
    chosen: list[Example] = []
    rows: list[Row] = []
    off: list[float] = []
    for number in range(min(FOLDS, len(every))):
        seen = [sample for sample in samples if fold[getattr(sample, group)] != number]
        held = [sample for sample in samples if fold[getattr(sample, group)] == number]
        known, usual = _seen(seen)
        distances = [sample.distance for sample in seen]
        booster = _grow(samples[0].kind, "time", trees, _told(seen, known, usual), names, distances)
        looked = _told(held, known, usual)
        said = booster.predict(matrix(looked, names), num_threads=1)
        chosen += held
        rows += looked
        off += [sample.distance - float(each) for sample, each in zip(held, said, strict=True)]
    return chosen, rows, np.array(off)


# -- how sure it may be -----------------------------------------------------------------------------------------------


def _stretch(model: KindModel, held: Sequence[Example], known: Mapping[str, Known], usual: Known) -> float:
    """The factor by which spreads must be widened to have nominal coverage on the validation split; at least 1."""
    if len(held) < 20:
        return 1.0
    time, _, spread = model.answer(_told(held, known, usual))
    off = np.abs(np.array([sample.distance for sample in held]) - time) / spread
    return max(1.0, float(np.quantile(off, 1 - 2 * _TAIL)) / 1.645)


def _standard(views: Sequence[_Off]) -> Floats:
    """Errors of calls in units of their deviation. Only calls of problems count if there are enough of them, because
    packages' lists are made for variety."""
    every = np.concatenate([view.off / view.deviation for view in views])
    listed = [all(map(splits.is_list, sample.origins)) for view in views for sample in view.samples]
    chosen = every[~np.array(listed)]
    return chosen if len(chosen) >= _ENOUGH else every


def _correlations(views: Sequence[_Off]) -> tuple[float, float]:
    """The correlation of the errors of two calls in one module: of different operators, and of the same operator."""
    modules: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for view in views:
        standard = np.clip(view.off / view.deviation, -_CLIP, _CLIP)
        for sample, each in zip(view.samples, standard, strict=True):
            for origin in sample.origins:
                if not splits.is_list(origin):
                    modules[origin].append((sample.operator, float(each)))
    pairs = [found for members in modules.values() if (found := _pairs(members))]
    means = []
    for at in (0, 1):
        some = [float(np.mean(each[at])) for each in pairs if each[at]]
        means.append(float(np.mean(some)) if some else 0.0)
    shared = min(0.9, max(0.0, means[0]))
    return shared, min(0.95, max(shared, means[1]))


def _pairs(members: Sequence[tuple[str, float]]) -> tuple[list[float], list[float]] | None:
    """Products of the errors of each two calls: of different operators, and of the same operator."""
    if len(members) < 2:
        return None
    different: list[float] = []
    same: list[float] = []
    for at, (operator, one) in enumerate(members):
        for other, another in members[at + 1 :]:
            (same if other == operator else different).append(one * another)
    return different, same


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: Path, facts: dict[str, Any], texts: Mapping[str, Mapping[str, str]], measured: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, part, text in _texts(texts):
        (folder / f"{kind}_{part}.txt").write_text(text)
    for kind in texts:
        facts["kinds"][kind]["digests"] = {part: digest(texts[kind][part]) for part in PARTS}
    (folder / MEASURED).write_text(measured)
    facts["measured"] = digest(measured)
    (folder / "operators.json").write_text(json.dumps(facts, indent=1) + "\n")


def _texts(texts: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    for kind, own in texts.items():
        for part in PARTS:
            yield kind, part, own[part]
