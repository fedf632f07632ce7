"""Arena: what a call did to memory that was not its output is seen, and no child can take the memory away."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from presage import Case, PresageError, Problem
from presage.devices.arena import ARENA_BYTES, Arena
from presage.problems import registry

CASE = Case({"n": 1003})
INPUTS = (np.arange(1003, dtype=np.float32), np.ones(1003, dtype=np.float32))


@pytest.fixture
def addition() -> Problem:
    return registry.get("vector_add")


@pytest.fixture
def arena(addition: Problem) -> Iterator[Arena]:
    arena = Arena()
    arena.lay_out(addition, CASE, calls=3, outputs=True)
    for slot in range(3):
        arena.write_inputs(slot, INPUTS)
        arena.poison(slot)
    yield arena
    arena.close()


@pytest.fixture
def memory(arena: Arena) -> Iterator[mmap.mmap]:
    """The same memory as a child maps it."""
    with mmap.mmap(arena.fd, ARENA_BYTES) as child:
        yield child


def test_an_honest_call_is_seen_as_one(arena: Arena, addition: Problem, memory: mmap.mmap) -> None:
    for slot in range(3):
        x, y, z = arena.slots[slot]
        inputs = [np.frombuffer(memory[p.offset : p.offset + p.bytes], dtype=p.dtype) for p in (x, y)]
        memory[z.offset : z.offset + z.bytes] = (inputs[0] + inputs[1]).tobytes()
        assert arena.tampering(addition, slot, INPUTS) is None
        assert np.array_equal(arena.outputs(slot)[0], INPUTS[0] + INPUTS[1])


def test_what_lies_behind_an_input_cannot_be_copied_behind_an_output(
    arena: Arena, addition: Problem, memory: mmap.mmap
) -> None:
    """Nor before it: a kernel that goes too far on both does just that."""
    for slot in range(3):
        x, _, z = arena.slots[slot]
        for begin, other in zip(x.guards, z.guards, strict=True):
            arena.poison(slot)
            memory[other + 8 : other + 12] = memory[begin + 8 : begin + 12]
            assert arena.tampering(addition, slot, INPUTS) in ("wrote outside y", "wrote outside z")


@pytest.mark.parametrize("slot", [0, 1, 2])
@pytest.mark.parametrize(
    ("array", "offset", "complaint"),
    [
        (0, 0, "changed its input x"),
        (1, 4011, "changed its input y"),
        (0, -1, "wrote outside x"),
        (0, -200, "wrote outside x"),
        (2, -1, "wrote outside"),
        (2, 4012, "wrote outside z"),
        (2, 4012 + 200, "wrote outside z"),
    ],
)
def test_a_stray_write_is_seen(
    arena: Arena, addition: Problem, memory: mmap.mmap, slot: int, array: int, offset: int, complaint: str
) -> None:
    at = arena.slots[slot][array].offset + offset
    memory[at] ^= 0xFF
    assert complaint in str(arena.tampering(addition, slot, INPUTS))


def test_outputs_are_poisoned_anew_each_time(arena: Arena) -> None:
    (z,) = arena.outputs(0)
    noise = z.tobytes()
    assert not np.array_equal(z, INPUTS[0] + INPUTS[1])
    arena.poison(0)
    assert z.tobytes() != noise
    assert z[-1:].tobytes() != noise[-4:], "to the last byte"


def test_slots_are_aligned_and_apart(arena: Arena) -> None:
    places = sorted((place.offset, place.bytes) for slot in arena.slots for place in slot)
    assert all((offset - places[0][0]) % 64 == 0 for offset, _ in places)
    assert all(a + size + 256 <= b for (a, size), (b, _) in pairwise(places))


def test_modules_get_no_outputs(arena: Arena, addition: Problem) -> None:
    arena.lay_out(addition, CASE, calls=2, outputs=False)
    assert [len(slot) for slot in arena.slots] == [2, 2]
    assert arena.outputs(0) == ()


def test_a_case_that_does_not_fit_is_explained(arena: Arena, addition: Problem) -> None:
    with pytest.raises(PresageError, match=r"vector_add, n=300000000: .*3433 MiB.*; the limit is 2"):
        arena.lay_out(addition, Case({"n": 300_000_000}), calls=1, outputs=True)


SHRINK = """
import fcntl, os, sys
fd = int(sys.argv[1])
for what in (lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 3 << 30), lambda: fcntl.fcntl(fd, 1033, 8)):
    try:
        what()
    except PermissionError:
        continue
    sys.exit("it could")
"""


def test_a_child_cannot_shrink_grow_or_seal_it(arena: Arena) -> None:
    subprocess.run([sys.executable, "-c", SHRINK, str(arena.fd)], pass_fds=(arena.fd,), check=True)
    assert os.fstat(arena.fd).st_size == ARENA_BYTES


def test_closing_gives_the_descriptor_back() -> None:
    arena = Arena()
    arena.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(arena.fd)
