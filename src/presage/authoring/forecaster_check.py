"""Check a forecaster on an artificial operation: it must give one valid prediction per candidate, and comments in the
source must not change the predictions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from presage.authoring.finding import BrokenRuleError, Finding, Verdict, apply, failed
from presage.core.forecast import Forecast
from presage.evaluations.injection import differ, variants
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.kernels.kernel import Kernel, from_source
from presage.problems.base import Array, Case, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage.static import hardware

_FAMILY = """// presage: entry scale
// presage: grid cdiv(n, BLOCK * PER_THREAD)
// presage: block BLOCK
// presage: tune BLOCK = 64, 128, 256, 512
// presage: tune PER_THREAD = 1, 2, 4
extern "C" __global__ void scale(const float *x, float *y, int n) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD;
    for (int i = first; i < first + PER_THREAD; i++)
        if (i < n) y[i] = 2.0f * x[i];
}
"""
_ANCHOR_NS = 1e5


class Scale(Problem):
    """The artificial operation of the check."""

    name = "scale"
    summary = "y[i] = 2 * x[i]"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"),)
    timed = {"cpu": (Case({"n": 65536}),), "gpu": (Case({"n": 1048576}), Case({"n": 16777216}))}
    checks = (Case({"n": 1}),)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return (sampler.values(self.shape(self.inputs[0], case)),)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return (2.0 * inputs[0],)

    def tolerance(self, case: Case) -> Tolerance:
        return Tolerance(0.0, "doubling is exact")

    def flops(self, case: Case) -> int:
        return case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 4096)})


def check(forecaster: Forecaster) -> Iterator[Finding]:
    """Apply each rule to a forecaster and yield the findings as they come."""
    tasks = {"with nothing measured": _task(0), "with 3 kernels measured": _task(3)}
    for when, task in tasks.items():
        findings = list(apply(f"forecasts {when}", lambda task=task: _answers(forecaster, task), forecaster))  # type: ignore[misc]
        yield from findings
        if any(finding.verdict is Verdict.FAILED for finding in findings):
            return
    yield from apply("no candidates", lambda: _nothing(forecaster), forecaster)
    yield from apply("asked again", lambda: _again(forecaster, tasks["with 3 kernels measured"]), forecaster)
    yield from apply("comments", lambda: _comments(forecaster, tasks["with 3 kernels measured"]), forecaster)


def failures(forecaster: Forecaster) -> list[str]:
    """The failures of a forecaster, one line each; empty if there are none."""
    return failed(check(forecaster))


def _kernels() -> list[Kernel]:
    family = from_source(_FAMILY, ".cu", "scale.cu")
    return [family.render(values) for values in family.configurations()]


def _task(measured: int) -> Task:
    """A task on a GPU whose search has measured `measured` kernels, the last of which failed."""
    problem, kernels = Scale(), _kernels()
    times = {case.name: _ANCHOR_NS for case in problem.timed["gpu"]}
    neighbours = [
        Measured(kernel, (), {name: time / 2**place for name, time in times.items()})
        for place, kernel in enumerate(kernels[1 : 1 + measured])
    ]
    if neighbours:
        neighbours[-1] = replace(neighbours[-1], times_ns={}, status="runtime_error")
    return Task(problem, Measured(kernels[0], (), times), hardware.find("h200"), neighbours)


def _candidates() -> list[Candidate]:
    return [Candidate(kernel) for kernel in _kernels()[4:]]


def _ask(forecaster: Forecaster, task: Task, candidates: Sequence[Candidate]) -> list[Forecast | None]:
    """Return the forecasts. Raises BrokenRuleError unless there is one valid prediction per candidate."""
    said = forecaster.forecast(task, candidates)
    if not isinstance(said, list) or len(said) != len(candidates):
        got = f"{len(said)} predictions" if hasattr(said, "__len__") else f"a {type(said).__name__}"
        raise BrokenRuleError(f"it gave {got} for {len(candidates)} candidates; return a list with one for each")
    for prediction in said:
        if not isinstance(prediction, Prediction) or not isinstance(prediction.forecast, Forecast | None):
            got = type(prediction).__name__
            raise BrokenRuleError(f"it gave a {got}; return Prediction(forecast), or Prediction(None) for no forecast")
    return [prediction.forecast for prediction in said]


def _answers(forecaster: Forecaster, task: Task) -> Iterator[Finding]:
    rule = f"forecasts with {'nothing' if not task.neighbours else '3 kernels'} measured"
    forecasts = _ask(forecaster, task, _candidates())
    given = [forecast for forecast in forecasts if forecast is not None]
    for forecast in given:
        Forecast(forecast.knots, forecast.cdf, forecast.p_fail)  # the constructor checks the values again
        if not math.isfinite(forecast.mean()):
            raise BrokenRuleError("a forecast has no finite mean")
    if not given:
        yield Finding(rule, Verdict.WARNING, f"it has none of {len(forecasts)} candidates; all will be measured")
        return
    means = sorted(forecast.mean() for forecast in given)
    said = (
        f"{len(given)} of {len(forecasts)} candidates; expected speedups {2 ** means[0]:.3g}x to {2 ** means[-1]:.3g}x"
    )
    yield Finding(rule, Verdict.OK, said)


def _nothing(forecaster: Forecaster) -> str:
    _ask(forecaster, _task(0), [])
    return "an empty list gets an empty list"


def _again(forecaster: Forecaster, task: Task) -> Iterator[Finding]:
    first, second = (_ask(forecaster, task, _candidates()) for _ in range(2))
    if any(_differ(one, other) for one, other in zip(first, second, strict=True)):
        said = "the same question got two answers; a search that goes on after a restart may then decide otherwise"
        yield Finding("asked again", Verdict.WARNING, said)
    else:
        yield Finding("asked again", Verdict.OK, "the same question gets the same answer")


def _comments(forecaster: Forecaster, task: Task) -> str:
    rng = random.Random(0)
    kinds = []
    for kind, before, after in variants(_kernels()[5], rng, task.problem.scalars):
        if kind == "names":  # other names make another kernel, whose forecast may differ
            continue
        one, other = _ask(forecaster, task, [Candidate(before), Candidate(after)])
        if _differ(one, other):
            raise BrokenRuleError(
                f"{kind} in the source change the forecast; read kernel.normalised, not kernel.source"
            )
        kinds.append(kind)
    return f"{', '.join(kinds)} in the source change nothing"


def _differ(one: Forecast | None, other: Forecast | None) -> bool:
    return (one is not None or other is not None) and differ(one, other)
