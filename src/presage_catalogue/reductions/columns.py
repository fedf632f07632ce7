"""Column reductions: operations that make one number of each column of a matrix, that is, along the first axis."""

from __future__ import annotations

import random

from presage.problems.base import Case
from presage_catalogue.reductions import fold
from presage_catalogue.reductions.rows import Reduction, root_of_squares, shapes, signed_halves


class ColumnReduction(Reduction):
    axis, group = 0, "rows"
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 1, "cols": 7}, values="large"),
        Case({"rows": 10007, "cols": 3}, values="normal"),
        Case({"rows": 251, "cols": 67}, values="large"),
        Case({"rows": 1027, "cols": 36}, values="outliers"),
        Case({"rows": 17, "cols": 260}, values="tiny"),
        Case({"rows": 31, "cols": 13}, values="equal"),
        Case({"rows": 300, "cols": 129}, values="zeros"),
    )

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, rng.choice((40, 3000))), "cols": rng.randint(1, 130)}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))


OPERATIONS = (
    ColumnReduction(
        "sum_columns",
        "y[c] = sum over r of x[r, c]",
        lambda xp, axis, x: xp.sum(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum", {"sum": "x"}, "sum"),
        "torch.sum(x, dim=0)",
        timed=shapes((32768, 1024), (4096, 16384)),
        scale=root_of_squares,
    ),
    ColumnReduction(
        "max_columns",
        "y[c] = the largest x[r, c] of column c",
        lambda xp, axis, x: xp.max(x, axis=axis),
        fold.extreme("max", "fmaxf", "-INFINITY", "1.17549435e-38f", "tl.maximum", '-float("inf")'),
        "torch.amax(x, dim=0)",
        timed=shapes((49152, 512), (2048, 20480)),
        errors=None,
        prepare=signed_halves(-1.0),
    ),
    ColumnReduction(
        "mean_columns",
        "y[c] = mean over r of x[r, c]",
        lambda xp, axis, x: xp.mean(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum / n", {"sum": "x"}, "sum / n"),
        "torch.mean(x, dim=0)",
        timed=shapes((65536, 768), (1024, 65536)),
        scale=lambda xp, axis, x: root_of_squares(xp, axis, x) / x.shape[0],
    ),
)
