"""Collect the corpus: measure the catalogue's kernels on a device, in chunks. A collection can be stopped and
resumed."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from presage.core.errors import PresageError
from presage.corpus import journal
from presage.corpus.journal import Journal, State
from presage.devices.base import Device, Effort
from presage.devices.examiner import ProblemError
from presage.devices.status import Status
from presage.kernels.header import Value
from presage.kernels.kernel import Kernel
from presage.problems import external, registry
from presage.problems.base import Problem

_ALWAYS = ("naive", "eager", "compiled")
"""The kernels that come first in each problem's plan: the seed kernel, and PyTorch's own."""
_SAY_SECONDS = 10.0
MODULE_EFFORT = Effort(0.02, case_seconds=0.1, timeout=60.0, rounds=3, processes=1, further_processes=0)
"""The effort for modules. Times come from one process. Short times differ by a few per cent between processes."""


@dataclass(frozen=True)
class PlannedKernel:
    """A kernel to measure: a family and values. It is rendered on first use, because most planned kernels are never
    measured."""

    problem: Problem
    family: Kernel
    values: Mapping[str, Value] = field(default_factory=dict)
    known: str | None = None
    """The kernel's hash, if known without rendering."""

    @cached_property
    def kernel(self) -> Kernel:
        return self.family.render(self.values) if self.values else self.family

    @property
    def hash(self) -> str:
        return self.known or self.kernel.hash


def plan(problem: Problem, device: Device, state: State | None = None) -> Iterator[PlannedKernel]:
    """Iterate over every kernel of the problem's families that the device can run. Any first part of the sequence is a
    fair sample: kernels without tunables come first, then the first configuration of each family, then the families in
    turn. The order depends only on names and values. A family's share grows with the square root of its size, so that
    large families do not crowd out others. Kernels that `state` knows are not rendered."""
    state = state or State()
    families = [
        family
        for family in registry.seed_kernels(problem)
        if family.language in device.languages and (device.kind == "gpu" or Path(family.name).stem != "compiled")
    ]
    fixed = [family for family in families if not family.is_family]
    fixed.sort(key=lambda family: (Path(family.name).stem not in _ALWAYS, family.name))
    yield from (PlannedKernel(problem, family) for family in fixed)
    shuffled = [(family, _shuffled(problem, family)) for family in families if family.is_family]
    turns = sorted(
        ((position + 0.5) / len(values) ** 0.5 if position else 0.0, index, position)
        for index, (_, values) in enumerate(shuffled)
        for position in range(len(values))
    )
    seen: set[str] = set()
    for _, index, position in turns:
        family, every = shuffled[index]
        values = every[position]
        candidate = PlannedKernel(problem, family, values, state.hash_of(problem.name, family, values))
        if candidate.hash not in seen:
            seen.add(candidate.hash)
            yield candidate


def _shuffled(problem: Problem, family: Kernel) -> list[dict[str, Value]]:
    """The family's configurations: the first, then the others in a fixed pseudo-random order."""
    first, *others = family.configurations()
    name = Path(family.name).name
    return [first, *sorted(others, key=lambda v: hashlib.sha256(f"{problem.name} {name} {v}".encode()).digest())]


def modules(folder: Path, languages: Collection[str]) -> Iterator[PlannedKernel]:
    """Iterate over the modules of the external problems in a folder. A problem is a file `NAME.py`, or a folder with a
    task. Its modules are its reference, and those in the folder `NAME` beside the file, or in `modules` inside the
    folder. Duplicates, and files that are no problem, are skipped. Raises PresageError if there is no such folder."""
    if not folder.is_dir():
        raise PresageError(f"{folder} is no folder")
    for path in sorted(folder.iterdir(), key=lambda path: hashlib.sha256(path.name.encode()).digest()):
        if path.suffix != ".py" and not (path / "task.yml").is_file():
            continue
        problem = external.read(path)
        once: dict[str, Kernel] = {}
        for kernel in problem.with_modules():
            once.setdefault(kernel.hash, kernel)
        yield from (PlannedKernel(problem, kernel) for kernel in once.values() if kernel.language in languages)


def collect_modules(
    device: Device,
    into: Path,
    folder: Path,
    *,
    effort: Effort = MODULE_EFFORT,
    seconds: float | None = None,
    without: Collection[tuple[str, str]] = (),
    say: Callable[[str], None] = print,
) -> int:
    """Measure the modules of a folder as foreign kernels. Returns the number of measurements.

    into: the folder of the journals. seconds: the time limit. without: modules to skip, by problem and hash. A problem
    whose own code fails is left out."""
    state = journal.read(into)
    wanted = [
        each
        for each in modules(folder, device.languages)
        if (each.problem.name, each.hash) not in without and not state.measured(each.problem.name, each.hash)
    ]
    deadline = time.monotonic() + seconds if seconds else None
    own = Journal(into, {"device": device.name, "kind_of_device": device.kind, "facts": device.describe()})
    for problem in {each.problem.name: each.problem for each in wanted}.values():
        if reference := problem.reference_kernel():
            own.add_problem(problem.name, problem.room, reference.hash)
    run = _Run(device, own, state, effort, deadline, say)
    try:
        while wanted:
            try:
                run.measure(wanted, foreign=True)
                break
            except ProblemError as error:
                say(f"{error.problem} is left out: {error}")
                wanted = [
                    each
                    for each in wanted
                    if each.problem.name != error.problem and (each.problem.name, each.hash) not in run.done
                ]
    finally:
        own.close()
    return run.count


def collect(
    device: Device,
    folder: Path,
    problems: Sequence[Problem],
    effort: Effort,
    *,
    per_problem: int,
    chunk: int = 60,
    seconds: float | None = None,
    repeat: float = 0.05,
    again: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Measure kernels until every problem has `per_problem` of them or the time is up. Returns the number of
    measurements.

    chunk: kernels of one problem before the next problem has its turn. seconds: the time limit. repeat: the share of
    earlier kernels to measure a second time. again: whether to measure kernels that are in the journals already."""
    state = journal.read(folder)
    deadline = time.monotonic() + seconds if seconds else None
    own = Journal(folder, {"device": device.name, "kind_of_device": device.kind, "facts": device.describe()})
    run = _Run(device, own, state, effort, deadline, say)
    repeats = list(run.repeats(repeat, problems))
    if again:
        state.kernels.clear()
    plans = {p.name: itertools.islice(plan(p, device, state), per_problem) for p in problems if device.kind in p.timed}
    wanted = (
        candidate
        for _ in range(0, per_problem, chunk)
        for problem in problems
        for candidate in itertools.islice(plans.get(problem.name, iter(())), chunk)
        if not state.measured(problem.name, candidate.hash)
    )
    try:
        run.measure(repeats, repeat=True)
        run.measure(wanted)
    finally:
        own.close()
    return run.count


class _Run:
    """One run of the collector."""

    def __init__(
        self,
        device: Device,
        own: Journal,
        state: State,
        effort: Effort,
        deadline: float | None,
        say: Callable[[str], None],
    ) -> None:
        self._device, self._journal, self._state, self._effort = device, own, state, effort
        self._deadline, self._say = deadline, say
        self.done: set[tuple[str, str]] = set()
        """The problem and hash of each kernel measured in this run."""

    @property
    def count(self) -> int:
        return len(self.done)

    def repeats(self, share: float, problems: Sequence[Problem]) -> Iterator[PlannedKernel]:
        """A fixed pseudo-random share of the kernels that earlier runs measured, to be measured a second time."""
        by_name = {problem.name: problem for problem in problems}
        for known in self._state.kernels.values():
            drawn = int(hashlib.sha256(f"repeat {known.hash}".encode()).hexdigest()[:8], 16) / 2**32 < share
            if drawn and known.status is Status.OK and not known.repeat and known.problem in by_name:
                family, _ = self._state.render(known)
                yield PlannedKernel(by_name[known.problem], family, known.values)

    def measure(self, candidates: Iterable[PlannedKernel], repeat: bool = False, foreign: bool = False) -> None:
        families: dict[tuple[str, str], Kernel] = {}
        statuses: Counter[str] = Counter()

        def work() -> Iterator[tuple[Problem, Kernel]]:
            for candidate in candidates:
                if self._late():
                    return
                families[candidate.problem.name, candidate.kernel.hash] = candidate.family
                yield candidate.problem, candidate.kernel

        start = last = said = time.monotonic()
        for measurement in self._device.measure_each(work(), self._effort, foreign=repeat or foreign):
            now = time.monotonic()
            key = measurement.problem, measurement.kernel.hash
            family = families.pop(key)
            self._journal.add(family, measurement, now - last, repeat)
            last = now
            self.done.add(key)
            statuses[str(measurement.status)] += 1
            if now - said > _SAY_SECONDS:
                self._say(_progress(measurement.problem, statuses, now - start, repeat))
                said = now
            if self._late():
                break
        if statuses:
            self._say(_progress("in all", statuses, last - start, repeat))

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline


def _progress(where: str, statuses: Counter[str], seconds: float, repeat: bool) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in statuses.items())
    rate = statuses.total() / max(1e-9, seconds)
    return f"{where}: {'again ' if repeat else ''}{counts} ({rate:.1f} a second)"


def find_problems(names: Sequence[str]) -> list[Problem]:
    """Return the problems with these names or in these rooms; all if `names` is empty. Raises PresageError for an
    unknown name."""
    every = [registry.get(name) for name in registry.names()]
    if not names:
        return every
    unknown = set(names) - {problem.name for problem in every} - {problem.room for problem in every}
    if unknown:
        raise PresageError(f"there is no problem or room '{min(unknown)}'; 'presage problems' lists them")
    return [problem for problem in every if problem.name in names or problem.room in names]
