"""Arenas: the memory for what kernels read and write on a GPU, which this process keeps, and others may use as well."""

from __future__ import annotations

import threading
import time
from typing import Any

from presage.devices.arena import place_slots
from presage.devices.base import Progress
from presage.devices.examiner import TOGETHER_BYTES
from presage.devices.gpu_memory import GIB, NoRoomError
from presage.problems.base import Problem

MEMORY_SECONDS = 300.0
"""How long to wait for memory that other processes have."""
LOOK_AGAIN = 1.0
WORKER_BYTES = 1 << 30
"""Of the GPU's memory, for a worker's context and what its kernel takes while it is made ready."""
_SHARE, _LEAST, _MOST, _CALLS = 0.1, 512 << 20, 16 << 30, 64
"""Of the GPU's memory, an arena: no more than is of use, since others may measure there, too."""
_CHECKING = 8
"""So many times what a call takes is needed to make its inputs and check its outputs: in double precision, and beside
them what comes up on the way."""


class Arenas:
    """Those that nobody has at the moment, and what the GPU has left."""

    def __init__(self, torch: Any, total: int) -> None:
        self._cuda, self._total = torch.cuda, total
        self._unused: list[Any] = []
        self._turn = threading.Lock()
        """Threads that make problems ready take arenas, too."""

    def memory(self) -> tuple[int, int]:
        """How many bytes are free, and how many there are."""
        free, total = self._cuda.mem_get_info()
        return int(free), int(total)

    def missing(self, problem: Problem, kernels: int) -> int:
        """How many bytes are missing to check and time so many kernels, when arenas that are too small for them have
        been freed. What more than half the GPU is needed for, is not waited for: it has to be tried."""
        call, arena = self._sizes(problem)
        kept = len([each for each in self._unused if each.size >= arena])
        needed = max(0, kernels - kept) * arena + _CHECKING * call + WORKER_BYTES
        missing = self._missing(needed)
        return self._missing(needed) if missing and self._free(arena) else missing

    def take(self, problem: Problem) -> Any:
        """With room for a window of any case, or for a call where that would be much of the GPU. Raises NoRoomError."""
        return self._take(self._sizes(problem)[1], self._total)

    def take_for_calls(self, problem: Problem, progress: Progress) -> Any:
        """For one call at a time, or several small ones, and not much larger than that: as many problems as are open
        have one. There is no lane to be had for that, but others may have to let go of memory."""
        size, patience = max(self._sizes(problem)[0], TOGETHER_BYTES), time.monotonic() + MEMORY_SECONDS
        while True:
            try:
                return self._take(size, 2 * size + _LEAST)
            except NoRoomError:
                if time.monotonic() > patience:
                    raise
            wait_for_others(size, progress)

    def give_back(self, arena: Any) -> None:
        self._unused.append(arena)

    def trim(self, most: float) -> None:
        """Have torch give back what it keeps for later, where that is more than so many bytes: it takes a tenth of a
        second."""
        if self._cuda.memory_reserved() > most:
            self._cuda.empty_cache()

    def _missing(self, needed: int) -> int:
        free, total = self.memory()
        cached = int(self._cuda.memory_reserved() - self._cuda.memory_allocated())
        return max(0, min(needed, total // 2) - free - cached)

    def _free(self, size: int) -> int:
        """Free those that are smaller than this. Returns their number."""
        with self._turn:
            small = [each for each in self._unused if each.size < size]
            self._unused = [each for each in self._unused if each.size >= size]
        for arena in small:
            arena.free()
        return len(small)

    def _take(self, size: int, most: int) -> Any:
        """The one used last that is neither too small nor larger than `most`, since shared workers have that open."""
        from presage.devices.gpu_arena import GpuArena

        with self._turn:
            for arena in reversed(self._unused):
                if size <= arena.size <= most:
                    self._unused.remove(arena)
                    return arena
        try:
            return GpuArena(size)
        except NoRoomError:
            self._free(self._total)
            self._cuda.empty_cache()
            return GpuArena(size)

    def _sizes(self, problem: Problem) -> tuple[int, int]:
        """How many bytes the largest call takes, and an arena for a window."""
        cases = {case.name: case for case in (*problem.checks, *problem.timed["gpu"])}.values()
        call = max(place_slots(problem, case, 1, True, self._total)[-1][-1].end for case in cases)
        return call, max(call, min(_LEAST + _CALLS * call, _MOST, int(self._total * _SHARE)))


def wait_for_others(missing: int, progress: Progress) -> None:
    """Say that so many bytes are missing, and give other processes a while to let go of them."""
    progress(f"waiting for {missing / GIB:.1f} GiB of the GPU's memory, which other processes have", 0.0)
    time.sleep(LOOK_AGAIN)
