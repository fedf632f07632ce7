"""The CUDA device: bare `.cu` kernels, and Triton and PyTorch modules, on an NVIDIA GPU of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from presage.core.errors import PresageError
from presage.devices.base import Device, Effort, Measurement, Progress, Status
from presage.devices.child import Child, VerdictError, Window, environment
from presage.devices.nvml import Nvml
from presage.devices.trial import Plan, Trial, conduct
from presage.devices.zygote import Zygote
from presage.kernels import expression, nvrtc, toolkit
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem

_IMPORTS = ("numpy", "torch", "triton", "triton.language", "triton.runtime.autotuner", "cuda.bindings.driver")
_ARENA_SHARE, _ARENA_MOST = 0.1, 4 << 30
_HOLD_NS = 20_000
_MAX_HOLD_NS = 5_000_000
_WINDOW_CALLS = 8
_TAIL_NS = 15_000
_IDLE_SECONDS = 24 * 3600.0
_GROUND = {"ready": 120.0}


class CudaDevice(Device):
    """The first GPU. One lane checks and times; compiling and starting workers go on beside it on all cores."""

    kind: ClassVar[str] = "gpu"
    languages: ClassVar[tuple[str, ...]] = ("cuda", "triton", "torch")
    name = "cuda"

    def __init__(self) -> None:
        try:
            import torch
            from cuda.bindings import driver  # noqa: F401
        except ImportError as error:
            raise PresageError(f"the cuda device needs {error.name}; {toolkit.INSTALL}") from error
        if not torch.cuda.is_available():
            raise PresageError("no NVIDIA GPU can be used: torch finds none (is the driver installed? 'nvidia-smi' says)")
        self._torch = torch
        torch.cuda.init()
        torch.cuda.current_stream()  # makes the context that the arenas live in
        torch.zeros(1, device="cuda")
        self.properties = torch.cuda.get_device_properties(0)
        self.nvml = Nvml()
        self._arenas: list[Any] = []
        self.cores = len(os.sched_getaffinity(0))

    @cached_property
    def zygote(self) -> Zygote:
        return Zygote(_IMPORTS, environment("/", 1))

    @cached_property
    def peaks(self) -> Any:
        from presage.devices.gpu_peaks import GpuPeaks

        return GpuPeaks()

    @cached_property
    def arch(self) -> str:
        major, minor = self._torch.cuda.get_device_capability(0)
        return f"sm_{major}{minor}a" if major >= 9 else f"sm_{major}{minor}"

    @cached_property
    def compiler(self) -> dict[str, Any]:
        """How a child finds NVRTC and its headers."""
        return {
            "arch": self.arch,
            "nvrtc": str(toolkit.nvrtc()),
            "includes": [str(folder) for folder in toolkit.includes()],
        }

    @cached_property
    def ground(self) -> dict[str, Any]:
        """What every child is told of the GPU, the compiled lead among it."""
        source = Path(__file__).with_name("worker").joinpath("lead.cu").read_text()
        compiled = nvrtc.compile(source, **_renamed(self.compiler))
        shared = int(self.properties.shared_memory_per_block_optin)
        return {
            "lead": compiled.cubin.hex(),
            "shared": shared,
            "multiprocessors": int(self.properties.multi_processor_count),
            "flush_bytes": 2 * int(self.properties.L2_cache_size),
        }

    def describe(self) -> dict[str, Any]:
        import triton

        idle = self._idle_child()
        layers = idle.sandbox
        idle.kill()
        return {
            "hardware": self.properties.name,
            "arch": self.arch,
            "multiprocessors": self.properties.multi_processor_count,
            "memory": f"{self.properties.total_memory / 2**30:.0f} GiB",
            "l2": f"{self.properties.L2_cache_size / 2**20:.0f} MiB",
            "driver": self.nvml.driver(),
            "toolchain": f"torch {self._torch.__version__}, triton {triton.__version__},"
            f" NVRTC {nvrtc.version(self.compiler['nvrtc'])}",
            "peak_flops": self.peaks.flops("float32"),
            "peak_half_flops": self.peaks.flops("float16"),
            "peak_bandwidth": self.peaks.bandwidth,
            "sensors": self.nvml.read(),
            "sandbox": layers,
        }

    # -- measuring ----------------------------------------------------------------------------------------------------

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        self._refuse_languages(kernels)
        plan = Plan.draw(problem, self.kind)
        progress("compiling", 0.0)
        with ThreadPoolExecutor(self.cores) as pool:
            trials = list(pool.map(lambda kernel: self._prepared(problem, kernel, effort, plan), kernels))
        self._conduct(trials, plan, effort, progress)
        return [self._measurement(trial, plan) for trial in trials]

    def measure_each(self, problem: Problem, kernels: Sequence[Kernel], effort: Effort) -> Iterator[Measurement]:
        """Measure foreign kernels one by one, each in a process of its own that was made and compiled ahead of need."""
        self._refuse_languages(kernels)
        plan = Plan.draw(problem, self.kind)
        waiting, ahead = list(reversed(kernels)), []
        with ThreadPoolExecutor(self.cores) as pool:

            def refill() -> None:
                while waiting and len(ahead) < self.cores:
                    ahead.append(pool.submit(self._prepared, problem, waiting.pop(), effort, plan))

            refill()
            while ahead:
                trial = _first_done(ahead).result()
                refill()
                self._conduct([trial], plan, effort, lambda doing, share: None)
                yield self._measurement(trial, plan)

    def measure_family(self, problem: Problem, kernels: Sequence[Kernel], effort: Effort) -> Iterator[Measurement]:
        """Measure kernels of our own, one after the other in a worker that they share; compiling goes on beside it."""
        self._refuse_languages(kernels)
        plan = Plan.draw(problem, self.kind)
        family = _SharedWorkers(self)
        try:
            yield from (
                self._measurement(trial, plan) for trial in family.run(problem, kernels, effort, plan)
            )
        finally:
            family.close()

    def _refuse_languages(self, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            if kernel.language not in self.languages:
                known = ", ".join(self.languages)
                raise PresageError(f"{kernel.name} is {kernel.language}; the cuda device runs {known}")

    def _prepared(self, problem: Problem, kernel: Kernel, effort: Effort, plan: Plan) -> GpuTrial:
        """A trial whose kernel is loaded and compiled, waiting for the lane."""
        trial = GpuTrial(problem, kernel, effort)
        try:
            trial.child = GpuChild(self)
            trial.attempt(trial.prepare, self.compiler, plan)
        except VerdictError as verdict:
            trial.end(verdict)
        return trial

    def _conduct(self, trials: Sequence[GpuTrial], plan: Plan, effort: Effort, progress: Progress) -> None:
        from presage.problems.on_torch import TORCH

        idle = self._lane_idle_child
        arenas = [self._take_arena() for _ in trials]
        try:
            for trial, arena in zip(trials, arenas, strict=True):
                trial.attempt(trial.enter_lane, arena)
            conduct(trials, plan, TORCH, self.peaks, idle.pulse, effort, progress)
        finally:
            for trial in trials:
                trial.sensors = self.nvml.read()
                trial.close()
            self._arenas += arenas

    def _take_arena(self) -> Any:
        from presage.devices.gpu_arena import GpuArena

        if self._arenas:
            return self._arenas.pop()
        return GpuArena(min(_ARENA_MOST, int(self.properties.total_memory * _ARENA_SHARE)))

    @cached_property
    def _lane_idle_child(self) -> GpuChild:
        return self._idle_child()

    def _idle_child(self) -> GpuChild:
        child = GpuChild(self)
        try:
            child.wait_ready()
            child.give(_IDLE_SECONDS)
            child.command("load", kind="gpu null")
        except VerdictError:
            child.kill()
            raise
        return child

    def _measurement(self, trial: GpuTrial, plan: Plan) -> Measurement:
        floors = [self.peaks.floor_ns(trial.problem, case) for case in plan.timed]
        return trial.measurement(self.name, plan.timed, floors)

    def close(self) -> None:
        if "_lane_idle_child" in self.__dict__:
            self._lane_idle_child.kill()
        if "zygote" in self.__dict__:
            self.zygote.close()


class GpuTrial(Trial):
    """A kernel on the GPU: its outputs always lie in the arena, copied there right after each call if need be."""

    window_calls = _WINDOW_CALLS

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort) -> None:
        super().__init__(problem, kernel, effort)
        self.sensors: dict[str, Any] = {}
        self._hold_ns = _HOLD_NS

    def prepare(self, compiler: dict[str, Any], plan: Plan) -> None:
        """Load and compile, off the lane."""
        child, kernel = self._child, self.kernel
        child.wait_ready()
        child.give(self.effort.timeout)
        if kernel.is_bare:
            entries = [launch.entry for launch in kernel.header.launches]
            child.command("load", kind="cuda", source=kernel.source, entries=entries, **compiler)
            return
        path = Path(child.scratch, f"kernel_{kernel.hash}.py")
        path.write_text(kernel.source)
        child.command("load", kind="torch", path=str(path))
        if kernel.language == "triton":
            child.command("prepare", layouts=[self._shapes(case) for case in (*plan.checks, *plan.timed)])

    def enter_lane(self, arena: Any) -> None:
        self._child.arena = arena
        self._child.command("open arena", handle=arena.handle)

    def _layout(self, case: Case) -> dict[str, Any]:
        layout = super()._layout(case) | self._shapes(case)
        if self.kernel.is_bare:
            values = {**case.dims, **self.kernel.values}
            layout["launches"] = [
                {
                    "grid": _three(launch.grid, values),
                    "block": _three(launch.block, values),
                    "shared": _number(launch.shared, values),
                }
                for launch in self.kernel.header.launches
            ]
            layout["scratch"] = [_number(size, values) for size in self.kernel.header.scratch.values()]
        return layout

    def _shapes(self, case: Case) -> dict[str, Any]:
        problem = self.problem
        return {
            "inputs": [{"dtype": problem.dtype(a, case), "shape": problem.shape(a, case)} for a in problem.inputs],
            "outputs": [self._expected(a, case) for a in problem.outputs],
            "parameters": [case.dims[name] for name in problem.parameters],
        }

    def _expected(self, array: Any, case: Case) -> dict[str, Any]:
        """What a module must return, as the child describes what it returned."""
        return {
            "type": "torch.Tensor",
            "dtype": self.problem.dtype(array, case),
            "shape": list(self.problem.shape(array, case)),
            "contiguous": True,
            "inside": False,
        }

    def _window(self) -> Window:
        self._child.arena.settle()
        window = self._child.window(hold_ns=self._hold_ns)
        queued = window.answer.get("queued_ns", 0)
        if isinstance(queued, int):
            self._hold_ns = max(_HOLD_NS, min(_MAX_HOLD_NS, max(self._hold_ns, int(1.5 * queued))))
        return window

    def _outputs(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[Any, ...]:
        if not self.kernel.is_bare:
            self._refuse_returned(case, slot, window, timed)
        return tuple(self._child.arena.outputs(slot))

    def _refuse_returned(self, case: Case, slot: int, window: Window, timed: bool) -> None:
        try:
            parts = window.answer["outputs"][slot]
            if len(parts) != len(self.problem.outputs):
                raise VerdictError(
                    Status.WRONG_RESULT, f"returned {len(parts)} outputs, not {len(self.problem.outputs)}"
                )
            for part, array in zip(parts, self.problem.outputs, strict=True):
                self._refuse_part(part, array, case, timed)
        except (LookupError, TypeError, AttributeError) as error:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: outputs are not described") from error

    def _refuse_part(self, part: dict[str, Any], array: Any, case: Case, timed: bool) -> None:
        expected = self._expected(array, case)
        if part["type"] != expected["type"]:
            kind = str(part["type"])[:100]
            raise VerdictError(Status.WRONG_RESULT, f"returned a {kind} for {array.name}, not a torch.Tensor")
        if (part["dtype"], part["shape"]) != (expected["dtype"], expected["shape"]):
            got, right = f"{part['dtype']}{part['shape']}"[:100], f"{expected['dtype']}{expected['shape']}"
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} as {got}, not {right}")
        if not part["contiguous"]:
            raise VerdictError(Status.WRONG_RESULT, f"returned {array.name} strided or off the GPU")
        if part["inside"] and timed:
            raise VerdictError(Status.CHEATING, f"returned a view of its input as {array.name}; nothing was computed")

    def judge(self, case: Case, roof: Any) -> None:
        """Beside what every device asks: nothing may still run on the GPU when the call's own stream has finished."""
        record = self.records[case.name]
        tails = [float(t) for w in record.windows for t in w.answer.get("tails_ns", ())]
        allowed = _TAIL_NS + 0.05 * median(record.samples() or [0.0])
        if tails and median(tails) > allowed:
            raise VerdictError(
                Status.CHEATING,
                f"case {case.name}: the GPU went on working for {median(tails) / 1e3:.0f} us after the call's stream"
                " had finished",
            )
        super().judge(case, roof)

    def facts(self) -> dict[str, Any]:
        return {
            **self.sensors,
            "timing": "CUDA events around each call, queued behind a kernel that evicts the L2 cache and holds the GPU"
            f" for at least {self._hold_ns / 1e3:.0f} us, so that launching is not part of the time",
        }


class GpuChild(Child):
    """A worker forked from the zygote, with a context on the GPU from before its sandbox closed."""

    def __init__(self, device: CudaDevice, scratch: str | None = None) -> None:
        self._device = device
        super().__init__(scratch=scratch, spawn=self._fork)

    def _fork(self, settings: dict[str, Any], descriptors: Sequence[int]) -> Any:
        raise NotImplementedError

    def pulse(self, calls: int) -> int:
        """What a window of so many calls takes beyond what events account for, when nothing is called."""
        window = self.window(hold_ns=_HOLD_NS, calls=calls)
        return window.parent_ns - window.child_ns


def _first_done(futures: list[Future[GpuTrial]]) -> Future[GpuTrial]:
    """Take the first that is done out of the list, waiting if none is."""
    from concurrent.futures import FIRST_COMPLETED, wait

    done, _ = wait(futures, return_when=FIRST_COMPLETED)
    first = next(future for future in futures if future in done)
    futures.remove(first)
    return first


def _three(expressions: Sequence[str], values: dict[str, Any]) -> list[int]:
    sizes = [_number(text, values) for text in expressions]
    return (sizes + [1, 1])[:3]


def _number(text: str, values: dict[str, Any]) -> int:
    try:
        return int(expression.evaluate(text, values))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise VerdictError(Status.RUNTIME_ERROR, f"cannot launch: {error}") from error
