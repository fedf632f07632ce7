"""Running sums of gates within chunks of 64 tokens."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.research.chunked import CHUNK
from presage_catalogue.research.staged import SUM_ERROR, Staged


def _case(batch: int, length: int, heads: int, values: str = "uniform") -> Case:
    return Case({"batch": batch, "length": length, "heads": heads}, values=values)


class ChunkCumsumGates(Staged):
    summary = (
        "y[b, t, h] = sum of g[b, s, h] over all s <= t of the same chunk of 64 tokens; the last chunk may be shorter"
    )
    inputs = (Array("g", "batch, length, heads"),)
    outputs = (Array("y", "batch, length, heads"),)
    timed = {"gpu": (_case(16, 32768, 32), _case(48, 65500, 5))}
    checks = (
        _case(1, 1, 1),
        _case(2, 63, 3, "large"),
        _case(1, 65, 33, "normal"),
        _case(3, 200, 16, "outliers"),
        _case(2, 1000, 5, "normal"),
        _case(1, 129, 130, "tiny"),
        _case(5, 64, 7, "equal"),
        _case(2, 100, 9, "zeros"),
    )
    eager = """
batch, length, heads = g.shape
padded = torch.nn.functional.pad(g, (0, 0, 0, -length % 64)).view(batch, -1, 64, heads)
return padded.cumsum(2).view(batch, -1, heads)[:, :length].contiguous()
"""

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._sums(xp, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The prefix's root sum of squares times the root of its length: each element adds one more rounding."""
        (g,) = inputs
        return (xp.sqrt(self._sums(xp, g * g) * self._sums(xp, g * 0.0 + 1.0)),)

    def _sums(self, xp: Any, g: Any) -> Any:
        parts = [
            xp.cumulative_sum(g[:, start : start + CHUNK, :], axis=1) for start in range(0, int(g.shape[1]), CHUNK)
        ]
        return xp.concat(parts, axis=1)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(
            SUM_ERROR,
            "a running sum of n <= 64 terms collects n roundings of 2^-24, which add up like a random walk; 16 covers"
            " the worst of all elements, while terms rounded to a 10-bit mantissa already show in short prefixes",
        )

    def flops(self, case: Case) -> int:
        batch, length, heads = case.dims.values()
        return batch * heads * (length - -(-length // CHUNK))

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 4), rng.randint(1, 400), rng.randint(1, 40), style)
