"""The scale of speedups. Bins, labels, prompt text and answer schema all derive from one table of edges, so that
users, models and metrics always use the same bins."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

# The edges in half octaves of S. They are integers, so that both S and log2 S are exact to the last bit.
_HALF_OCTAVES = (-4, -2, -1, 0, 1, 2, 4)

EDGES: tuple[float, ...] = tuple(math.sqrt(math.ldexp(1.0, h)) for h in _HALF_OCTAVES)
"""0.25, 0.5, 1/√2, 1, √2, 2, 4. Bin k (0-based) holds EDGES[k-1] < S <= EDGES[k]; the outer bins are open."""

LOG2_EDGES: tuple[float, ...] = tuple(h / 2 for h in _HALF_OCTAVES)

BINS = len(EDGES) + 1

LOG2_KNOTS: tuple[float, ...] = (LOG2_EDGES[0] - 1, *LOG2_EDGES, LOG2_EDGES[-1] + 1)
"""The ends of every bin in log2 S, shape (BINS + 1,); the outer bins reach one octave beyond their edge."""

KEYS: tuple[str, ...] = tuple(f"p{k + 1}" for k in range(BINS))
"""The name of each bin's probability in an answer."""


def bin_of(speedups: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Return the 0-based bin of each speedup, in the shape of the input. Raises ValueError unless S > 0.

    >>> bin_of([0.1, 0.25, 1.0, 1.1, 4.0, 5.0]).tolist()
    [0, 0, 3, 4, 6, 7]
    """
    S = np.asarray(speedups, dtype=np.float64)
    if not np.all(S > 0):
        raise ValueError(f"a speedup is a positive number, not {S[~(S > 0)].flat[0]}")
    return np.asarray(np.searchsorted(EDGES, S, side="left"), dtype=np.intp)


def labels() -> tuple[str, ...]:
    """Return one condition on S per bin, with edges rounded to three digits.

    >>> labels()[0], labels()[2], labels()[7]
    ('S <= 0.25', '0.5 < S <= 0.707', 'S > 4')
    """
    edges = [f"{edge:.3g}" for edge in EDGES]
    inner = (f"{low} < S <= {high}" for low, high in itertools.pairwise(edges))
    return (f"S <= {edges[0]}", *inner, f"S > {edges[-1]}")


def prompt_lines() -> tuple[str, ...]:
    """Return one prompt line per bin: the bin's key in the answer, and its condition on S.

    >>> prompt_lines()[2]
    'p3: 0.5 < S <= 0.707'
    """
    return tuple(f"{key}: {label}" for key, label in zip(KEYS, labels(), strict=True))


def answer_schema() -> dict[str, Any]:
    """Return a flat JSON schema for an answer: a short reason, a probability per bin, and p_fail.

    The reason comes first, so that the model writes it before the numbers. Ranges and lengths are given in words,
    because not every endpoint accepts `minimum` or `maxLength`. Forecast checks the numbers.

    >>> list(answer_schema()["properties"])
    ['reason', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8', 'p_fail']
    """
    properties: dict[str, Any] = {"reason": {"type": "string", "description": "at most 40 words"}}
    for key, label in zip(KEYS, labels(), strict=True):
        properties[key] = {"type": "number", "description": f"probability, 0 to 1, of {label} if the kernel works"}
    properties["p_fail"] = {"type": "number", "description": "probability, 0 to 1, that the kernel fails"}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
