"""Whether an output is as exact as the reference's, which may itself be less exact than its tolerance asks for: torch
computes convolutions in TF32, and another algorithm in TF32 is off by as much elsewhere."""

from __future__ import annotations

from typing import Any

TIMES = 4.0
"""An output may be so many times as far off as the reference: as a whole, and anywhere. Thousands of products that are
added one after the other in single precision are off by two to four times what a library's sum in parts is; bfloat16,
which has three bits fewer than TF32, by eight times."""
MOST_OFF = 0.01
"""If the reference is not off by more than this share of what the values differ by, both as standard deviations. A
convolution in TF32 is off by 0.0005, a deep network of them by up to 0.007; at more than this, nothing is told."""
FEWEST, SHARE = 256, 0.01
"""Of the smallest values that are not zero, so many at least, and this share of all, are held against each other."""
_SHIFT = 44
"""Values whose doubles differ only in the last so many bits, 0.4 % at most, count as of one size."""
_AT_ONCE = 1 << 26
"""Values that are looked at together: an answer of a gigabyte must not take ten more."""


def is_as_exact(right: Any, exact: Any, output: Any) -> bool:
    """Tensors: the reference's answer, the exact one, and one that is judged. Errors are compared among values that are
    no larger, so that what large values are off by excuses nothing of small ones."""
    if not right.is_floating_point() or not right.numel() or right.shape != output.shape:
        return False
    spread = exact.double().std(correction=0)
    counts, (theirs, ours), (off, our_off) = _errors(exact, right, output)
    if not bool(off <= MOST_OFF * spread) or not bool(our_off <= TIMES * off):
        return False  # nor if any is no number
    zeros = int(counts[0])  # of which the reference is never off, as in a triangle
    least = min(right.numel(), zeros + max(FEWEST, int(SHARE * (right.numel() - zeros))))
    first = int((counts.cumsum(0) < least).sum())
    allowed = TIMES * theirs.cummax(0).values
    allowed[:first] = allowed[first]
    return bool((ours <= allowed).all())


def _errors(exact: Any, *answers: Any) -> tuple[Any, list[Any], list[Any]]:
    """How many values there are of each size; of each answer the largest error at each size; and its error as a whole,
    as a standard deviation."""
    import torch

    sizes = 1 << 63 - _SHIFT
    counts = exact.new_zeros(sizes, dtype=torch.int64)
    largest = [exact.new_zeros(sizes, dtype=torch.float64) for _ in answers]
    squares = [exact.new_zeros((), dtype=torch.float64) for _ in answers]
    parts = (tensor.flatten().split(_AT_ONCE) for tensor in (exact, *answers))
    for true, *given in zip(*parts, strict=True):
        true = true.double()
        size = true.abs().view(torch.int64) >> _SHIFT
        counts += size.bincount(minlength=sizes)
        for answer, most, square in zip(given, largest, squares, strict=True):
            error = (answer.double() - true).abs()
            most.scatter_reduce_(0, size, error, "amax")
            square += error.square().sum()
    return counts, largest, [(square / exact.numel()).sqrt() for square in squares]
