"""Row reductions: reduce each row of a matrix to one number.

Each entry of `OPERATIONS` gives the oracle, the fold that kernels use (see `fold`) and the PyTorch code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Formula, Operation
from presage_catalogue.reductions import fold
from presage_catalogue.reductions.fold import Fold

_UNIT = 2.0**-24


class Reduction(Operation):
    """Reduces each group of elements along `axis` to one number. `fold` fills the placeholders of the families."""

    axis: int
    group: str
    """The dimension that is reduced."""

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        how: Fold,
        eager: str,
        /,
        *,
        each: int = 1,
        reads: str = "x",
        errors: tuple[float, float] | None = (8.0, 2.0),
        prepare: Callable[[Any, Any], Any] | None = None,
        **facts: Unpack[Facts],
    ) -> None:
        """`each`: the number of operations per element. `errors` (a, b): for n elements, any order of summation may be
        off by (a + b * sqrt(n)) * 2^-24; None means that the result is exact. `prepare`: turns drawn values into
        inputs."""
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, summary, **facts)
        self._fold, self._errors, self._prepare, self._each = how, errors, prepare, each
        self.inputs = tuple(Array(each, "rows, cols") for each in reads.split())
        kept = "rows" if self.group == "cols" else "cols"
        self.outputs = (Array("y", kept, "int64" if how.result == "long long" else "T"),)

    def told(self, case: Case) -> tuple[Any, ...]:
        return (self.axis,)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        drawn = super().make_inputs(case, sampler)
        return tuple(self._prepare(sampler, x) if self._prepare else x for x in drawn)

    def tolerance(self, case: Case) -> Tolerance:
        if hasattr(self, "_tolerance"):
            return self._tolerance
        if self._errors is None:
            return Tolerance(0.0, "nothing is rounded", absolute=0.0)
        once, each = self._errors
        return Tolerance(
            (once + each * case.dims[self.group] ** 0.5) * _UNIT,
            f"adding n terms one by one in float32 is off by about 0.3 * sqrt(n) * 2^-24; {each:g} * sqrt(n) leaves"
            f" room for the worst of many groups and {once:g} for what happens once; terms of 11 bits are off by some"
            " 2300 * 2^-24",
        )

    def flops(self, case: Case) -> int:
        rows, cols = case.dims["rows"], case.dims["cols"]
        return self._each * (rows * cols - (rows if self.group == "cols" else cols))

    def code(self, suffix: str) -> Mapping[str, str]:
        row_wise = self.group == "cols"
        shape = "row" if row_wise else "column"
        ins = tuple(self.ins)
        if suffix == ".py":
            tiles = self._fold.triton(ins)
            return tiles | {"eager": self._eager, f"{shape}_pointers": tiles["pointers"]}
        qualifier = "restrict" if suffix == ".c" else "__restrict__"
        arguments = self.c_arguments(qualifier)
        return {
            **(self._fold.c(ins) if suffix == ".c" else self._fold.cuda(ins)),
            "entry": f"reduce_{self.name}",
            "arguments": arguments,
            f"{shape}_arguments": arguments,
            "groups": "rows" if row_wise else "cols",
            "group_size": "cols" if row_wise else "rows",
            "element": "g * cols + i" if row_wise else "i * cols + g",
        }


class RowReduction(Reduction):
    axis, group = -1, "cols"
    _draw = (130, (40, 4000))
    checks = cases(
        "rows cols: 1 1; 9 1 large; 2 10007 normal; 67 251 large; 33 1028 outliers; 259 17 tiny; 13 31 equal;"
        " 7 2052 zeros"
    )


def shapes(gpu: str) -> dict[str, tuple[Case, ...]]:
    """Return the timed cases: fixed ones for CPUs, and `gpu` for GPUs."""
    return {"cpu": cases("rows cols: 1536 512; 96 8192"), "gpu": cases(f"rows cols: {gpu}")}


def root_of_squares(xp: ModuleType, axis: int, term: Any) -> Any:
    """Return the magnitude of a sum's rounding errors: the root sum of squares of the terms, plus the sum itself."""
    return xp.sqrt(xp.sum(term * term, axis=axis)) + xp.abs(xp.sum(term, axis=axis))


def signed_halves(sign: float) -> Callable[[Any, Any], Any]:
    """Return a `prepare` that gives all elements in odd rows or odd columns the same sign."""

    def prepare(sampler: Any, x: Any) -> Any:
        xp = sampler.xp
        row, column = (xp.arange(size, device=x.device) for size in x.shape)
        odd = (row[:, None] % 2 == 1) | (column[None, :] % 2 == 1)
        return xp.where(odd, sign * xp.abs(x), x) if min(x.shape) > 1 else sign * xp.abs(x)

    return prepare


def _near_one(sampler: Any, x: Any) -> Any:
    """Return factors of random sign, so close to 1 that any product of them stays within the range of a float."""
    xp = sampler.xp
    sign = 1 - 2 * sampler.integers(x.shape, 0, 2)
    return xp.astype((1.0 + xp.clip(x, -1.7, 1.7) / max(4.0, x.shape[-1] ** 0.5)) * sign, xp.float32)


def _off_centre(sampler: Any, x: Any) -> Any:
    """Move every other row far from zero relative to its spread."""
    xp = sampler.xp
    row = xp.arange(x.shape[0], device=x.device)[:, None]
    return xp.astype(x + xp.where(row % 2 == 0, 24.0, 0.0) * xp.mean(xp.abs(x)), xp.float32)


def _with_ties(best: str) -> Callable[[Any, Any], Any]:
    """Return a `prepare` that repeats the minimum or maximum in every other row, as random rows hardly ever tie."""

    def prepare(sampler: Any, x: Any) -> Any:
        xp, (rows, cols) = sampler.xp, x.shape
        row, column = (xp.arange(size, device=x.device) for size in (rows, cols))
        again = (column[None, :] == sampler.integers((rows,), 0, cols)[:, None]) & (row[:, None] % 2 == 0)
        return xp.where(again, getattr(xp, best)(x, axis=-1, keepdims=True), x)

    return prepare


def _logsumexp(xp: ModuleType, axis: int, x: Any) -> Any:
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.max(x, axis=axis)


def _variance(xp: ModuleType, axis: int, x: Any) -> Any:
    return xp.mean((x - xp.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis)


def _variance_scale(xp: ModuleType, axis: int, x: Any) -> Any:
    variance = _variance(xp, axis, x)
    return variance + 0.1 * xp.abs(xp.mean(x, axis=axis)) * xp.sqrt(variance) + 1e-7 * xp.mean(x, axis=axis) ** 2


def _place_of(best: str) -> Formula:
    # xp.argmin is not used: which of several equal elements it returns differs between libraries.
    def place(xp: ModuleType, axis: int, x: Any) -> Any:
        cols = x.shape[-1]
        column = xp.arange(cols, dtype=xp.int64, device=x.device)
        return xp.min(xp.where(x == getattr(xp, best)(x, axis=axis, keepdims=True), column, cols), axis=axis)

    return place


def _lengths(xp: ModuleType, axis: int, a: Any, b: Any) -> Any:
    return xp.clip(xp.sqrt(xp.sum(a * a, axis=axis)), 1e-8, xp.inf) * xp.clip(
        xp.sqrt(xp.sum(b * b, axis=axis)), 1e-8, xp.inf
    )


OPERATIONS = (
    RowReduction(
        "sum",
        "y[r] = sum over c of x[r, c], for each row r",
        lambda xp, axis, x: xp.sum(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum", {"sum": "x"}, "sum"),
        "torch.sum(x, dim=-1)",
        timed={"cpu": cases("rows cols: 1024 1024; 128 16384"), "gpu": cases("rows cols: 16384 2048; 2048 32768")},
        checks=cases(
            "rows cols: 1 1; 5 1 large; 1 10007 normal; 67 251 large; 33 1023 outliers; 259 17 tiny; 13 31 equal;"
            " 7 2049 zeros"
        ),
        draw=(130, (40, 5000)),
        scale=lambda xp, axis, x: xp.sqrt(xp.sum(x * x, axis=axis)),
        tolerance=Tolerance(
            1e-4,
            "adding one by one in float32 is off by about 0.3 * sqrt(cols) * 2^-24 of the terms' root of squares, 3e-6"
            " for 32768 of them and 2e-5 in the worst of many rows; terms rounded to 11 bits are off by about 2e-4",
        ),
    ),
    RowReduction(
        "argmax",
        "y[r] = the smallest c at which x[r, c] is the maximum of row r",
        _place_of("max"),
        fold.ARGMAX,
        "torch.argmax(x, dim=-1)",
        timed={"cpu": cases("rows cols: 1024 1024; 128 16384"), "gpu": cases("rows cols: 16384 2048; 2048 32768")},
        checks=cases(
            "rows cols: 1 1; 3 2 large; 1 10007 normal; 67 251 large; 9 1000 equal; 33 1025 outliers; 259 17 tiny;"
            " 7 4099 zeros"
        ),
        draw=(130, (40, 5000)),
        draw_styles=("normal", "large", "outliers", "equal"),
        prepare=_with_ties("max"),
        tolerance=Tolerance(0.0, "a position is right or wrong", absolute=0.0),
    ),
    RowReduction(
        "mean",
        "y[r] = mean over c of x[r, c]",
        lambda xp, axis, x: xp.mean(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum / n", {"sum": "x"}, "sum / n"),
        "torch.mean(x, dim=-1)",
        timed=shapes("65536 512; 1024 65536"),
        scale=lambda xp, axis, x: root_of_squares(xp, axis, x) / x.shape[-1],
    ),
    RowReduction(
        "max",
        "y[r] = the largest x[r, c] of row r",
        lambda xp, axis, x: xp.max(x, axis=axis),
        fold.extreme("max", "fmaxf", "-INFINITY", "1.17549435e-38f", "tl.maximum", '-float("inf")'),
        "torch.amax(x, dim=-1)",
        timed=shapes("131072 256; 512 131072"),
        errors=None,
        prepare=signed_halves(-1.0),
    ),
    RowReduction(
        "min",
        "y[r] = the smallest x[r, c] of row r",
        lambda xp, axis, x: xp.min(x, axis=axis),
        fold.extreme("min", "fminf", "INFINITY", "0.0f", "tl.minimum", 'float("inf")'),
        "torch.amin(x, dim=-1)",
        timed=shapes("32768 1024; 2048 32768"),
        errors=None,
        prepare=signed_halves(1.0),
    ),
    RowReduction(
        "prod",
        "y[r] = product over c of x[r, c], of factors near 1 and -1",
        lambda xp, axis, x: xp.prod(x, axis),
        fold.PRODUCT,
        "torch.prod(x, dim=-1)",
        timed=shapes("65536 512; 768 65536"),
        errors=(8.0, 32.0),
        prepare=_near_one,
    ),
    RowReduction(
        "l1_norm",
        "y[r] = sum over c of |x[r, c]|",
        lambda xp, axis, x: xp.sum(xp.abs(x), axis=axis),
        fold.sums({"sum": "fabsf(x)"}, "(float)s->sum", {"sum": "tl.abs(x)"}, "sum"),
        "torch.linalg.vector_norm(x, ord=1, dim=-1)",
        timed=shapes("98304 320; 1024 32768"),
        each=2,
    ),
    RowReduction(
        "l2_norm",
        "y[r] = sqrt(sum over c of x[r, c]^2)",
        lambda xp, axis, x: xp.sqrt(xp.sum(x * x, axis=axis)),
        fold.sums({"sum": "x * x"}, "sqrtf((float)s->sum)", {"sum": "x * x"}, "tl.sqrt(sum)"),
        "torch.linalg.vector_norm(x, dim=-1)",
        timed=shapes("32768 768; 512 131072"),
        each=2,
    ),
    RowReduction(
        "sum_of_squares",
        "y[r] = sum over c of x[r, c]^2",
        lambda xp, axis, x: xp.sum(x * x, axis=axis),
        fold.sums({"sum": "x * x"}, "(float)s->sum", {"sum": "x * x"}, "sum"),
        "torch.sum(x * x, dim=-1)",
        timed=shapes("16384 2048; 640 100000"),
        each=2,
    ),
    RowReduction(
        "variance",
        "y[r] = mean over c of (x[r, c] - mean of row r)^2",
        _variance,
        fold.VARIANCE,
        "torch.var(x, dim=-1, correction=0)",
        timed=shapes("32768 1024; 1024 65536"),
        each=3,
        scale=_variance_scale,
        errors=(16.0, 4.0),
        prepare=_off_centre,
    ),
    RowReduction(
        "logsumexp",
        "y[r] = log(sum over c of exp(x[r, c]))",
        _logsumexp,
        fold.LOGSUMEXP,
        "torch.logsumexp(x, dim=-1)",
        timed=shapes("32768 1000; 512 128256"),
        each=2,
        scale=lambda xp, axis, x: 1.0 + xp.abs(_logsumexp(xp, axis, x)),
        errors=(16.0, 3.0),
    ),
    RowReduction(
        "argmin",
        "y[r] = the smallest c at which x[r, c] is the minimum of row r",
        _place_of("min"),
        fold.ARGMIN,
        "torch.argmin(x, dim=-1)",
        timed=shapes("65536 256; 1024 50304"),
        errors=None,
        prepare=_with_ties("min"),
    ),
    RowReduction(
        "count_above",
        "y[r] = how many x[r, c] of row r are greater than 0.5",
        lambda xp, axis, x: xp.sum(xp.astype(x > 0.5, xp.int64), axis=axis),
        fold.COUNT,
        "torch.sum(x > 0.5, dim=-1)",
        timed=shapes("131072 256; 1536 32768"),
        errors=None,
    ),
    RowReduction(
        "row_dot",
        "y[r] = sum over c of a[r, c] * b[r, c]",
        lambda xp, axis, a, b: xp.sum(a * b, axis=axis),
        fold.sums({"sum": "a * b"}, "(float)s->sum", {"sum": "a * b"}, "sum"),
        "torch.sum(a * b, dim=-1)",
        timed=shapes("65536 256; 512 65536"),
        each=2,
        reads="a b",
        scale=lambda xp, axis, a, b: root_of_squares(xp, axis, a * b),
    ),
    RowReduction(
        "cosine_similarity",
        "y[r] = sum over c of a[r, c] * b[r, c] / (max(|a[r]|, 1e-8) * max(|b[r]|, 1e-8)), with the rows' lengths",
        lambda xp, axis, a, b: xp.sum(a * b, axis=axis) / _lengths(xp, axis, a, b),
        fold.sums(
            {"ab": "a * b", "aa": "a * a", "bb": "b * b"},
            "(float)s->ab / (fmaxf(sqrtf((float)s->aa), 1e-8f) * fmaxf(sqrtf((float)s->bb), 1e-8f))",
            {"ab": "a * b", "aa": "a * a", "bb": "b * b"},
            "ab / (tl.maximum(tl.sqrt(aa), 1e-8) * tl.maximum(tl.sqrt(bb), 1e-8))",
        ),
        "torch.nn.functional.cosine_similarity(a, b, dim=-1)",
        timed=shapes("32768 384; 1024 24576"),
        each=6,
        reads="a b",
        scale=lambda xp, axis, a, b: root_of_squares(xp, axis, a * b) / _lengths(xp, axis, a, b),
        errors=(12.0, 3.0),
    ),
)
