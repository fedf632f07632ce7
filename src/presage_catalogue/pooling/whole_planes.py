"""Global pooling: a reduction of each whole plane."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Tolerance, cases
from presage_catalogue.operation import Operation
from presage_catalogue.pooling.windows import MAX, MEAN, Reduction


class GlobalPool(Operation):
    torch_imports = "import torch.nn.functional as F"
    inputs = (Array("x", "n, c, h, w"),)
    outputs = (Array("y", "n, c"),)
    timed = {"gpu": cases("n c h w: 32 48 128 128; 256 2048 7 7")}
    checks = cases(
        "n c h w: 1 1 1 1; 2 3 7 7 normal; 1 5 1 131 large; 3 7 33 65 outliers; 1 2 150 211 normal; 2 130 8 8 tiny;"
        " 1 3 5 4 equal"
    )

    _draw = (3, 20, 40, 40)

    def __init__(self, name: str, summary: str, reduction: Reduction, eager: str) -> None:
        super().__init__(name, summary, eager=eager)
        self._reduction = reduction

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

    def code(self, suffix: str) -> Mapping[str, str]:
        reduction = self._reduction
        if suffix == ".py":
            return {
                "ins": "x",
                "row_start": reduction.triton["start"],
                "row_take": reduction.triton["merge"],
                "row_reduce": "tl.max(state, 1)" if reduction is MAX else "tl.sum(state, 1)",
                "row_finish": reduction.triton["finish"].replace("COUNT", "length"),
            }
        return {
            "entry": self.name,
            "arguments": self.c_arguments(),
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
