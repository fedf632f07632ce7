"""The peak rates of a GPU, measured once: memory bandwidth, and multiply-adds by precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch

from presage.devices.gpu_memory import NoRoomError
from presage.problems.base import Case, Problem

IMPOSSIBLE = 0.95
"""A time is impossible if it is below this share of the time that moving the case's bytes and doing its operations
takes at the measured peaks. The fastest of 40,284 recorded cases took 1.026 times the time at the peaks, and peaks are
measured again before a kernel is accused."""
EMPTY_NS, RAMP_NS = 3_000, 5_000
"""How much longer than that share a call takes at least that is made alone, since a GPU needs time to start, to fill
and to drain: EMPTY_NS for very little data, and RAMP_NS for more. No recorded call took less (docs/measured)."""


class GpuPeaks:
    """Rooflines from measured peaks."""

    def __init__(self) -> None:
        self._best: dict[str, float] = {}

    @cached_property
    def l2_bytes(self) -> int:
        return int(torch.cuda.get_device_properties(0).L2_cache_size)

    @property
    def bandwidth(self) -> float:
        """Bytes per second through device memory, reads and writes together."""
        return self._peak("bandwidth", self._measure_bandwidth)

    def flops(self, dtype: str) -> float:
        """Operations per second, where a multiply-add counts as two. float32 is counted without TF32."""
        return self._peak(dtype, lambda: self._measure_flops(dtype))

    def floor_ns(self, problem: Problem, case: Case) -> float:
        """The roofline: the least time at these peaks, with arithmetic in the problem's own precision."""
        flops = problem.textbook_flops(case)
        return 1e9 * max(problem.bytes(case) / self.bandwidth, flops / self.flops(problem.precision(case)))

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        """The least time of an honest kernel. Outputs may stay in the L2 cache, and float32 may be built from half
        precision."""
        cost = problem.cost(case)
        return max(self._moving_ns(problem, case, cost.bytes), IMPOSSIBLE * 1e9 * cost.flops / self.flops("float16"))

    def single_ns(self, problem: Problem, case: Case) -> float:
        """The least time of a call that is made alone. This may ask a foreign problem's reference what has to be
        read."""
        impossible_ns, moved = self.impossible_ns(problem, case), problem.moved_bytes(case)
        if not moved:
            return impossible_ns
        least = max(impossible_ns, self._moving_ns(problem, case, moved))
        return least + min(RAMP_NS, EMPTY_NS + least)

    def _moving_ns(self, problem: Problem, case: Case, moved: int) -> float:
        written = sum(problem.array_bytes(array, case) for array in problem.outputs)
        return IMPOSSIBLE * 1e9 * max(0, moved - min(written, self.l2_bytes)) / self.bandwidth

    def measure(self, problem: Problem) -> None:
        """Measure the peaks that the problem's cases are compared with, before anything else uses the GPU."""
        for case in problem.timed["gpu"]:
            self.floor_ns(problem, case)
            self.impossible_ns(problem, case)

    def refresh(self) -> None:
        """Measure again and keep the higher readings."""
        for name in tuple(self._best):
            self._read_again(name)

    def witness_ns(self, problem: Problem, case: Case) -> float:
        cost = problem.cost(case)
        by_bytes = cost.bytes / self.bandwidth > cost.flops / self.flops("float16")
        return 1e9 * (
            cost.bytes / self._read_again("bandwidth") if by_bytes else cost.flops / self._read_again("float16")
        )

    def _read_again(self, name: str) -> float:
        """Measure a peak again, keep the higher value, and return the new one. If memory is short, return the known
        value."""
        try:
            new = self._measure_bandwidth() if name == "bandwidth" else self._measure_flops(name)
        except torch.OutOfMemoryError:
            return self._best[name]
        self._best[name] = max(self._best[name], new)
        return new

    def _peak(self, name: str, measure: Callable[[], float]) -> float:
        if name not in self._best:
            try:
                self._best[name] = measure()
            except torch.OutOfMemoryError as error:
                raise NoRoomError("the GPU has too little memory left to measure its peaks") from error
            finally:
                torch.cuda.empty_cache()
        return self._best[name]

    def _measure_bandwidth(self) -> float:
        size = min(1 << 30, torch.cuda.mem_get_info()[0] // 4)
        if size < 2 * self.l2_bytes:  # a copy within the cache does not show the memory's bandwidth
            raise torch.OutOfMemoryError
        source, target = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
        return float(2 * size / _fastest(lambda: target.copy_(source)))

    def _measure_flops(self, dtype: str) -> float:
        n = 8192 if dtype == "float16" else 4096
        a, b = (torch.randn(n, n, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
        settings = torch.backends.cuda.matmul
        before = {name: getattr(settings, name) for name in ("allow_tf32", _HALF_SUMS) if hasattr(settings, name)}
        times = []
        try:
            settings.allow_tf32 = False
            for half in (False, True) if dtype == "float16" and _HALF_SUMS in before else (False,):
                if _HALF_SUMS in before:
                    setattr(settings, _HALF_SUMS, half)
                times.append(_fastest(lambda: torch.matmul(a, b)))
        finally:
            for name, value in before.items():
                setattr(settings, name, value)
        return float(2 * n**3 / min(times))


_HALF_SUMS = "allow_fp16_accumulation"
"""A setting of torch with which some GPUs are twice as fast."""


def _fastest(call: Callable[[], object], seconds: float = 0.05, tries: int = 12) -> float:
    """Seconds of the fastest of several runs, long enough for a GPU that was idle to reach its full clock."""
    times: list[float] = []
    while len(times) < tries or sum(times) < seconds:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(min(times))
