"""Arena: memory shared with one child, cut into slots. Each slot holds one call's inputs and outputs between guards."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from presage.core.errors import PresageError
from presage.problems.base import Case, Problem

ARENA_BYTES = 2 << 30
"""Address space only; pages are taken when they are touched."""
SLOT_BUDGET = 48 << 20
"""Slots are added while they fit into this, so that a window of short calls still has fresh inputs for each."""

_GUARD = 256
_ALIGN = 64
_SEALS = 0x0001 | 0x0002 | 0x0004  # no more seals, no shrinking, no growing: a child cannot pull memory from under us
_F_ADD_SEALS = 1033


@dataclass(frozen=True)
class Place:
    """Where one array of one slot lies."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Arena:
    """Maps the shared memory on the parent's side; the child maps the same file by its descriptor."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("presage-arena", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, ARENA_BYTES)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        self._map = mmap.mmap(self.fd, ARENA_BYTES)
        self._bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.slots: list[list[Place]] = []
        self._inputs = 0
        self._guard = os.urandom(1)[0]  # one byte value, since guards of neighbours overlap

    def close(self) -> None:
        del self._bytes
        self.slots = []
        try:
            self._map.close()
        except BufferError:  # a view is still alive somewhere; the mapping goes with it
            pass
        os.close(self.fd)

    def lay_out(self, problem: Problem, case: Case, calls: int, outputs: bool) -> None:
        """Cut the arena into `calls` slots for this case; modules bring their own outputs, so get none."""
        arrays = (*problem.inputs, *(problem.outputs if outputs else ()))
        self._inputs = len(problem.inputs)
        offset, slots = _GUARD, []
        for _ in range(calls):
            slot = []
            for array in arrays:
                place = Place(offset, problem.shape(array, case), np.dtype(problem.dtype(array, case)))
                slot.append(place)
                offset = -(-(offset + place.bytes + _GUARD) // _ALIGN) * _ALIGN
            slots.append(slot)
        if offset > ARENA_BYTES:
            raise PresageError(f"{problem.name}, {case.name}: one call needs {offset >> 20} MiB; the limit is 2 GiB")
        self.slots = slots

    def write_inputs(self, slot: int, inputs: Sequence[np.ndarray]) -> None:
        for place, values in zip(self.slots[slot], inputs, strict=False):
            self._view(place)[...] = values

    def poison(self, slot: int) -> None:
        """Fill a slot's outputs with noise that no kernel produced, and renew the guards around its arrays."""
        noise = np.frombuffer(os.urandom(8), dtype=np.uint8)
        for place in self.slots[slot]:
            self._bytes[place.offset - _GUARD : place.offset] = self._guard
            end = place.offset + place.bytes
            self._bytes[end : end + _GUARD] = self._guard
        for place in self.slots[slot][self._inputs :]:
            words = self._bytes[place.offset : place.offset + place.bytes // 8 * 8].view(np.uint64)
            words[:] = noise.view(np.uint64)[0]
            tail = self._bytes[place.offset + place.bytes // 8 * 8 : place.offset + place.bytes]
            tail[:] = noise[: tail.size]

    def outputs(self, slot: int) -> tuple[np.ndarray, ...]:
        return tuple(self._view(place) for place in self.slots[slot][self._inputs :])

    def tampering(self, problem: Problem, slot: int, inputs: Sequence[np.ndarray]) -> str | None:
        """What a call did to memory that was not its output, or None."""
        names = [array.name for array in (*problem.inputs, *problem.outputs)]
        for name, place, values in zip(names, self.slots[slot], inputs, strict=False):
            written = self._bytes[place.offset : place.offset + place.bytes]
            if not np.array_equal(written, np.ascontiguousarray(values).reshape(-1).view(np.uint8)):
                return f"changed its input {name}"
        for name, place in zip(names, self.slots[slot], strict=False):
            end = place.offset + place.bytes
            before = self._bytes[place.offset - _GUARD : place.offset]
            after = self._bytes[end : end + _GUARD]
            if (before != self._guard).any() or (after != self._guard).any():
                return f"wrote outside {name}"
        return None

    def _view(self, place: Place) -> np.ndarray:
        return self._bytes[place.offset : place.offset + place.bytes].view(place.dtype).reshape(place.shape)
