"""Two-dimensional maximum pooling."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler


def _case(n: int, c: int, h: int, w: int, window: int, stride: int, values: str = "uniform") -> Case:
    return Case({"n": n, "c": c, "h": h, "w": w, "window": window, "stride": stride}, values=values)


class MaxPool2d(Problem):
    summary = (
        "y[i, c, p, q] = max over u, v < window of x[i, c, p * stride + u, q * stride + v]:"
        " windows that fit wholly, no padding"
    )
    inputs = (Array("x", "n, c, h, w"),)
    outputs = (Array("y", "n, c, (h - window) // stride + 1, (w - window) // stride + 1"),)
    parameters = ("window", "stride")
    timed = {
        "cpu": (_case(4, 32, 112, 112, 3, 2), _case(1, 64, 96, 96, 7, 1)),
        "gpu": (_case(64, 64, 112, 112, 3, 2), _case(32, 128, 96, 96, 7, 1), _case(64, 64, 224, 224, 2, 2)),
    }
    checks = (
        _case(1, 1, 1, 1, 1, 1),
        _case(2, 3, 5, 5, 5, 3, "normal"),
        _case(1, 5, 17, 83, 3, 2, "large"),
        _case(3, 2, 23, 41, 2, 5, "outliers"),
        _case(1, 2, 9, 70, 4, 1, "equal"),
        _case(2, 4, 31, 30, 2, 2, "tiny"),
        _case(1, 3, 40, 131, 8, 3, "normal"),
        _case(1, 2, 12, 37, 1, 2, "zeros"),
    )

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case), case.dtype),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """Maxima down the columns, then along the rows: a window's maximum is that of its rows' maxima."""
        (x,) = inputs
        window, stride = case.dims["window"], case.dims["stride"]
        _, _, rows, cols = self.shape(self.outputs[0], case)
        down = x[:, :, : (rows - 1) * stride + 1 : stride, :]
        for u in range(1, window):
            down = xp.maximum(down, x[:, :, u : u + (rows - 1) * stride + 1 : stride, :])
        y = down[:, :, :, : (cols - 1) * stride + 1 : stride]
        for v in range(1, window):
            y = xp.maximum(y, down[:, :, :, v : v + (cols - 1) * stride + 1 : stride])
        return (y,)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(0.0, "a maximum is one of its inputs, so nothing is rounded", absolute=0.0)

    def bytes(self, case: Case) -> int:
        """Rows and columns that no window covers need not be read."""
        n, c, _, _, window, stride = case.dims.values()
        _, _, rows, cols = self.shape(self.outputs[0], case)
        read = [(outputs - 1) * min(window, stride) + window for outputs in (rows, cols)]
        element = self.array_bytes(self.outputs[0], case) // (n * c * rows * cols)
        return n * c * (read[0] * read[1] + rows * cols) * element

    def flops(self, case: Case) -> int:
        """Comparisons in windows that do not overlap; those between them may share all of theirs."""
        n, c, _, _, window, stride = case.dims.values()
        _, _, rows, cols = self.shape(self.outputs[0], case)
        apart = -(-window // stride)
        return n * c * -(-rows // apart) * -(-cols // apart) * (window * window - 1)

    def draw_case(self, rng: random.Random) -> Case:
        window, stride = rng.randint(1, 8), rng.randint(1, 4)
        h, w = rng.randint(window, 50), rng.randint(window, 120)
        style = rng.choice(("normal", "large", "tiny", "outliers"))
        return _case(rng.randint(1, 3), rng.randint(1, 9), h, w, window, stride, style)
