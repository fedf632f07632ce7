"""Outputs that have nothing to do with the inputs, and what a comparison must allow so that none of them is right.

A tolerance that is fixed, such as 1e-4, swallows an output whose values are smaller than that, or differ by less.
"""

from __future__ import annotations

from typing import Any

NOISE, ROUNDINGS = 16.0, 4.0
"""So many times the reference's own error, or the value's rounding, is allowed where a fixed tolerance would swallow
the output, if that is more than a share of what its values differ by."""


def strangers(right: Any, other: Any, torch: Any) -> dict[str, Any]:
    """Outputs like the right one that a kernel can give without looking at its inputs; `other` is right for others."""
    found = {"zeros": torch.zeros_like(right)}
    if right.numel() and not right.is_complex():
        centre = right.double().mean() if right.is_floating_point() else right.flatten()[0]
        found["a constant"] = torch.full_like(right, float(centre) if right.is_floating_point() else int(centre))
    if other is not None and other.shape == right.shape:
        found["the answer to other inputs"] = other
    return found


def spread(right: Any) -> float:
    """By how much an output's values differ: their standard deviation, and from nothing where there is one."""
    values = right.double().flatten()
    values = values[values.isfinite()]
    if values.numel() == 0:
        return 0.0
    return float(values.std(correction=0) if values.numel() > 1 else values.abs().max())


def bound(right: Any, exact: Any, share: float) -> float:
    """What an output's error may be, relative to its scale: no less than an honest implementation's, to judge by the
    reference's own, whose exact answer is given."""
    error = (right.double() - exact.double()).abs()
    error = error[error.isfinite()]
    return max(share * spread(right), NOISE * float(error.max()) if error.numel() else 0.0)


def largest(right: Any) -> float:
    values = right.double().abs()
    values = values[values.isfinite()]
    return float(values.max()) if values.numel() else 0.0


def words(names: list[str]) -> str:
    """
    >>> words(["zeros"]), words(["zeros", "a constant", "the answer to other inputs"])
    ('zeros', 'zeros, a constant and the answer to other inputs')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
