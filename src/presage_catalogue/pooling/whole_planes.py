"""Global pooling: a reduction of each whole plane."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.pooling.windows import MAX, MEAN, Reduction


def _dims(n: int, c: int, h: int, w: int, values: str = "uniform") -> Case:
    return Case({"n": n, "c": c, "h": h, "w": w}, values=values)


class GlobalPool(Operation):
    inputs = (Array("x", "n, c, h, w"),)
    outputs = (Array("y", "n, c"),)
    timed = {"gpu": (_dims(32, 48, 128, 128), _dims(256, 2048, 7, 7))}
    checks = (
        _dims(1, 1, 1, 1),
        _dims(2, 3, 7, 7, "normal"),
        _dims(1, 5, 1, 131, "large"),
        _dims(3, 7, 33, 65, "outliers"),
        _dims(1, 2, 150, 211, "normal"),
        _dims(2, 130, 8, 8, "tiny"),
        _dims(1, 3, 5, 4, "equal"),
    )

    def __init__(self, name: str, summary: str, reduction: Reduction, eager: str) -> None:
        super().__init__(name)
        self.summary, self._reduction, self._eager = summary, reduction, eager

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def _rows(self, xp: ModuleType, case: Case, x: Any) -> Any:
        n, c, h, w = case.dims.values()
        return xp.reshape(x, (n, c, h * w))

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        rows = self._rows(xp, case, inputs[0])
        return (xp.max(rows, axis=-1) if self._reduction is MAX else xp.mean(rows, axis=-1),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._reduction.scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        return (xp.mean(xp.abs(self._rows(xp, case, inputs[0])), axis=-1),)

    def tolerance(self, case: Case) -> Tolerance:
        if self._reduction.scale is None:
            return self._reduction.tolerance
        return Tolerance(
            2.0**-16,
            "the roundings of a sum of 16384 elements, each of 2^-24 of the sum so far, partly cancel: 2^-16 of the"
            " mean size of the terms is more than a running sum leaves, and less than the 2^-11 of half precision",
        )

    def flops(self, case: Case) -> int:
        n, c, h, w = case.dims.values()
        return n * c * (h * w - 1)

    def draw_case(self, rng: random.Random) -> Case:
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _dims(rng.randint(1, 3), rng.randint(1, 20), rng.randint(1, 40), rng.randint(1, 40), style)

    def given(self, suffix: str) -> Mapping[str, str]:
        reduction = self._reduction
        if suffix == ".py":
            return {
                "ins": "x",
                "eager": self._eager,
                "row_start": reduction.triton["start"],
                "row_take": reduction.triton["merge"],
                "row_reduce": "tl.max(state, 1)" if reduction is MAX else "tl.sum(state, 1)",
                "row_finish": reduction.triton["finish"].replace("COUNT", "length"),
            }
        return {
            "entry": self.name,
            "arguments": "const float *__restrict__ x, float *__restrict__ y, int n, int c, int h, int w",
            "row_state": reduction.c["state"],
            "row_start": reduction.c["start"],
            "row_take": reduction.c["take"],
            "row_write": reduction.c["write"].replace("high * wide", "length"),
            "planes": "n * c",
            **{name: reduction.c[name] for name in ("state", "start", "take", "write")},
            "geometry": "const int high = h, wide = w, down = 1, across = 1, rows = 1, cols = 1;",
            "rows": "1",
            "cols": "1",
        }


OPERATIONS = (
    GlobalPool("global_avgpool", "y[i, c] = mean over h and w of x[i, c]", MEAN, "torch.mean(x, dim=(2, 3))"),
    GlobalPool("global_maxpool", "y[i, c] = max over h and w of x[i, c]", MAX, "torch.amax(x, dim=(2, 3))"),
)
