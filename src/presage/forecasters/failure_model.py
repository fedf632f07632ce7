"""Predict failures from the failures of a search: a logistic regression on families and the values of tunables.

The regression starts from the forecast probabilities. Each family and each value has a weight with a normal prior, so
that the probabilities move no further than the observed failures require.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from presage.kernels.kernel import Kernel

Floats = npt.NDArray[np.float64]

_PRECISION = 0.5
"""1 / variance of the prior on each weight."""
_CERTAIN = 1e-3
"""Forecast probabilities are clamped to [_CERTAIN, 1 - _CERTAIN] before the logit."""
_ROUNDS, _STEP, _CLOSE = 25, 2.0, 1e-4


def learn(
    tried: Sequence[Kernel], failed: Sequence[bool], expected: Floats, asked: Sequence[Kernel], forecast: Floats
) -> Floats:
    """The probability that each kernel in `asked` fails: `forecast`, corrected by the outcomes of the `tried` kernels.

    failed, expected: for each tried kernel, whether it failed, and the probability of that before it was tried."""
    if not tried:
        return forecast
    columns = {word: column for column, word in enumerate(dict.fromkeys(w for kernel in tried for w in _words(kernel)))}
    seen, start, wanted = _table(tried, columns), _logit(expected), np.array(failed, dtype=np.float64)
    weights = np.zeros(seen.shape[1])
    for _ in range(_ROUNDS):  # Newton's method; long steps are cut short, because they can overshoot
        said = _chance(start + seen @ weights)
        slope = seen.T @ (said - wanted) + _PRECISION * weights
        bend = (seen.T * (said * (1 - said))) @ seen + _PRECISION * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights -= step * min(1.0, _STEP / max(1e-9, float(np.abs(seen @ step).max())))
        if np.abs(step).max() < _CLOSE:
            break
    return _chance(_logit(forecast) + _table(asked, columns) @ weights)


def _words(kernel: Kernel) -> list[tuple[str, object]]:
    """Properties that may make kernels fail in the same way. A tunable means the same in all families of a problem."""
    return [("family", kernel.family), *((f"tunable {name}", value) for name, value in kernel.values.items())]


def _table(kernels: Sequence[Kernel], columns: dict[tuple[str, object], int]) -> Floats:
    """A row per kernel: 1 for each word that it has, and a last column of ones for the intercept."""
    table = np.zeros((len(kernels), len(columns) + 1))
    table[:, -1] = 1.0
    for row, kernel in enumerate(kernels):
        for word in _words(kernel):
            if word in columns:
                table[row, columns[word]] = 1.0
    return table


def _logit(chances: Floats) -> Floats:
    kept = np.clip(chances, _CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(kept / (1 - kept)))


def _chance(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))))
