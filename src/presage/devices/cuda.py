"""The CUDA device: bare `.cu` kernels, and Triton and PyTorch modules, on an NVIDIA GPU of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.devices.base import Device, Effort, Measurement, Progress
from presage.devices.child import ChildLostError, VerdictError, environment
from presage.devices.nvml import Nvml
from presage.devices.status import Status
from presage.devices.trial import Plan, conduct
from presage.devices.zygote import Zygote
from presage.kernels import hardware, nvrtc, toolkit
from presage.kernels.hardware import Hardware
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem

_IMPORTS = ("numpy", "torch", "triton", "triton.language", "triton.runtime.autotuner", "cuda.bindings.driver")
_ARENA_SHARE, _ARENA_MOST = 0.1, 4 << 30
OWN_EFFORT = Effort(precision=0.02, case_seconds=0.2, timeout=30.0, rounds=3)
"""For kernels of our own, of which there are thousands: 24 calls a case."""
OWN_CHECKS = 3
"""Few, since Triton compiles a kernel anew for most shapes; an odd size finds what a family can do wrong."""
_IDLE_SECONDS = 24 * 3600.0


class CudaDevice(Device):
    """The first GPU. One lane checks and times; compiling and starting workers go on beside it on all cores."""

    kind = "gpu"
    languages = ("cuda", "triton", "torch")
    bulk_effort = OWN_EFFORT
    name = "cuda"

    def __init__(self) -> None:
        try:
            import torch
            import triton
            from cuda.bindings import driver  # noqa: F401
        except ImportError as error:
            raise PresageError(f"the cuda device needs {error.name}; {toolkit.INSTALL}") from error
        if not torch.cuda.is_available():
            raise PresageError("torch finds no NVIDIA GPU here; 'nvidia-smi' tells whether the driver does")
        torch.zeros(1, device="cuda")  # makes the context that arenas live in
        self._torch, self._triton = torch, triton
        self.properties = torch.cuda.get_device_properties(0)
        self.nvml = Nvml()
        self.cores = len(os.sched_getaffinity(0))
        self._arenas: list[Any] = []
        self._undertaker = ThreadPoolExecutor(2)

    def close(self) -> None:
        """End the workers that are kept warm."""
        self._undertaker.shutdown()
        if "_idle" in self.__dict__:
            self._idle.kill()
        if "zygote" in self.__dict__:
            self.zygote.close()

    def describe(self) -> dict[str, Any]:
        major = f"torch {self._torch.__version__}, triton {self._triton.__version__}"
        return {
            "hardware": self.properties.name,
            "arch": self.arch,
            "multiprocessors": self.properties.multi_processor_count,
            "memory": f"{self.properties.total_memory / 2**30:.0f} GiB",
            "l2": f"{self.properties.L2_cache_size / 2**20:.0f} MiB",
            "driver": self.nvml.driver(),
            "toolchain": f"{major}, NVRTC {nvrtc.version(self.compiler['library'])}",
            "peak_flops": self.peaks.flops("float32"),
            "peak_half_flops": self.peaks.flops("float16"),
            "peak_bandwidth": self.peaks.bandwidth,
            "sensors": self.nvml.read(),
            "sandbox": self._idle.sandbox,
        }

    @cached_property
    def hardware(self) -> Hardware:
        try:
            return hardware.find(self.properties.name)
        except PresageError:  # a product that is not in the table: what its architecture has is known
            return hardware.find(self.arch)

    # -- what workers need --------------------------------------------------------------------------------------------

    @cached_property
    def arch(self) -> str:
        major, minor = self._torch.cuda.get_device_capability(0)
        return f"sm_{major}{minor}a" if major >= 9 else f"sm_{major}{minor}"

    @cached_property
    def compiler(self) -> dict[str, Any]:
        """How to compile for this GPU: the arguments of `nvrtc.compile` after the source."""
        includes = [str(folder) for folder in toolkit.includes()]
        return {"arch": self.arch, "library": str(toolkit.nvrtc()), "includes": includes}

    @cached_property
    def zygote(self) -> Zygote:
        return Zygote(_IMPORTS, environment("/", 1))

    @cached_property
    def peaks(self) -> Any:
        from presage.devices.gpu_peaks import GpuPeaks

        return GpuPeaks()

    @cached_property
    def _ground(self) -> dict[str, Any]:
        """What every child is told of the GPU, the compiled lead among it."""
        source = Path(__file__).with_name("worker").joinpath("lead.cu").read_text()
        return {
            "lead": nvrtc.compile(source, **self.compiler).cubin.hex(),
            "shared": int(self.properties.shared_memory_per_block_optin),
            "multiprocessors": int(self.properties.multi_processor_count),
            "flush_bytes": 2 * int(self.properties.L2_cache_size),
        }

    def start_child(self, with_torch: bool = True) -> Any:
        from presage.devices.gpu_child import GpuChild

        return GpuChild(self.zygote, self._ground, with_torch)

    @cached_property
    def _idle(self) -> Any:
        """A worker that calls nothing: its windows show what stopping, resuming and talking cost at this moment."""
        child = self.start_child(with_torch=False)
        try:
            child.wait_ready()
            child.give(_IDLE_SECONDS)
            child.command("load", kind="null")
        except VerdictError as fault:
            child.kill()
            raise PresageError(f"the GPU cannot be used by a worker: {fault.reason}") from fault
        return child

    # -- measuring ----------------------------------------------------------------------------------------------------

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        self._get_ready(kernels)
        plan = Plan.draw(problem, self.kind)
        progress("compiling", 0.0)
        with self.posed(problem, effort.timeout) as posed:
            with ThreadPoolExecutor(self.cores) as pool:
                trials = list(pool.map(lambda kernel: self._prepared(posed, kernel, effort, plan), kernels))
            self._conduct(trials, plan, effort, progress)
            return [self._measurement(trial, plan) for trial in trials]

    def measure_each(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        """Measure kernels one by one as they become ready, which is not their order: workers start, load and compile
        ahead of need on all cores, and the lane is never waited for. A foreign kernel gets a process of its own;
        kernels of our own follow each other in workers that they share."""
        self._get_ready(kernels)
        with self.posed(problem, effort.timeout) as posed:
            yield from self._measure_each(posed, kernels, effort, foreign)

    def _measure_each(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, foreign: bool
    ) -> Iterator[Measurement]:
        plan = Plan.draw(problem, self.kind, None if foreign else OWN_CHECKS)
        waiting = list(reversed(kernels))
        shared: list[Any] | None = None if foreign else []
        draws: dict[str, Any] | None = None if foreign else {}
        ahead: set[Future[Any]] = set()
        pool = ThreadPoolExecutor(self.cores)
        try:
            while waiting or ahead:
                while waiting and len(ahead) < self.cores:
                    child = shared.pop() if shared else None
                    ahead.add(pool.submit(self._prepared, problem, waiting.pop(), effort, plan, child, draws))
                done, _ = wait(ahead, return_when=FIRST_COMPLETED)
                future = done.pop()
                ahead.remove(future)
                trial = future.result()
                self._conduct([trial], plan, effort, _silent, shared)
                yield self._measurement(trial, plan)
        finally:  # the caller may have had enough before the end
            pool.shutdown(cancel_futures=True)
            left = [future.result().release() for future in ahead if not future.cancelled()]
            for child in (*left, *(shared or ())):
                if child is not None:
                    child.kill()

    @contextmanager
    def _reference_child(self) -> Iterator[Any]:
        child = self.start_child()
        try:
            yield child
        finally:
            child.kill()
            self._arenas += [child.arena] if child.arena else []

    def _get_ready(self, kernels: Sequence[Kernel]) -> None:
        """Refuse what cannot run here, and make what threads will share before there are any."""
        for kernel in kernels:
            if kernel.language not in self.languages:
                known = ", ".join(self.languages)
                raise PresageError(f"{kernel.name} is {kernel.language}; the cuda device runs {known}")
        _ = self._idle

    def _prepared(
        self,
        problem: Problem,
        kernel: Kernel,
        effort: Effort,
        plan: Plan,
        child: Any = None,
        draws: dict[str, Any] | None = None,
    ) -> Any:
        """A trial whose kernel is loaded and compiled, waiting for the lane; in a new worker, or in one given."""
        from presage.devices.gpu_trial import GpuTrial

        trial = GpuTrial(problem, kernel, effort, draws)
        trial.child = child or self.start_child(with_torch=not kernel.is_bare)
        if child is None:
            trial.attempt(trial.child.wait_ready)
        trial.child.trusted = draws is not None
        trial.attempt(trial.prepare, self.compiler, plan)
        return trial

    def _conduct(
        self, trials: Sequence[Any], plan: Plan, effort: Effort, progress: Progress, shared: list[Any] | None = None
    ) -> None:
        """Have the lane. Afterwards a worker is let go, or kept in `shared` for the next kernel of our own."""
        arenas = [self._arena_for(trial.problem) for trial in trials]
        try:
            for trial, arena in zip(trials, arenas, strict=True):
                trial.idle = self._idle
                trial.attempt(trial.enter_lane, arena)
            if any(trial.live for trial in trials):
                conduct(trials, plan, self.peaks, effort, progress)
        finally:
            for trial in trials:
                trial.sensors = self.nvml.read()
                if shared is not None:
                    trial.attempt(trial.leave_lane)
                child = trial.release()
                if child and shared is not None:
                    shared.append(child)
                elif child:  # it did nothing wrong, so it has nothing on the GPU, and its end need not be waited for
                    self._undertaker.submit(child.kill)
            self._arenas += arenas

    def _arena_for(self, problem: Problem) -> Any:
        """The usual arena, or a larger one where a single call of a case needs it; the one used last, if it will do,
        since shared workers have that open."""
        from presage.devices.arena import place_slots
        from presage.devices.gpu_arena import GpuArena

        most = int(self.properties.total_memory)
        cases = {case.name: case for case in (*problem.checks, *problem.timed[self.kind])}.values()
        needed = max(place_slots(problem, case, 1, True, most)[-1][-1].end for case in cases)
        for arena in reversed(self._arenas):
            if arena.size >= needed:
                self._arenas.remove(arena)
                return arena
        return GpuArena(max(needed, min(_ARENA_MOST, int(most * _ARENA_SHARE))))

    def _measurement(self, trial: Any, plan: Plan) -> Measurement:
        floors = [self.peaks.floor_ns(trial.problem, case) for case in plan.timed]
        measurement: Measurement = trial.measurement(self.name, plan.timed, floors)
        if isinstance(trial.verdict, ChildLostError):
            return replace(measurement, status=Status.RUNTIME_ERROR, reason="its process was killed by the system")
        return measurement


def _silent(doing: str, share: float) -> None:
    return
