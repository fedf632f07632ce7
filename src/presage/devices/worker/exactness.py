"""Decides whether an output is as exact as the reference's. The reference may itself be less exact than its tolerance:
torch computes convolutions in TF32, and another algorithm in TF32 has equally large errors in other places."""

from __future__ import annotations

from typing import Any

TIMES = 4.0
"""How many times as large as the reference's an output's error may be, in total and for values of any size. Thousands
of products that are summed one by one in single precision have two to four times the error of a library's sum in parts;
bfloat16, which has three bits fewer than TF32, has eight times."""
MOST_OFF = 0.01
"""The comparison is valid only if the reference's error is at most this share of the spread of the values, both as
standard deviations. A convolution in TF32 has 0.0005, a deep network of them up to 0.007."""
FEWEST, SHARE = 256, 0.01
"""The smallest values other than zero are compared together: at least FEWEST, and this share of all."""
STEPPED = 1e-3
"""The share of eight-bit values that may be a step off, of those that are not the most common one. A sum in another
order changes some 1e-6 of them, half precision in between about 1e-2, and rounding in another direction half of
them."""
_SHIFT = 44
"""Values whose doubles differ only in this many last bits, by 0.4 % at most, count as the same size."""
_AT_ONCE = 1 << 26
"""The number of values that are processed at a time, so that an answer of one gigabyte does not need ten more."""


def is_as_exact(right: Any, exact: Any, output: Any) -> bool:
    """Whether `output` is about as close to `exact` as `right`, the reference's answer. The allowed error of a value
    depends only on values that are no larger, so that errors of large values excuse none of small values."""
    if not right.is_floating_point() or not right.numel() or right.shape != output.shape:
        return False
    spread = exact.double().std(correction=0)
    counts, (theirs, ours), (off, our_off) = _errors(exact, right, output)
    if not bool(off <= MOST_OFF * spread) or not bool(our_off <= TIMES * off):
        return False  # also if any value is NaN
    zeros = int(counts[0])  # where the reference is always exact, as in a triangle
    least = min(right.numel(), zeros + max(FEWEST, int(SHARE * (right.numel() - zeros))))
    first = int((counts.cumsum(0) < least).sum())
    allowed = TIMES * theirs.cummax(0).values
    allowed[:first] = allowed[first]
    return bool((ours <= allowed).all())


def are_equal(right: Any, output: Any) -> Any:
    """Which values are equal. Of quantised values, which have eight bits, a few may be the next ones: a value that lies
    nearly between two is rounded to the one or the other, whatever comes before."""
    if right.dtype.itemsize > 1 or str(right.dtype) == "torch.bool" or right.dtype is not output.dtype:
        return right == output
    is_float = right.is_floating_point()
    ours, theirs = (part.float() if is_float else part.short() for part in (output, right))
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    steps = _number_of_step(output) - _number_of_step(right) if is_float else ours - theirs
    near = (steps.abs() <= 1) & ours.isfinite() & theirs.isfinite()
    return near | same if int((~same).sum()) <= STEPPED * _uncommon(right) else same


def _uncommon(values: Any) -> int:
    """How many of these eight-bit values are not the most common one."""
    import torch

    counts = sum(part.bincount(minlength=256) for part in values.view(torch.uint8).flatten().split(_AT_ONCE))
    return values.numel() - int(counts.max()) if values.numel() else 0


def _number_of_step(values: Any) -> Any:
    """Numbers eight-bit floats in their order. Both zeros have the same number."""
    import torch

    bits = values.view(torch.int8).short()
    return bits.where(bits >= 0, -(bits & 0x7F))


def _errors(exact: Any, *answers: Any) -> tuple[Any, list[Any], list[Any]]:
    """The number of values of each size; for each answer, the largest error at each size; and for each answer, the root
    mean square of its errors."""
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
