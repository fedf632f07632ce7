"""Finds outputs that pass a comparison although they do not depend on the inputs, and error bounds that reject them.

A fixed tolerance, such as 1e-4, swallows an output whose values are smaller than that, or differ by less: every output
of such a size passes.
"""

from __future__ import annotations

import random
from typing import Any

NOISE, ROUNDINGS = 16.0, 4.0
"""Factors of the error that is allowed where a fixed tolerance would swallow the output. The absolute error may be
NOISE times the reference's own, if that is more than a share of the spread of the values. The relative error may be
ROUNDINGS times the rounding of a value, if the tolerance is still too loose."""


def strangers(right: Any, other: Any, torch: Any) -> dict[str, Any]:
    """Outputs of the right shape that a kernel can return without reading its inputs. `other`: the answer to other
    inputs."""
    found = {"zeros": torch.zeros_like(right)}
    if right.numel() and not right.is_complex():
        centre = right.double().mean() if right.is_floating_point() else right.flatten()[0]
        found["a constant"] = torch.full_like(right, float(centre) if right.is_floating_point() else int(centre))
    if other is not None and other.shape == right.shape:
        found["the answer to other inputs"] = other
    return found


def spread(right: Any) -> float:
    """How much an output's values differ: their standard deviation, or the absolute value if there is only one."""
    values = right.double().flatten()
    values = values[values.isfinite()]
    if values.numel() == 0:
        return 0.0
    return float(values.std(correction=0) if values.numel() > 1 else values.abs().max())


def bound(right: Any, exact: Any, share: float) -> float:
    """The allowed absolute error of an output, relative to its scale. It is no less than the error of an honest
    implementation, estimated from the reference's own error, for which `exact` is the exact answer."""
    error = (right.double() - exact.double()).abs()
    error = error[error.isfinite()]
    return max(share * spread(right), NOISE * float(error.max()) if error.numel() else 0.0)


THINNED_SHARE = 0.01
"""The error that is allowed on thinned inputs, of each value and of the spread of all."""
_PARTS = ("float16", "bfloat16", "float32", "float64")
STYLES = ("parts", "stretches", "needles")
"""What of a tensor is scaled down: a part of it, or all but some stretches, or all but a few values. An average over a
sample of many values is about right, unless few of them matter."""
_KEPT, _LEFT = 32, {"stretches": 2.0**-6, "needles": 2.0**-30}
"""How many stretches or values are not scaled down, and how much is left of the others."""


def style(seed: int) -> str:
    """The style of the inputs that are made from a seed."""
    return random.Random(seed).choice(STYLES)


def thinned(tensor: Any, seed: int, style: str, torch: Any) -> Any:
    """A copy of a dense tensor of floats, of which parts that depend on the seed are scaled down. No value gets larger
    or changes its sign."""
    if str(tensor.dtype).removeprefix("torch.") not in _PARTS or tensor.numel() < 2:
        return tensor
    made, draw, count = tensor.clone(), random.Random(seed), tensor.numel()
    flat = made.as_strided((count,), (1,), made.storage_offset())
    if style == "parts":
        begin, step = draw.randrange(count), draw.randint(2, 8)
        flat[begin : begin + count // 4 + 1] *= 0.25
        flat[draw.randrange(step) :: step] *= 0.5
        return made
    length = max(1, count >> 11) if style == "stretches" else 1
    kept = [slice(at, at + length) for at in (draw.randrange(count) for _ in range(min(_KEPT, 1 + count // 8)))]
    values = [flat[part].clone() for part in kept]
    flat *= _LEFT[style]
    for part, value in zip(kept, values, strict=True):
        flat[part] = value
    return made


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
