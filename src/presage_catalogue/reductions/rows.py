"""Row reductions: operations that make one number of each row of a matrix."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler
from presage_catalogue.reductions import fold
from presage_catalogue.reductions.fold import Fold

Formula = Callable[..., Any]
_UNIT = 2.0**-24


class Reduction(Operation):
    """One number for each group of elements, which `axis` runs along. The room's families are filled from `fold`."""

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
        *,
        timed: Mapping[str, tuple[Case, ...]],
        flops: int = 1,
        inputs: str = "x",
        scale: Formula | None = None,
        errors: tuple[float, float] | None = (8.0, 2.0),
        prepare: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """`errors` are roundings of 2^-24 that any order of adding may be off by, once and for each root of the number
        of elements; None means that the answer is exact. `prepare` turns drawn values into inputs."""
        super().__init__(name)
        self.summary, self._oracle, self._fold, self._eager = summary, oracle, how, eager
        self.inputs = tuple(Array(each, "rows, cols") for each in inputs.split())
        kept = "rows" if self.group == "cols" else "cols"
        self.outputs = (Array("y", kept, "int64" if how.result == "long long" else "T"),)
        self.timed, self._flops, self._scale, self._errors, self._prepare = timed, flops, scale, errors, prepare

    @property
    def _ins(self) -> tuple[str, ...]:
        return tuple(array.name for array in self.inputs)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        drawn = [sampler.values((case.dims["rows"], case.dims["cols"]), case.dtype) for _ in self.inputs]
        return tuple(self._prepare(sampler, x) if self._prepare else x for x in drawn)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (self._oracle(xp, self.axis, *inputs),)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        return (self._scale(xp, self.axis, *inputs),)

    def tolerance(self, case: Case) -> Tolerance:
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
        return self._flops * (rows * cols - (rows if self.group == "cols" else cols))

    def given(self, suffix: str) -> Mapping[str, str]:
        row_wise = self.group == "cols"
        shape = "row" if row_wise else "column"
        if suffix == ".py":
            tiles = self._fold.triton(self._ins)
            return tiles | {"eager": self._eager, f"{shape}_pointers": tiles["pointers"]}
        qualifier = "restrict" if suffix == ".c" else "__restrict__"
        pointers = [f"const float *{qualifier} {name}" for name in self._ins]
        arguments = f"{', '.join(pointers)}, {self._fold.result} *{qualifier} y, int rows, int cols"
        return {
            **(self._fold.c(self._ins) if suffix == ".c" else self._fold.cuda(self._ins)),
            "entry": f"reduce_{self.name}",
            "arguments": arguments,
            f"{shape}_arguments": arguments,
            "groups": "rows" if row_wise else "cols",
            "group_size": "cols" if row_wise else "rows",
            "element": "g * cols + i" if row_wise else "i * cols + g",
        }


class RowReduction(Reduction):
    axis, group = -1, "cols"
    checks = (
        Case({"rows": 1, "cols": 1}),
        Case({"rows": 9, "cols": 1}, values="large"),
        Case({"rows": 2, "cols": 10007}, values="normal"),
        Case({"rows": 67, "cols": 251}, values="large"),
        Case({"rows": 33, "cols": 1028}, values="outliers"),
        Case({"rows": 259, "cols": 17}, values="tiny"),
        Case({"rows": 13, "cols": 31}, values="equal"),
        Case({"rows": 7, "cols": 2052}, values="zeros"),
    )

    def draw_case(self, rng: random.Random) -> Case:
        dims = {"rows": rng.randint(1, 130), "cols": rng.randint(1, rng.choice((40, 4000)))}
        return Case(dims, values=rng.choice(("normal", "large", "tiny", "outliers")))


def shapes(*gpu: tuple[int, int]) -> dict[str, tuple[Case, ...]]:
    """Timed cases: the same on every CPU, these on a GPU."""
    return {
        "cpu": tuple(Case({"rows": rows, "cols": cols}) for rows, cols in ((1536, 512), (96, 8192))),
        "gpu": tuple(Case({"rows": rows, "cols": cols}) for rows, cols in gpu),
    }


def root_of_squares(xp: ModuleType, axis: int, term: Any) -> Any:
    """What the rounding errors of a sum scale with: the terms' root of squares, and the sum itself."""
    return xp.sqrt(xp.sum(term * term, axis=axis)) + xp.abs(xp.sum(term, axis=axis))


def signed_halves(sign: float) -> Callable[[Any, Any], Any]:
    """Makes every other element along both axes lie on one side of zero only, row- and column-wise."""

    def prepare(sampler: Any, x: Any) -> Any:
        xp = sampler.xp
        row, column = (xp.arange(size, device=x.device) for size in x.shape)
        odd = (row[:, None] % 2 == 1) | (column[None, :] % 2 == 1)
        return xp.where(odd, sign * xp.abs(x), x) if min(x.shape) > 1 else sign * xp.abs(x)

    return prepare


def _near_one(sampler: Any, x: Any) -> Any:
    """Factors of either sign whose product stays within the range of a float however many there are."""
    xp = sampler.xp
    sign = 1 - 2 * sampler.integers(x.shape, 0, 2)
    return xp.astype((1.0 + xp.clip(x, -1.7, 1.7) / max(4.0, x.shape[-1] ** 0.5)) * sign, xp.float32)


def _off_centre(sampler: Any, x: Any) -> Any:
    """Every other row far from zero, beside its spread."""
    xp = sampler.xp
    row = xp.arange(x.shape[0], device=x.device)[:, None]
    return xp.astype(x + xp.where(row % 2 == 0, 24.0, 0.0) * xp.mean(xp.abs(x)), xp.float32)


def _with_ties(sampler: Any, x: Any) -> Any:
    """Every other row has its minimum a second time."""
    xp, (rows, cols) = sampler.xp, x.shape
    row, column = (xp.arange(size, device=x.device) for size in (rows, cols))
    again = (column[None, :] == sampler.integers((rows,), 0, cols)[:, None]) & (row[:, None] % 2 == 0)
    return xp.where(again, xp.min(x, axis=-1, keepdims=True), x)


def _logsumexp(xp: ModuleType, axis: int, x: Any) -> Any:
    top = xp.max(x, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.max(x, axis=axis)


def _variance(xp: ModuleType, axis: int, x: Any) -> Any:
    return xp.mean((x - xp.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis)


def _variance_scale(xp: ModuleType, axis: int, x: Any) -> Any:
    variance = _variance(xp, axis, x)
    return variance + 0.1 * xp.abs(xp.mean(x, axis=axis)) * xp.sqrt(variance) + 1e-7 * xp.mean(x, axis=axis) ** 2


def _argmin(xp: ModuleType, axis: int, x: Any) -> Any:
    # Not xp.argmin: which of several equal elements it gives is not the same everywhere.
    cols = x.shape[-1]
    column = xp.arange(cols, dtype=xp.int64, device=x.device)
    return xp.min(xp.where(x == xp.min(x, axis=axis, keepdims=True), column, cols), axis=axis)


def _lengths(xp: ModuleType, axis: int, a: Any, b: Any) -> Any:
    return xp.clip(xp.sqrt(xp.sum(a * a, axis=axis)), 1e-8, xp.inf) * xp.clip(
        xp.sqrt(xp.sum(b * b, axis=axis)), 1e-8, xp.inf
    )


OPERATIONS = (
    RowReduction(
        "mean",
        "y[r] = mean over c of x[r, c]",
        lambda xp, axis, x: xp.mean(x, axis=axis),
        fold.sums({"sum": "x"}, "(float)s->sum / n", {"sum": "x"}, "sum / n"),
        "torch.mean(x, dim=-1)",
        timed=shapes((65536, 512), (1024, 65536)),
        scale=lambda xp, axis, x: root_of_squares(xp, axis, x) / x.shape[-1],
    ),
    RowReduction(
        "max",
        "y[r] = the largest x[r, c] of row r",
        lambda xp, axis, x: xp.max(x, axis=axis),
        fold.extreme("max", "fmaxf", "-INFINITY", "1.17549435e-38f", "tl.maximum", '-float("inf")'),
        "torch.amax(x, dim=-1)",
        timed=shapes((131072, 256), (512, 131072)),
        errors=None,
        prepare=signed_halves(-1.0),
    ),
    RowReduction(
        "min",
        "y[r] = the smallest x[r, c] of row r",
        lambda xp, axis, x: xp.min(x, axis=axis),
        fold.extreme("min", "fminf", "INFINITY", "0.0f", "tl.minimum", 'float("inf")'),
        "torch.amin(x, dim=-1)",
        timed=shapes((32768, 1024), (2048, 32768)),
        errors=None,
        prepare=signed_halves(1.0),
    ),
    RowReduction(
        "prod",
        "y[r] = product over c of x[r, c], of factors near 1 and -1",
        lambda xp, axis, x: xp.prod(x, axis),
        fold.PRODUCT,
        "torch.prod(x, dim=-1)",
        timed=shapes((65536, 512), (768, 65536)),
        errors=(8.0, 32.0),
        prepare=_near_one,
    ),
    RowReduction(
        "l1_norm",
        "y[r] = sum over c of |x[r, c]|",
        lambda xp, axis, x: xp.sum(xp.abs(x), axis=axis),
        fold.sums({"sum": "fabsf(x)"}, "(float)s->sum", {"sum": "tl.abs(x)"}, "sum"),
        "torch.linalg.vector_norm(x, ord=1, dim=-1)",
        timed=shapes((98304, 320), (1024, 32768)),
        flops=2,
    ),
    RowReduction(
        "l2_norm",
        "y[r] = sqrt(sum over c of x[r, c]^2)",
        lambda xp, axis, x: xp.sqrt(xp.sum(x * x, axis=axis)),
        fold.sums({"sum": "x * x"}, "sqrtf((float)s->sum)", {"sum": "x * x"}, "tl.sqrt(sum)"),
        "torch.linalg.vector_norm(x, dim=-1)",
        timed=shapes((32768, 768), (512, 131072)),
        flops=2,
    ),
    RowReduction(
        "sum_of_squares",
        "y[r] = sum over c of x[r, c]^2",
        lambda xp, axis, x: xp.sum(x * x, axis=axis),
        fold.sums({"sum": "x * x"}, "(float)s->sum", {"sum": "x * x"}, "sum"),
        "torch.sum(x * x, dim=-1)",
        timed=shapes((16384, 2048), (640, 100000)),
        flops=2,
    ),
    RowReduction(
        "variance",
        "y[r] = mean over c of (x[r, c] - mean of row r)^2",
        _variance,
        fold.VARIANCE,
        "torch.var(x, dim=-1, correction=0)",
        timed=shapes((32768, 1024), (1024, 65536)),
        flops=3,
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
        timed=shapes((32768, 1000), (512, 128256)),
        flops=2,
        scale=lambda xp, axis, x: 1.0 + xp.abs(_logsumexp(xp, axis, x)),
        errors=(16.0, 3.0),
    ),
    RowReduction(
        "argmin",
        "y[r] = the smallest c at which x[r, c] is the minimum of row r",
        _argmin,
        fold.ARGMIN,
        "torch.argmin(x, dim=-1)",
        timed=shapes((65536, 256), (1024, 50304)),
        errors=None,
        prepare=_with_ties,
    ),
    RowReduction(
        "count_above",
        "y[r] = how many x[r, c] of row r are greater than 0.5",
        lambda xp, axis, x: xp.sum(xp.astype(x > 0.5, xp.int64), axis=axis),
        fold.COUNT,
        "torch.sum(x > 0.5, dim=-1)",
        timed=shapes((131072, 256), (1536, 32768)),
        errors=None,
    ),
    RowReduction(
        "row_dot",
        "y[r] = sum over c of a[r, c] * b[r, c]",
        lambda xp, axis, a, b: xp.sum(a * b, axis=axis),
        fold.sums({"sum": "a * b"}, "(float)s->sum", {"sum": "a * b"}, "sum"),
        "torch.sum(a * b, dim=-1)",
        timed=shapes((65536, 256), (512, 65536)),
        flops=2,
        inputs="a b",
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
        timed=shapes((32768, 384), (1024, 24576)),
        flops=6,
        inputs="a b",
        scale=lambda xp, axis, a, b: root_of_squares(xp, axis, a * b) / _lengths(xp, axis, a, b),
        errors=(12.0, 3.0),
    ),
)
