"""Train the model of modules from recordings. The same recording gives the same file, byte for byte.

First, fit the correction of the trees' times on modules that are mostly one kernel of their own. Then, with this
correction, fit how far all modules are from the sum of their steps. Only modules of the train split are used for
fitting; the scores on the validation split are printed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from presage.core.errors import PresageError
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.forecasters import module_failures, modules
from presage.forecasters.base import Candidate, Task
from presage.forecasters.launch_times import MARKS, NO_CORRECTION, Correction, Trees
from presage.forecasters.learned_training import task_of
from presage.forecasters.module_model import ModuleModel, densities
from presage.forecasters.operator_model import Floats, OperatorModel
from presage.problems.external import CONVENTIONS

_NEAR = tuple(0.01 * 1.25**step for step in range(16))
_FAR = tuple(0.04 * 1.2**step for step in range(20))
_SHARES = tuple(0.02 * step for step in range(1, 26))
"""The grid for `near` and `far`, in octaves, and for `far_share`."""
_PRIOR = 1.0
"""The variance of the prior on the weights of signs."""
_MOSTLY = 0.7
"""The least share of a module's time in its own kernels for it to count as mostly a kernel."""
_CLIP, _RIDGE = 1.5, 20.0
"""The limit of a module's error in octaves, and the ridge penalty on the weights, in units of modules."""
_STEPS = 50
_DIGITS = 4


@dataclass(frozen=True)
class Example:
    """A measured module."""

    failed: bool
    signs: frozenset[str]
    off: float
    """Octaves by which it is faster than the sum of its steps; NaN if it failed or has no trace."""
    deviation: float
    """The standard deviation of `off` according to the uncertainty of its steps."""


@dataclass(frozen=True)
class Launched:
    """A measured module that is mostly one kernel of its own."""

    marks: Mapping[str, float]
    off: float
    """Octaves by which it is slower than the sum of its steps."""


def train(recordings: Sequence[Recording], folder: Path, trees: Trees, say: Callable[[str], None] = print) -> None:
    """Train on the modules of these recordings, and write the model to a folder. trees: the model of compiled
    kernels."""
    operators = OperatorModel.load()
    own = [each for recording in recordings for each in read_launches(recording, "train", trees, operators)]
    correction = corrected(own)
    found = {
        split: [each for recording in recordings for each in read(recording, split, trees, operators, correction)]
        for split in ("train", "validation")
    }
    learned = found["train"]
    if not any(math.isfinite(each.off) for each in learned):
        raise PresageError(
            "these recordings have no modules with traces in their train split;"
            " 'presage corpus collect --modules' and 'presage corpus compile --modules' make some"
        )
    model = replace(fitted(learned), launches=correction)
    failed = sum(each.failed for each in learned)
    say(f"learning from {len(learned)} modules: {failed} failed, {len(own)} are mostly a kernel of their own")
    say(f"  {1 - model.far_share:.0%} are within {model.near:.3f} octaves beyond their steps' uncertainty")
    for split, examples in found.items():
        say(f"  {split}: {_told(model, examples)}")
    model.write(folder, modules=len(learned), failed=failed, recordings=[recording.name for recording in recordings])


def has_modules(recording: Recording) -> bool:
    """Whether the recording has problems that are not from the catalogue."""
    return not set(CONVENTIONS).isdisjoint(recording.columns("room")["room"])


def read(
    recording: Recording, split: str, trees: Trees, operators: OperatorModel, correction: Correction
) -> Iterator[Example]:
    """The modules of one split as examples, compared with the reference of their problem."""
    for task, rows in _problems(recording, split):
        times = modules.Times(task, lambda: trees, lambda: operators, correction)
        for row in rows:
            if row.hash == task.anchor.kernel.hash or row.status is Status.DEVICE_FAULT:
                continue
            signs = frozenset(module_failures.signs(row.reports, task.anchor.reports))
            off, deviation = math.nan, math.nan
            if row.speedup is not None and (steps := times.of(Candidate(row.kernel, row.reports))) is not None:
                mean, deviation = modules.log2_speedup(times, steps)
                off = math.log2(row.speedup.value) - mean
            yield Example(row.status is not Status.OK, signs, off, deviation)


def read_launches(recording: Recording, split: str, trees: Trees, operators: OperatorModel) -> Iterator[Launched]:
    """The modules of one split that are mostly a kernel of their own."""
    for task, rows in _problems(recording, split):
        times = modules.Times(task, lambda: trees, lambda: operators)
        for row in rows:
            steps = times.of(Candidate(row.kernel, row.reports)) if row.cases else None
            if steps is None or not (launches := times.launches(row.reports[0])):
                continue
            own = {step.number: step.ns for step in steps[0].steps if step.number in launches}
            if sum(own.values()) >= _MOSTLY * steps[0].ns:
                longest = max(own, key=lambda number: own[number])
                measured = fmean(math.log2(case.median.value) for case in row.cases)
                yield Launched(launches[longest].marks, measured - fmean(time.log2_ns for time in steps))


def _problems(recording: Recording, split: str) -> Iterator[tuple[Task, list[Row]]]:
    """The task and the rows of each foreign problem of a split whose reference was measured."""
    device = RecordedDevice(recording)
    for problem, found in device.each(list(recording.counts)):
        rows = [row for row in found.values() if row.split == split]
        reference = next((row for row in rows if row.hash == row.anchor), None)
        if reference is not None and device.problem(problem).is_foreign:
            yield task_of(device, problem, reference), rows


def corrected(examples: Sequence[Launched]) -> Correction:
    """The correction fitted to the examples: a ridge regression on the marks."""
    if not examples:
        return NO_CORRECTION
    table = np.array([[each.marks[mark] for mark in MARKS] for each in examples])
    middle, scale = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-9)
    off = np.clip([each.off for each in examples], -_CLIP, _CLIP)
    columns = np.column_stack([np.ones(len(table)), (table - middle) / scale])
    bias, *slopes = np.linalg.solve(columns.T @ columns + np.diag([0.0, *[_RIDGE] * len(MARKS)]), columns.T @ off)
    weights = np.array(slopes) / scale
    return Correction(
        round(float(bias - weights @ middle), _DIGITS),
        {mark: round(float(weight), _DIGITS) for mark, weight in zip(MARKS, weights, strict=True)},
    )


def fitted(examples: Sequence[Example]) -> ModuleModel:
    """The model that maximises the likelihood of the measurements."""
    timed = [each for each in examples if math.isfinite(each.off)]
    off, deviations = np.array([each.off for each in timed]), np.array([each.deviation for each in timed])
    near, far, share = max(
        ((n, f, s) for n, f, s in itertools.product(_NEAR, _FAR, _SHARES) if f > n),
        key=lambda chosen: _likelihood(off, deviations, *chosen),
    )
    bias, *weights = _regression(examples)
    return ModuleModel(
        round(near, _DIGITS),
        round(far, _DIGITS),
        round(share, _DIGITS),
        round(bias, _DIGITS),
        {sign: round(weight, _DIGITS) for sign, weight in zip(module_failures.SIGNS, weights, strict=True)},
    )


def _likelihood(off: Floats, deviations: Floats, near: float, far: float, share: float) -> float:
    """The log-likelihood of the mixture, summed over modules."""
    of_near, of_far = densities(off, deviations, near, far)
    return float(np.log((1 - share) * of_near + share * of_far).sum())


def _regression(examples: Sequence[Example]) -> list[float]:
    """The bias, and the weight of each sign: Newton's method, with a normal prior on the weights."""
    rows = [[1.0, *(float(sign in each.signs) for sign in module_failures.SIGNS)] for each in examples]
    table, failed = np.array(rows), np.array([float(each.failed) for each in examples])
    prior = np.diag([1e-6, *[1 / _PRIOR] * len(module_failures.SIGNS)])
    weights = np.zeros(table.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (failed - chance) - prior @ weights
        curve = (table * (chance * (1 - chance))[:, None]).T @ table + prior
        weights = weights + np.linalg.solve(curve, slope)
    return [float(weight) for weight in weights]


def _told(model: ModuleModel, examples: Sequence[Example]) -> str:
    """The scores of the model on these examples, as text."""
    off = [abs(each.off) for each in examples if math.isfinite(each.off)]
    if not off:
        return "nothing was measured"
    failed = [model.p_fail(each.signs) for each in examples if each.failed]
    right = [model.p_fail(each.signs) for each in examples if not each.failed]
    pairs = [(a > b) + 0.5 * (a == b) for a in failed for b in right]
    area = f", failures told apart: AUROC {np.mean(pairs):.2f}" if pairs else ""
    return f"{len(off)} times are off by {np.median(off):.3f} octaves in the median{area}"
