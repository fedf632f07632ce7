"""Finds the inputs that every kernel has to read as a whole.

A kernel need not read what the answer does not depend on, such as the rows of a table that nobody asks for. So single
values are changed, and the reference is asked again. An input has to be read if every value that was tried matters.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

SAMPLES = 16
"""How many values of an input are tried. Where one in ten does not matter, one set in five misses that."""
LEAST_SHARE = 0.02
"""Inputs that have less than this share of the bytes of all are not tried."""
VISIBLE, VISIBLE_IN_DOUBLE = 1e-4, 1e-11
"""How much an output changes if a value matters, as a share of its largest value."""
NOISES, NOISES_IN_DOUBLE = 16.0, 1e-7
"""And in units of the error of the reference, which double precision makes 2**-29 as large."""
_FLOATS = ("float16", "bfloat16", "float32", "float64")

Answer = Callable[[], Sequence[Any]]


def needed(
    inputs: Sequence[Any], answer: Answer, in_double: Answer, seed: int, seconds: float, torch: Any
) -> list[int]:
    """The numbers of the inputs of which every value matters, of those that can be tried in this time.

    `inputs` are changed, and restored. `answer` gives the reference's outputs for them, and `in_double` those in double
    precision, or none.
    """
    right, exact = list(answer()), list(in_double())
    noise = [_largest(one - other) for one, other in zip(_wide(right), _wide(exact), strict=True)] if exact else []
    views = [_View(answer, right, VISIBLE, [NOISES * each for each in noise], torch)]
    if exact:
        views.append(_View(in_double, exact, VISIBLE_IN_DOUBLE, [NOISES_IN_DOUBLE * each for each in noise], torch))
    if views[0].differs():  # there is state or chance in it
        return []
    rng, end = random.Random(seed), time.monotonic() + seconds
    least = LEAST_SHARE * sum(tensor.nbytes for tensor in inputs)
    found = [
        number
        for number in sorted(range(len(inputs)), key=lambda number: -inputs[number].nbytes)
        if inputs[number].nbytes >= least and _matters(inputs[number], views, rng, end)
    ]
    return [] if views[0].differs() else sorted(found)


def _matters(tensor: Any, views: Sequence[_View], rng: random.Random, end: float) -> bool:
    """Whether every value that is tried of a tensor matters. Only floats can be changed without care: integers may be
    indices, and a value from the tensor itself is none that the reference is not made for."""
    if str(tensor.dtype).removeprefix("torch.") not in _FLOATS or not tensor.numel():
        return False
    low, high = float(tensor.min()), float(tensor.max())
    if not math.isfinite(high - low):
        return False
    places = (tuple(rng.randrange(size) for size in tensor.shape) for _ in range(SAMPLES))
    return all(time.monotonic() < end and _value_matters(tensor, place, (low, high), views) for place in places)


def _value_matters(tensor: Any, place: tuple[int, ...], ends: tuple[float, float], views: Sequence[_View]) -> bool:
    """Whether an output is another one where the value at this place is the largest of the tensor, or the least."""
    value = float(tensor[place])
    others = sorted((other for other in ends if other != value), key=lambda other: -abs(other - value))
    for view in views:
        for other in others:
            tensor[place] = other
            try:
                if view.differs():
                    return True
            finally:
                tensor[place] = value
    return False


class _View:
    """Tells whether outputs are no longer what they were."""

    def __init__(self, answer: Answer, before: Sequence[Any], share: float, noise: Sequence[float], torch: Any) -> None:
        self._answer, self._torch, self._before = answer, torch, [output.clone() for output in before]
        scales = [share * _largest(output) for output in _wide(before)]
        self._allowed = list(map(max, scales, noise)) if noise else scales

    def differs(self) -> bool:
        return any(map(self._differ, self._before, self._answer(), self._allowed))

    def _differ(self, before: Any, after: Any, allowed: float) -> bool:
        if before.shape != after.shape:
            return True
        before, after = _wide((before, after))
        return not bool(self._torch.isclose(after, before, rtol=0.0, atol=allowed, equal_nan=True).all())


def _wide(outputs: Sequence[Any]) -> list[Any]:
    return [output.double() for output in outputs]


def _largest(output: Any) -> float:
    finite = output[output.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0
