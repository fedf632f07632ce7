"""The `learned` forecaster: boosted trees on what compiling, walking and parsing tell, corrected by what was measured.

The trees forecast how far each timed case stays from its roofline. What the anchor, and in a search every kernel
measured so far, did differently from its forecast says how the operation differs from those the trees know, the more so
the more alike two kernels are: a Gaussian process over the residuals, in which two kernels are as alike as the share of
trees in which they end in the same leaf. What failed in a search says what else will. Nothing has to be trained again.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices.status import Status
from presage.forecasters import failure_model, faults, modules
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.forecasters.features import LEARNED_ARCH, Row, busiest, case_rows, floor_seconds
from presage.forecasters.module_model import ModuleModel
from presage.forecasters.trees import digest, matrix
from presage.plugins.group import MODELS

Floats = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.uint8]
"""Of kernels, the leaf of each tree that they end in: shape (kernels, trees)."""

VERSION = 2
KINDS = ("compiled", "source", "cpu")
"""Three models: of kernels for a GPU with a static report, of those without one, and of kernels for a CPU."""
_MODULE = "module"
"""No model of its own: the sum of its steps."""
_WIDEST, _MOST_NEIGHBOURS = 30.0, 400
_BLIND = "there is neither a compiler's report nor a known cost of the problem, so that the source alone would mislead"
_DOUBTED = 10
"""The noise as it was learned counts as so many measurements beside those of a search."""
FAMILIAR = "familiar"
"""The feature that says how much a kernel is like any that the trees have learned from."""
MANY = 10_000
"""Rows for which a second thread is worth its start."""


@dataclass(frozen=True)
class Noise:
    """How residuals of kernels of one operation hang together: variances, in units of each kernel's spread."""

    operation: float
    """What all kernels of an operation share."""
    alike: float
    """What kernels share by as much as they are alike."""
    own: float
    """What each has for itself."""


def installed() -> Path:
    """The folder of the trained models: the entry point `learned` in `presage.models`."""
    return Path(MODELS.load("learned"))


class LearnedForecaster(Forecaster):
    """Boosted trees, trained on recordings, that read what compiling tells. A note says if nothing was compiled."""

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Forecaster]) -> LearnedForecaster:
        """As it was trained into the folder of `learned:FOLDER`, or as it is installed."""
        return cls(Path(text) if text else None)

    def __init__(self, folder: Path | None = None) -> None:
        """folder: of trained models; by default, those that are installed."""
        self.folder = folder or installed()
        self._models: dict[str, Model] = {}

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        if task.problem.is_foreign:
            said = self._of_modules(task, candidates)
            return [faults.warned(task, candidate, each) for candidate, each in zip(candidates, said, strict=True)]
        kinds = [self._kind_of(task, candidate) for candidate in candidates]
        found: dict[int, Prediction] = {}
        for kind in set(kinds):
            chosen = [i for i, each in enumerate(kinds) if each == kind]
            some = [candidates[i] for i in chosen]
            predictions = self._of_modules(task, some) if kind == _MODULE else self._predict(task, some, kind)
            found |= dict(zip(chosen, predictions, strict=True))
        return [faults.warned(task, candidate, found[i]) for i, candidate in enumerate(candidates)]

    def _kind_of(self, task: Task, candidate: Candidate) -> str:
        return _MODULE if modules.is_mixed(candidate, task.hardware) else kind_of(task, candidate)

    def _of_modules(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return modules.forecast(task, candidates, self._module_model, lambda: self.model("compiled"))

    def is_sure(self, task: Task) -> bool:
        # Neither kernels for a CPU nor problems from elsewhere were tried.
        return task.hardware is not None and not task.problem.is_foreign

    def _predict(self, task: Task, candidates: Sequence[Candidate], kind: str) -> list[Prediction]:
        floors = case_floors(task)
        if kind == "source" and not floors:
            return [Prediction(None, (_BLIND,))] * len(candidates)
        model = self.model(kind)
        timed = [
            each
            for each in (task.anchor, *task.neighbours[:_MOST_NEIGHBOURS])
            if each.status == "ok" and each.times_ns and floors
        ]
        measured = [each for each in timed if _is_telling(each, kind)]
        known = self._answers(model, task, measured)
        asked = self._answers(model, task, candidates)
        if kind == "compiled" and task.hardware and task.hardware.arch != LEARNED_ARCH:
            anchor_is = self._answers(model, task, [task.anchor])
            gap = float(anchor_is.mean[0] - anchor_is.busiest[0])
            known, asked = known.halfway(gap), asked.halfway(gap)
        actual = np.array([_distance(each, floors) for each in measured])
        off = (actual - known.mean) / known.spread
        shift, variance = residual(model.noise, asked.leaves, known.leaves, off)
        anchored = bool(timed) and timed[0] is task.anchor
        if anchored:
            anchor = _distance(task.anchor, floors)
        else:
            anchor = float(self._answers(model, task, [task.anchor]).mean[0])
        notes = ["made without a compiler's report: from source and launch alone"] if kind == "source" else []
        if task.is_unknown_gpu:
            notes.append("nothing is known of this GPU: as if it were any")
        if not anchored:
            why = "the anchor was not measured" if floors else "what the problem must cost is not known"
            notes.append(f"{why}: the anchor's time, too, is a forecast")
            variance = variance + model.noise.operation + model.noise.own
        scale = np.sqrt(variance) * asked.spread
        log2_S = anchor - (asked.mean + shift * asked.spread)
        p_fail = self._p_fail(model, task, candidates, asked.p_fail)
        return [
            Prediction(model.forecast(float(log2_S[i]), float(scale[i]), float(p_fail[i])), tuple(notes))
            for i in range(len(candidates))
        ]

    def _p_fail(self, model: Model, task: Task, candidates: Sequence[Candidate], forecast: Floats) -> Floats:
        """The chance that each fails, from the trees and from what has failed in the search."""
        neighbours = task.neighbours[:_MOST_NEIGHBOURS]
        tried = [each for each in neighbours if each.status != Status.DEVICE_FAULT and _is_telling(each, model.kind)]
        expected = self._answers(model, task, tried).p_fail
        failed = [each.status != "ok" for each in tried]
        kernels = [each.kernel for each in candidates]
        return failure_model.learn([each.kernel for each in tried], failed, expected, kernels, forecast)

    def _answers(self, model: Model, task: Task, candidates: Sequence[Candidate]) -> Answers:
        """What the trees say, remembered by kernel: a search asks of the same kernels again and again."""
        keys = [
            (model.kind, task.problem.name, c.kernel.hash, task.hardware and task.hardware.name) for c in candidates
        ]
        missing = {key: candidate for key, candidate in zip(keys, candidates, strict=True) if key not in model.answered}
        if missing:
            rows = [case_rows(task, candidate, model.kind == "compiled") for candidate in missing.values()]
            answers = model.answer(rows)
            for i, key in enumerate(missing):
                model.answered[key] = tuple(getattr(answers, name)[i] for name in _ANSWERED)
        found = [model.answered[key] for key in keys]
        mean, spread, p_fail, busy = (np.array([each[i] for each in found], dtype=np.float64) for i in range(4))
        leaves = np.stack([each[4] for each in found]) if found else np.zeros((0, model.trees), dtype=np.uint8)
        return Answers(mean, spread, p_fail, busy, leaves)

    @cached_property
    def _module_model(self) -> ModuleModel:
        return ModuleModel.load()

    def model(self, kind: str) -> Model:
        """The trees of one kind, read once."""
        if kind not in self._models:
            self._models[kind] = Model.load(self.folder, kind)
        return self._models[kind]


def kind_of(task: Task, candidate: Candidate) -> str:
    """Which model is for this kernel."""
    if task.kind == "cpu":
        return "cpu"
    return "compiled" if candidate.reports and task.hardware else "source"


def _is_telling(measured: Measured, kind: str) -> bool:
    """Whether the trees know kernels like this one: PyTorch's own say nothing of how far off the trees are."""
    return bool(measured.reports) if kind == "compiled" else measured.kernel.language in ("c", "cuda", "triton")


@dataclass(frozen=True)
class Answers:
    """What the trees say of some kernels."""

    mean: Floats
    """Octaves above the roofline, the mean over the cases."""
    spread: Floats
    """How uncertain that is, beside what is usual."""
    p_fail: Floats
    busiest: Floats
    """Octaves above the roofline that the busiest unit needs, the mean over the cases; NaN where that is not known."""
    leaves: Leaves
    """Those of a kernel's first case."""

    def halfway(self, gap: float) -> Answers:
        """The means of what the trees say and of what the busiest unit says, which is further off by the gap. Trees
        know one GPU; which unit is busiest, and for how long, is known of any."""
        other = (self.mean + self.busiest + gap) / 2
        return replace(self, mean=np.where(np.isnan(other), self.mean, other))


_ANSWERED = ("mean", "spread", "p_fail", "busiest", "leaves")


class Model:
    """The trees of one kind, as they lie in a folder."""

    def __init__(self, kind: str, facts: Mapping[str, Any], boosters: Mapping[str, Any]) -> None:
        self.kind, self.facts, self._boosters = kind, facts, boosters
        self.names: list[str] = facts["names"]
        self.noise = Noise(**facts["noise"])
        seen = zlib.decompress(base64.b64decode(facts["seen"]["zlib"]))
        self._seen = np.frombuffer(seen, dtype=np.uint8).reshape(facts["seen"]["shape"])
        self.answered: dict[Any, Any] = {}

    @classmethod
    def load(cls, folder: Path, kind: str) -> Model:
        import lightgbm

        try:
            facts = json.loads((folder / f"{kind}.json").read_text())
            if facts["version"] != VERSION:
                raise PresageError(
                    f"{folder} holds a model of version {facts['version']}, not {VERSION}; train it again"
                )
            texts = {name: (folder / f"{kind}_{name}.txt").read_text() for name in PARTS}
            for name, text in texts.items():
                if digest(text) != facts["digests"][name]:  # LightGBM does not survive a file that was cut short
                    raise ValueError(f"{kind}_{name}.txt is not the file that {kind}.json speaks of")
            boosters = {name: lightgbm.Booster(model_str=text) for name, text in texts.items()}
            return cls(kind, facts, boosters)
        except FileNotFoundError as error:
            raise PresageError(
                f"there is no trained model in {folder} ({Path(error.filename).name} is missing);"
                " 'presage train learned' makes one from a recording"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, zlib.error, lightgbm.basic.LightGBMError) as error:
            raise PresageError(
                f"the model in {folder} cannot be read: {error}; 'presage train learned' makes one"
            ) from error

    @cached_property
    def trees(self) -> int:
        return int(self._boosters["time"].num_trees())

    def answer(self, rows: Sequence[Sequence[Row]]) -> Answers:
        """Of kernels, each of which has a row per case."""
        table = matrix([row for cases in rows for row in cases], self.names)
        starts = np.cumsum([0, *(len(cases) for cases in rows[:-1])])
        counts = np.array([len(cases) for cases in rows])
        threads = 1 if len(table) < MANY else 2
        found = self._boosters["time"].predict(table[starts], pred_leaf=True, num_threads=threads)
        leaves = found.astype(np.uint8).reshape(len(rows), -1)
        familiar = np.repeat(familiarity(leaves, self._seen), counts)
        time, fail = (self._boosters[name].predict(table, num_threads=threads) for name in ("time", "fail"))
        spread = self._boosters["spread"].predict(np.column_stack([table, familiar]), num_threads=threads)
        return Answers(
            np.add.reduceat(time, starts) / counts,
            np.exp2(np.add.reduceat(spread, starts) / counts),
            np.maximum.reduceat(fail, starts),
            np.array([np.mean([busiest(row) for row in cases]) for cases in rows]),
            leaves,
        )

    def forecast(self, log2_S: float, scale: float, p_fail: float) -> Forecast:
        """The residuals that were seen of operations the trees did not know, moved and stretched."""
        values = np.clip(log2_S + scale * np.asarray(self.facts["residuals"]), -_WIDEST, _WIDEST)
        return Forecast.from_quantiles(self.facts["levels"], values, min(1.0, max(0.0, p_fail)))


PARTS = ("time", "spread", "fail")


def case_floors(task: Task) -> dict[str, float]:
    """Each case's roofline in nanoseconds: by the data sheet on a GPU, or by any GPU's where that is not known, and one
    nanosecond on a CPU; nothing where it is not known what the problem must cost."""
    if not task.problem.inputs:
        return {}
    if task.kind == "cpu":
        return {case.name: 1.0 for case in task.cases}
    return {case.name: 1e9 * floor_seconds(task.problem, case, task.hardware) for case in task.cases}


def _distance(measured: Measured, floors: Mapping[str, float]) -> float:
    """Octaves above the roofline, the mean over the cases that were measured."""
    return float(np.mean([math.log2(time / floors[case]) for case, time in measured.times_ns.items()]))


def residual(noise: Noise, asked: Leaves, known: Leaves, seen: Floats) -> tuple[Floats, Floats]:
    """What kernels of an operation should be off by, given what others of it were, all in units of their spreads: mean
    and variance of each."""
    prior = noise.operation + noise.alike + noise.own
    if not len(seen):
        return np.zeros(len(asked)), np.full(len(asked), prior)
    among = noise.operation + noise.alike * likeness(known, known) + noise.own * np.eye(len(known))
    across = noise.operation + noise.alike * likeness(asked, known)
    weights = np.linalg.solve(among, across.T).T
    variance = np.maximum(prior - np.einsum("ij,ij->i", weights, across), 0.25 * noise.own)
    surprise = float(seen @ np.linalg.solve(among, seen))
    return weights @ seen, variance * max(1.0, (_DOUBTED + surprise) / (_DOUBTED + len(seen)))


def likeness(one: Leaves, other: Leaves) -> Floats:
    """The share of trees in which two kernels end in the same leaf, for each pair."""
    return np.stack([(other == row).mean(axis=1) for row in one]) if len(one) else np.zeros((0, len(other)))


def familiarity(leaves: Leaves, seen: Leaves) -> Floats:
    """How much each kernel is like the one, of those seen, that it is most like."""
    return np.array([(seen == row).mean(axis=1).max() for row in leaves])
