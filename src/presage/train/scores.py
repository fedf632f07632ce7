"""Scores of answers during training: those of `presage evaluate`, on the validation split.

Operations of the validation split are in no other split, so a temperature that is fitted here can be used for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from presage.core import scoring
from presage.core.recalibration import Temperature
from presage.core.scale import LOG2_KNOTS
from presage.train.questions import Question

Floats = npt.NDArray[np.float64]


def score(probabilities: Floats, questions: Sequence[Question]) -> dict[str, float]:
    """The scores of answers. probabilities: of failure and of each bin, shape (n, 9); NaN rows are missing answers."""
    truth = np.array([question.truth for question in questions])
    works = truth > 0
    bins = _bins(probabilities)[works]
    which = truth[works] - 1
    operations = np.array([f"{question.problem}/{question.anchor}" for question in questions])[works]
    log2_S = np.array([question.log2_speedup for question in questions if question.log2_speedup is not None])
    middles = (np.array(LOG2_KNOTS[:-1]) + np.array(LOG2_KNOTS[1:])) / 2
    correct = scoring.hits(bins, which)
    confidence = np.where(np.isnan(bins).any(axis=1), 1 / bins.shape[1], bins.max(axis=1))
    ranks = scoring.spearman(bins @ middles, log2_S, np.array([name.split("/")[0] for name in operations]))
    return {
        "questions": float(len(truth)),
        "missing": float(np.isnan(probabilities).any(axis=1).mean()),
        "exact": scoring.exact(bins, which),
        "within_one": scoring.within_one(bins, which),
        "ece": scoring.ece(confidence, correct),
        "rps": scoring.rps(bins, which),
        "half_brier": scoring.half_brier(bins, which),
        "nll": scoring.nll(bins, which),
        "spearman": float(np.nanmean(ranks)) if np.isfinite(ranks).any() else float("nan"),
        "failure_auroc": scoring.auroc(probabilities[:, 0], ~works),
    }


def score_answers(probabilities: Floats, truth: Sequence[int]) -> dict[str, float]:
    """The scores of answers to questions of any kind. probabilities: shape (n, answers); with two answers, the scores
    include the area under the ROC curve for the second."""
    which = np.array(truth)
    told = {
        "questions": float(len(which)),
        "exact": scoring.exact(probabilities, which),
        "ece": scoring.ece(probabilities.max(axis=1), scoring.hits(probabilities, which)),
        "half_brier": scoring.half_brier(probabilities, which),
        "nll": scoring.nll(probabilities, which),
    }
    return told | ({"auroc": scoring.auroc(probabilities[:, 1], which == 1)} if probabilities.shape[1] == 2 else {})


def fit_temperature(probabilities: Floats, truth: Sequence[int] | npt.NDArray[np.intp]) -> float:
    """The temperature that maximises the likelihood of the right answers; 1 if all are missing."""
    return 1.0 if np.isnan(probabilities).any(axis=1).all() else Temperature.fit(probabilities, truth).T


def warmed(log_probabilities: Floats, temperature: float) -> Floats:
    """Probabilities (n, 9) that sum to 1, from log-probabilities divided by a temperature."""
    logs = log_probabilities / temperature
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def table(columns: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """A table with a row for each score and a column for each set of scores."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    return [[name, *(f"{column.get(name, float('nan')):.4g}" for column in columns.values())] for name in names]


def _bins(probabilities: Floats) -> Floats:
    """The probabilities of the bins, given that the kernel works."""
    works = np.maximum(probabilities[:, 1:], 1e-12)
    return np.asarray(works / works.sum(axis=1, keepdims=True))
