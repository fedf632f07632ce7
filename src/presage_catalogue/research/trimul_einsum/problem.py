"""The contraction inside a triangle multiplicative update."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import Staged, sum_error


def _case(n: int, hidden: int, values: str = "uniform") -> Case:
    return Case({"n": n, "hidden": hidden}, values=values)


class TrimulEinsum(Staged):
    summary = "y[i, j, h] = sum over k of left[i, k, h] * right[j, k, h]; h is innermost in memory"
    inputs = (Array("left", "n, n, hidden"), Array("right", "n, n, hidden"))
    outputs = (Array("y", "n, n, hidden"),)
    timed = {"gpu": (_case(256, 128), _case(400, 40))}
    # A long sum of equal terms drifts by more than the tolerance's random walk, so the `equal` case is short.
    checks = (
        _case(1, 1),
        _case(3, 129, "large"),
        _case(17, 5, "normal"),
        _case(18, 33, "outliers"),
        _case(29, 7, "tiny"),
        _case(70, 2, "normal"),
        _case(9, 40, "equal"),
        _case(12, 16, "zeros"),
    )
    eager = 'return torch.einsum("ikh,jkh->ijh", left, right).contiguous()'

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(sampler.values(self.shape(array, case), case.dtype) for array in self.inputs)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (contract(xp, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        left, right = inputs
        return (xp.sqrt(contract(xp, left * left, right * right)),)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            sum_error(case.dims["n"]),
            "n roundings of 2^-24 in a running sum grow like sqrt(n); 16 covers any order and the worst of all"
            " elements, and stays under the 2^-12 that one rounding to a 10-bit mantissa costs",
        )

    def flops(self, case: Case) -> int:
        """Half of the classical count, as for any product of matrices."""
        return case.dims["n"] ** 3 * case.dims["hidden"]

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        return _case(rng.randint(1, 24), rng.randint(1, 60), rng.choice(("normal", "large", "tiny", "outliers")))


def contract(xp: Any, left: Any, right: Any) -> Any:
    """The sums over k, as one product of matrices for each h."""
    return xp.permute_dims(xp.matmul(xp.permute_dims(left, (2, 0, 1)), xp.permute_dims(right, (2, 1, 0))), (1, 2, 0))
