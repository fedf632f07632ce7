"""Watches the stores of interpreted Triton kernels. Triton's interpreter writes to any address: a store without the
mask that it needs corrupts the heap, or changes nothing that anybody looks at. And it runs programs one after the
other, so that what they do to each other's results does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

OUTSIDE = "a kernel writes outside the tensors that it is given"
RACE = "programs of a kernel store different values in the same place, and their order is not known"
_MOST_BYTES = 32 << 20
"""Larger storages are not watched for races."""
_HOLD_ADDRESSES = ("torch.int64", "torch.uint64")
_LEAST_ADDRESS = 1 << 32
"""An integer argument above this may be an address."""


def watch() -> None:
    """From now on, raise IndexError where a kernel writes outside the storages of its launch's tensors, or where a
    program changes what another one has stored."""
    from triton.runtime import interpreter

    watched = _Watched(interpreter._interpreter, lambda: interpreter.interpreter_builder.grid_idx)
    interpreter._interpreter = watched
    executor, convert = interpreter.GridExecutor, interpreter.GridExecutor._init_args_hst

    def converted(self: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        ours = convert(self, arguments, named)
        watched.begin(storages(ours), is_all=not hides_addresses(ours))
        return ours

    executor._init_args_hst = converted


def storages(arguments: Any) -> list[tuple[int, int]]:
    """The first address of each tensor's storage and the one after its last."""
    found = [each.untyped_storage() for each in _flat(arguments) if hasattr(each, "untyped_storage")]
    return sorted({(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in found})


def hides_addresses(arguments: Any) -> bool:
    """Whether a kernel may get addresses in another way, as numbers."""
    return any(
        each >= _LEAST_ADDRESS if isinstance(each, int) else str(getattr(each, "dtype", "")) in _HOLD_ADDRESSES
        for each in _flat(arguments)
    )


def _flat(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, Mapping):
        arguments = tuple(arguments.values())
    if isinstance(arguments, list | tuple):
        for each in arguments:
            yield from _flat(each)
    elif hasattr(arguments, "block_shape"):
        yield getattr(arguments, "base", None)  # a tensor descriptor
    else:
        yield getattr(arguments, "base", arguments)  # Triton's wrapper of a tensor with another type


class _Watched:
    """The interpreter's memory operations, of which stores and atomics are checked first. place: the number of the
    program that is running, along each axis of the grid."""

    def __init__(self, operations: Any, place: Callable[[], tuple[int, int, int]]) -> None:
        self._operations, self._place = operations, place
        self.begin([], is_all=False)

    def begin(self, ranges: Sequence[tuple[int, int]], is_all: bool) -> None:
        """Begin a launch that is given the storages at these addresses. is_all: whether it knows of no other memory."""
        self._ranges, self._is_all = ranges, is_all
        self._programs: dict[tuple[int, int, int], int] = {}
        self._writers: dict[int, npt.NDArray[np.int32]] | None = {}
        """By a storage's first address: the program that has stored at each byte, from 1. None after an atomic
        operation, by which programs may wait for each other."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    def store(self, pointers: Any, values: Any, mask: Any) -> Any:
        self._check(pointers, values, mask)
        self._check_order(pointers, values, mask)
        return self._operations.store(pointers, values, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, values: Any, mask: Any, order: Any) -> Any:
        self._check(pointers, values, mask)
        self._writers = None
        return self._operations.atomic_rmw(operation, pointers, values, mask, order)

    def atomic_cas(self, pointers: Any, old: Any, values: Any, order: Any) -> Any:
        self._check(pointers, values, True)
        self._writers = None
        return self._operations.atomic_cas(pointers, old, values, order)

    def _check(self, pointers: Any, values: Any, mask: Any) -> None:
        if not self._is_all:
            return
        begins = np.asarray(pointers, dtype=np.uint64)
        begins = begins[np.broadcast_to(np.asarray(mask, dtype=bool), begins.shape)]
        size = np.asarray(values).dtype.itemsize
        inside = np.zeros(begins.shape, dtype=bool)
        for first, end in self._ranges:
            inside |= (begins >= first) & (begins + np.uint64(size) <= end)
        if not inside.all():
            raise IndexError(f"{OUTSIDE}: {_where(int(begins[~inside][0]), self._ranges)}")

    def _check_order(self, pointers: Any, values: Any, mask: Any) -> None:
        if self._writers is None:
            return
        program = self._programs.setdefault(self._place(), len(self._programs) + 1)
        begins, values = np.asarray(pointers, dtype=np.uint64), np.asarray(values)
        admitted = np.broadcast_to(np.asarray(mask, dtype=bool), begins.shape)
        before = self._operations.load(begins, admitted, np.zeros(begins.shape, values.dtype), values.dtype)
        changed = _bits(before) != _bits(np.broadcast_to(values, begins.shape))
        for first, end in self._ranges:
            chosen = admitted & (begins >= first) & (begins < end)
            if end - first > _MOST_BYTES or not chosen.any():
                continue
            writers = self._writers.setdefault(first, np.zeros(end - first, np.int32))
            at = (begins[chosen] - np.uint64(first)).astype(np.int64)
            if ((writers[at] > 0) & (writers[at] != program) & changed[chosen]).any():
                raise IndexError(RACE)
            writers[at] = program


def _bits(values: Any) -> Any:
    """The values as integers, so that one that is no number equals itself."""
    values = np.ascontiguousarray(values)
    return values.view(f"u{values.dtype.itemsize}")


def _where(address: int, known: Sequence[tuple[int, int]]) -> str:
    """
    >>> _where(108, [(0, 50), (60, 100)]), _where(56, [(0, 50), (60, 100)]), _where(5, [])
    ('8 bytes after the end of one', '4 bytes before the beginning of one', 'it is given none')
    >>> _where(50, [(0, 50)])
    'right after the end of one'
    """
    if not known:
        return "it is given none"
    after = min((address - end for _, end in known if address >= end), default=address + 1)
    before = min((first - address for first, _ in known if address < first), default=after + 1)
    if before <= after:
        return f"{before} bytes before the beginning of one"
    return f"{f'{after} bytes' if after else 'right'} after the end of one"
