"""Products of many pairs of matrices."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.matmuls.products import Form, places


def _case(batch: int, m: int, n: int, k: int, values: str = "uniform") -> Case:
    return Case({"batch": batch, "m": m, "n": n, "k": k}, values=values)


class BatchedMatmul(Problem):
    summary = "c[t, i, j] = sum over p of a[t, i, p] * b[t, p, j], for each t of the batch; all row-major"
    inputs = (Array("a", "batch, m, k"), Array("b", "batch, k, n"))
    outputs = (Array("c", "batch, m, n"),)
    timed = {
        "cpu": (_case(64, 64, 64, 64), _case(8, 128, 128, 256)),
        "gpu": (_case(512, 128, 128, 128), _case(64, 1024, 64, 1024), _case(8192, 32, 32, 64)),
    }
    # A long sum of equal terms drifts by more than the tolerance's random walk, so no `equal` case has k over 30.
    checks = (
        _case(1, 1, 1, 1),
        _case(5, 1, 67, 33, "normal"),
        _case(3, 71, 1, 129, "large"),
        _case(2, 37, 53, 401, "outliers"),
        _case(33, 9, 17, 1, "tiny"),
        _case(7, 13, 35, 19, "equal"),
        _case(1, 65, 131, 257, "normal"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.matmul(a, b),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.sqrt(xp.matmul(a * a, b * b)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            16 * 2.0**-24 * math.sqrt(case.dims["k"]),
            "k roundings of 2^-24 in a running sum grow like sqrt(k); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count: Strassen's 7/8 per level halves it only at the fifth, which never pays here."""
        return math.prod(case.dims.values())

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 9), rng.randint(1, 90), rng.randint(1, 90), rng.randint(1, 300), style)

    def given(self, suffix: str) -> Mapping[str, str]:
        return places(self, Form(batched=True, long_sums=False), suffix)
