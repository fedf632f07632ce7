"""Compares a kernel's outputs with the right ones, in the parent, where no kernel can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.problems.base import Case, Problem


@dataclass(frozen=True)
class Answer:
    """The right outputs of one case, and what each may be off by."""

    expected: tuple[np.ndarray, ...]
    allowed: tuple[np.ndarray, ...]


def solve(problem: Problem, case: Case, inputs: tuple[np.ndarray, ...]) -> Answer:
    """The oracle's outputs for these inputs, computed in double precision."""
    wide: tuple[Any, ...] = tuple(x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs)
    tolerance = problem.tolerance(case)
    with np.errstate(all="ignore"):
        expected = problem.oracle(np, case, *wide)
        magnitude = problem.magnitude(np, case, expected, *wide)
        allowed = tuple(tolerance.relative * size + tolerance.absolute for size in magnitude)
    return Answer(tuple(np.asarray(e) for e in expected), tuple(np.asarray(a) for a in allowed))


def difference(problem: Problem, case: Case, answer: Answer, outputs: tuple[np.ndarray, ...]) -> str | None:
    """Why these outputs are wrong, or None when they are right. Types and shapes are exact, NaN matches only NaN."""
    for array, expected, allowed, output in zip(
        problem.outputs, answer.expected, answer.allowed, outputs, strict=True
    ):
        shape, dtype = problem.shape(array, case), problem.dtype(array, case)
        if output.shape != shape or output.dtype != np.dtype(dtype):
            return f"{array.name} is {output.dtype}{list(output.shape)}, not {dtype}{list(shape)}"
        wrong = _wrong_elements(expected, allowed, output)
        if wrong.any():
            at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), shape))
            share = f"{int(wrong.sum())} of {wrong.size} elements"
            got, right = output[at], np.broadcast_to(expected, shape)[at]
            return f"{array.name}{list(at)} is {got:.9g}, not {right:.9g}; {share} are wrong"
    return None


def _wrong_elements(expected: np.ndarray, allowed: np.ndarray, output: np.ndarray) -> np.ndarray:
    if output.dtype.kind != "f":
        return np.not_equal(output, expected)
    # An expected value beyond the output type's range is an infinity there, and must be one.
    with np.errstate(all="ignore"):
        target = np.where(np.abs(expected) > np.finfo(output.dtype).max, np.copysign(np.inf, expected), expected)
        close = np.abs(output.astype(np.float64) - target) <= allowed
    same = (output == target) | (np.isnan(output) & np.isnan(target))
    return ~(same | (close & np.isfinite(output) & np.isfinite(target)))
