"""A question as a person puts it: names and paths in, a task and a candidate out, with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from presage.core.errors import PresageError
from presage.devices import recorded
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording
from presage.forecasters import faults
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.kernels.kernel import Kernel
from presage.problems import registry as problems
from presage.problems import static
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.static import hardware
from presage.static.hardware import Hardware
from presage.static.report import StaticReport

_SEEDS = ("naive.cu", "naive.c", "eager.py")
_COMPILED = ("cuda", "triton")


@dataclass(frozen=True)
class Asked:
    """What is asked, and what a person should know of how it was understood."""

    task: Task
    candidate: Candidate
    device: str
    recording: Recording | None
    notes: tuple[str, ...]

    @property
    def why_broken(self) -> str:
        """Why the kernel cannot work, where compiling it has shown that; there is nothing to forecast then."""
        return faults.why_broken(self.candidate.reports)

    def forecast(self, forecaster: Forecaster) -> Prediction:
        """The forecaster's word, and what shows of the kernel whoever is asked; none where it is broken."""
        if self.why_broken:
            return Prediction(None)
        (prediction,) = forecaster.forecast(self.task, [self.candidate])
        return faults.warned(self.task, self.candidate, prediction)


def ask(problem: str, kernel: str, anchor: str | None, device: str) -> Asked:
    """The question of what speedup to expect of a kernel, on a GPU by its name, a recorded device, or `cpu`."""
    place = _recorded(device)
    known = place.problem(problem) if place else problems.get(problem)
    gpu = place.hardware if place else _hardware(device)
    candidate, anchored = _find(known, kernel, place), _anchor(known, anchor, place, gpu)
    notes: list[str] = []
    reports = [_reports(known, each, place, gpu, notes) for each in (candidate, anchored)]
    times = _times(known, anchored, place)
    if not times:
        where = f"{place.name} has no time of it" if place else "there is no recording of this device"
        notes.append(f"the anchor's time is not known: {where}")
    measured = Measured(anchored, reports[1], times, "ok" if times else "unknown")
    task = Task(known, measured, gpu, kind=place.kind if place else "")
    found = place.recording if place else None
    return Asked(task, Candidate(candidate, reports[0]), device, found, tuple(dict.fromkeys(notes)))


def _recorded(device: str) -> RecordedDevice | None:
    """The recorded device of this name, also where only the GPU is named and a recording of it comes with presage; the
    CPU is this computer's, unless the recorded one is asked for."""
    name = device.removeprefix("recorded:")
    implied = device != "cpu" and device in recorded.packaged()
    return RecordedDevice(recorded.find(name)) if name != device or implied else None


def _hardware(device: str) -> Hardware | None:
    return None if device == "cpu" else hardware.find(device)


def _find(problem: Problem, spec: str, place: RecordedDevice | None) -> Kernel:
    if place and problem.name in place.recording.counts:
        return place.kernel(problem, spec)
    return problems.find_kernel(problem, spec)


def _anchor(problem: Problem, spec: str | None, place: RecordedDevice | None, gpu: Hardware | None) -> Kernel:
    """The kernel that is named, the recording's own, or the seed that a corpus would take."""
    if spec:
        return _find(problem, spec, place)
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


def _reports(
    problem: Problem, kernel: Kernel, place: RecordedDevice | None, gpu: Hardware | None, notes: list[str]
) -> Sequence[StaticReport]:
    """What was recorded of compiling it, or what compiling it here tells."""
    if place and problem.name in place.recording.counts and (told := place.reports(problem, [kernel])[0]):
        return told
    if gpu is None or kernel.language not in _COMPILED or isinstance(problem, ExternalProblem) or not problem.inputs:
        return ()
    try:
        return static.reports(problem, [kernel], problem.timed["gpu"], gpu)[0]
    except PresageError as error:
        notes.append(f"nothing was compiled: {error}")
        return ()
