"""Rehearser: runs a GPU kernel on the CPU, on small inputs, and compares its outputs with the right ones.

CUDA C++, also in modules, runs as fibres, Triton in its interpreter, PyTorch unchanged. Each kernel runs in a confined
child, like kernels for a CPU. Threads run in one order and in the opposite one, so that a missing barrier shows.
Problems from elsewhere are rehearsed at smaller sizes. A kernel that cannot run here is not judged, and neither is a
module that fails, since it may have needed a GPU.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.devices.arena import ARENA_BYTES, Arena
from presage.devices.base import Effort
from presage.devices.c_compiler import trampoline_source
from presage.devices.child import MEMORY_BYTES, Child, VerdictError, Window
from presage.devices.cpu import FOR_EXAMINERS, CpuDevice
from presage.devices.emulation import cuda_on_cpu
from presage.devices.emulation.cuda_on_cpu import ENTRY, Builder, EmulationError
from presage.devices.emulation.sizes import Size, narrow_sizes, problem_sizes
from presage.devices.rehearsal import Rehearsal
from presage.devices.status import Status
from presage.devices.trial import Trial, worker_settings
from presage.devices.worker.stores import OUTSIDE, RACE
from presage.kernels.kernel import Kernel
from presage.problems.base import DTYPES, Case, Cost, Problem, storage
from presage.problems.external import GPU_MODE, ExternalProblem
from presage.problems.kernel_file import KernelProblem
from presage.problems.smaller import smaller_kernel_problems
from presage.sandbox import processes, rules
from presage.sandbox.processes import ChildProcess, Task
from presage.sandbox.rules import Rules
from presage.sandbox.zygote import Zygote
from presage.static import inline_cuda

SECONDS = 20.0
"""Seconds of processor time that one kernel may run in total."""
CASES = 6
_MOST_BYTES, _MOST_FLOPS = 2 << 20, 8_000_000
_SLOW, _FAST = (
    (Cost(4 << 20, 16_000_000), Cost(128 << 20, 512_000_000)),
    (Cost(64 << 20, 1_000_000_000), Cost(1 << 30, 20_000_000_000)),
)
"""Costs of a module's reference: a cheap one, and one that is never exceeded. _SLOW applies if the module has kernels
of its own, which are slow here, and _FAST if it has none."""
_SHARES = (0.25, 0.35, 0.7)
"""Shares of the time that is left for the first size, and for each smaller one that is tried if one takes too long. If
there is no smaller one, the first has the last share."""
_NARROW_SHARE = 0.3
_NO_SMALL = "the problem has no small case that can be computed here"
_ONLY = "it computes something else at a small size, which it may not be made for"
_UNSOUND = "its reference is not right at a size that can be computed here either"
_KEEPS = "it returns its first result again when it is called with other inputs"
_NO_BLOCKS = "without blocks"
"""What a launch says that is made for a larger size: its grid is a size divided by that of a tile, rounded down."""
_BRAIN = re.compile(r"bfloat16|bf16", re.IGNORECASE)
_INTERPRETED = ("numpy", "torch", "presage.devices.worker.main")

_NEEDED = {"triton": ("torch", "triton"), "torch": ("torch",)}


class Rehearser(CpuDevice):
    """Rehearses kernels of problems whose right answers can be computed here."""

    kind = "gpu"
    languages = ("cuda", "triton", "torch")

    def rehearse(self, problem: Problem, kernels: Sequence[Kernel], seconds: float = SECONDS) -> list[Rehearsal]:
        """One rehearsal per kernel, in their order, on all cores. `seconds`: how much processor time
        each may use in all."""
        try:
            if isinstance(problem, ExternalProblem):
                return self._modules(problem, kernels, seconds)
            if isinstance(problem, KernelProblem) and not small_cases(problem):
                return self._at_smaller_sizes(problem, kernels, seconds)
            return self._bare(problem, kernels, seconds)
        except (EmulationError, PresageError) as error:  # of the reference
            return [Rehearsal("untried", str(error))] * len(kernels)

    def _bare(self, problem: Problem, kernels: Sequence[Kernel], seconds: float) -> list[Rehearsal]:
        with self.posed(problem, seconds) as posed, ThreadPoolExecutor(self.threads) as pool:
            cases, effort = small_cases(posed), Effort(timeout=seconds)
            return list(pool.map(lambda kernel: self._rehearsal(posed, kernel, effort, cases).told, kernels))

    def _at_smaller_sizes(self, problem: KernelProblem, kernels: Sequence[Kernel], seconds: float) -> list[Rehearsal]:
        """Rehearse kernels of a problem that has large cases only. They may be made for these, so a kernel is wrong
        only if it is wrong at two smaller sizes."""
        sizes = [made for made in smaller_kernel_problems(problem) if small_cases(made)][:2]
        if not sizes:
            return [Rehearsal("untried", _NO_SMALL)] * len(kernels)
        found = self._bare(sizes[0], kernels, seconds / len(sizes))
        wrong = [number for number, told in enumerate(found) if told.status == "wrong"]
        again = self._bare(sizes[1], [kernels[number] for number in wrong], seconds / 2) if sizes[1:] and wrong else ()
        for number, told in zip_longest(wrong, again):
            if told is None or told.status != "wrong":
                found[number] = Rehearsal("untried", f"{_ONLY}: {found[number].reason}")
        return found

    def _modules(self, problem: ExternalProblem, kernels: Sequence[Kernel], seconds: float) -> list[Rehearsal]:
        """Rehearse modules on all cores. Each core has a child that answers for the problem."""
        sizes = problem_sizes(problem, lambda size: self._tried(size, seconds))

        def some(first: int) -> list[Rehearsal]:
            with ExitStack() as stack:
                posed = [_Posed(self, size, seconds, stack) for size in sizes]
                narrow = cache(lambda: [_Posed(self, size, seconds, stack) for size in narrow_sizes(problem)])
                return [self._module(posed, narrow, kernel, seconds) for kernel in kernels[first :: self.threads]]

        with ThreadPoolExecutor(self.threads) as pool:
            parts = [iter(part) for part in pool.map(some, range(self.threads))]
        return [next(parts[at % self.threads]) for at in range(len(kernels))]

    def _tried(self, problem: ExternalProblem, seconds: float) -> Cost:
        """The bytes of the inputs and outputs, if the reference runs here in its share of the time."""
        with self.posed(problem, seconds * _SHARES[0]) as posed:
            return Cost(sum(map(posed.bytes, posed.checks)), 0)

    def _module(
        self, posed: Sequence[_Posed], narrow: Callable[[], Sequence[_Posed]], kernel: Kernel, seconds: float
    ) -> Rehearsal:
        """Rehearse a module at the largest cheap size, or at a smaller one if that takes too long. A module may be made
        for larger sizes, so it is wrong only if it is wrong at two sizes, or at the problem's own size. Kernels of its
        own may be made for whole tiles or long rows. So they must also be wrong wherever one number is as written and
        all others are small, and else the second size is the largest that can be computed here."""
        left = seconds

        def at(size: _Posed, share: float) -> _Ended:
            nonlocal left
            ended = self._rehearsal_at(size, kernel, Effort(timeout=max(1.0, left * share)))
            left -= ended.spent
            return ended

        has_kernels = kernel.language == "triton" or _builds(kernel)
        least, most = _SLOW if has_kernels else _FAST
        number = max((n for n, each in enumerate(posed) if each.size.costs_less(least)), default=0)
        if not posed[number].size.costs_less(most):
            return Rehearsal("untried", _NO_SMALL)
        affordable = [n for n, each in enumerate(posed) if each.size.costs_less(most)]
        if affordable[1:] and number == affordable[-1] < len(posed) - 1:
            number = affordable[-2]  # so that there is a second size
        ended = at(posed[number], _SHARES[0] if number else _SHARES[-1])
        late = [len(posed)]
        for share in _SHARES[1:]:
            if ended.is_late and number > 0:
                late.append(number)
                number //= 2
                ended = at(posed[number], share)
        while _NO_BLOCKS in ended.told.reason and (larger := [n for n in affordable if n > number]):
            number = larger[0]
            ended = at(posed[number], _SHARES[-1])
        if ended.told.status != "wrong" or number + 1 == len(posed):
            return ended.told
        larger = [n for n in affordable if number < n < late[-1]] or late[1:][-1:]
        only = Rehearsal("untried", f"{_ONLY}: {ended.told.reason}")
        if has_kernels and larger[-1:] == [len(posed) - 1]:
            again = at(posed[larger.pop()], 0.5)
            if not again.is_late:
                return again.told if again.told.status != "untried" else only
        if has_kernels:
            statuses = {at(each, _NARROW_SHARE).told.status for each in narrow() if each.size.costs_less(most)}
            if "right" in statuses:
                return only
            if "wrong" in statuses:
                return ended.told
        told = Rehearsal("untried")
        for n in dict.fromkeys([larger[-1], larger[0]] if has_kernels and larger else larger[:1]):
            again = at(posed[n], 1.0 if n == larger[0] else 0.5)
            told = again.told
            if not again.is_late:
                break
        return told if told.status != "untried" else only

    def _rehearsal_at(self, posed: _Posed, kernel: Kernel, effort: Effort) -> _Ended:
        try:
            problem = posed.problem()
        except PresageError as error:
            return _Ended(Rehearsal("untried", str(error)))
        cases = small_cases(problem) if posed.size.problem.convention == GPU_MODE else problem.checks
        ended = self._rehearsal(problem, kernel, effort, cases)
        if ended.told.status != "wrong":
            return ended
        if kernel.language == "triton" and _BRAIN.search(kernel.source):
            return _Ended(Rehearsal("untried", "Triton's interpreter does not compute in bfloat16"))
        if posed.size.is_smaller:
            reason = ended.told.reason.replace("case as written", "at a smaller size")
            ended = replace(ended, told=replace(ended.told, reason=reason))
        if not posed.is_sound:
            posed.is_sound = self._rehearsal(problem, posed.size.reference, effort, cases).told.status == "right"
        return ended if posed.is_sound else _Ended(Rehearsal("untried", _UNSOUND))

    def _rehearsal(self, problem: Problem, kernel: Kernel, effort: Effort, cases: Sequence[Case]) -> _Ended:
        if kernel.language not in self.languages:
            return _Ended(Rehearsal("untried", f"{kernel.language} kernels are not rehearsed"))
        missing = [name for name in _NEEDED.get(kernel.language, ()) if importlib.util.find_spec(name) is None]
        if missing:
            return _Ended(Rehearsal("untried", f"{missing[0]} is not installed"))
        if not cases:
            return _Ended(Rehearsal("untried", _NO_SMALL))
        return self._rehearsed(problem, _RehearsedTrial(problem, kernel, effort, cases))

    def _rehearsed(self, problem: Problem, trial: _RehearsedTrial) -> _Ended:
        try:
            kernel = trial.kernel
            trial.child = self._building_child(kernel) if _builds(kernel) else self._start_child(kernel.language, 1)
            trial.child.counts_processor_time = True
            self._load(problem, [trial])
            trial.rehearse()
            trial.close()
            return trial.ended()
        except (EmulationError, PresageError) as error:
            return _Ended(Rehearsal("untried", str(error)))
        finally:
            trial.close()

    def _prepare(self, problem: Problem, trial: Trial) -> dict[str, Any] | VerdictError:
        assert trial.child is not None
        kernel, folder = trial.kernel, trial.child.scratch
        if kernel.language != "cuda":
            path = Path(folder, "candidate.py")
            path.write_text(kernel.source)
            given = worker_settings(problem, folder)
            if _builds(kernel):
                given["builds"] = {"home": str(self._builder.home), "compiler": self._builder.compiler.path}
            return {"kind": "torch", "path": str(path), "pretends_gpu": True} | given
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

    def _building_child(self, kernel: Kernel) -> Child:
        """A child that may compile the extensions that the module builds, or the kernels that it launches itself."""
        has_host_code = inline_cuda.is_mentioned(kernel.source)
        if has_host_code:
            inline_cuda.precompile()
        return _BuildingChild(self._interpreting, str(self._builder.home), has_host_code)

    def _start_child(self, language: str, threads: int) -> Child:
        return Child((), threads) if language == "cuda" else Child(("numpy", "torch"), threads, self._interpreting)

    @contextmanager
    def _examiner_child(self) -> Iterator[Child]:
        with super()._examiner_child() as child:
            child.counts_processor_time = True
            yield child

    @property
    def _interpreting(self) -> Zygote:
        environment = rules.environment("/", self.threads) | {"TRITON_INTERPRET": "1"}
        imports = (*FOR_EXAMINERS, *_INTERPRETED, *(["triton.language"] if importlib.util.find_spec("triton") else []))
        name = f"triton interpreted/{os.pathsep.join(sys.path)}"
        return processes.zygote(name, imports, environment)


class _BuildingChild(Child):
    """A child that may start the C++ compiler."""

    def __init__(self, zygote: Zygote, home: str, has_host_code: bool) -> None:
        """has_host_code: whether it needs torch's headers, which have been precompiled."""
        self._zygote = zygote
        self._take_place(Arena(), None)
        readable = (*rules.system_paths(), *filter(os.path.exists, inline_cuda.readable()), home)
        programs = (*inline_cuda.programs(), *rules.loader_paths())
        limits = Rules(
            self.scratch, readable, MEMORY_BYTES + ARENA_BYTES, may_spawn=True, programs=programs, reserves=True
        )
        environment = rules.environment(self.scratch) | (inline_cuda.environment() if has_host_code else {})
        settings = {"imports": ["numpy", "torch"], "arena_bytes": ARENA_BYTES, "threads": 1}
        self._start(limits, environment, settings, (self.arena.fd,))

    def _launch(self, task: Task) -> ChildProcess:
        assert self._zygote is not None
        return processes.fork(self._zygote, task)


def _builds(kernel: Kernel) -> bool:
    """Whether a module may compile CUDA."""
    source = kernel.source
    return not kernel.is_bare and (inline_cuda.is_mentioned(source) or inline_cuda.has_raw_kernels(source))


class _RehearsedTrial(Trial):
    """Runs only the checks of a trial; nothing is timed."""

    def __init__(self, problem: Problem, kernel: Kernel, effort: Effort, cases: Sequence[Case]) -> None:
        super().__init__(problem, kernel, effort)
        self._cases, self._right = cases, 0
        self._last: list[bytes] = []
        """The outputs of the last call."""
        self._spent = 0.0

    def rehearse(self) -> None:
        for case in self._cases:
            self.attempt(self.check, case, self.draw(case))
            self._right += self.live

    def check(self, case: Case, inputs: Any) -> None:
        """Check two calls of a case on different inputs, since a kernel may keep the result of the first. In CUDA C++
        the order of the threads changes from call to call."""
        self.lay_out(case, 1)
        self.run(case, inputs, checked=1, timed=False)
        before = self._last
        try:
            self.run(case, self.draw(case), checked=1, timed=False)
        except VerdictError as verdict:
            if verdict.status is Status.WRONG_RESULT and self._last == before:
                verdict.reason = f"{_KEEPS}: {verdict.reason}"
            raise

    def _outputs(self, case: Case, slot: int, window: Window, timed: bool) -> tuple[Any, ...]:
        found = super()._outputs(case, slot, window, timed)
        self._last = [output.tobytes() for output in found]
        return found

    def close(self) -> None:
        if self.child is not None:
            self._spent = self.child.spent
        super().close()

    def ended(self) -> _Ended:
        if self.verdict is None:
            return _Ended(Rehearsal("right", cases=self._right), spent=self._spent)
        failed = self.verdict.status is Status.RUNTIME_ERROR
        store = next((said for said in (OUTSIDE, RACE) if failed and said in self.verdict.reason), "")
        is_telling = self.verdict.status is Status.WRONG_RESULT or (failed and self.kernel.is_bare) or bool(store)
        said = self.output.strip().splitlines()[-1:] if failed else []
        reason = ": ".join([self.verdict.reason, *(line for line in said if line not in self.verdict.reason)])[:500]
        if store:
            reason = self.verdict.reason[self.verdict.reason.index(store) :].partition("')")[0]
        told = Rehearsal("wrong" if is_telling else "untried", reason, self._right)
        return _Ended(told, self.verdict.status is Status.TIMEOUT, self._spent)


@dataclass(frozen=True)
class _Ended:
    """The result of one rehearsal."""

    told: Rehearsal
    is_late: bool = False
    """Whether it took too long."""
    spent: float = 0.0
    """Seconds of processor time that it took."""


class _Posed:
    """A problem from elsewhere at one size, described by its own code when it is first asked for."""

    def __init__(self, device: Rehearser, size: Size, seconds: float, stack: ExitStack) -> None:
        self.size = size
        self._device, self._seconds, self._stack = device, seconds, stack
        self._problem: Problem | None = None
        self.is_sound = False
        """Whether the reference itself is right when it is rehearsed here. Sums of few values may be only noise."""

    def problem(self) -> Problem:
        if self._problem is None:
            problem = copy.copy(self.size.problem)
            problem.for_gpu = True
            self._problem = self._stack.enter_context(self._device.posed(problem, self._seconds))
        return self._problem


def small_cases(problem: Problem) -> tuple[Case, ...]:
    """Some of the problem's checks: of the cheap ones the smallest, the largest, and one of each style."""
    small = sorted((case for case in problem.checks if _is_small(problem, case)), key=problem.bytes)
    styles = {case.values: case for case in reversed(small)}
    chosen = [*small[:2], *small[-2:], *styles.values()]
    return tuple({case.name: case for case in chosen}.values())[:CASES]


def _is_small(problem: Problem, case: Case) -> bool:
    types = {problem.dtype(array, case) for array in (*problem.inputs, *problem.outputs)}
    if any(storage(name).name != name for name in types if name in DTYPES):
        return False
    return problem.bytes(case) <= _MOST_BYTES and problem.textbook_flops(case) <= _MOST_FLOPS
