"""Whether an output is as exact as the reference's, which may itself be less exact than its tolerance asks for: torch
computes convolutions in TF32, and another algorithm in TF32 is off by as much elsewhere."""

from __future__ import annotations

from typing import Any

TIMES = 4.0
"""An output may be so many times as far off as the reference: as a whole, and anywhere. Thousands of products that are
added one after the other in single precision are off by two to four times what a library's sum in parts is; bfloat16,
which has three bits fewer than TF32, by eight times."""
MOST_OFF = 0.005
"""If the reference is nowhere off by more than this share of what the values differ by."""
FEWEST, SHARE = 256, 0.01
"""Of the smallest values that are not zero, so many at least, and this share of all, are held against each other."""


def is_as_exact(right: Any, exact: Any, output: Any) -> bool:
    """Tensors: the reference's answer, the exact one, and one that is judged. Errors are compared among values that are
    no larger, so that what large values are off by excuses nothing of small ones."""
    if not right.is_floating_point() or not right.numel() or right.shape != output.shape:
        return False
    true = exact.double().flatten()
    theirs, ours = ((each.double().flatten() - true).abs() for each in (right, output))
    small = bool(theirs.max() <= MOST_OFF * true.std(correction=0))
    if not small or not bool(ours.square().mean() <= TIMES**2 * theirs.square().mean()):  # nor if any is no number
        return False
    order = true.abs().argsort()
    allowed = TIMES * theirs[order].cummax(0).values
    zeros = int((true == 0).sum())  # of which the reference is never off, as in a triangle
    first = min(true.numel(), zeros + max(FEWEST, int(SHARE * (true.numel() - zeros))))
    allowed[:first] = allowed[first - 1]
    return bool((ours[order] <= allowed).all())
