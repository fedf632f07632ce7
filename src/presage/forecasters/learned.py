"""The `learned` forecaster: boosted trees on features from compiling, walking and parsing, corrected by measurements.

The trees forecast the octaves between each timed case and its roofline. The residuals of the anchor, and in a search of
every kernel measured so far, correct the forecasts of other kernels of the operation: a Gaussian process over the
residuals, in which the similarity of two kernels is the share of trees in which they end in the same leaf. Failures in
a search correct the failure probabilities. The trees are not trained again.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from presage.forecasters.operator_model import OperatorModel
from presage.forecasters.trees import digest, matrix
from presage.plugins.group import MODELS

Floats = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.uint8]
"""For each kernel, the leaf that it ends in, of each tree: shape (kernels, trees)."""

VERSION = 2
KINDS = ("compiled", "source", "cpu")
"""The three models: for GPU kernels with a static report, for GPU kernels without one, and for CPU kernels."""
_MODULE = "module"
"""The kind of a module that is more than its own kernels. It has no trees: `modules` forecasts it from its steps."""
_WIDEST, _MOST_NEIGHBOURS = 30.0, 400
_BLIND = "there is neither a compiler's report nor a known cost of the problem, so that the source alone would mislead"
_DOUBTED = 10
"""The weight of the learned noise, in measurements, when a search's own residuals rescale it."""
_LEAD = 0.5
"""Octaves by which a forecast may be faster than the busiest unit allows. The walk that counts the unit's work errs by
more for one kernel in a hundred or less; trees err by any amount for kernels unlike those they have seen."""
FAMILIAR = "familiar"
"""The feature with the greatest similarity of a kernel to any stored kernel of the training data."""
MANY = 10_000
"""From this number of rows on, a second thread is worth its start."""


@dataclass(frozen=True)
class Noise:
    """The covariance of the residuals of one operation's kernels: variances, in units of each kernel's spread."""

    operation: float
    """The part that all kernels of an operation share."""
    alike: float
    """The part that two kernels share in proportion to their similarity."""
    own: float
    """The independent part of each kernel."""


def installed() -> Path:
    """The folder of the trained models: the entry point `learned` in `presage.models`."""
    return Path(MODELS.load("learned"))


class LearnedForecaster(Forecaster):
    """Boosted trees, trained on recordings, that read what compiling tells. A note says if nothing was compiled."""

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Forecaster]) -> LearnedForecaster:
        """The forecaster with the models in the folder of `learned:FOLDER`, or with the installed ones."""
        return cls(Path(text) if text else None)

    def __init__(self, folder: Path | None = None) -> None:
        """folder: the trained models; by default, the installed ones."""
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
        if modules.is_mixed(candidate, task.hardware):
            return _MODULE if modules.is_comparable(task) else "source"
        is_silent = candidate.kernel.language == "torch" and not all(each.launches for each in candidate.reports)
        return "source" if is_silent else kind_of(task, candidate)

    def _of_modules(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        trees = partial(self.model, "compiled")
        return modules.forecast(task, candidates, self._module_model, trees, lambda: self.operators)

    def is_sure(self, task: Task) -> bool:
        # Recorded pools have shown this for GPU kernels of the catalogue only, not for CPU kernels or foreign problems.
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
        notes = []
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
            Prediction(
                model.forecast(float(log2_S[i]), float(scale[i]), float(p_fail[i])),
                (*(_without_report(candidate) if kind == "source" else ()), *notes),
            )
            for i, candidate in enumerate(candidates)
        ]

    def _p_fail(self, model: Model, task: Task, candidates: Sequence[Candidate], forecast: Floats) -> Floats:
        """The probability that each candidate fails, from the trees and from the failures in the search."""
        neighbours = task.neighbours[:_MOST_NEIGHBOURS]
        tried = [each for each in neighbours if each.status != Status.DEVICE_FAULT and _is_telling(each, model.kind)]
        expected = self._answers(model, task, tried).p_fail
        failed = [each.status != "ok" for each in tried]
        kernels = [each.kernel for each in candidates]
        return failure_model.learn([each.kernel for each in tried], failed, expected, kernels, forecast)

    def _answers(self, model: Model, task: Task, candidates: Sequence[Candidate]) -> Answers:
        """The trees' answers, with a cache by kernel, because a search asks about the same kernels many times."""
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

    @cached_property
    def operators(self) -> OperatorModel:
        """The model of torch's operators."""
        return OperatorModel.load()

    def model(self, kind: str) -> Model:
        """The model of one kind, read once."""
        if kind not in self._models:
            self._models[kind] = Model.load(self.folder, kind)
        return self._models[kind]


def kind_of(task: Task, candidate: Candidate) -> str:
    """The model of `KINDS` for this kernel."""
    if task.kind == "cpu":
        return "cpu"
    is_known = bool(candidate.reports) and all(report.status != "unknown" for report in candidate.reports)
    return "compiled" if is_known and task.hardware else "source"


def _without_report(candidate: Candidate) -> list[str]:
    """The notes on a forecast that is made without a static report: that it is, and why if that is known."""
    said = next((report.error for report in candidate.reports if report.error), None)
    return [
        "made without a compiler's report: from source and launch alone",
        *([f"why there is no report: {said.splitlines()[0]}"] if said else []),
    ]


def _is_telling(measured: Measured, kind: str) -> bool:
    """Whether the residual of a measured kernel is informative: it is not for PyTorch's own kernels, because the trees
    were not trained on kernels like them."""
    return bool(measured.reports) if kind == "compiled" else measured.kernel.language in ("c", "cuda", "triton")


@dataclass(frozen=True)
class Answers:
    """The trees' answers for some kernels."""

    mean: Floats
    """Octaves above the roofline, the mean over the cases."""
    spread: Floats
    """The uncertainty of the mean, relative to the usual one."""
    p_fail: Floats
    busiest: Floats
    """Octaves above the roofline that the busiest unit needs, the mean over the cases; NaN where that is not known."""
    leaves: Leaves
    """The leaves of each kernel's first case."""

    def halfway(self, gap: float) -> Answers:
        """The answers with `mean` averaged with `busiest` + gap. gap: mean less busiest of the anchor. The trees have
        seen one GPU architecture only, but the busiest unit and its time can be computed for any."""
        other = (self.mean + self.busiest + gap) / 2
        return replace(self, mean=np.where(np.isnan(other), self.mean, other))


_ANSWERED = ("mean", "spread", "p_fail", "busiest", "leaves")


class Model:
    """The trees of one kind, read from a folder."""

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
                if digest(text) != facts["digests"][name]:  # LightGBM crashes on a truncated file
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
        """The answers for kernels, each of which has a row per case."""
        table = matrix([row for cases in rows for row in cases], self.names)
        starts = np.cumsum([0, *(len(cases) for cases in rows[:-1])])
        counts = np.array([len(cases) for cases in rows])
        threads = 1 if len(table) < MANY else 2
        found = self._boosters["time"].predict(table[starts], pred_leaf=True, num_threads=threads)
        leaves = found.astype(np.uint8).reshape(len(rows), -1)
        familiar = np.repeat(familiarity(leaves, self._seen), counts)
        time, fail = (self._boosters[name].predict(table, num_threads=threads) for name in ("time", "fail"))
        spread = self._boosters["spread"].predict(np.column_stack([table, familiar]), num_threads=threads)
        busy = np.array([np.mean([busiest(row) for row in cases]) for cases in rows])
        return Answers(
            np.fmax(np.add.reduceat(time, starts) / counts, busy - _LEAD),
            np.exp2(np.add.reduceat(spread, starts) / counts),
            np.maximum.reduceat(fail, starts),
            busy,
            leaves,
        )

    def forecast(self, log2_S: float, scale: float, p_fail: float) -> Forecast:
        """A forecast with the distribution of the residuals of unseen operations, scaled, and shifted to log2_S."""
        values = np.clip(log2_S + scale * np.asarray(self.facts["residuals"]), -_WIDEST, _WIDEST)
        return Forecast.from_quantiles(self.facts["levels"], values, min(1.0, max(0.0, p_fail)))


PARTS = ("time", "spread", "fail")


def case_floors(task: Task) -> dict[str, float]:
    """Each case's roofline in nanoseconds: from the GPU's data sheet, or from default peaks if that is not known; one
    nanosecond on a CPU. Empty if the problem's arrays are not known."""
    if not task.problem.inputs:
        return {}
    if task.kind == "cpu":
        return {case.name: 1.0 for case in task.cases}
    return {case.name: 1e9 * floor_seconds(task.problem, case, task.hardware) for case in task.cases}


def _distance(measured: Measured, floors: Mapping[str, float]) -> float:
    """Octaves above the roofline, the mean over the cases that were measured. Raises PresageError for others than the
    problem's."""
    if others := measured.times_ns.keys() - floors.keys():
        raise PresageError(f"{measured.kernel.name} was measured at other cases than the problem's: {min(others)}")
    return float(np.mean([math.log2(time / floors[case]) for case, time in measured.times_ns.items()]))


def residual(noise: Noise, asked: Leaves, known: Leaves, seen: Floats) -> tuple[Floats, Floats]:
    """The mean and variance of the residuals of the asked kernels, given the residuals `seen` of known kernels of the
    operation. All are in units of the kernels' spreads."""
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
    """The greatest similarity of each kernel to any of those seen."""
    return np.array([(seen == row).mean(axis=1).max() for row in leaves])
