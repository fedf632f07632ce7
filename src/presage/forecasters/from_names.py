"""Turn a user's question into a task and candidates: from names and paths, with recorded times and static reports."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices import recorded
from presage.devices import registry as devices
from presage.devices.emulation.rehearser import Rehearser
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording
from presage.devices.rehearsal import Rehearsal
from presage.forecasters import faults, registry, tuned
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.kernels.header import HeaderError
from presage.kernels.kernel import Kernel
from presage.plugins.group import DEVICES
from presage.problems import registry as problems
from presage.problems import static
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.static import hardware
from presage.static.hardware import Hardware
from presage.static.report import StaticReport

TARGET = "h200"
"""The default target for all kernels but those in C and NumPy."""
_EVEN = Forecast((-1e-6, 0.0), (0.0, 1.0))
"""A speedup of 1."""
_SEEDS = ("naive.cu", "naive.c", "eager.py")


@dataclass(frozen=True)
class Asked:
    """A question, and notes for the user on how it was understood."""

    task: Task
    candidates: tuple[Candidate, ...]
    device: str
    recording: Recording | None
    notes: tuple[str, ...]

    def forecast(self, forecaster: str | Forecaster) -> list[Prediction]:
        """The predictions of a forecaster (an instance or a name), one per candidate. Faults that show in a kernel are
        added for every forecaster. A kernel that compiling shows to be broken has no forecast, but `why_broken`."""
        if isinstance(forecaster, str):
            with closing(registry.get(forecaster, self.recording)) as made:
                return self.forecast(made)
        broken = [each.unreadable or self._why_broken(each) for each in self.candidates]
        working = [each for each, why in zip(self.candidates, broken, strict=True) if not why]
        found = forecaster.forecast(self.task, working) if working else []
        said = iter(tuned.fastest(self.task, working, found, forecaster))
        predictions = (
            Prediction(None, why_broken=why) if why else self._prediction(candidate, next(said))
            for candidate, why in zip(self.candidates, broken, strict=True)
        )
        return [replace(each, notes=(*self.notes, *each.notes)) for each in predictions]

    def _why_broken(self, candidate: Candidate) -> str:
        """Why a kernel cannot work; also whether the problem's reference fails, too."""
        why, anchor = faults.why_broken(candidate.reports), self.task.anchor
        reference = self.task.problem.reference_kernel() if why else None
        is_beside = reference is not None and reference.hash == anchor.kernel.hash != candidate.kernel.hash
        return f"{why}; the problem's reference fails, too" if is_beside and faults.why_broken(anchor.reports) else why

    def _prediction(self, candidate: Candidate, said: Prediction) -> Prediction:
        """The forecaster's prediction, with faults. The speedup of the anchor over itself is 1."""
        found = faults.warned(self.task, candidate, said)
        if candidate.kernel.hash != self.task.anchor.kernel.hash:
            return found
        p_fail = found.forecast.p_fail if found.forecast else 0.0
        return Prediction(replace(_EVEN, p_fail=p_fail), ("it is the anchor", *found.notes))


def ask(
    problem: str | Problem,
    kernels: Sequence[str | Kernel],
    anchor: str | Kernel | None,
    device: str | None,
    families: bool = False,
    rehearse: bool = False,
) -> Asked:
    """The question about the speedup of kernels. device: a GPU by its name, a recorded device, `cuda` or `cpu`;
    by default the H200, or `cpu` for C and NumPy kernels.
    families: a file with tunables stands for all of its configurations.
    rehearse: run the kernels on the CPU first, on small inputs."""
    device = device or _default(problem, kernels)
    place = _recorded(device)
    known = _problem(problem, place)
    gpu = hardware_of(device, place)
    anchored = _anchor(known, anchor, place, gpu)
    candidates = [
        found for kernel in kernels for found in _candidates(known, kernel, place, families, len(kernels) == 1)
    ]
    wanted = [each.kernel for each in candidates if not each.unreadable]
    every = [*wanted, anchored]
    kind = place.kind if place else "gpu" if gpu else "cpu"
    _refuse_others(every if anchor else wanted, device, kind)
    notes: list[str] = []
    *reports, of_anchor = _reports(known, every, place, gpu, notes)
    if (reference := known.reference_kernel()) and reference.hash == anchored.hash:
        known = known.informed(of_anchor)
    times = _times(known, anchored, place)
    if not times:
        notes.append(_without_time(known, anchored, place))
    measured = Measured(anchored, of_anchor, times, "ok" if times else "unknown")
    task = Task(known, measured, gpu, kind=place.kind if place else "")
    rehearsals = _rehearsals(known, wanted) if rehearse else [None] * len(wanted)
    known_of = iter(zip(reports, rehearsals, strict=True))
    for i, each in enumerate(candidates):
        if not each.unreadable:
            told, tried = next(known_of)
            candidates[i] = Candidate(each.kernel, told, rehearsal=tried)
    recording = place.recording if place else None
    return Asked(task, tuple(candidates), device, recording, tuple(dict.fromkeys(notes)))


def _problem(problem: str | Problem, place: RecordedDevice | None) -> Problem:
    if isinstance(problem, Problem):
        return problem
    return place.problem(problem) if place else problems.get(problem)


def _default(problem: str | Problem, kernels: Sequence[str | Kernel]) -> str:
    """The default target for the kernels' languages. An external problem is always for a GPU."""
    known = problem if isinstance(problem, Problem) else problems.get(problem)
    languages = set()
    for each in kernels:
        with suppress(PresageError):  # raised again when the kernel is looked up
            languages.add(each.language if isinstance(each, Kernel) else problems.find_kernel(known, each).language)
    is_for_cpu = bool(languages) and languages <= devices.ON_CPU and not isinstance(known, ExternalProblem)
    return "cpu" if is_for_cpu else TARGET


def _refuse_others(kernels: Sequence[Kernel], device: str, kind: str) -> None:
    """Raise PresageError for a kernel in a language that does not run on this kind of device."""
    for kernel in kernels:
        name = kernel.family
        if kind == "gpu" and kernel.language == "c":
            raise PresageError(
                f"{name} is a C kernel, which runs on a CPU, but the target {device} is a GPU;"
                " forecast C kernels in a call of their own, with the target cpu"
            )
        if kind == "cpu" and kernel.language in devices.ON_GPU:
            raise PresageError(
                f"{name} runs on a GPU, but the target {device} is a CPU;"
                " forecast it in a call of its own, with a GPU as the target"
            )


def _without_time(problem: Problem, anchor: Kernel, place: RecordedDevice | None) -> str:
    """Why the anchor's time is not known. For a problem with a reference, also what speedups are relative to."""
    if problem.reference_kernel():
        return f"speedups are relative to {Path(anchor.name).name}, whose time is not known: it was not measured"
    where = f"{place.name} has no time of it" if place else "there is no recording of this device"
    return f"the anchor's time is not known: {where}"


def _recorded(device: str) -> RecordedDevice | None:
    """The recorded device of this name; also for the bare name of a GPU if presage ships a recording of it. `cpu` means
    the CPU of this computer, and `recorded:cpu` the recorded one."""
    name = device.removeprefix("recorded:")
    implied = device != "cpu" and device in recorded.packaged()
    return RecordedDevice(recorded.find(name)) if name != device or implied else None


def hardware_of(device: str, place: RecordedDevice | None = None) -> Hardware | None:
    """The hardware of a GPU by its name, of a recorded device, or of a device of this computer. None for a CPU, and for
    a recorded GPU that nothing is known about."""
    if recorded_one := place or _recorded(device):
        return recorded_one.hardware
    if device not in DEVICES.names():
        return hardware.find(device)
    if device == "cpu":
        return None
    with closing(devices.get(device)) as here:
        if here.kind == "gpu" and here.hardware is None:
            raise PresageError(f"nothing is known of the GPU of {device}; name one with --target")
        return here.hardware


def _candidates(
    problem: Problem, spec: str | Kernel, place: RecordedDevice | None, families: bool, is_alone: bool
) -> list[Candidate]:
    """The kernels that a word names. An error in the header of one of several kernels concerns that kernel alone."""
    try:
        return [Candidate(kernel) for kernel in _found(problem, spec, place, families)]
    except HeaderError as error:
        if is_alone or not isinstance(spec, str):
            raise
        return [Candidate(problems.find_without_header(problem, spec), unreadable=str(error))]


def _found(problem: Problem, spec: str | Kernel, place: RecordedDevice | None, families: bool) -> list[Kernel]:
    if families and isinstance(spec, str):
        return problems.find_configurations(problem, spec)
    return [_find(problem, spec, place)]


def _find(problem: Problem, spec: str | Kernel, place: RecordedDevice | None) -> Kernel:
    if isinstance(spec, Kernel):
        return spec
    if place and problem.name in place.recording.counts:
        return place.kernel(problem, spec)
    return problems.find_kernel(problem, spec)


def _anchor(problem: Problem, spec: str | Kernel | None, place: RecordedDevice | None, gpu: Hardware | None) -> Kernel:
    """The anchor: the kernel that is named, else the problem's reference, the recording's anchor, or a seed kernel."""
    if spec:
        return _find(problem, spec, place)
    if reference := problem.reference_kernel():
        return reference
    if place and problem.name in place.recording.counts and (anchor := place.anchor(problem)):
        return anchor
    languages = ("cuda", "triton", "torch") if gpu else ("c", "numpy", "torch")
    named = {Path(k.name).name: k for k in problems.seed_kernels(problem) if k.language in languages}
    for name in _SEEDS:
        if name in named:
            return named[name].render()
    raise PresageError(f"{problem.name} has no seed kernel to compare with; name one with --anchor")


def _times(problem: Problem, kernel: Kernel, place: RecordedDevice | None) -> dict[str, float]:
    if place is None or problem.name not in place.recording.counts:
        return {}
    row = place.rows(problem.name).get(kernel.hash)
    return {case.case: case.median.value for case in row.cases} if row else {}


def _rehearsals(problem: Problem, kernels: Sequence[Kernel]) -> list[Rehearsal]:
    with closing(Rehearser()) as rehearser:
        return rehearser.rehearse(problem, kernels)


def _reports(
    problem: Problem, kernels: Sequence[Kernel], place: RecordedDevice | None, gpu: Hardware | None, notes: list[str]
) -> list[Sequence[StaticReport]]:
    """The static reports of each kernel: recorded, or else compiled here, all kernels together."""
    told: list[Sequence[StaticReport]] = [()] * len(kernels)
    if place and problem.name in place.recording.counts:
        told = [*place.reports(problem, kernels)]
    if gpu is None or not (problem.inputs or isinstance(problem, ExternalProblem)):
        return told
    silent = [i for i, kernel in enumerate(kernels) if not told[i] and static.is_reported(problem, kernel)]
    try:
        found = static.reports(problem, [kernels[i] for i in silent], problem.timed["gpu"], gpu) if silent else []
    except PresageError as error:
        notes.append(f"nothing was compiled: {error}")
        return told
    for i, report in zip(silent, found, strict=True):
        told[i] = report
    return told
