"""Arena: memory shared with one child, cut into slots. Each slot holds one call's inputs and outputs between guards."""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from presage.core.errors import PresageError
from presage.problems.base import Case, Problem, storage

ARENA_BYTES = 2 << 30
"""Bytes of address space. Pages are allocated when they are first touched."""
SLOT_BUDGET = 48 << 20
"""The most bytes that the slots of a window take, unless a single call needs more. It lets a window of short calls have
separate inputs for each call."""

GUARD = 256
"""Bytes on either side of an array that no kernel may write to."""
_PERIOD = 65_521
"""The noise in guards repeats after this many bytes. It is a prime, so two guards differ even if arrays have round
sizes."""
_ALIGN = 256
_SEALS = 0x0001 | 0x0002 | 0x0004  # seal, shrink, grow: the child cannot change the size of memory that the parent uses
_F_ADD_SEALS = 1033


@dataclass(frozen=True)
class Place:
    """The place of one array of one slot in the arena."""

    offset: int
    shape: tuple[int, ...]
    type: str
    """The name of the element type. It may be a type that numpy lacks."""

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype in which the elements are stored."""
        return storage(self.type)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def guards(self) -> tuple[int, int]:
        """The offsets of the guards before and after the array. Guards of neighbours may overlap."""
        return self.offset - GUARD, self.offset + self.bytes

    @property
    def end(self) -> int:
        """The offset at which the guard after the array ends and the next array may begin."""
        return -(-(self.offset + self.bytes + GUARD) // _ALIGN) * _ALIGN


def place_slots(problem: Problem, case: Case, calls: int, outputs: bool, limit: int) -> list[list[Place]]:
    """Place the arrays of each call one after another, with a guard on either side of each. Raises PresageError if they
    take more than `limit` bytes."""
    arrays = (*problem.inputs, *(problem.outputs if outputs else ()))
    offset, slots = GUARD, []
    for _ in range(calls):
        slot = []
        for array in arrays:
            place = Place(offset, problem.shape(array, case), problem.dtype(array, case))
            slot.append(place)
            offset = place.end
        slots.append(slot)
    if offset > limit:
        needed = f"{offset >> 20} MiB are needed; the limit is {limit >> 20} MiB"
        raise PresageError(f"{problem.name}, {case.name}: {needed}")
    return slots


def guard_noise() -> bytes:
    """Random bytes for guards. What a guard holds depends on its offset, so a kernel that reads beyond one array and
    writes beyond another changes the second guard."""
    noise = os.urandom(_PERIOD)
    return noise + noise[:GUARD]


def noise_at(offset: int) -> slice:
    """The part of the noise that a guard at this offset holds."""
    return slice(offset % _PERIOD, offset % _PERIOD + GUARD)


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two byte arrays are equal. Compares 8-byte words, which takes less than half of the time."""
    whole = one.size // 8 * 8
    parts = (slice(whole), np.int64), (slice(whole, None), np.uint8)
    return one.size == other.size and all(np.array_equal(one[p].view(t), other[p].view(t)) for p, t in parts)


class Arena:
    """The arena on the parent's side. It maps the shared memory; the child maps the same file by its descriptor."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("presage-arena", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, ARENA_BYTES)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        self._map = mmap.mmap(self.fd, ARENA_BYTES)
        self._bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.slots: list[list[Place]] = []
        self._inputs = 0
        self._noise = np.frombuffer(guard_noise(), dtype=np.uint8)

    def close(self) -> None:
        del self._bytes
        self.slots = []
        with contextlib.suppress(BufferError):  # a view is still in use; the mapping is freed with it
            self._map.close()
        os.close(self.fd)

    def lay_out(self, problem: Problem, case: Case, calls: int, outputs: bool) -> None:
        """Cut the arena into `calls` slots for this case. Slots of modules have no outputs, since modules allocate
        their own."""
        self._inputs = len(problem.inputs)
        self.slots = place_slots(problem, case, calls, outputs, ARENA_BYTES)

    def write_inputs(self, slot: int, inputs: Sequence[np.ndarray]) -> None:
        for place, values in zip(self.slots[slot], inputs, strict=False):
            self._view(place)[...] = values

    def poison(self, slot: int) -> None:
        """Fill a slot's outputs with random noise, and rewrite the guards around its arrays."""
        noise = np.frombuffer(os.urandom(8), dtype=np.uint8)
        for place in self.slots[slot]:
            for begin in place.guards:
                self._bytes[begin : begin + GUARD] = self._noise[noise_at(begin)]
        for place in self.slots[slot][self._inputs :]:
            words = self._bytes[place.offset : place.offset + place.bytes // 8 * 8].view(np.uint64)
            words[:] = noise.view(np.uint64)[0]
            tail = self._bytes[place.offset + place.bytes // 8 * 8 : place.offset + place.bytes]
            tail[:] = noise[: tail.size]

    def settle(self) -> None:
        """Do nothing: the child sees the parent's writes at once."""

    def inputs(self, slot: int) -> tuple[np.ndarray, ...]:
        """A copy of a slot's inputs."""
        return tuple(self._view(place).copy() for place in self.slots[slot][: self._inputs])

    def outputs(self, slot: int) -> tuple[np.ndarray, ...]:
        return tuple(self._view(place) for place in self.slots[slot][self._inputs :])

    def tampering(self, problem: Problem, slot: int, inputs: Sequence[np.ndarray]) -> str | None:
        """Return how a call changed memory other than its outputs, or None."""
        names = [array.name for array in (*problem.inputs, *problem.outputs)]
        for array, place, values in zip(problem.inputs, self.slots[slot], inputs, strict=False):
            written = self._bytes[place.offset : place.offset + place.bytes]
            right = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            if not array.written and not _are_equal(written, right):
                return f"changed its input {array.name}"
        for name, place in zip(names, self.slots[slot], strict=False):
            if any(not _are_equal(self._bytes[at : at + GUARD], self._noise[noise_at(at)]) for at in place.guards):
                return f"wrote outside {name}"
        return None

    def _view(self, place: Place) -> np.ndarray:
        return self._bytes[place.offset : place.offset + place.bytes].view(place.dtype).reshape(place.shape)
