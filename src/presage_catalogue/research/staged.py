"""The base class of this room's problems: matrix products as separate stages, and one PyTorch code for each problem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from presage_catalogue.operation import Operation

SUM_ERROR = 16 * 2.0**-24
"""A float32 sum is off by this times the root of its number of terms, relative to the terms' root sum of squares."""


class Staged(Operation):
    """A problem made of stages. Its file `stages.cuh`, if it exists, is inserted into the families that implement
    `product`. Its PyTorch code is used in both `eager.py` and `compiled.py`."""

    most_products: ClassVar[int] = 1
    """The maximum number of right-hand sides that a stage multiplies with the same left-hand side."""

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {"ins": ", ".join(self.ins), "eager": self._eager.strip()}
        return {"most": str(self.most_products)} if suffix == ".cu" else {}


def sum_error(*terms: int) -> float:
    """Return the relative error to allow after consecutive sums of these numbers of terms."""
    return SUM_ERROR * math.sqrt(sum(terms) + 16)
