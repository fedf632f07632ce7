"""The arena on a GPU: memory of the parent that a child maps, cut into slots with guards."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch

from presage.core.errors import PresageError
from presage.devices.arena import GUARD, Place, guard_noise, noise_at, place_slots
from presage.devices.gpu_memory import NoRoomError
from presage.problems.base import Case, Problem

PAGE = 2 << 20
"""Arenas are multiples of this size. Memory of any other size is slow in a process that maps it, probably because it is
mapped in small pages: a softmax that takes 42 us anywhere else took 67 us there."""

_WORD = 8


class GpuArena:
    """The same interface as Arena, on torch tensors. It outlives its children, so the next child can use it."""

    def __init__(self, size: int) -> None:
        from cuda.bindings import driver

        torch.zeros(1, device="cuda")  # makes the GPU's context current in this thread
        size = -(-size // PAGE) * PAGE
        self._driver, self.size = driver, size
        code, self._pointer = driver.cuMemAlloc(size)
        if int(code):
            raise NoRoomError(f"the GPU has no {size >> 20} MiB left for inputs and outputs ({code.name})")
        code, handle = driver.cuIpcGetMemHandle(self._pointer)
        if int(code):
            raise PresageError(f"this GPU's memory cannot be shared between processes ({code.name})")
        self.handle = bytes(handle.reserved).hex()
        interface = {"shape": (size,), "typestr": "|u1", "data": (int(self._pointer), False), "version": 3}
        holder = type("Memory", (), {"__cuda_array_interface__": interface})()
        self._shared = self._bytes = torch.as_tensor(holder, device="cuda")
        self._junk: torch.Tensor | None = None
        self.slots: list[list[Place]] = []
        self._inputs = 0
        self._noise = torch.frombuffer(bytearray(guard_noise()), dtype=torch.uint8).cuda()

    def close(self) -> None:
        """Do nothing: the arena outlives its children."""

    def free(self) -> None:
        """Free the GPU memory. The arena must not be used afterwards."""
        self._driver.cuMemFree(self._pointer)

    def lay_out(self, problem: Problem, case: Case, calls: int, outputs: bool = True) -> None:
        self._inputs = len(problem.inputs)
        self.slots = place_slots(problem, case, calls, outputs, self.size)
        self._bytes = self._shared

    def hide(self) -> None:
        """Work on a private copy from here on. The child gets inputs after `show`, and the parent gets outputs by
        `taker`."""
        self.unhide()
        self._bytes = torch.empty(self.slots[-1][-1].end, dtype=torch.uint8, device="cuda")

    def unhide(self) -> None:
        """Work on the shared memory again, and free the private copy."""
        self._bytes = self._shared

    def show(self) -> None:
        """Copy the inputs to the shared memory, and evict them from the cache. Returns when that is done."""
        _copying(self._shared, self._bytes, [slot[: self._inputs] for slot in self.slots])()
        self.evict()

    def evict(self) -> None:
        """Evict the L2 cache by overwriting it. Returns when that is done."""
        if self._junk is None:
            size = 2 * int(torch.cuda.get_device_properties(0).L2_cache_size)
            self._junk = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._junk.fill_(1)
        torch.cuda.synchronize()

    def taker(self, slots: Iterable[int], others: Iterable[int] = ()) -> Callable[[], int]:
        """Prepare to copy these slots as the child will have written them, so that they can be checked. The function
        that is returned copies them and at once the others, so that the GPU does not turn to the child in between. It
        returns when all is done, with the time by `time.perf_counter_ns` at which the first slots were there."""
        first, second = (
            [_copying(self._bytes, self._shared, [self.slots[slot]]) for slot in some] for some in (slots, others)
        )
        there = torch.cuda.Event()

        def take() -> int:
            for copy in first:
                copy()
            there.record()
            for copy in second:
                copy()
            there.synchronize()
            taken = time.perf_counter_ns()
            torch.cuda.synchronize()
            return taken

        return take

    def write_inputs(self, slot: int, inputs: Sequence[Any]) -> None:
        for place, values in zip(self.slots[slot], inputs, strict=False):
            self._view(place).copy_(values)

    def poison(self, slot: int) -> None:
        """Fill a slot's outputs with noise, and rewrite the guards around its arrays. The noise need not be secret."""
        for number, place in enumerate(self.slots[slot]):
            for begin in place.guards:
                for memory in (self._bytes, self._shared):
                    memory[begin : begin + GUARD] = self._noise[noise_at(begin)]
            if number >= self._inputs:
                self._shared[place.offset : place.offset + place.bytes] = secrets.randbelow(256)

    def settle(self) -> None:
        """Wait until the child can see everything that was written."""
        torch.cuda.synchronize()

    def inputs(self, slot: int) -> tuple[Any, ...]:
        """A copy of a slot's inputs."""
        return tuple(self._view(place).clone() for place in self.slots[slot][: self._inputs])

    def outputs(self, slot: int) -> tuple[Any, ...]:
        return tuple(self._view(place) for place in self.slots[slot][self._inputs :])

    def tampering(self, problem: Problem, slot: int, inputs: Sequence[Any]) -> str | None:
        names = [array.name for array in (*problem.inputs, *problem.outputs)]
        for array, place, values in zip(problem.inputs, self.slots[slot], inputs, strict=False):
            written = self._bytes[place.offset : place.offset + place.bytes]
            if not array.written and not torch.equal(written, values.contiguous().reshape(-1).view(torch.uint8)):
                return f"changed its input {array.name}"
        for name, place in zip(names, self.slots[slot], strict=False):
            around = torch.cat([self._bytes[begin : begin + GUARD] for begin in place.guards])
            if not torch.equal(around, torch.cat([self._noise[noise_at(begin)] for begin in place.guards])):
                return f"wrote outside {name}"
        return None

    def _view(self, place: Place) -> Any:
        dtype = getattr(torch, place.type)
        return self._bytes[place.offset : place.offset + place.bytes].view(dtype).view(place.shape)


def _copying(into: torch.Tensor, values: torch.Tensor, slots: Sequence[Sequence[Place]]) -> Callable[[], Any]:
    """Prepare to copy these neighbouring places of each slot with their guards, by one kernel. Kernels of two processes
    take turns on a GPU, so nothing of the child runs meanwhile. A copy by the copy engine would leave the
    multiprocessors to the child, and so would several kernels, between which the GPU waits for the host."""
    if not slots or not slots[0]:
        return lambda: None
    begin, end = slots[0][0].offset - GUARD, slots[0][-1].end
    apart = slots[1][0].offset - slots[0][0].offset if len(slots) > 1 else 0  # all slots of a case are alike
    shape, stride = (len(slots), (end - begin) // _WORD), (apart // _WORD, 1)
    source, target = (memory.view(torch.int64).as_strided(shape, stride, begin // _WORD) for memory in (values, into))
    return partial(torch.bitwise_or, source, 0, out=target)
