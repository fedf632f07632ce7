"""Arenas: the GPU memory for inputs and outputs of kernels, which this process keeps. Other processes may use the GPU,
too."""

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
"""Seconds to wait for memory that other processes use."""
LOOK_AGAIN = 1.0
WORKER_BYTES = 1 << 30
"""Bytes of GPU memory for a worker's context and its kernel while it is prepared."""
_SHARE, _LEAST, _MOST, _CALLS = 0.1, 512 << 20, 16 << 30, 64
"""An arena has room for _CALLS calls and _LEAST bytes more, up to _MOST bytes and this share of the GPU's memory, since
other processes may measure there, too."""
_CHECKING = 8
"""Making inputs and checking outputs needs this many times the bytes of a call: for double precision and for
intermediate results."""


class Arenas:
    """The arenas that are not in use, and the free memory of the GPU."""

    def __init__(self, torch: Any, total: int) -> None:
        self._cuda, self._total = torch.cuda, total
        self._unused: list[Any] = []
        self._turn = threading.Lock()
        """Guards `_unused`, since threads that prepare problems take arenas, too."""

    def memory(self) -> tuple[int, int]:
        """The free and the total bytes of the GPU."""
        free, total = self._cuda.mem_get_info()
        return int(free), int(total)

    def missing(self, problem: Problem, kernels: int) -> int:
        """The bytes that are missing to check and time this many kernels, after freeing arenas that are too small for
        them. Nobody waits for more than half of the GPU: such a need has to be tried."""
        call, arena = self._sizes(problem)
        kept = len([each for each in self._unused if each.size >= arena])
        needed = max(0, kernels - kept) * arena + _CHECKING * call + WORKER_BYTES
        missing = self._missing(needed)
        return self._missing(needed) if missing and self._free(arena) else missing

    def take(self, problem: Problem) -> Any:
        """Take an arena with room for a window of any case, or for one call if a window would need much of the GPU.
        Raises NoRoomError."""
        return self._take(self._sizes(problem)[1], self._total)

    def take_for_calls(self, problem: Problem, progress: Progress) -> Any:
        """Take an arena for one call at a time, or several small ones. It is not much larger, since each open problem
        has one. This does not need the lane, but waits for other processes to free memory. Raises NoRoomError."""
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
        """Empty torch's cache if it holds more than `most` bytes. That takes a tenth of a second."""
        if self._cuda.memory_reserved() > most:
            self._cuda.empty_cache()

    def _missing(self, needed: int) -> int:
        free, total = self.memory()
        cached = int(self._cuda.memory_reserved() - self._cuda.memory_allocated())
        return max(0, min(needed, total // 2) - free - cached)

    def _free(self, size: int) -> int:
        """Free the unused arenas that are smaller than this. Returns their number."""
        with self._turn:
            small = [each for each in self._unused if each.size < size]
            self._unused = [each for each in self._unused if each.size >= size]
        for arena in small:
            arena.free()
        return len(small)

    def _take(self, size: int, most: int) -> Any:
        """Take the arena that was used last among those of `size` to `most` bytes, since shared workers have it open;
        otherwise make one."""
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
        """The bytes of the largest call, and of an arena for a window."""
        cases = {case.name: case for case in (*problem.checks, *problem.timed["gpu"])}.values()
        call = max(place_slots(problem, case, 1, True, self._total)[-1][-1].end for case in cases)
        return call, max(call, min(_LEAST + _CALLS * call, _MOST, int(self._total * _SHARE)))


def wait_for_others(missing: int, progress: Progress) -> None:
    """Report that this many bytes are missing, and wait a moment for other processes to free them."""
    progress(f"waiting for {missing / GIB:.1f} GiB of the GPU's memory, which other processes have", 0.0)
    time.sleep(LOOK_AGAIN)
