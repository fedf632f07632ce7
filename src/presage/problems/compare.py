"""Compares a kernel's outputs with the right ones, in the parent process, which no kernel can reach.

Works on numpy arrays and, with the namespace of `presage.problems.on_torch`, on tensors that stay on their GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.problems.base import Case, Problem, Tolerance

_MOST_SLACK = 0.01
"""Slack raises the relative tolerance at most to this value. A problem's own tolerance may be larger."""

_PIECE = 1 << 14
_SOLVED = 1 << 15
"""Elements of a large array that are processed at a time, so that they fit into the CPU's cache: `_PIECE` when outputs
are compared, `_SOLVED` when they are computed."""


@dataclass(frozen=True)
class Answer:
    """The right outputs of one case, and the error allowed per element. An expected infinity or NaN allows no error.

    An integer output may have an exact value that is no integer, as in quantisation. The exact value is then expected,
    with an allowed error of slightly more than half a step: both neighbours of a tie are right, and nothing else is."""

    expected: tuple[Any, ...]
    allowed: tuple[Any, ...]


def solve(problem: Problem, case: Case, inputs: tuple[Any, ...], xp: Any = np) -> Answer:
    """Compute the oracle's outputs for these inputs, in double precision."""
    if xp is not np or not problem.elementwise or inputs[0].size <= _SOLVED:
        return _solve(problem, case, inputs, xp)
    flat = [x.reshape(-1) for x in inputs]
    pieces = [slice(at, at + _SOLVED) for at in range(0, inputs[0].size, _SOLVED)]
    answers = [_solve(problem, case, tuple(x[piece] for x in flat), xp) for piece in pieces]
    expected = zip(*(answer.expected for answer in answers), strict=True)
    allowed = zip(*(answer.allowed for answer in answers), strict=True)
    shape = inputs[0].shape
    return Answer(
        tuple(np.concatenate(parts).reshape(shape) for parts in expected),
        tuple(np.concatenate(parts).reshape(shape) for parts in allowed),
    )


def _solve(problem: Problem, case: Case, inputs: tuple[Any, ...], xp: Any) -> Answer:
    wide = tuple(xp.astype(x, xp.float64) if xp.isdtype(x.dtype, "real floating") else x for x in inputs)
    tolerance = problem.tolerance(case)
    slack = max(1.0, min(case.slack, _MOST_SLACK / tolerance.relative)) if tolerance.relative else 1.0
    with np.errstate(all="ignore"):
        exact = problem.oracle(xp, case, *wide)
        magnitude = problem.magnitude(xp, case, exact, *wide)
        expected = tuple(
            _rounded(xp, value, problem.dtype(array, case)) for value, array in zip(exact, problem.outputs, strict=True)
        )
        allowed = tuple(
            _allowed(xp, value, size, tolerance, slack if _is_float(problem.dtype(array, case)) else 1.0)
            for value, size, array in zip(expected, magnitude, problem.outputs, strict=True)
        )
    return Answer(expected, allowed)


def _allowed(xp: Any, value: Any, size: Any, tolerance: Tolerance, slack: float) -> Any:
    allowed = slack * tolerance.relative * size + slack * tolerance.absolute
    finite = xp.isfinite(value) & xp.isfinite(size)
    return allowed if bool(xp.all(finite)) else xp.where(finite, allowed, 0.0)


def _rounded(xp: Any, value: Any, dtype: str) -> Any:
    """Replace values beyond the range of the output's dtype by infinities, which a right output has there."""
    value = xp.asarray(value)
    if not xp.isdtype(value.dtype, "real floating") or dtype == "float64" or not _is_float(dtype):
        return value
    largest = xp.finfo(getattr(xp, dtype)).max
    if not math.prod(value.shape) or bool((xp.max(value) <= largest) & (xp.min(value) >= -largest)):
        return value
    return xp.where(xp.abs(value) > largest, value * xp.inf, value)


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def difference(problem: Problem, case: Case, answer: Answer, outputs: tuple[Any, ...], xp: Any = np) -> str | None:
    """Return why these outputs are wrong, or None. Dtypes and shapes must match exactly; NaN matches only NaN."""
    for array, expected, allowed, output in zip(problem.outputs, answer.expected, answer.allowed, outputs, strict=True):
        shape, dtype = problem.shape(array, case), problem.dtype(array, case)
        if tuple(output.shape) != shape or output.dtype != getattr(xp, dtype):
            return f"{array.name} is {output.dtype}{list(output.shape)}, not {dtype}{list(shape)}"
        if xp is np and _all_close(expected, allowed, output):
            continue
        right = _right_elements(xp, expected, allowed, output)
        if not bool(xp.all(right)):
            flat = int(xp.argmin(xp.astype(xp.reshape(right, (-1,)), xp.uint8)))
            at = tuple(int(i) for i in np.unravel_index(flat, shape))
            size = int(np.prod(shape))
            got, wanted = float(output[at]), float(xp.broadcast_to(expected, shape)[at])
            wrong = f"{size - int(xp.sum(right))} of {size} elements are wrong"
            return f"{array.name}{list(at)} is {got:.9g}, not {wanted:.9g}; {wrong}"
    return None


def _all_close(expected: Any, allowed: Any, output: np.ndarray) -> bool:
    """Whether every element is close, which is the usual case; False also if this fast path does not apply. Chunks that
    fit into the CPU's cache take a fifth of the time of whole arrays."""
    parts = (np.asarray(expected), np.asarray(allowed), output)
    if any(part.shape != output.shape or part.dtype.kind != "f" for part in parts) or expected.dtype != np.float64:
        return False
    wanted, slack, got = (part.reshape(-1) for part in parts)
    with np.errstate(all="ignore"):
        return all(
            bool(
                (np.abs(np.subtract(got[at : at + _PIECE], wanted[at : at + _PIECE])) <= slack[at : at + _PIECE]).all()
            )
            for at in range(0, got.size, _PIECE)
        )


def _right_elements(xp: Any, expected: Any, allowed: Any, output: Any) -> Any:
    if not xp.isdtype(expected.dtype, "real floating"):
        return output == expected
    with np.errstate(all="ignore"):
        wide = xp.astype(output, xp.float64)
        close = xp.abs(wide - expected) <= allowed
    if bool(xp.all(close)):
        return close
    return close | (wide == expected) | (xp.isnan(wide) & xp.isnan(expected))
