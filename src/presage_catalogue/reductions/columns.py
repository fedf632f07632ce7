"""Column reductions: reduce each column of a matrix to one number. The entries are as in `rows`."""

from __future__ import annotations

from presage.problems.base import cases
from presage_catalogue.reductions import fold
from presage_catalogue.reductions.rows import Reduction, root_of_squares, shapes, signed_halves


class ColumnReduction(Reduction):
    axis, group = 0, "rows"
    _draw = ((40, 3000), 130)
    checks = cases(
        "rows cols: 1 1; 1 7 large; 10007 3 normal; 251 67 large; 1027 36 outliers; 17 260 tiny; 31 13 equal;"
        " 300 129 zeros"
    )


OPERATIONS = (
    ColumnReduction(
        "sum_columns",
        "y[c] = sum over r of x[r, c]",
        lambda xp, axis, x: xp.sum(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum", {"sum": "x"}, "sum"),
        "torch.sum(x, dim=0)",
        timed=shapes("32768 1024; 4096 16384"),
        scale=root_of_squares,
    ),
    ColumnReduction(
        "max_columns",
        "y[c] = the largest x[r, c] of column c",
        lambda xp, axis, x: xp.max(x, axis=axis),
        fold.extreme("max", "fmaxf", "-INFINITY", "1.17549435e-38f", "tl.maximum", '-float("inf")'),
        "torch.amax(x, dim=0)",
        timed=shapes("49152 512; 2048 20480"),
        errors=None,
        prepare=signed_halves(-1.0),
    ),
    ColumnReduction(
        "mean_columns",
        "y[c] = mean over r of x[r, c]",
        lambda xp, axis, x: xp.mean(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum / n", {"sum": "x"}, "sum / n"),
        "torch.mean(x, dim=0)",
        timed=shapes("65536 768; 1024 65536"),
        scale=lambda xp, axis, x: root_of_squares(xp, axis, x) / x.shape[0],
    ),
)
