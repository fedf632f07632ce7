"""Times calls of torch's operators one after another in this process, in which no foreign code runs.

On a GPU a call is queued behind a lead that evicts the cache, and is timed by events, like our own kernels.
"""

from __future__ import annotations

import abc
import contextlib
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from presage.core.errors import PresageError
from presage.devices import exclusive, operator_inputs
from presage.devices.gpu_observation import MOST_HOLD_NS, Hold
from presage.devices.worker.replay import Program
from presage.static import toolkit
from presage.static.trace import Trace

SAMPLES, LEAST_SAMPLES = 9, 5
_TRIES = 3 * SAMPLES
_CALL_SECONDS = 0.04
"""After this many seconds, LEAST_SAMPLES are enough."""
_LONG_NS = 500_000.0
_QUEUED, _QUEUED_LONG, _ROUNDS = 8, 3, 3
"""How many calls are queued back to back, for short calls and for long ones; and how often that is repeated for short
ones."""
_SHARE = 0.4
"""The share of the memory that one call's tensors may take."""
_HOARD = 0.6
"""The share of the memory that torch may reserve before its cache is emptied."""
_WARM_UPS = 2
_NAME = 400
_KERNEL, _COPY, _SET = 0, 1, 2
"""Kinds of nodes in a CUDA graph."""

Run = Callable[[Any], Any]


@dataclass(frozen=True)
class OperatorTiming:
    """The measured times of one call."""

    samples_ns: tuple[float, ...]
    """Nanoseconds per call; on a GPU, with nothing in the cache."""
    warm_ns: float | None
    """Nanoseconds for a call right after the same call, so that data that fits is in the cache."""
    host_ns: float
    """Nanoseconds for the host to queue the call when calls are queued back to back."""
    waits: bool = False
    """Whether the host waits for the GPU in the call, so that the host's time is part of the samples."""
    launches: tuple[Mapping[str, Any], ...] | None = None
    """Each kernel with grid and block, and each copy and fill of memory; None if they could not be captured."""


class DeviceLostError(Exception):
    """The call has made the device unusable for this process."""


class TooLargeError(Exception):
    """The call does not fit into memory."""


class OperatorTimer(abc.ABC):
    """Times calls on one device."""

    place: str
    """torch's name for the device."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError as error:
            raise PresageError(f"measuring operators needs torch; {toolkit.INSTALL}") from error
        self._torch = torch

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """The device's hardware and the versions of its software."""

    @abc.abstractmethod
    def time(self, call: Trace) -> OperatorTiming:
        """Time a call. Raises TooLargeError, DeviceLostError, or whatever the operator raises."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lane of this device, so that our other measurements wait, and turn gradients off."""
        with exclusive.only(self._lane), self._torch.no_grad():
            yield

    @property
    def _lane(self) -> str:
        """The name of the device's lane, which other measurements use as well."""
        return self.place

    def _prepared(self, call: Trace) -> Run:
        """A function that runs the call on inputs of its own."""
        program = Program(call, (), self._torch, device=self.place, is_ours=True)
        generator = self._torch.Generator(self.place).manual_seed(0)
        inputs = operator_inputs.make(call, self._torch, self.place, generator)
        return lambda _: program(inputs)


class CpuTimer(OperatorTimer):
    """Times calls on the CPU. The cache is not evicted."""

    place = "cpu"

    def facts(self) -> dict[str, Any]:
        return {"hardware": platform.processor() or platform.machine(), "torch": str(self._torch.__version__)}

    def time(self, call: Trace) -> OperatorTiming:
        run = self._prepared(call)
        run(None)
        samples: list[float] = []
        begun = time.perf_counter()
        while len(samples) < LEAST_SAMPLES or (len(samples) < SAMPLES and time.perf_counter() - begun < _CALL_SECONDS):
            started = time.perf_counter_ns()
            run(None)
            samples.append(float(time.perf_counter_ns() - started))
        return OperatorTiming(tuple(samples), None, statistics.median(samples))


class GpuTimer(OperatorTimer):
    """Times calls on the first GPU that CUDA can see."""

    place = "cuda"

    def __init__(self) -> None:
        super().__init__()
        from presage.devices.cuda import CudaDevice
        from presage.devices.worker.gpu import Gpu

        self._device = CudaDevice()
        self._gpu = Gpu({**self._device.ground, "torch": True})
        self._total = int(self._device.properties.total_memory)
        self._graphs = _Graphs(self._torch, self._gpu)

    @property
    def _lane(self) -> str:
        return str(self._device.properties.uuid)

    def facts(self) -> dict[str, Any]:
        torch = self._torch
        floor = statistics.median(self._gpu.timed(_nothing, None, _ignored, 20_000)[0] for _ in range(21))
        return {
            "hardware": self._device.properties.name,
            "arch": self._device.arch,
            "driver": self._device.nvml.driver(),
            "sensors": self._device.nvml.read(),
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "floor_ns": round(floor, 1),
        }

    def time(self, call: Trace) -> OperatorTiming:
        if operator_inputs.needed_bytes(call) > _SHARE * self._total:
            raise TooLargeError("its tensors do not fit into memory")
        torch = self._torch
        if torch.cuda.memory_reserved() > _HOARD * self._total:
            torch.cuda.empty_cache()
        try:
            return self._timed(self._prepared(call))
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise TooLargeError(str(error).partition(". ")[0]) from error
        except Exception as error:
            self._check(error)
            raise

    def _check(self, error: Exception) -> None:
        """Raise DeviceLostError if nothing runs any more in this process after an error."""
        try:
            self._torch.cuda.synchronize()
        except Exception as fault:
            raise DeviceLostError(str(error) or str(fault)) from error

    def _timed(self, run: Run) -> OperatorTiming:
        for _ in range(_WARM_UPS):
            run(None)
        self._torch.cuda.synchronize()
        hold = Hold(MOST_HOLD_NS)
        samples = self._cold(run, hold)
        warm_ns, host_ns = self._warm(run, hold, statistics.median(samples))
        return OperatorTiming(tuple(samples), warm_ns, host_ns, hold.waits, self._graphs.launches(run))

    def _cold(self, run: Run, hold: Hold) -> list[float]:
        """Samples of calls that were queued before the lead had ended. If there are too few, the last attempts count in
        any case."""
        samples: list[float] = []
        begun = time.perf_counter()
        for attempt in range(_TRIES):
            held = hold.ns
            ns, queued, _ = self._gpu.timed(run, None, _ignored, held)
            hold.learn([queued])
            if queued <= held or hold.waits or attempt >= _TRIES - LEAST_SAMPLES:
                samples.append(ns)
            late = time.perf_counter() - begun > _CALL_SECONDS
            if len(samples) >= (LEAST_SAMPLES if late else SAMPLES):
                break
        return samples

    def _warm(self, run: Run, hold: Hold, cold_ns: float) -> tuple[float | None, float]:
        """The nanoseconds of a call right after the same call, or None if they cannot be determined, and those that the
        host takes to queue one."""
        count, rounds = (_QUEUED_LONG, 1) if cold_ns > _LONG_NS else (_QUEUED, _ROUNDS)

        def several(_: Any) -> None:
            for _ in range(count):
                run(None)

        hold_ns = min(MOST_HOLD_NS, count * hold.ns)
        found = [self._gpu.timed(several, None, _ignored, hold_ns) for _ in range(rounds)]
        host_ns = min(queued for _, queued, _ in found) / count
        warm_ns = (statistics.median(ns for ns, _, _ in found) - cold_ns) / (count - 1)
        return (warm_ns if warm_ns > 0 else None), host_ns


def _nothing(_: Any) -> None:
    return


def _ignored(result: Any, _: Any) -> None:
    return


class _Graphs:
    """Lists what a call launches. The call is captured into a CUDA graph, which is inspected and never run."""

    def __init__(self, torch: Any, gpu: Any) -> None:
        self._torch, self._gpu, self._driver = torch, gpu, gpu.driver
        self._stream = torch.cuda.Stream()

    def launches(self, run: Run) -> tuple[Mapping[str, Any], ...] | None:
        """The launches of a call; None if the call does something that cannot be captured, such as waiting for the GPU
        or drawing random numbers."""
        torch = self._torch
        torch.cuda.synchronize()
        try:
            with torch.cuda.stream(self._stream):
                run(None)  # what libraries set up for a stream is not part of a call
                self._stream.synchronize()
                graph = self._captured(run)
            try:
                return tuple(self._described(graph))
            finally:
                self._driver.cuGraphDestroy(graph)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            torch.cuda.synchronize()
            return None

    def _captured(self, run: Run) -> Any:
        driver, stream = self._driver, self._driver.CUstream(self._stream.cuda_stream)
        # torch may allocate memory meanwhile, which only this mode allows
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._gpu(driver.cuStreamBeginCapture(stream, mode))
        try:
            run(None)
        except BaseException:
            with contextlib.suppress(Exception):
                _, broken = driver.cuStreamEndCapture(stream)
                if int(broken):
                    driver.cuGraphDestroy(broken)
            raise
        return self._gpu(driver.cuStreamEndCapture(stream))

    def _described(self, graph: Any) -> Iterator[dict[str, Any]]:
        gpu, driver = self._gpu, self._driver
        code, _, count = driver.cuGraphGetNodes(graph)
        gpu((code,))
        code, nodes, _ = driver.cuGraphGetNodes(graph, count)
        gpu((code,))
        for node in nodes[:count]:
            kind = int(gpu(driver.cuGraphNodeGetType(node)))
            if kind == _KERNEL:
                yield self._kernel(node)
            elif kind in (_COPY, _SET):
                yield {"name": "copy" if kind == _COPY else "fill"}

    def _kernel(self, node: Any) -> dict[str, Any]:
        gpu, driver = self._gpu, self._driver
        about = gpu(driver.cuGraphKernelNodeGetParams(node))
        name = b""
        with contextlib.suppress(Exception):  # the name may be that of a function or of a library's kernel
            name = gpu(driver.cuFuncGetName(about.func)) if int(about.func) else gpu(driver.cuKernelGetName(about.kern))
        return {
            "name": name.decode(errors="replace")[:_NAME],
            "grid": [about.gridDimX, about.gridDimY, about.gridDimZ],
            "block": [about.blockDimX, about.blockDimY, about.blockDimZ],
            "shared": about.sharedMemBytes,
        }


def timer(device: str) -> OperatorTimer:
    """The timer of a device by its name on the command line."""
    if device not in ("cpu", "cuda"):
        raise PresageError(f"operators are measured on cuda or cpu, not on '{device}'")
    return GpuTimer() if device == "cuda" else CpuTimer()
