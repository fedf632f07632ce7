"""Compares a kernel's outputs with the right ones, in the parent, where no kernel can reach.

Works on numpy arrays and, with the namespace of `presage.problems.on_torch`, on tensors that stay on their GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.problems.base import Case, Problem


@dataclass(frozen=True)
class Answer:
    """The right outputs of one case, and what each may be off by."""

    expected: tuple[Any, ...]
    allowed: tuple[Any, ...]


def solve(problem: Problem, case: Case, inputs: tuple[Any, ...], xp: Any = np) -> Answer:
    """The oracle's outputs for these inputs, computed in double precision."""
    wide = tuple(xp.astype(x, xp.float64) if xp.isdtype(x.dtype, "real floating") else x for x in inputs)
    tolerance = problem.tolerance(case)
    with np.errstate(all="ignore"):
        expected = problem.oracle(xp, case, *wide)
        magnitude = problem.magnitude(xp, case, expected, *wide)
        allowed = tuple(tolerance.relative * size + tolerance.absolute for size in magnitude)
    return Answer(tuple(expected), allowed)


def difference(
    problem: Problem, case: Case, answer: Answer, outputs: tuple[Any, ...], xp: Any = np
) -> str | None:
    """Why these outputs are wrong, or None when they are right. Types and shapes are exact, NaN matches only NaN."""
    for array, expected, allowed, output in zip(
        problem.outputs, answer.expected, answer.allowed, outputs, strict=True
    ):
        shape, dtype = problem.shape(array, case), problem.dtype(array, case)
        if tuple(output.shape) != shape or output.dtype != getattr(xp, dtype):
            return f"{array.name} is {output.dtype}{list(output.shape)}, not {dtype}{list(shape)}"
        wrong = _wrong_elements(xp, expected, allowed, output)
        count = int(xp.sum(wrong))
        if count:
            flat = int(xp.argmax(xp.astype(xp.reshape(wrong, (-1,)), xp.uint8)))
            at = tuple(int(i) for i in np.unravel_index(flat, shape))
            got, right = float(output[at]), float(xp.broadcast_to(xp.asarray(expected), shape)[at])
            size = int(np.prod(shape))
            return f"{array.name}{list(at)} is {got:.9g}, not {right:.9g}; {count} of {size} elements are wrong"
    return None


def _wrong_elements(xp: Any, expected: Any, allowed: Any, output: Any) -> Any:
    if not xp.isdtype(output.dtype, "real floating"):
        return output != expected
    with np.errstate(all="ignore"):
        # An expected value beyond the output type's range is an infinity there, and must be one.
        target = xp.where(xp.abs(expected) > xp.finfo(output.dtype).max, expected * xp.inf, expected)
        wide = xp.astype(output, xp.float64)
        close = xp.abs(wide - target) <= allowed
    same = (wide == target) | (xp.isnan(wide) & xp.isnan(target))
    return ~(same | (close & xp.isfinite(wide) & xp.isfinite(target)))
