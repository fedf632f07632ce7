"""The CUDA device: bare `.cu` kernels, and Triton and PyTorch modules, on an NVIDIA GPU of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError
from presage.devices import exclusive, gpu_arenas
from presage.devices.ahead import Ahead
from presage.devices.base import Device, Effort, Measurement, Progress
from presage.devices.child import ChildLostError, TimingError, VerdictError
from presage.devices.conduct import clock, conduct, examine
from presage.devices.gpu_arenas import WORKER_BYTES, Arenas
from presage.devices.gpu_memory import CrowdedError, NoRoomError
from presage.devices.gpu_task import Task
from presage.devices.nvml import Nvml
from presage.devices.plan import Plan
from presage.devices.posing import Posing
from presage.devices.replayers import Replayers
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.problems.kernel_file import KernelProblem
from presage.sandbox.rules import environment
from presage.sandbox.zygote import Zygote
from presage.static import hardware, inline_cuda, modules, nvrtc, toolkit
from presage.static.hardware import Hardware

_IMPORTS = (
    *("numpy", "torch", "triton", "triton.language", "triton.runtime.autotuner", "cuda.bindings.driver"),
    "cuda.bindings.nvrtc",
    *modules.IMPORTED_LATE,
    *("presage.devices.worker.main", "presage.devices.worker.triton_launches:warm_up"),
    *("presage.devices.worker.replay", "presage.static.tracing.recorder:warm_up"),
)
OWN_CHECKS = 3
"""How many checks our own kernels get. Few, since Triton recompiles a kernel for most shapes, and an odd size finds
most errors of a family."""
OWN_EFFORT = Effort(0.02, case_seconds=0.02, timeout=60.0, rounds=2, checks=OWN_CHECKS, further_processes=0)
"""The effort for our own kernels: 16 calls a case, fewer for long ones. The result of a search gets all checks at its
end."""
_AHEAD = 2
"""How many of our own kernels are prepared at a time, per core. Triton occupies a core for seconds, while the lane
needs its next kernel."""
_HOARD_SHARE, _FOREIGN_HOARD_SHARE = 0.125, 0.0625
"""The share of the GPU's memory that torch may keep cached in this process for the next kernel, for our own kernels and
for foreign ones. Foreign kernels may need more memory, so less is kept. Emptying the cache takes a tenth of a
second."""
_HARMLESS = (Status.OK, Status.WRONG_RESULT, Status.COMPILE_ERROR)
"""The statuses after which a worker can be reused, if the kernel was our own."""
_OWN_PROBLEMS = 2
"""The number of problems whose inputs stay on the GPU for our next own kernel."""
_IDLE_SECONDS = 24 * 3600.0
_CHOICE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "LD_LIBRARY_PATH")
"""The caller's environment variables that workers need to find the same GPU."""


_Stage = Callable[[Sequence[Any], Plan, Any, Effort, Progress], None]


def _nothing() -> None:
    return


class CudaDevice(Device):
    """The first GPU that CUDA can see. Checking and timing hold the lane. Meanwhile all cores compile kernels and start
    workers."""

    kind = "gpu"
    languages = ("cuda", "triton", "torch")
    bulk_effort = own_effort = OWN_EFFORT
    name = "cuda"
    _tell: Progress = staticmethod(lambda doing, share: None)

    def __init__(self) -> None:
        try:
            import torch
            import triton
            from cuda.bindings import driver  # noqa: F401
        except ImportError as error:
            raise PresageError(f"the cuda device needs {error.name}; {toolkit.INSTALL}") from error
        if not torch.cuda.is_available():
            hidden = " (CUDA_VISIBLE_DEVICES is set; is it right?)" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
            raise PresageError(f"torch finds no NVIDIA GPU here; 'nvidia-smi' tells whether the driver does{hidden}")
        torch.zeros(1, device="cuda")  # creates the context in which arenas are allocated
        self._torch, self._triton = torch, triton
        self.properties = torch.cuda.get_device_properties(0)
        self.nvml = Nvml(self.properties.uuid)
        self.cores = machine.cores()
        self._arenas = Arenas(torch, int(self.properties.total_memory))
        self._workers: list[Any] = []
        """The workers that our own kernels share."""
        self._replayers = Replayers(self._start_replayer)
        self._posed: dict[str, tuple[Plan, dict[str, Any]]] = {}
        """For the problems of our own kernels that were measured last: the plan, and the inputs with their answers."""
        self._preparing: set[Any] = set()
        self._undertaker = ThreadPoolExecutor(2)

    def close(self) -> None:
        """End the workers that are kept warm."""
        self._undertaker.shutdown()  # it may still have children to kill
        with ThreadPoolExecutor(2) as pool:
            pool.submit(self._replayers.close)
            for child in self._workers:
                pool.submit(child.kill)
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

    @property
    def model(self) -> str:
        return str(self.properties.name)

    @cached_property
    def hardware(self) -> Hardware | None:
        for name in (self.properties.name, self.arch):  # for a product that is not in the table, its architecture
            with suppress(PresageError):
                return hardware.find(name)
        return None

    # -- what workers need --------------------------------------------------------------------------------------------

    @cached_property
    def arch(self) -> str:
        major, minor = self._torch.cuda.get_device_capability(0)
        return f"sm_{major}{minor}a" if major >= 9 else f"sm_{major}{minor}"

    @cached_property
    def compiler(self) -> dict[str, Any]:
        """The arguments of `nvrtc.compile` after the source, for this GPU."""
        includes = [str(folder) for folder in toolkit.includes()]
        return {"arch": self.arch, "library": str(toolkit.nvrtc()), "includes": includes}

    @cached_property
    def zygote(self) -> Zygote:
        choice = {name: os.environ[name] for name in _CHOICE if name in os.environ}
        return Zygote(_IMPORTS, environment("/") | choice)

    @cached_property
    def peaks(self) -> Any:
        from presage.devices.gpu_peaks import GpuPeaks

        return GpuPeaks()

    @cached_property
    def ground(self) -> dict[str, Any]:
        """The settings about the GPU that every child gets, including the compiled lead kernel."""
        source = Path(__file__).with_name("worker").joinpath("lead.cu").read_text()
        return {
            "lead": nvrtc.compile(source, **self.compiler).cubin.hex(),
            "shared": int(self.properties.shared_memory_per_block_optin),
            "multiprocessors": int(self.properties.multi_processor_count),
            "flush_bytes": 2 * int(self.properties.L2_cache_size),
        }

    def start_child(self, with_torch: bool = True) -> Any:
        from presage.devices.gpu_child import GpuChild

        return GpuChild(self.zygote, self.ground, with_torch)

    @cached_property
    def _idle(self) -> Any:
        """The idle worker, which calls nothing. Its windows show what stopping, resuming and messages cost at this
        moment. It has as many threads to stop as a module's worker."""
        child = self.start_child()
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
        self._tell = progress
        plan = Plan.draw(problem, self.kind)
        progress("compiling", 0.0)
        with self.posed(problem, effort.timeout) as posed, self._compiling(self.cores) as pool:
            effort = min((_effort_for(kernel, effort) for kernel in kernels), key=lambda effort: effort.processes)
            tasks = [Task(posed, kernel, plan, None, effort) for kernel in kernels]
            while timed := [case for case in plan.timed if any(case in task.to_time for task in tasks)]:
                going_on = [task for task in tasks if all(trial.live for trial in task.trials)]
                process = len(going_on[0].trials)
                now = Plan(() if process else plan.checks, tuple(timed))
                trials = list(pool.map(lambda task, now=now: self._prepared(task, now), going_on))
                self._conduct(trials, now, effort, _again(progress, process, effort.most_processes))
                for task, trial in zip(going_on, trials, strict=True):
                    task.trials.append(self._settled(trial, task, now))
            return [self._measurement(task) for task in tasks]

    def measure_each(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        """Measure kernels one by one, in the order in which they become ready. All cores start workers, load and
        compile ahead of need, so that the lane need not wait. A foreign kernel gets a process of its own; our own
        kernels share workers one after another."""
        self._get_ready(())
        posing = Posing(lambda problem: self.posed(problem, effort.timeout), self.kind, self._undertaker)
        begins = self._foreign(work, effort, posing) if foreign else self._own(work, effort)
        ahead = Ahead(begins, self._room(1, workers=2) if foreign else self._room(_AHEAD))
        spare = partial(ahead.postpone, self._given_up)
        try:
            while ready := ahead.take():
                task, trial = ready
                if trial.may_part:
                    self._conduct([trial], task.next, task.effort, _silent, examine, spare)
                    ahead.add(partial(_parted, task, trial), urgent=True)  # meanwhile another kernel holds the lane
                    continue
                stage = clock if trial.has_parted else conduct
                self._conduct([trial], task.next, task.effort, _silent, stage, spare)
                task.trials.append(self._settled(trial, task, task.next, spare))
                if task.to_time:
                    ahead.add(partial(self._ready, task))
                    continue
                measurement = self._measurement(task)
                if foreign:
                    posing.leave(task.problem.name)
                yield measurement
        finally:  # the caller may stop before the end
            posing.stop()
            for _, trial in ahead.stop(self._interrupt):
                for child in trial.release():
                    child.kill()
            posing.close()

    def _given_up(self, ready: tuple[Task, Any]) -> Callable[[], tuple[Task, Any]]:
        """End a trial that waits for the lane, because the GPU has no room for it beside another one. Returns the
        function that prepares it again, without calling the module ahead, so that it keeps little memory."""
        task, trial = ready
        if not trial.live:
            return lambda: ready
        for child in trial.release():
            child.kill()
        task.is_called_ahead = False
        return partial(self._ready, task)

    @contextmanager
    def _compiling(self, threads: int) -> Iterator[ThreadPoolExecutor]:
        """A pool of threads that prepare kernels. They are interrupted if an exception occurs."""
        pool = ThreadPoolExecutor(threads)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._interrupt()
            raise
        finally:
            pool.shutdown()

    def _interrupt(self) -> None:
        """Kill the workers that are being prepared, since compiling can take minutes."""
        for child in list(self._preparing):
            child.end()

    def _room(self, each: int, workers: int = 1) -> int:
        """How many kernels are prepared at a time: `each` per core, as long as their workers fit into half of the GPU's
        memory."""
        return max(1, min(each * self.cores, int(self.properties.total_memory) // (2 * workers * WORKER_BYTES)))

    def _foreign(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, posing: Posing
    ) -> Iterator[Callable[[], tuple[Task, Any]]]:
        """For each kernel, the function that starts to measure it in a thread."""
        for problem, kernel in work:
            self._get_ready([kernel])
            posing.announce(problem)
            yield partial(self._begun, problem, kernel, effort, posing)

    def _begun(self, problem: Problem, kernel: Kernel, effort: Effort, posing: Posing) -> tuple[Task, Any]:
        posed, plan = posing.get(problem)
        return self._ready(Task(posed, kernel, plan, None, _effort_for(kernel, effort)))

    def _ready(self, task: Task) -> tuple[Task, Any]:
        return task, self._prepared(task, task.next)

    def _own(self, work: Iterable[tuple[Problem, Kernel]], effort: Effort) -> Iterator[Callable[[], tuple[Task, Any]]]:
        for problem, kernel in work:
            self._get_ready([kernel])
            key = f"{problem.name}/{effort.checks}"
            if key not in self._posed:
                for name in list(self._posed)[: 1 - _OWN_PROBLEMS]:
                    del self._posed[name]
                self._torch.cuda.empty_cache()
                few = effort.checks
                plan = Plan.fixed(problem, self.kind, few) if few else Plan.draw(problem, self.kind)
                self._posed[key] = plan, {}
            yield partial(self._ready, Task(problem, kernel, *self._posed[key], replace(effort, processes=1)))

    @contextmanager
    def _reference_trial(self, problem: KernelProblem, seconds: float) -> Iterator[Any]:
        from presage.devices.gpu_trial import GpuTrial

        trial = GpuTrial(problem, problem.reference_kernel(), Effort(timeout=seconds))
        if trial.kernel.language not in self.languages:
            raise PresageError(f"{problem.path} is {trial.kernel.language}; the cuda device runs cuda")
        trial.child, arena = self.start_child(with_torch=False), self._examiner_arena(problem)
        try:
            trial.attempt(trial.prepare, self.compiler, Plan((), ()))
            trial.attempt(trial.enter_lane, arena)
            if trial.verdict:
                raise PresageError(f"{problem.path} is {trial.verdict.status}: {trial.verdict.reason}")
            yield trial
        finally:
            for child in trial.release():
                child.kill()
            self._arenas.give_back(arena)

    @contextmanager
    def _examiner_child(self) -> Iterator[Any]:
        child = self.start_child()
        try:
            yield child
        finally:
            child.kill()
            if child.arena:
                self._arenas.give_back(child.arena)

    def _examiner_arena(self, problem: Problem) -> Any:
        return self._arenas.take_for_calls(problem, self._tell)

    def _get_ready(self, kernels: Sequence[Kernel]) -> None:
        """Raise PresageError if a kernel cannot run here. Create what threads will share before there are any
        threads."""
        for kernel in kernels:
            if kernel.language not in self.languages:
                known = ", ".join(self.languages)
                raise PresageError(f"{kernel.name} is {kernel.language}; the cuda device runs {known}")
        _ = self._idle

    def _prepared(self, task: Task, plan: Plan) -> Any:
        """A trial whose kernel is loaded and compiled, and waits for the lane. If calling it ahead fails, it is
        prepared again without that."""
        from presage.devices.gpu_trial import CalledAheadError

        trial = self._prepared_trial(task, plan)
        if not isinstance(trial.verdict, CalledAheadError):
            return trial
        task.is_called_ahead = False
        return self._prepared_trial(task, plan)

    def _prepared_trial(self, task: Task, plan: Plan) -> Any:
        from presage.devices.gpu_trial import GpuTrial
        from presage.devices.module_trial import ModuleTrial

        if not task.kernel.is_bare and inline_cuda.is_mentioned(task.kernel.source):
            self._tell("making ready to compile CUDA code in modules", 0.0)
            with suppress(PresageError):  # otherwise torch builds it in its usual way
                inline_cuda.precompile()  # once per machine, while other kernels hold the lane
        trial: GpuTrial
        if task.draws is None and not task.kernel.is_bare:
            trial = ModuleTrial(task.problem, task.kernel, task.effort, task.not_replayed)
            trial.hardware, trial.l2_bytes = self.hardware, self.peaks.l2_bytes
            if not trial.not_replayed:
                self._replayers.stock()  # they start while the module compiles
        else:
            trial = GpuTrial(task.problem, task.kernel, task.effort, task.draws)
        trial.is_called_ahead = task.is_called_ahead
        if trial.is_own:
            with suppress(IndexError):  # another thread may have taken the last one
                trial.child = self._workers.pop()
        if trial.child is None:
            trial.child = self.start_child(with_torch=trial.is_own or not task.kernel.is_bare)
            trial.child.trusted = trial.is_own
        children, trial.memory = set(trial.children), self._arenas.memory
        trial.room, _ = self._arenas.memory()
        self._preparing |= children
        try:
            trial.attempt(trial.prepare, self.compiler, plan)
        finally:
            self._preparing -= children
        return trial

    def _start_replayer(self) -> Any:
        child = self.start_child()
        child.trusted = True
        try:
            child.wait_ready()
            child.give(_IDLE_SECONDS)
            child.command("load", kind="replay")
        except VerdictError:
            child.kill()
            raise
        return child

    def _equip(self, trial: Any) -> None:
        trial.replayer = self._replayers.take()

    def _settled(self, trial: Any, task: Task, plan: Plan, spare: Callable[[], None] = _nothing) -> Any:
        """The trial, or a second trial that runs alone. There is a second one if the machine may have disturbed the
        times, the worker was lost, other processes used the memory that the kernel needed, or its replay failed."""
        from presage.devices.module_trial import ReplayError

        task.not_replayed = trial.verdict.reason if isinstance(trial.verdict, ReplayError) else trial.not_replayed
        if trial.is_own or not isinstance(trial.verdict, TimingError | ChildLostError | CrowdedError | ReplayError):
            return trial
        if self._idle.is_gone:
            self._idle.kill()
            del self._idle
        task.is_called_ahead = task.is_called_ahead and not isinstance(trial.verdict, CrowdedError)
        again = self._prepared(task, plan)
        self._conduct([again], plan, task.effort, _silent, spare=spare)
        return again

    def _conduct(
        self,
        trials: Sequence[Any],
        plan: Plan,
        effort: Effort,
        progress: Progress,
        stage: _Stage = conduct,
        spare: Callable[[], None] = _nothing,
    ) -> None:
        """Hold the lane and run a stage of the trials, by default all stages. Other Presage processes on this GPU wait
        meanwhile. If memory is missing, call `spare`, which frees some, and wait for memory without holding the lane,
        so that the processes that use the memory can finish."""
        if not any(trial.live for trial in trials):
            self._part_with(trials, stage)
            return
        patience = time.monotonic() + gpu_arenas.MEMORY_SECONDS
        while True:
            with exclusive.only(
                self.properties.uuid, lambda: progress("waiting for another measurement on this GPU", 0.0)
            ):
                missing = self._arenas.missing(trials[0].problem, len(trials))
                if not missing or time.monotonic() > patience:
                    self._conduct_alone(trials, plan, effort, progress, stage)
                    return
            spare()
            gpu_arenas.wait_for_others(missing, progress)

    def _conduct_alone(
        self, trials: Sequence[Any], plan: Plan, effort: Effort, progress: Progress, stage: _Stage
    ) -> None:
        arenas: list[Any] = []
        try:
            self.peaks.measure(trials[0].problem)
            for trial in trials:
                arenas.append(self._arenas.take(trial.problem))
                trial.idle = self._idle
                if trial.lacks_replayer:
                    trial.attempt(self._equip, trial)
                trial.attempt(trial.enter_lane, arenas[-1])
            if any(trial.live for trial in trials):
                stage(trials, plan, self.peaks, effort, progress)
        except NoRoomError as error:
            for trial in trials:
                if trial.live:
                    trial.end(CrowdedError(f"{error}; other processes use it"))
        finally:
            self._part_with(trials, stage)
            for arena in arenas:
                arena.unhide()
                self._arenas.give_back(arena)
            self._give_back(trials[0])

    def _part_with(self, trials: Sequence[Any], stage: _Stage) -> None:
        for trial in trials:
            trial.sensors = self.nvml.read()
            if stage is not examine or not trial.live:
                for child in trial.release():
                    self._let_go(child, trial)

    def _give_back(self, trial: Any) -> None:
        """Release the memory that this process keeps for the next kernel, if it is too much."""
        share = _HOARD_SHARE if trial.is_own else _FOREIGN_HOARD_SHARE
        self._arenas.trim(share * self.properties.total_memory)
        if isinstance(trial.problem, ExternalProblem):
            with suppress(PresageError):  # the examiner's child has ended
                trial.problem.let_go()

    def _let_go(self, child: Any, trial: Any) -> None:
        """Keep a child for the next kernel, or kill it. A worker of our own kernels is kept unless the kernel may have
        left it or the GPU unusable. A replayer is kept if nothing went wrong in it."""
        status = trial.verdict.status if trial.verdict else Status.OK
        child.served += 1
        if trial.is_own and status in _HARMLESS:
            with suppress(VerdictError):
                child.command("close")
                self._workers.append(child)
                return
        elif child.trusted and status is Status.OK:
            self._replayers.give_back(child)
            return
        if status is Status.TIMEOUT:
            child.kill()
        else:  # it runs nothing on the GPU, so its end need not be awaited
            self._undertaker.submit(child.kill)

    def _measurement(self, task: Task) -> Measurement:
        """The result of a task: that of the first process, with the times of all. If the kernel failed by its own fault
        in any process, that failure counts."""
        to_blame = [t for t in task.trials if t.verdict and t.verdict.status is not Status.DEVICE_FAULT]
        trial, cases = (to_blame or task.trials)[0], task.plan.timed
        floors = [self.peaks.floor_ns(task.problem, case) for case in cases]
        measurement: Measurement = trial.measurement(self.name, cases, floors)
        if isinstance(trial.verdict, ChildLostError):
            return replace(measurement, status=Status.RUNTIME_ERROR, reason="its process was killed by the system")
        if measurement.status is not Status.OK:
            return measurement
        timings = tuple(task.timing(case, floor) for case, floor in zip(cases, floors, strict=True))
        return replace(measurement, cases=timings)


def _effort_for(kernel: Kernel, effort: Effort) -> Effort:
    """The effort for a kernel: one process if torch has to compile it, which takes a minute in each process."""
    return replace(effort, processes=1) if kernel.compiles_by_torch else effort


def _parted(task: Task, trial: Any) -> tuple[Task, Any]:
    trial.attempt(trial.part)
    return task, trial


def _silent(doing: str, share: float) -> None:
    return


def _again(progress: Progress, process: int, most: int) -> Progress:
    """The same progress callback, which also tells the number of the process if it is not the first."""
    if not process:
        return progress
    return lambda doing, share: progress(f"{doing}, process {process + 1} of at most {most}", share)
