"""Metrics of critics: pure functions of probabilities and labels, with bootstrap intervals over tasks.

probability: (n,), that a step is right; good: (n,), whether it is right. A step below the threshold is doubted. A
doubted bad step is caught. A doubted good step is a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from presage import Interval
from presage.core.scoring import auroc, bootstrap

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_RESAMPLES = 200


def threshold_at(probability: Floats, good: Flags, false_alarms: float = 0.05) -> float:
    """Return the highest threshold that doubts at most this share of the good steps.

    >>> threshold_at(np.array([0.1, 0.6, 0.7, 0.9]), np.array([False, True, True, True]), 0.34)
    0.7
    """
    kept = np.sort(probability[good])
    return float(kept[min(int(false_alarms * kept.size), kept.size - 1)]) if kept.size else math.nan


def caught(probability: Floats, good: Flags, threshold: float) -> float:
    """Return the share of bad steps below a threshold (recall)."""
    return float((probability[~good] < threshold).mean()) if (~good).any() else math.nan


def alarms(probability: Floats, good: Flags, threshold: float) -> float:
    """Return the share of good steps below a threshold (false alarms)."""
    return float((probability[good] < threshold).mean()) if good.any() else math.nan


def even_weights(good: Flags) -> Floats:
    """Return weights that sum to 1 and give good and bad steps one half each."""
    share = float(good.mean())
    return np.where(good, 0.5 / max(share, 1e-9), 0.5 / max(1 - share, 1e-9)) / good.size


def calibration_error(probability: Floats, good: Flags, bins: int = 10) -> float:
    """Return the expected calibration error at a base rate of one half, over bins of equal width.

    >>> calibration_error(np.array([0.05, 0.95]), np.array([False, True]))
    0.05
    """
    weight = even_weights(good)
    which = np.clip((probability * bins).astype(int), 0, bins - 1)
    total = 0.0
    for each in range(bins):
        inside = which == each
        if inside.any():
            claimed = float(weight[inside] @ probability[inside])
            total += abs(claimed - float(weight[inside] @ good[inside]))
    return round(total, 12)


def error_rate(probability: Floats, good: Flags, answered: float = 1.0) -> float:
    """Return the error rate of a threshold of one half, at a base rate of one half.

    Only the share `answered` of the steps counts, those with probabilities farthest from one half."""
    weight = even_weights(good)
    order = np.argsort(-np.abs(probability - 0.5), kind="stable")
    kept = order[: max(1, round(answered * order.size))]
    wrong = (probability[kept] >= 0.5) != good[kept]
    return float(weight[kept] @ wrong / weight[kept].sum())


def precision(probability: Floats, good: Flags, threshold: float) -> float:
    """Return the share of bad steps among the doubted steps, at a base rate of one half."""
    hits, misses = caught(probability, good, threshold), alarms(probability, good, threshold)
    return hits / (hits + misses) if hits + misses else math.nan


def table(probability: Floats, good: Flags, tasks: Sequence[str]) -> dict[str, Interval]:
    """Return the main figures, each with its bootstrap interval over tasks."""
    figures: dict[str, Callable[[Floats, Flags], float]] = {
        "auroc": lambda p, y: auroc(p, y),
        "recall_at_5": lambda p, y: caught(p, y, threshold_at(p, y)),
        "recall_at_half": lambda p, y: caught(p, y, 0.5),
        "false_alarms_at_half": lambda p, y: alarms(p, y, 0.5),
        "precision_at_half": lambda p, y: precision(p, y, 0.5),
        "ece": calibration_error,
        "error": error_rate,
        "error_of_surest_80": lambda p, y: error_rate(p, y, 0.8),
    }
    names = np.asarray(tasks)
    return {
        name: bootstrap(lambda rows, f=figure: f(probability[rows], good[rows]), names, resamples=_RESAMPLES)  # type: ignore[misc]
        for name, figure in figures.items()
    }
