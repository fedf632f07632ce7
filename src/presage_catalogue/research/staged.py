"""What the problems of this room share: products of matrices as stages of their own, and one text for PyTorch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from presage_catalogue.operation import Operation

SUM_ERROR = 16 * 2.0**-24
"""Times the root of the number of terms: what a float32 sum is off by, relative to the root of its terms' squares."""


class Staged(Operation):
    """A problem whose `stages.cuh`, where it has one, goes into the families that implement `product`, and whose
    PyTorch text serves both `eager.py` and `compiled.py`."""

    most_products: ClassVar[int] = 1
    """How many right-hand sides a stage multiplies with the same left-hand side, at most."""

    def code(self, suffix: str) -> Mapping[str, str]:
        if suffix == ".py":
            return {"ins": ", ".join(self.ins), "eager": self._eager.strip()}
        return {"most": str(self.most_products)} if suffix == ".cu" else {}


def sum_error(*terms: int) -> float:
    """The relative error to allow after sums of this many terms, one after the other."""
    return SUM_ERROR * math.sqrt(sum(terms) + 16)
