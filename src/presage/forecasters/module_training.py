"""Trains the model of modules from recordings: the same recording gives the same file, byte for byte.

Only modules of the train split are learned from; what the model says of the validation split is told.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from presage.core.errors import PresageError
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording
from presage.devices.status import Status
from presage.forecasters import module_failures, modules
from presage.forecasters.base import Candidate
from presage.forecasters.launch_times import Trees
from presage.forecasters.learned_training import task_of
from presage.forecasters.module_model import ModuleModel
from presage.forecasters.operator_model import Floats
from presage.problems.external import CONVENTIONS

_NEAR = tuple(0.01 * 1.25**step for step in range(16))
_FAR = tuple(0.2 * 1.15**step for step in range(20))
_SHARES = tuple(0.02 * step for step in range(1, 26))
"""What is tried: octaves, octaves, and shares."""
_PRIOR = 1.0
"""Of the weights of signs: the variance that is expected of them."""
_STEPS = 50
_DIGITS = 4


@dataclass(frozen=True)
class Example:
    """A measured module."""

    failed: bool
    signs: frozenset[str]
    off: float
    """Octaves that it is faster than its steps say; NaN where it failed or has no trace."""
    deviation: float
    """What its steps' own uncertainty says of that."""


def train(recordings: Sequence[Recording], folder: Path, trees: Trees, say: Callable[[str], None] = print) -> None:
    """Learn from the modules of these recordings, and put the model into a folder. `trees` is the model of compiled
    kernels."""
    found = {split: [each for r in recordings for each in read(r, split, trees)] for split in ("train", "validation")}
    learned = found["train"]
    if not any(math.isfinite(each.off) for each in learned):
        raise PresageError(
            "these recordings have no modules with traces in their train split;"
            " 'presage corpus collect --modules' and 'presage corpus compile --modules' make some"
        )
    model = fitted(learned)
    failed = sum(each.failed for each in learned)
    say(f"learning from {len(learned)} modules, of which {failed} failed")
    say(f"  {1 - model.far_share:.0%} are within {model.near:.3f} octaves beyond their steps' uncertainty")
    for split, examples in found.items():
        say(f"  {split}: {_told(model, examples)}")
    model.write(folder, modules=len(learned), failed=failed, recordings=[recording.name for recording in recordings])


def has_modules(recording: Recording) -> bool:
    """Whether any of its problems is from elsewhere."""
    return not set(CONVENTIONS).isdisjoint(recording.columns("room")["room"])


def read(recording: Recording, split: str, trees: Trees) -> Iterator[Example]:
    """The modules of one split, beside the reference of their problem."""
    device = RecordedDevice(recording)
    for problem in recording.counts:
        rows = [row for row in device.rows(problem).values() if row.split == split]
        reference = next((row for row in rows if row.hash == row.anchor), None)
        if reference is None or not device.problem(problem).is_foreign:
            continue
        task = task_of(device, problem, reference)
        times = modules.Times(task, lambda: trees)
        for row in rows:
            if row.hash == reference.hash or row.status is Status.DEVICE_FAULT:
                continue
            candidate = Candidate(row.kernel, row.reports)
            signs = frozenset(module_failures.signs(row.reports, reference.reports))
            off, deviation = math.nan, math.nan
            if row.speedup is not None and (steps := times.of(candidate)) is not None:
                mean, deviation = modules.log2_speedup(times, steps)
                off = math.log2(row.speedup.value) - mean
            yield Example(row.status is not Status.OK, signs, off, deviation)


def fitted(examples: Sequence[Example]) -> ModuleModel:
    """The model under which what was measured is likeliest."""
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
    """The logarithm of the mixture's density, summed."""
    return float(np.log((1 - share) * _density(off, deviations, near) + share * _density(off, deviations, far)).sum())


def _density(off: Floats, deviations: Floats, more: float) -> Floats:
    wide = np.hypot(deviations, more)
    return np.asarray(np.exp(-0.5 * (off / wide) ** 2) / wide)


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
    """How well the model does on these."""
    off = [abs(each.off) for each in examples if math.isfinite(each.off)]
    if not off:
        return "nothing was measured"
    failed = [model.p_fail(each.signs) for each in examples if each.failed]
    right = [model.p_fail(each.signs) for each in examples if not each.failed]
    pairs = [(a > b) + 0.5 * (a == b) for a in failed for b in right]
    area = f", failures told apart: AUROC {np.mean(pairs):.2f}" if pairs else ""
    return f"{len(off)} times are off by {np.median(off):.3f} octaves in the median{area}"
