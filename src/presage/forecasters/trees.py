"""Shared by all models of boosted trees: feature tables, and digests that detect truncated files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> npt.NDArray[np.float64]:
    """The rows as a table with these columns; missing values are NaN."""
    return np.array([[row.get(name, math.nan) for name in names] for row in rows], dtype=np.float64)
