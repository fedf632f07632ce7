"""The losses of a model that is read out: they compare the probabilities of its answers with the measured result.

Each is a proper score: the expected loss is least for the true probabilities. `log` is the negative logarithm of the
probability of the true answer. `brier` and `rps` are the squared error of the probability of failure plus, for kernels
that work, half the Brier score or the ranked probability score of the bins. They are the scores of `core.scoring`, for
tensors. For two answers, yes or no, `brier` and `rps` are the squared error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from presage.core.errors import PresageError, hint

_ELSEWHERE = 0.1
"""The weight of the logarithm of the total probability of all answers. It keeps a model from other words, so that the
answers are among the likeliest tokens that an endpoint returns."""
_LEAST = 1e-6
_LEAST_NORMAL = 1e-37
"""So small that the logarithm of every probability that a model computes has a gradient, also of the least likely."""


def log(q: Any, truth: Any) -> Any:
    """-ln of the true answer's probability. q: (n, answers); truth: (n,), 0 for a failure, else 1 + the bin."""
    return -q.gather(1, truth[:, None])[:, 0].clamp(min=_LEAST_NORMAL).log()


def brier(q: Any, truth: Any) -> Any:
    gap = _given_works(q) - _one_hot(truth, q)
    return _failure(q, truth) + (truth > 0) * (gap**2).sum(1) / 2


def rps(q: Any, truth: Any) -> Any:
    gap = (_given_works(q) - _one_hot(truth, q)).cumsum(1)[:, :-1]
    return _failure(q, truth) + (truth > 0) * (gap**2).sum(1) / max(1, gap.shape[1])


LOSSES: Mapping[str, Callable[[Any, Any], Any]] = {"log": log, "brier": brier, "rps": rps}


def loss(kind: str, log_probabilities: Any, truth: Any) -> Any:
    """The loss of each forecast, shape (n,). log_probabilities: of the answers, among all tokens."""
    together = log_probabilities.logsumexp(1)
    q = (log_probabilities - together[:, None]).exp()
    return LOSSES[kind](q, truth) - _ELSEWHERE * together


def check(kind: str) -> None:
    if kind not in LOSSES:
        known = f"there are: {', '.join(LOSSES)}"
        raise PresageError(f"there is no loss '{kind}'; {hint(kind, LOSSES, known)}")


def _failure(q: Any, truth: Any) -> Any:
    return (q[:, 0] - (truth == 0).to(q.dtype)) ** 2


def _given_works(q: Any) -> Any:
    return q[:, 1:] / q[:, 1:].sum(1, keepdim=True).clamp(min=_LEAST)


def _one_hot(truth: Any, q: Any) -> Any:
    """The one-hot vector of the true bin; all 0 for a failure."""
    hot = q.new_zeros(q.shape)
    hot.scatter_(1, truth[:, None], 1.0)
    return hot[:, 1:]
