"""The CPU device: bare C kernels through the system's compiler, and Python modules on numpy arrays or tensors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import sys
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError
from presage.devices import exclusive
from presage.devices.base import Device, Effort, Measurement, Progress
from presage.devices.c_compiler import Compiler, trampoline_source
from presage.devices.child import Child, ChildLostError, TimingError, VerdictError
from presage.devices.conduct import conduct
from presage.devices.plan import Plan
from presage.devices.status import Status
from presage.devices.trial import Trial, worker_settings
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem
from presage.problems.kernel_file import KernelProblem
from presage.sandbox import processes, rules, scratch

FLOOR_MARGIN = 0.7
"""A time below this share of the floor is impossible. The margin covers the uncertainty of the measured peaks."""
_IDLE_SECONDS = 24 * 3600.0
_IDLE_MODULE = Path(__file__).with_name("worker") / "idle.py"
_WITH_TORCH = ("numpy", "torch")
_IMPORTED_LATE = ("torch._subclasses.fake_tensor", "presage.devices.worker.main")
FOR_EXAMINERS = ("torch._dynamo.config",)
"""Imports for examiners, which describe problems with fake tensors: some 900 modules."""
_IMPORTS = {"torch": _WITH_TORCH, "numpy": ("numpy",)}
"""The modules that a worker imports when it starts, by language. For a bare kernel there are none, so that it has one
thread, whose lies are easy to detect."""


class CpuDevice(Device):
    """This machine's processor. Every kernel runs in a disposable child that is stopped whenever it is not measured."""

    kind = "cpu"
    languages = ("c", "numpy", "torch")
    name = "cpu"

    def __init__(self, compiler: str | None = None) -> None:
        if platform.system() != "Linux":
            raise PresageError("the cpu device needs Linux: it stops, confines and reads its workers as only Linux can")
        machine.keep_memory()
        self._named_compiler = compiler
        self.threads = machine.cores()
        self._idles: dict[str, Child] = {}
        self._examines = False
        self._trampolines: dict[str, bytes] = {}
        """The compiled trampolines by source. All kernels of a problem share one."""
        weakref.finalize(self, _kill, self._idles)

    def close(self) -> None:
        """End the idle workers, and the zygotes from which compilers and workers are forked."""
        _kill(self._idles)
        processes.rest()
        processes.rest(self._torch_zygote)

    @property
    def model(self) -> str:
        return f"{processor_name()}, {self.threads} threads"

    @cached_property
    def compiler(self) -> Compiler:
        return Compiler.find(self._named_compiler)

    def describe(self) -> dict[str, Any]:
        return {
            "hardware": processor_name(),
            "threads": self.threads,
            "compiler": self.compiler.version,
            "openmp": self.compiler.openmp,
            "peak_flops": self.peaks.flops,
            "peak_bandwidth": self.peaks.bandwidth(64 << 20),
            "sandbox": self._idle("c").sandbox,
        }

    @cached_property
    def peaks(self) -> Peaks:
        with exclusive.only(self.name):
            return Peaks(self.compiler, self.threads)

    # -- measuring ----------------------------------------------------------------------------------------------------

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        for kernel in kernels:
            if kernel.language not in self.languages:
                known = ", ".join(self.languages)
                raise PresageError(f"{kernel.name} is {kernel.language}; the cpu device runs {known}")
        if any(kernel.language == "torch" for kernel in kernels):
            _refuse_without_torch()
        with self.posed(problem, effort.timeout) as posed:
            return self._measure(posed, kernels, effort, progress)

    def _measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        trials = [Trial(problem, kernel, effort) for kernel in kernels]
        self._conduct(problem, trials, effort, progress)
        for i, trial in enumerate(trials):
            if isinstance(trial.verdict, ChildLostError | TimingError):
                trials[i] = self._try_again(problem, trial.kernel, effort, progress)
        cases = problem.timed[self.kind]
        floors = [self.peaks.floor_ns(problem, case) for case in cases]
        return [trial.measurement(self.name, cases, floors) for trial in trials]

    def _conduct(self, problem: Problem, trials: Sequence[Trial], effort: Effort, progress: Progress) -> None:
        try:
            progress("compiling", 0.0)
            for trial in trials:
                trial.child = self._start_child(trial.kernel.language, self.threads)
            for trial in trials:
                trial.idle = self._idle(trial.kernel.language)
            self._load(problem, trials)
            plan = Plan.draw(problem, self.kind)
            with exclusive.only(self.name, lambda: progress("waiting for another measurement on this machine", 0.0)):
                conduct(trials, plan, self.peaks, effort, progress)
        finally:
            for trial in trials:
                trial.close()

    def _load(self, problem: Problem, trials: Sequence[Trial]) -> None:
        """Compile the kernels on all cores, then load them in their children."""
        with ThreadPoolExecutor(self.threads) as pool:
            commands = list(pool.map(lambda trial: self._prepare(problem, trial), trials))
        for trial, command in zip(trials, commands, strict=True):
            if isinstance(command, VerdictError):
                trial.end(command)
            else:
                trial.attempt(trial.load, command)

    def _prepare(self, problem: Problem, trial: Trial) -> dict[str, Any] | VerdictError:
        """Write the files that the child will load to its scratch folder. Returns the arguments of the `load` command,
        or the verdict on a kernel that does not compile."""
        assert trial.child is not None
        kernel, folder = trial.kernel, trial.child.scratch
        try:
            if kernel.is_bare:
                return {
                    "kind": "bare",
                    "library": self.compiler.compile(kernel.source, folder, "kernel", kernel.family),
                    "trampoline": self._trampoline(trampoline_source(problem), folder),
                    "entry": kernel.header.launches[0].entry,
                }
            path = Path(folder, "candidate.py")
            path.write_text(kernel.source)
            return _load_module(path, kernel.language) | worker_settings(problem, folder)
        except OSError as error:
            return VerdictError(Status.DEVICE_FAULT, f"cannot write to {folder}: {error.strerror}")
        except VerdictError as verdict:
            return verdict

    def _trampoline(self, source: str, folder: str) -> str:
        if source not in self._trampolines:
            library = self.compiler.compile(source, folder, "trampoline")
            self._trampolines[source] = Path(library).read_bytes()
            return library
        path = Path(folder, "trampoline.so")
        path.write_bytes(self._trampolines[source])
        return str(path)

    def _try_again(self, problem: Problem, kernel: Kernel, effort: Effort, progress: Progress) -> Trial:
        """Measure a kernel a second time, alone, after its clocks disagreed or its worker was killed from outside. If
        the worker is killed again while an idle worker can still be started, the kernel is the cause; otherwise it is
        the machine."""
        trial = Trial(problem, kernel, effort)
        _kill(self._idles)  # one of them may be the worker that was killed
        self._conduct(problem, [trial], effort, lambda doing, share: progress(f"{doing}, second try", share))
        if isinstance(trial.verdict, ChildLostError):
            _kill(self._idles)
            try:
                self._idle("c")
            except VerdictError:
                return trial
            trial.verdict = VerdictError(
                Status.RUNTIME_ERROR, "was killed by the system twice, most likely for the memory it used"
            )
        return trial

    def _start_child(self, language: str, threads: int) -> Child:
        """Start a worker for kernels of this language. Importing torch takes seconds, so a zygote does it once for all
        workers."""
        zygote = None
        if language == "torch":
            imports = (*_WITH_TORCH, *(FOR_EXAMINERS if self._examines else ()), *_IMPORTED_LATE)
            zygote = processes.zygote(self._torch_zygote, imports, rules.environment("/", self.threads))
        return Child(_IMPORTS.get(language, ()), threads, zygote)

    @property
    def _torch_zygote(self) -> str:
        return f"torch/{self.threads}/{os.pathsep.join(sys.path)}"

    def _idle(self, language: str) -> Child:
        """The idle worker for this language, which computes nothing. Its windows show what stopping, resuming and
        messages cost at this moment. It has one thread, so that the CPU time of its copying equals the time that it
        reports."""
        if language in self._idles:
            return self._idles[language]
        child = self._start_child(language, threads=1)
        try:
            child.wait_ready()
            child.give(_IDLE_SECONDS)
            child.command(
                "load", **(_load_module(_IDLE_MODULE, language) if language in _IMPORTS else {"kind": "null"})
            )
        except VerdictError:
            child.kill()
            raise
        return self._idles.setdefault(language, child)

    @contextmanager
    def _reference_trial(self, problem: KernelProblem, seconds: float) -> Iterator[Trial]:
        trial = Trial(problem, problem.reference_kernel(), Effort(timeout=seconds))
        if trial.kernel.language not in self.languages:
            raise PresageError(f"{problem.path} is {trial.kernel.language}; the cpu device runs c")
        trial.child = self._start_child(trial.kernel.language, self.threads)
        try:
            self._load(problem, [trial])
            if trial.verdict:
                raise PresageError(f"{problem.path} is {trial.verdict.status}: {trial.verdict.reason}")
            yield trial
        finally:
            trial.close()

    @contextmanager
    def _examiner_child(self) -> Iterator[Child]:
        _refuse_without_torch()
        self._examines = True
        child = self._start_child("torch", self.threads)
        child.lenient = True  # it runs the user's own code, which may try refused system calls
        try:
            yield child
        finally:
            child.kill()


class Peaks:
    """The machine's peak rates, measured once and cached on disk. A later, higher reading replaces a lower one."""

    def __init__(self, compiler: Compiler, threads: int) -> None:
        self._compiler, self._threads = compiler, threads
        identity = json.dumps([processor_name(), compiler.version, threads, _PEAKS_SOURCE.read_text()])
        name = f"peaks-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.json"
        self._file = machine.cache_folder() / name
        self._values = self._load() or self._measure()
        self._save()

    @property
    def flops(self) -> float:
        return float(self._values["flops"])

    def bandwidth(self, footprint: int) -> float:
        """Bytes per second for data of `footprint` bytes: the highest rate of all probes that are at least as large as
        the next smaller probe."""
        rates = {int(size): float(rate) for size, rate in self._values["bandwidth"].items()}
        below = max((size for size in rates if size <= footprint), default=min(rates))
        return max(rate for size, rate in rates.items() if size >= below)

    def floor_ns(self, problem: Problem, case: Case) -> float:
        """The least time for this case at the peaks."""
        return self._least_ns(problem.bytes(case), problem.textbook_flops(case))

    def impossible_ns(self, problem: Problem, case: Case) -> float:
        cost = problem.cost(case)
        return FLOOR_MARGIN * self._least_ns(cost.bytes, cost.flops)

    def single_ns(self, problem: Problem, case: Case) -> float:
        return self.impossible_ns(problem, case)

    def _least_ns(self, moved: int, flops: int) -> float:
        return 1e9 * max(moved / self.bandwidth(moved), flops / self.flops)

    def refresh(self) -> None:
        """Measure again and keep the higher reading of each pair. Sizes that only a witness measured stay as they
        are."""
        old, new = self._values, self._measure()
        again = new["bandwidth"]
        rates = {size: max(float(rate), float(again.get(size, rate))) for size, rate in old["bandwidth"].items()}
        self._values = {"flops": max(float(old["flops"]), float(new["flops"])), "bandwidth": rates}
        self._save()

    def _load(self) -> dict[str, Any] | None:
        try:
            values: dict[str, Any] = json.loads(self._file.read_text())
            return values if values["flops"] > 0 and values["bandwidth"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def witness_ns(self, problem: Problem, case: Case) -> float:
        cost = problem.cost(case)
        by_bytes = cost.bytes / self.bandwidth(cost.bytes) > cost.flops / self.flops
        found = self._run(cost.bytes if by_bytes else 0)
        if not by_bytes:
            rate = float(found["flops"])
            self._values["flops"] = max(self.flops, rate)
        else:
            ((size, rate),) = found["bandwidth"].items()
            rates = self._values["bandwidth"]
            rates[size] = max(float(rates.get(size, 0.0)), rate)
        self._save()
        return 1e9 * (cost.bytes if by_bytes else cost.flops) / rate

    def _measure(self) -> dict[str, Any]:
        return self._run()

    def _run(self, *what: int) -> dict[str, Any]:
        """Measure all peaks; or only the bandwidth for the given number of bytes; or, for 0, only the arithmetic."""
        folder = scratch.make("presage-peaks-")
        try:
            Path(folder, "peaks.c").write_text(_PEAKS_SOURCE.read_text())
            openmp = ["-fopenmp"] if self._compiler.openmp else []
            options = ["-O3", "-march=native", "-std=gnu11", "-w", *openmp]
            status, said = self._compiler.run([self._compiler.path, *options, "peaks.c", "-o", "peaks"], folder)
            if status:
                raise PresageError(f"{self._compiler.path} cannot build a small program: {said[:500]}")
            arguments = [str(self._threads if self._compiler.openmp else 1), *map(str, what)]
            status, said = self._compiler.run([f"{folder}/peaks", *arguments], folder)
            if status:
                raise PresageError(f"a small program that measures this processor ended with status {status}: {said}")
        finally:
            scratch.remove(folder)
        values: dict[str, Any] = json.loads(said)
        return values

    def _save(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part = self._file.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(self._values))
            part.replace(self._file)
        except OSError:
            return  # without the cache the peaks are only measured again


def _kill(children: dict[str, Child]) -> None:
    while children:
        children.popitem()[1].kill()


def _load_module(path: Path, language: str) -> dict[str, Any]:
    return {"kind": "torch" if language == "torch" else "module", "path": str(path)}


_PEAKS_SOURCE = Path(__file__).with_name("peaks.c")


def _refuse_without_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise PresageError("torch is not installed, which this needs; 'pip install torch' installs it")


def processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith(("model name", "cpu part", "hardware")):
                return f"{line.split(':', 1)[1].strip()} ({platform.machine()})"
    except OSError:
        pass
    return platform.processor() or platform.machine()
