"""What the stages of a chunked gated delta rule share: sequences cut into chunks of 64 tokens, and their gates."""

from __future__ import annotations

import random
from typing import Any

from presage.problems.base import Case
from presage.problems.sampler import Sampler
from presage_catalogue.research.staged import Staged

CHUNK = 64


def chunked_case(heads: int, chunks: int, dk: int, dv: int, values: str = "uniform") -> Case:
    return Case({"heads": heads, "chunks": chunks, "dk": dk, "dv": dv}, values=values)


class Chunked(Staged):
    """Sequences of 64 * chunks tokens for each head, keys of dk <= 128 and values of dv numbers."""

    timed = {"gpu": (chunked_case(32, 32, 128, 128), chunked_case(256, 8, 64, 64))}
    checks = (
        chunked_case(1, 1, 1, 1),
        chunked_case(2, 1, 5, 3, "large"),
        chunked_case(1, 3, 33, 17, "normal"),
        chunked_case(2, 1, 16, 130, "outliers"),
        chunked_case(1, 2, 64, 64, "normal"),
        chunked_case(1, 2, 128, 65, "tiny"),
        chunked_case(3, 2, 7, 9, "zeros"),
    )

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return chunked_case(rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 128), rng.randint(1, 70), style)

    def textbook_flops(self, case: Case) -> int:
        return 2 * self.flops(case)


def tokens(case: Case) -> tuple[int, int]:
    return case.dims["heads"], CHUNK * case.dims["chunks"]


def gates(case: Case, sampler: Sampler) -> Any:
    """The logarithms of the gates, all at most 0, summed up within each chunk."""
    heads, length = tokens(case)
    steps = -0.02 * sampler.xp.abs(sampler.values((heads, length // CHUNK, CHUNK), case.dtype, "uniform"))
    return sampler.xp.reshape(sampler.xp.cumulative_sum(steps, axis=-1), (heads, length))


def keys(case: Case, sampler: Sampler) -> Any:
    """Vectors of about unit length, whatever the case's style."""
    dk = case.dims["dk"]
    return sampler.values((*tokens(case), dk), case.dtype, "uniform") * dk**-0.5


def cut(xp: Any, x: Any) -> Any:
    """(heads, tokens, ...) as (heads, chunks, 64, ...)."""
    return xp.reshape(x, (x.shape[0], x.shape[1] // CHUNK, CHUNK, *x.shape[2:]))


def turned(xp: Any, x: Any) -> Any:
    """The matrices of the last two axes, transposed."""
    return xp.permute_dims(x, (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2))
