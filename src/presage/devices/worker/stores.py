"""Watches the stores of interpreted Triton kernels. Triton's interpreter writes to any address: a store without the
mask that it needs corrupts the heap, or changes nothing that anybody looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

OUTSIDE = "a kernel writes outside the tensors that it is given"
_LEAST_ADDRESS = 1 << 32
"""An integer argument above this may be an address."""


def watch() -> None:
    """From now on, raise IndexError where a kernel writes outside the storages of its launch's tensors."""
    from triton.runtime import interpreter

    watched = _Watched(interpreter._interpreter)
    interpreter._interpreter = watched
    executor, convert = interpreter.GridExecutor, interpreter.GridExecutor._init_args_hst

    def converted(self: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        ours = convert(self, arguments, named)
        watched.ranges = ranges(ours)
        return ours

    executor._init_args_hst = converted


def ranges(arguments: Any) -> list[tuple[int, int]] | None:
    """The first address of each tensor's storage and the one after its last; None if a kernel may get addresses in
    another way, as numbers."""
    found = set()
    for each in _flat(arguments):
        if isinstance(each, int) and each >= _LEAST_ADDRESS:
            return None
        if hasattr(each, "untyped_storage"):
            if str(each.dtype) in ("torch.int64", "torch.uint64"):
                return None
            storage = each.untyped_storage()
            found.add((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
    return sorted(found)


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
    """The interpreter's memory operations, of which stores and atomics are checked first."""

    def __init__(self, operations: Any) -> None:
        self._operations = operations
        self.ranges: list[tuple[int, int]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    def store(self, pointers: Any, values: Any, mask: Any) -> Any:
        self._check(pointers, values, mask)
        return self._operations.store(pointers, values, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, values: Any, mask: Any, order: Any) -> Any:
        self._check(pointers, values, mask)
        return self._operations.atomic_rmw(operation, pointers, values, mask, order)

    def atomic_cas(self, pointers: Any, old: Any, values: Any, order: Any) -> Any:
        self._check(pointers, values, True)
        return self._operations.atomic_cas(pointers, old, values, order)

    def _check(self, pointers: Any, values: Any, mask: Any) -> None:
        if self.ranges is None:
            return
        begins = np.asarray(pointers, dtype=np.uint64)
        begins = begins[np.broadcast_to(np.asarray(mask, dtype=bool), begins.shape)]
        size = np.asarray(values).dtype.itemsize
        inside = np.zeros(begins.shape, dtype=bool)
        for first, end in self.ranges:
            inside |= (begins >= first) & (begins + np.uint64(size) <= end)
        if not inside.all():
            raise IndexError(f"{OUTSIDE}: {_where(int(begins[~inside][0]), self.ranges)}")


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
