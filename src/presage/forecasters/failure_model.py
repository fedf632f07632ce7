"""What a search has seen fail says what will: a logistic regression on families and the values of tunables.

It starts from the chances that were forecast, and every family and value moves them as little as explains what was seen
(a normal prior on each).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from presage.kernels.kernel import Kernel

Floats = npt.NDArray[np.float64]

_PRECISION = 0.5
"""Of the prior, one over its variance."""
_CERTAIN = 1e-3
"""No forecast is taken to be surer than this."""
_ROUNDS, _STEP, _CLOSE = 25, 2.0, 1e-4


def learn(
    tried: Sequence[Kernel], failed: Sequence[bool], expected: Floats, asked: Sequence[Kernel], forecast: Floats
) -> Floats:
    """The chance that each kernel asked about fails: `forecast`, moved by what `tried` ones did against `expected`."""
    if not tried:
        return forecast
    columns = {word: column for column, word in enumerate(dict.fromkeys(w for kernel in tried for w in _words(kernel)))}
    seen, start, wanted = _table(tried, columns), _logit(expected), np.array(failed, dtype=np.float64)
    weights = np.zeros(seen.shape[1])
    for _ in range(_ROUNDS):  # Newton's method; steps are cut short, for it may leap too far
        said = _chance(start + seen @ weights)
        slope = seen.T @ (said - wanted) + _PRECISION * weights
        bend = (seen.T * (said * (1 - said))) @ seen + _PRECISION * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights -= step * min(1.0, _STEP / max(1e-9, float(np.abs(seen @ step).max())))
        if np.abs(step).max() < _CLOSE:
            break
    return _chance(_logit(forecast) + _table(asked, columns) @ weights)


def _words(kernel: Kernel) -> list[tuple[str, object]]:
    """What may make kernels fail alike. A tunable means the same in all families of a problem."""
    return [("family", kernel.family), *((f"tunable {name}", value) for name, value in kernel.values.items())]


def _table(kernels: Sequence[Kernel], columns: dict[tuple[str, object], int]) -> Floats:
    """A row per kernel: which words it has, and a one."""
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
