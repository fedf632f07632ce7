"""Rehearser: a kernel for a GPU runs on the CPU, on small inputs, and what it computes is compared with what is right.

CUDA C++ runs as fibres, Triton in its interpreter, PyTorch as it is; each in a confined child, as kernels for a CPU do.
Threads run in one order and in the opposite one, so that a barrier that is missing shows. What cannot be run here is
not judged, and neither are modules that fail, since they may have asked for a GPU.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.devices.base import Effort
from presage.devices.c_compiler import trampoline_source
from presage.devices.child import Child, VerdictError
from presage.devices.cpu import CpuDevice
from presage.devices.emulation import cuda_on_cpu
from presage.devices.emulation.cuda_on_cpu import ENTRY, Builder, EmulationError
from presage.devices.rehearsal import Rehearsal
from presage.devices.status import Status
from presage.devices.trial import Trial, worker_settings
from presage.kernels.kernel import Kernel
from presage.problems.base import DTYPES, Case, Problem, storage
from presage.sandbox import processes, rules

SECONDS = 10.0
"""How long one kernel may run in all."""
CASES = 6
_MOST_BYTES, _MOST_FLOPS = 2 << 20, 8_000_000
_INTERPRETED = ("numpy", "torch", "presage.devices.worker.main")

_NEEDED = {"triton": ("torch", "triton"), "torch": ("torch",)}


class Rehearser(CpuDevice):
    """Rehearses kernels of problems whose right answers can be computed here."""

    kind = "gpu"
    languages = ("cuda", "triton", "torch")

    def rehearse(self, problem: Problem, kernels: Sequence[Kernel], seconds: float = SECONDS) -> list[Rehearsal]:
        """One rehearsal per kernel, in their order, on all cores. `seconds`: how long each may run in all."""
        try:
            with self.posed(problem, seconds) as posed, ThreadPoolExecutor(self.threads) as pool:
                cases, effort = small_cases(posed), Effort(timeout=seconds)
                return list(pool.map(lambda kernel: self._rehearsal(posed, kernel, effort, cases), kernels))
        except PresageError as error:
            return [Rehearsal("untried", str(error))] * len(kernels)

    def _rehearsal(self, problem: Problem, kernel: Kernel, effort: Effort, cases: Sequence[Case]) -> Rehearsal:
        if kernel.language not in self.languages:
            return Rehearsal("untried", f"{kernel.language} kernels are not rehearsed")
        missing = [name for name in _NEEDED.get(kernel.language, ()) if importlib.util.find_spec(name) is None]
        if missing:
            return Rehearsal("untried", f"{missing[0]} is not installed")
        if not cases:
            return Rehearsal("untried", "the problem has no small case that can be computed here")
        return self._rehearsed(problem, _RehearsedTrial(problem, kernel, effort, cases))

    def _rehearsed(self, problem: Problem, trial: _RehearsedTrial) -> Rehearsal:
        try:
            trial.child = self._start_child(trial.kernel.language, 1)
            self._load(problem, [trial])
            trial.rehearse()
            return trial.rehearsal()
        except (EmulationError, PresageError) as error:
            return Rehearsal("untried", str(error))
        finally:
            trial.close()

    def _prepare(self, problem: Problem, trial: Trial) -> dict[str, Any] | VerdictError:
        assert trial.child is not None
        kernel, folder = trial.kernel, trial.child.scratch
        if kernel.language != "cuda":
            path = Path(folder, "candidate.py")
            path.write_text(kernel.source)
            return {"kind": "torch", "path": str(path)} | worker_settings(problem, folder)
        text = cuda_on_cpu.source(problem, kernel, small_cases(problem))
        return {
            "kind": "bare",
            "library": self._builder.build(text, folder),
            "trampoline": self._trampoline(trampoline_source(problem), folder),
            "entry": ENTRY,
        }

    @cached_property
    def _builder(self) -> Builder:
        return Builder.find()

    def _start_child(self, language: str, threads: int) -> Child:
        if language == "cuda":
            return Child((), threads)
        environment = rules.environment("/", self.threads) | {"TRITON_INTERPRET": "1"}
        imports = (*_INTERPRETED, *(["triton.language"] if importlib.util.find_spec("triton") else []))
        name = f"triton interpreted/{os.pathsep.join(sys.path)}"
        return Child(("numpy", "torch"), threads, processes.zygote(name, imports, environment))


class _RehearsedTrial(Trial):
    """Only the checks of a trial: nothing is timed."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort, cases: Sequence[Case]) -> None:
        super().__init__(problem, kernel, effort)
        self._cases, self._right = cases, 0

    def rehearse(self) -> None:
        for case in self._cases:
            self.attempt(self.check, case, self.draw(case))
            self._right += self.live

    def check(self, case: Case, inputs: Any) -> None:
        """Twice, since the threads' order changes from call to call."""
        self.lay_out(case, 1)
        for _ in range(2 if self.kernel.language == "cuda" else 1):
            self.run(case, inputs, checked=1, timed=False)

    def rehearsal(self) -> Rehearsal:
        if self.verdict is None:
            return Rehearsal("right", cases=self._right)
        failed = self.verdict.status is Status.RUNTIME_ERROR
        is_telling = self.verdict.status is Status.WRONG_RESULT or (failed and self.kernel.is_bare)
        said = self.output.strip().splitlines()[-1:] if failed else []
        reason = ": ".join([self.verdict.reason, *said])[:500]
        return Rehearsal("wrong" if is_telling else "untried", reason, self._right)


def small_cases(problem: Problem) -> tuple[Case, ...]:
    """Some of the cases that are only checked: of the quick ones the smallest, the largest, and one of each style."""
    small = sorted((case for case in problem.checks if _is_small(problem, case)), key=problem.bytes)
    styles = {case.values: case for case in reversed(small)}
    chosen = [*small[:2], *small[-2:], *styles.values()]
    return tuple({case.name: case for case in chosen}.values())[:CASES]


def _is_small(problem: Problem, case: Case) -> bool:
    types = {problem.dtype(array, case) for array in (*problem.inputs, *problem.outputs)}
    if any(storage(name).name != name for name in types if name in DTYPES):
        return False
    return problem.bytes(case) <= _MOST_BYTES and problem.textbook_flops(case) <= _MOST_FLOPS
