"""One part of each kind."""

from __future__ import annotations

import math
from pathlib import Path

import presage
from presage import Acquisition, Array, Case

TINY = Path(__file__).with_name("tiny.parquet")
STEPS = (1, 2, 4, 8, 16, 32)


class TinyScale(presage.Problem):
    name = "tiny_scale"
    summary = "y[i] = 3 * x[i]"
    inputs = (Array("x", "n"),)
    outputs = (Array("y", "n"),)
    timed = {"cpu": (Case({"n": 4096}),), "gpu": (Case({"n": 1048576}),)}
    checks = (Case({"n": 1}), Case({"n": 17}, values="large"), Case({"n": 333}, values="normal"))
    adds_up = False

    def make_inputs(self, case, sampler):
        return (sampler.values((case.dims["n"],), case.dtype),)

    def oracle(self, xp, case, x):
        return (3.0 * x,)

    def tolerance(self, case):
        return presage.Tolerance(1e-6, "one rounding")

    def flops(self, case):
        return case.dims["n"]

    def draw_case(self, rng):
        return Case({"n": rng.randint(1, 999)}, values=rng.choice(("normal", "tiny")))


class TinyDevice(presage.Device):
    """Says that a kernel is as fast as its STEP, and runs nothing."""

    kind = "cpu"
    languages = ("c",)
    name = "tiny"

    def __init__(self, nanoseconds: float = 1e6) -> None:
        self.nanoseconds = nanoseconds

    def describe(self):
        return {"hardware": "none"}

    def measure(self, problem, kernels, effort, progress):
        return [self._measurement(problem, kernel) for kernel in kernels]

    def _measurement(self, problem, kernel):
        from presage.devices.base import CaseTiming

        time = self.nanoseconds / int(kernel.values.get("STEP", 1))
        cases = tuple(
            CaseTiming(case.name, tuple(time + i for i in range(9)), tuple(range(9)), 1.0, 1)
            for case in problem.timed["cpu"]
        )
        return presage.Measurement(problem.name, kernel, self.name, presage.Status.OK, cases=cases)


class TinyForecaster(presage.Forecaster):
    """Believes in steps."""

    def __init__(self, width: float = 0.5) -> None:
        if not width > 0:
            raise presage.PresageError(f"width must be above 0, not {width}")
        self.width = width

    def forecast(self, task, candidates):
        return [presage.Prediction(self._forecast(each.kernel, task.anchor.kernel)) for each in candidates]

    def _forecast(self, kernel, anchor):
        middle = math.log2(kernel.values.get("STEP", 1) / anchor.values.get("STEP", 1))
        values = [middle - self.width, middle, middle + self.width]
        return presage.Forecast.from_quantiles([0.1, 0.5, 0.9], values, p_fail=0.01)


class TinyPolicy(presage.Policy):
    """Measures what is expected to be faster than the best."""

    def decide(self, forecasts, standing, rng):
        return [self._decision(forecast, standing) for forecast in forecasts]

    def _decision(self, forecast, standing):
        if forecast is None or forecast.mean() > standing.best:
            return presage.Decision(presage.Action.MEASURE, "tiny hopes for it")
        return presage.Decision(presage.Action.TRUST, "tiny expects nothing of it")


class TinyProposer(presage.Proposer):
    """Proposes every step."""

    def propose(self, parent, others, count, known, rng):
        problem = self.ground.problem
        kernels = [presage.load_kernel(problem, f"steps.c@STEP={step}") for step in STEPS]
        new = [kernel for kernel in kernels if kernel.hash not in known]
        return [presage.Proposal(kernel, "the next step") for kernel in new[:count]]


class TinyStrategy(presage.Strategy):
    """Always goes on from the latest kernel."""

    def __init__(self):
        self.latest = 0

    def ask(self, count, rng):
        return [self.latest] * count

    def tell(self, node):
        self.latest = max(self.latest, node.id)


class TinyAcquisition(Acquisition):
    """Hopes for the highest mean."""

    def score(self, forecast, best, rng):
        return forecast.mean() - best
