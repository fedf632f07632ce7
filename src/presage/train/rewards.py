"""The rewards of spoken answers: pure functions of an answer's text and of the measured result.

Each is `correctness`, alone or with a score of the whole distribution. The scores are proper: the expected reward is
highest for the true probabilities. An answer that cannot be parsed earns nothing. The reward falls to nothing as the
answer approaches the longest allowed length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from presage.core import scoring
from presage.core.errors import PresageError, hint
from presage.core.forecast import Forecast
from presage.forecasters.llm import parse
from presage.llm.answers import Answer
from presage.llm.structured import MalformedError

Floats = npt.NDArray[np.float64]

FULL_LENGTH = 0.75
"""The share of the allowed length up to which an answer gets its full reward. Beyond, the reward falls to 0 at 1."""


def outcomes(forecast: Forecast) -> Floats:
    """The probabilities of failure and of each bin, in the order of `llm_question.ANSWERS`; they sum to 1.

    >>> outcomes(Forecast.from_bins([0, 0, 0, 1, 1, 0, 0, 0], p_fail=0.5)).tolist()
    [0.5, 0.0, 0.0, 0.0, 0.25, 0.25, 0.0, 0.0, 0.0]
    """
    return np.concatenate(([forecast.p_fail], (1 - forecast.p_fail) * forecast.bin_probabilities()))


def correctness(forecast: Forecast, truth: int) -> float:
    """1 if the likeliest outcome is the true one. If m outcomes are equally likely, each counts 1 / m."""
    return scoring.exact(outcomes(forecast)[None], [truth])


def brier(forecast: Forecast, truth: int) -> float:
    """1 less half the squared distance from the true outcome, over failure and all bins: from 0 to 1."""
    return 1 - scoring.half_brier(outcomes(forecast)[None], [truth])


def rps(forecast: Forecast, truth: int) -> float:
    """1 less the mean of two penalties, from 0 to 1: the squared error of p_fail and, for a kernel that works, the
    ranked probability score of its bin, which penalises a neighbouring bin less than a distant one."""
    failed = truth == 0
    missed = 0.0 if failed else scoring.rps(forecast.bin_probabilities()[None], [truth - 1])
    return 1 - ((forecast.p_fail - failed) ** 2 + missed) / 2


_SCORES: Mapping[str, Callable[[Forecast, int], float]] = {"brier": brier, "rps": rps}
REWARDS = ("correctness", *(f"correctness+{name}" for name in _SCORES))


def reward(kind: str, text: str, truth: int, *, weight: float = 1.0, used: float = 0.0, finish: str = "stop") -> float:
    """The reward of an answer, from 0 to 1 + weight. truth: 0 for a failure, else 1 + the bin. weight: of the score
    that is added to correctness. used: the share of the allowed length that was used. finish: `length` if cut off.

    >>> sure = '{"reason": "", "p1": 0, "p2": 0, "p3": 0, "p4": 1, "p5": 0, "p6": 0, "p7": 0, "p8": 0, "p_fail": 0}'
    >>> reward("correctness", sure, 4), reward("correctness+brier", sure, 4, weight=0.5), reward("correctness", "", 4)
    (1.0, 1.5, 0.0)
    """
    check(kind)
    try:
        forecast = parse(Answer(text, finish)).forecast
    except MalformedError:
        return 0.0
    earned = correctness(forecast, truth)
    if score := kind.partition("+")[2]:
        earned += weight * _SCORES[score](forecast, truth)
    return earned * brevity(used)


def brevity(used: float) -> float:
    """The factor on the reward of an answer that used this share of the allowed length.

    >>> brevity(0.5), brevity(0.875), brevity(1.2)
    (1.0, 0.5, 0.0)
    """
    return float(np.clip((1 - used) / (1 - FULL_LENGTH), 0.0, 1.0))


def check(kind: str) -> None:
    if kind not in REWARDS:
        known = f"there are: {', '.join(REWARDS)}"
        raise PresageError(f"there is no reward '{kind}'; {hint(kind, REWARDS, known)}")
