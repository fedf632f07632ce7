"""Forecasts of `learned` for modules that are more than one kernel: the time of the steps of their traces, compared
with the time of the reference's steps, or with the measured time of the reference.

A step that both have has the same error in both, so this error cancels. How far modules deviate from the sum of their
steps was learned from recordings. Measurements of a search shift the forecasts of all modules of the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from presage.core.forecast import Forecast
from presage.forecasters import module_failures
from presage.forecasters.base import Candidate, Measured, Prediction, Task
from presage.forecasters.launch_times import NO_CORRECTION, Correction, LaunchTime, Trees, launch_times
from presage.forecasters.module_model import ModuleModel
from presage.forecasters.module_time import ModuleTime, StepTime, module_time
from presage.forecasters.operator_model import OperatorModel
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.report import StaticReport
from presage.static.trace import COMPILED, SCRIPTED

_MEASURED, _SURE_OF_SHARE = 4, 8
"""The prior's weight, in measured modules, for the shift of a problem's modules and for the share of modules that are
far off."""
_TRIED = 8
"""The weight, in measured modules of the problem, of the failure probability that a module's trace gives."""
_OWN_SHARE = 0.8
"""A module whose own kernels have a smaller share of the steps' least time is forecast as the sum of its steps."""
_TAIL = (0.0002, 0.001, 0.005, 0.01)
_LEVELS = (*_TAIL, *(level / 40 for level in range(1, 40)), *(1 - level for level in reversed(_TAIL)))
SUM = "the sum of its steps, as its trace has them"


@dataclass
class Times:
    """The times of one task's modules from their traces, with a cache."""

    task: Task
    trees: Callable[[], Trees]
    """The model of compiled kernels, for launches."""
    operators: Callable[[], OperatorModel]
    """The model of torch's operators."""
    correction: Correction = NO_CORRECTION
    """The correction of the trees' times."""
    _known: dict[str, tuple[ModuleTime, ...] | None] = field(default_factory=dict)

    def of(self, candidate: Candidate) -> tuple[ModuleTime, ...] | None:
        """A time for each case; None if a case was not traced, or if nothing is known about the GPU."""
        if candidate.kernel.hash not in self._known:
            self._known[candidate.kernel.hash] = self._worked_out(candidate)
        return self._known[candidate.kernel.hash]

    def _worked_out(self, candidate: Candidate) -> tuple[ModuleTime, ...] | None:
        hardware, found = self.task.hardware, []
        if hardware is None or not candidate.reports:
            return None
        operators = self.operators()
        for report in candidate.reports:
            if report.trace is None or report.trace.lacks:
                return None
            launches = {number: time.by(self.correction) for number, time in self.launches(report).items()}
            found.append(module_time(report.trace, hardware, operators, launches=launches))
        return tuple(found)

    def launches(self, report: StaticReport) -> dict[int, LaunchTime]:
        """The trees' times of launches by step number."""
        hardware = self.task.hardware
        return launch_times(report, hardware, self.trees()) if report.launches and hardware else {}


def is_mixed(candidate: Candidate, hardware: Hardware | None) -> bool:
    """Whether other steps than a module's own kernels take much of its time, so that the kernels alone say little."""
    for report in candidate.reports:
        if hardware is None or report.trace is None or report.trace.lacks:
            return False
        share = report.trace.own_share(roofline.trained_step_ns(report.trace, hardware))
        if share is not None and share < _OWN_SHARE:
            return True
    return False


def is_comparable(task: Task) -> bool:
    """Whether the reference was measured or traced, so that the time of a module's steps can be compared with it."""
    traces = [report.trace for report in task.anchor.reports]
    is_traced = bool(traces) and all(trace is not None and not trace.lacks for trace in traces)
    return is_traced or _measured(task.anchor) is not None


def forecast(
    task: Task,
    candidates: Sequence[Candidate],
    model: ModuleModel,
    trees: Callable[[], Trees],
    operators: Callable[[], OperatorModel],
) -> list[Prediction]:
    """One prediction per module, without a forecast if the module or the reference could not be traced. trees: the
    model of compiled kernels. operators: the model of torch's operators."""
    times = Times(task, trees, operators, model.launches)
    if not is_comparable(task):
        return [Prediction(None, (f"the reference was not traced: {why_not(task, task.anchor)}",))] * len(candidates)
    residuals, deviations = _residuals(times)
    middle = median(residuals) if residuals else 0.0
    shift = middle * len(residuals) / (len(residuals) + _MEASURED)
    far = _far_share(model, residuals, deviations, middle)
    failed = sum(each.status != "ok" for each in task.neighbours)
    chances = (model.p_fail(module_failures.signs(each.reports, task.anchor.reports)) for each in candidates)
    p_fail = [(chance * _TRIED + failed) / (_TRIED + len(task.neighbours)) for chance in chances]
    model = replace(model, far_share=far)
    return [_prediction(times, each, shift, model, p) for each, p in zip(candidates, p_fail, strict=True)]


def _far_share(model: ModuleModel, residuals: Sequence[float], deviations: Sequence[float], middle: float) -> float:
    far = sum(model.p_far(each - middle, deviation) for each, deviation in zip(residuals, deviations, strict=True))
    return (model.far_share * _SURE_OF_SHARE + far) / (_SURE_OF_SHARE + len(residuals))


def _prediction(times: Times, candidate: Candidate, shift: float, model: ModuleModel, p_fail: float) -> Prediction:
    found = times.of(candidate)
    if found is None:
        return Prediction(None, (f"it was not traced: {why_not(times.task, candidate)}",))
    mean, deviation = log2_speedup(times, found)
    of_trace = {note for report in candidate.reports if report.trace is not None for note in report.trace.notes}
    values = mean + shift + model.quantiles(_LEVELS, deviation)
    said = _notes({case.name: time.note() for case, time in zip(times.task.cases, found, strict=False)})
    notes = (SUM, *(note for note in (COMPILED, SCRIPTED) if note in of_trace), *said)
    return Prediction(Forecast.from_quantiles(_LEVELS, values, p_fail), notes)


def _notes(by_case: Mapping[str, str]) -> list[str]:
    """The notes on the times of the cases, which are named where the notes differ."""
    if len(set(by_case.values())) == 1:
        return list(filter(None, set(by_case.values())))
    return [f"{case}: {note}" for case, note in by_case.items() if note]


def log2_speedup(times: Times, found: Sequence[ModuleTime]) -> tuple[float, float]:
    """The mean and the standard deviation of log2 S: over the measured time of the reference or over the time of its
    steps, whichever gives the smaller deviation."""
    choices = []
    if (measured := _measured(times.task.anchor)) is not None:
        choices.append((fmean(time.deviation for time in found), measured - fmean(time.log2_ns for time in found)))
    if (reference := times.of(times.task.anchor)) is not None:
        pairs = list(zip(reference, found, strict=True))
        mean = fmean(ours.log2_ns - theirs.log2_ns for ours, theirs in pairs)
        choices.append((fmean(_difference(ours, theirs) for ours, theirs in pairs), mean))
    deviation, mean = min(choices)
    return mean, deviation


def _measured(kernel: Measured) -> float | None:
    """The mean of log2 nanoseconds over the cases; None for a kernel without measured times."""
    if kernel.status != "ok" or not kernel.times_ns:
        return None
    return fmean(math.log2(ns) for ns in kernel.times_ns.values())


def _difference(one: ModuleTime, other: ModuleTime) -> float:
    """The standard deviation of the difference of two modules' log2 times. The error of a step that both have counts
    with the difference of its shares in the two modules."""
    mine, theirs = _shares(one), _shares(other)
    deviations = {_key(step): step.deviation for time in (one, other) for step in time.steps}
    apart = {key: mine.get(key, 0.0) - theirs.get(key, 0.0) for key in mine.keys() | theirs.keys()}
    return math.hypot(one.beside, other.beside, *(share * deviations[key] for key, share in apart.items()))


def _shares(time: ModuleTime) -> Mapping[str, float]:
    """The share of the module's time of each distinct step, by `_key`."""
    found: dict[str, float] = {}
    for step in time.steps:
        key = _key(step)
        found[key] = found.get(key, 0.0) + step.ns / time.ns
    return found


def _key(step: StepTime) -> str:
    return step.same or f"#{step.number}"


def _residuals(times: Times) -> tuple[list[float], list[float]]:
    """The octaves by which measured modules were faster than forecast from their steps, and what the uncertainty of
    the steps is."""
    octaves, deviations = [], []
    for each in times.task.neighbours:
        S, steps = times.task.log2_speedup(each), times.of(each)
        if S is not None and steps is not None:
            mean, deviation = log2_speedup(times, steps)
            octaves.append(S - mean)
            deviations.append(deviation)
    return octaves, deviations


def why_not(task: Task, candidate: Candidate) -> str:
    """Why a module has no complete trace, with the line of its code that is the cause."""
    if task.hardware is None:
        return "there is no GPU to trace it for" if task.kind == "cpu" else "nothing is known of this GPU"
    lacks = [report.trace.lacks for report in candidate.reports if report.trace and report.trace.lacks]
    said = (line for report in candidate.reports for line in (report.error, *lacks, *report.notes) if line)
    first, *more = next(said, "there is no report of it").splitlines()
    places = (line.strip() for line in more if line.startswith("  at line "))
    return ", ".join([first, *places][:2])
