"""Products whose result is a vector: a matrix times a vector, and the row sums of a matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.matmuls.products import IN_FLOAT32
from presage_catalogue.operation import Operation


class VectorProduct(Operation):
    """A product with a vector result. Its magnitude is the root of the result computed from squared factors."""

    torch_imports = IN_FLOAT32
    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        return tuple(xp.sqrt(y) for y in self.oracle(xp, case, *(x * x for x in inputs)))



class Matvec(VectorProduct):
    name = "matvec"
    textbook = 2
    _draw = (300, (200, 3000))
    _eager = "torch.mv(a, x)"
    summary = "y[i] = sum over p of a[i, p] * x[p]; a is row-major"
    inputs = (Array("a", "m, k"), Array("x", "k"))
    outputs = (Array("y", "m"),)
    timed = {"gpu": cases("m k: 16384 4096; 512 131072")}
    # No `equal` case has k over 30: the rounding errors of equal terms add up beyond the tolerance's random walk.
    checks = cases(
        "m k: 1 1; 3 10007 normal; 301 77 large; 67 1031 outliers; 1031 33 tiny; 13 23 equal; 33 2052 normal;"
        " 31 129 zeros"
    )

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, x = inputs
        return (xp.matmul(a, x),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            2.0**-24 * (4 * math.sqrt(case.dims["k"]) + 12),
            "k roundings of 2^-24 in a running sum grow like 0.3 sqrt(k), and 4 covers the worst of many rows; up to"
            " 131072 terms that stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        return case.dims["m"] * case.dims["k"]


class MatmulSumRows(VectorProduct):
    name = "matmul_sum_rows"
    _draw = (150, 150, 300)
    _eager = "torch.matmul(a, b).sum(dim=-1)"
    summary = "y[i] = sum over j and p of a[i, p] * b[p, j]: the sums of the rows of a product; both are row-major"
    inputs = (Array("a", "m, k"), Array("b", "k, n"))
    outputs = (Array("y", "m"),)
    timed = {"gpu": cases("m n k: 2048 2048 1024; 256 4096 4096")}
    # The `equal` case has few terms: the rounding errors of equal terms add up beyond the tolerance's random walk.
    checks = cases(
        "m n k: 1 1 1; 1 301 77 normal; 259 1 5 large; 67 131 261 outliers; 13 17 531 tiny; 5 3 7 equal;"
        " 132 68 64 normal; 31 7 129 zeros"
    )

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        a, b = inputs
        return (xp.sum(xp.matmul(a, b), axis=-1),)

    def tolerance(self, case: Case) -> Tolerance:
        steps = 16 + 8 * math.sqrt(case.dims["k"]) + 8 * math.sqrt(case.dims["n"])
        return Tolerance(
            2.0**-24 * steps,
            "sums of k terms and then of n, or of n and then of k, drift like the roots of both, and 8 covers the worst"
            " of many rows; that stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """The rows of b can be summed first, which leaves a matrix-vector product."""
        return case.dims["k"] * (case.dims["n"] - 1) + case.dims["m"] * case.dims["k"]


OPERATIONS = (Matvec(), MatmulSumRows())
