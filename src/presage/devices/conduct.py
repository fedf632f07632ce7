"""The stages of a measurement: kernels are checked, and the survivors are timed side by side, round by round."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from presage.devices.base import Effort, Progress
from presage.devices.observation import round_numbers
from presage.devices.plan import Plan
from presage.devices.trial import Roof, Trial
from presage.problems.base import Case

PATIENCE = 3
"""If the clocks do not agree because the machine is busy, continue for this many times the rounds and the time cap."""

_secret = random.SystemRandom()


def conduct(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """Check every kernel on every checking case, then time the survivors side by side, round by round."""
    examine(trials, plan, roof, effort, progress)
    for trial in trials:
        trial.attempt(trial.part)
    clock(trials, plan, roof, effort, progress)


def examine(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """The first half of `conduct`: check the kernels, and decide how to time them."""
    for done, case in enumerate(plan.checks):
        progress("checking", done / (len(plan.checks) + len(plan.timed)))
        inputs = trials[0].draw(case)
        for trial in trials:
            trial.attempt(trial.check, case, inputs)
    for trial in trials:
        trial.attempt(trial.settle, plan.timed)


def clock(trials: Sequence[Trial], plan: Plan, roof: Roof, effort: Effort, progress: Progress) -> None:
    """The second half of `conduct`: time the kernels, side by side unless one might slow the others, and judge the
    times."""
    alone, together = ([t for t in trials if t.is_timed_alone == is_alone] for is_alone in (True, False))
    for group in filter(None, (*([trial] for trial in alone), together)):
        for done, case in enumerate(plan.timed, start=len(plan.checks)):
            progress(f"timing {case.name}", done / (len(plan.checks) + len(plan.timed)))
            _time_case([trial for trial in group if trial.live], case, effort)
            for trial in group:
                trial.attempt(trial.judge, case, roof)
        for trial in group:
            trial.attempt(trial.conclude)
    progress("done", 1.0)


def _time_case(trials: Sequence[Trial], case: Case, effort: Effort) -> None:
    for trial in trials:
        trial.attempt(trial.warm_up, case)
    start = time.monotonic()
    while live := [trial for trial in trials if trial.live]:
        elapsed = time.monotonic() - start
        enough = not any(trial.disturbed(case) for trial in live)
        patience = 1 if enough else PATIENCE
        tried = all(trial.windows(case) >= patience * effort.rounds for trial in live)
        late = tried and elapsed > patience * effort.case_seconds
        if late or all(trial.precise(case) for trial in live):
            return
        inputs, number = live[0].draw(case), next(round_numbers)
        for trial in _secret.sample(live, len(live)):
            trial.attempt(trial.sample, case, inputs, number)
