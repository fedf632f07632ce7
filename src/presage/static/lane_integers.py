"""Integers in a warp's 32 lanes: the effects of PTX's integer instructions, and the memory cost of addresses.

A register holds 64-bit integers. A 32-bit integer is stored sign-extended, and is converted to unsigned where an
instruction reads it as unsigned.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from presage.static.ptx import Instruction

Lanes = npt.NDArray[np.int64]
WARP = 32
SECTOR, _BANKS = 32, 32
_SHARED_WINDOW = 1 << 38
"""Start of shared memory in the generic address space. It is not 0, since 0 is the null pointer."""
FLOATS = {
    "f32": "fp32", "f32x2": "fp32", "f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16", "f64": "fp64",
}  # fmt: skip
"""PTX types that are not integers, and the kind of arithmetic that they count as."""


def _signed32(values: Lanes) -> Lanes:
    return values.astype(np.int32).astype(np.int64)


def unsigned32(values: Lanes) -> Lanes:
    return values & 0xFFFFFFFF


def same(values: Lanes) -> Lanes:
    return values


def _truth(values: Lanes) -> Lanes:
    return values & 1


def _signed16(values: Lanes) -> Lanes:
    return values.astype(np.int16).astype(np.int64)


def wrap(instruction: Instruction) -> Callable[[Lanes], Lanes]:
    """Return the function that stores a result: it sign-extends from the width of the instruction's type."""
    parts = instruction.parts
    kind = parts[-1] if parts else "b32"
    if instruction.root == "cvt":
        kind = parts[-2]
        if kind == "u32":
            return _signed32
    if "wide" in parts:
        return _signed32 if kind.endswith("16") else same
    return _truth if kind == "pred" else {"32": _signed32, "16": _signed16}.get(kind[1:], same)


def _quotient(a: Lanes, b: Lanes) -> Lanes:
    safe = np.where(b == 0, 1, b)
    return np.where((a < 0) != (safe < 0), -(np.abs(a) // np.abs(safe)), np.abs(a) // np.abs(safe))


def _within(values: Lanes, most: int) -> Lanes:
    return np.minimum(np.maximum(values, 0), most)  # several times as fast as np.clip on 32 numbers


def _shift(values: Lanes, by: Lanes, left: bool) -> Lanes:
    by = _within(by, 63)
    return values << by if left else values >> by


def _field(values: Lanes, start: Lanes, length: Lanes) -> Lanes:
    return (values >> _within(start, 63)) & ((np.int64(1) << _within(length, 62)) - 1)


def _inserted(field: Lanes, values: Lanes, start: Lanes, length: Lanes) -> Lanes:
    mask = ((np.int64(1) << _within(length, 62)) - 1) << _within(start, 63)
    return (values & ~mask) | ((field << _within(start, 63)) & mask)


def _any_function(a: Lanes, b: Lanes, c: Lanes, table: Lanes) -> Lanes:
    """lop3: the operands' bits at each position are the index of the result's bit in `table`."""
    result, wanted = np.zeros(WARP, dtype=np.int64), int(table[0])
    for bits in range(8):
        if wanted >> bits & 1:
            result |= (a if bits & 4 else ~a) & (b if bits & 2 else ~b) & (c if bits & 1 else ~c)
    return result


def _selected(a: Lanes, b: Lanes, chosen: Lanes) -> Lanes:
    return np.asarray(np.where(chosen != 0, a, b))


def first(a: Lanes, *_: Lanes) -> Lanes:
    return a


_SIMPLE: dict[str, Callable[..., Lanes]] = {
    "mov": first,
    "cvta": first,
    "cvt": first,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mul24": operator.mul,
    "mad": lambda a, b, c: a * b + c,
    "div": _quotient,
    "rem": lambda a, b: a - b * _quotient(a, b),
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": operator.neg,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "shl": lambda a, b: _shift(a, b, left=True),
    "shr": lambda a, b: _shift(a, b, left=False),
    "bfe": _field,
    "bfi": _inserted,
    "lop3": _any_function,
    "selp": _selected,
}
KNOWN = {
    *_SIMPLE,
    "setp",
    "set",
    "popc",
    "clz",
    "prmt",
    "shf",
    "bfind",
    "brev",
    "sad",
    "dp4a",
    "slct",
    "fns",
    "copysign",
}
LINEAR = ("mov", "cvta", "cvt", "add", "sub", "mul", "mad", "shl", "neg", "setp", "ld")
COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def operation(instruction: Instruction) -> Callable[..., Lanes] | None:
    root, parts = instruction.root, instruction.parts
    if any(part in FLOATS for part in parts):
        return None
    if root == "setp":
        return COMPARISONS.get(parts[0]) if len(parts) == 2 else None
    simple = _SIMPLE.get(root)
    if simple is None:
        return None
    if root == "cvta" and "shared" in parts:
        way = -_SHARED_WINDOW if "to" in parts else _SHARED_WINDOW
        return lambda a: a + way
    if root == "mul" and "hi" in parts:
        wide = parts[-1] in ("u32", "s32")
        read = unsigned32 if parts[-1] == "u32" else same
        return (lambda a, b: (read(a) * read(b)) >> 32) if wide else None
    if parts[-1] == "u32" and root == "mad" and "wide" in parts:
        return lambda a, b, c: unsigned32(a) * unsigned32(b) + c
    unsigned = ("div", "rem", "shr", "min", "max", "cvt", "bfe") if "wide" not in parts else ("mul",)
    if root in unsigned and (parts[-1] == "u32" or (root == "shr" and parts[-1] == "b32")):
        return lambda *operands: simple(*map(unsigned32, operands))
    return simple


def sectors(addresses: Lanes, width: int) -> int:
    """The number of 32-byte sectors that the lanes touch together."""
    ends = addresses + (width - 1)
    return len(set((addresses // SECTOR).tolist()) | set((ends // SECTOR).tolist()))


def shared_passes(addresses: Lanes, width: int) -> int:
    """The number of passes that a shared access takes, since each bank returns one word per pass."""
    words = max(1, width // 4)
    passes = 0
    for start in range(0, len(addresses), WARP // words):
        group = addresses[start : start + WARP // words] // 4
        distinct = np.unique((group[:, None] + np.arange(words)).ravel())
        passes += int(np.bincount(distinct % _BANKS).max())
    return passes
