"""The stage that compiles candidates, forecasts them, and scores them with the acquisition.

Some undecided candidates are forecast again, because more is known now: those with the highest scores, those with the
oldest forecasts, and any that would be decided on because of a score from before the latest measurement.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict
from random import Random

from presage.core import machine
from presage.devices.base import COMPILING
from presage.devices.child import WALL_SHARE
from presage.devices.emulation.rehearser import SECONDS
from presage.forecasters.base import Candidate, Prediction
from presage.forecasters.faults import why_broken
from presage.kernels.kernel import Kernel
from presage.llm.cost import Allowance, Cost
from presage.searches.budget import Amounts
from presage.searches.session import Session
from presage.searches.state import Step
from presage.static.report import StaticReport

AGAIN = 128
"""How many undecided candidates are forecast again because their scores are the highest, and how many because their
forecasts are the oldest."""
FAVOURITES = 32
"""How many candidates a forecaster that sees all of them may select for the acquisition to order."""
_COMPILED = 32
"""How many kernels are compiled between two checks of the time left. Near the end, as many as there are cores."""

Hopes = dict[str, tuple[float, float]]
"""The acquisition's score and the forecast's mean, by kernel hash."""


def forecast(session: Session, step: Step) -> None:
    """Compile, forecast and score a step's candidates."""
    forecaster = session.parts.forecaster
    fresh, session.fresh = session.fresh, {}
    kernels = [fresh.get(hash) or session.store.kernel(hash) for hash, _ in step.candidates]
    compiled = reports(session, kernels)
    candidates = [Candidate(kernel, told) for kernel, told in zip(kernels, compiled, strict=True)]
    broken = {c.kernel.hash: why for c in candidates if (why := why_broken(c.reports))}
    broken |= _wrong(session, [c.kernel for c in candidates if c.kernel.hash not in broken])
    whole = [candidate for candidate in candidates if candidate.kernel.hash not in broken]
    allowance = session.allowance()
    is_short = bool(forecaster and forecaster.sees_all)
    if is_short:
        said, hopes, cost = _shortlist(session, step, whole, allowance)
    else:
        said, hopes, cost = _forecast_and_score(session, step, whole, allowance)
    memory = forecaster.memory() if forecaster else None
    kept = set() if is_short else {candidate.kernel.hash for candidate in whole}
    kept |= set(heapq.nlargest(step.consider, hopes, key=lambda hash: hopes[hash]))
    forecasts = {hash: one.forecast for hash, one in said.items() if one.forecast and hash in kept}
    session.append(
        "forecast",
        {
            "forecasts": {hash: each.to_json() for hash, each in forecasts.items()},
            "hopes": hopes,
            "notes": {hash: list(said[hash].notes) for hash in said if hash in kept and said[hash].notes},
            **({"is_short": True} if is_short else {}),
            "broken": broken,
            **({} if memory is None else {"memory": memory}),
            "short": allowance.short,
            **asdict(cost),
        },
        reports={candidate.kernel.hash: candidate.reports for candidate in candidates if candidate.reports},
    )


def _wrong(session: Session, kernels: Sequence[Kernel]) -> dict[str, str]:
    """Rehearse kernels on the CPU. Return why they are wrong, by hash, for the kernels with a wrong result."""
    rehearser = session.parts.rehearser
    if rehearser is None or not kernels or (seconds := session.spending.wall_left()) <= 0:
        return {}
    found = rehearser.rehearse(session.parts.problem, kernels, min(SECONDS, seconds / WALL_SHARE))
    return {
        kernel.hash: f"on the CPU it computes something else: {each.reason}"
        for kernel, each in zip(kernels, found, strict=True)
        if each.status == "wrong"
    }


def reports(session: Session, kernels: Sequence[Kernel]) -> list[tuple[StaticReport, ...]]:
    """Compile kernels and return their static reports. If the run's time is limited, compile a few at a time: when the
    time is up, running compilations are killed, and the rest get no reports."""
    device, problem, budget = session.parts.device, session.parts.problem, session.budget
    if budget.wall_seconds is None:
        return device.reports(problem, kernels)
    found: list[tuple[StaticReport, ...]] = []
    while len(found) < len(kernels) and (left := budget.left("wall_seconds", session.spending.spent())) > 0:
        some = _COMPILED if left > COMPILING else machine.cores()
        found += device.reports(problem, kernels[len(found) :][:some], min(COMPILING, left))
    return [*found, *[()] * (len(kernels) - len(found))]


def predictions(
    session: Session, candidates: Sequence[Candidate], allowance: Allowance
) -> tuple[dict[str, Prediction], Cost]:
    """Return the forecaster's predictions by hash, and their cost. Empty if the budget does not cover the question."""
    forecaster = session.parts.forecaster
    if not forecaster or not candidates or not session.spending.can_pay("forecast", forecaster):
        return {}, Cost()
    forecaster.seconds, forecaster.allowance = session.spending.wall_left(), allowance
    found = forecaster.forecast(session.briefing.task(), candidates)
    said = {c.kernel.hash: prediction for c, prediction in zip(candidates, found, strict=True)}
    return said, forecaster.spent()


def _shortlist(
    session: Session, step: Step, candidates: Sequence[Candidate], allowance: Allowance
) -> tuple[dict[str, Prediction], Hopes, Cost]:
    """Choose the candidates to decide on from all undecided ones. The forecaster selects its favourites and the
    acquisition orders them. While other kernels are being measured, the forecaster selects only as many as are decided
    on: only the forecaster knows which kernels are worth measuring in addition to those.

    Returns their predictions and scores, and the cost."""
    forecaster, view, state = session.parts.forecaster, session.view, session.state
    assert forecaster is not None
    for hash in view.keys() - state.undecided.keys():
        del view[hash]
    if len(view) < len(state.undecided):  # some are missing after a restart
        view |= {hash: session.briefing.kernel(hash, False) for hash in state.undecided if hash not in view}
    view |= {candidate.kernel.hash: candidate for candidate in candidates}
    task = session.briefing.task()
    chosen = forecaster.favourites(task, view, step.consider if task.pending else FAVOURITES)
    said, cost = predictions(session, [view[hash] for hash in chosen], allowance)
    hopes = _hopes(session, said, session.chance(step.number, "score"))
    # sorted is stable: candidates with equal scores stay in the forecaster's order
    best = sorted(hopes, key=lambda hash: hopes[hash], reverse=True)[: step.consider]
    return said, {hash: hopes[hash] for hash in best}, cost


def _forecast_and_score(
    session: Session, step: Step, candidates: Sequence[Candidate], allowance: Allowance
) -> tuple[dict[str, Prediction], Hopes, Cost]:
    """Return predictions and scores of the new candidates and of undecided ones that are forecast again, and the
    cost."""
    rng = session.chance(step.number, "score")
    said, cost = predictions(session, [*candidates, *_worth_another_look(session)], allowance)
    hopes = _hopes(session, said, rng)
    while some := _overrated(session, said, hopes, step.consider):
        more, further = predictions(session, some, allowance)
        cost += further
        if not more:  # the time is up, or the budget does not cover the question
            break
        said |= more
        hopes |= _hopes(session, more, rng)
    return said, hopes, cost


def _hopes(session: Session, said: Mapping[str, Prediction], rng: Random) -> Hopes:
    """The score and the mean of each prediction that has a forecast."""
    best, score = session.state.best_value, session.parts.acquisition.score
    forecasts = {hash: prediction.forecast for hash, prediction in said.items()}
    return {hash: (float(score(f, best, rng)), f.mean()) for hash, f in forecasts.items() if f}


def _worth_another_look(session: Session) -> list[Candidate]:
    """The undecided candidates to forecast again because more is known now. Empty if a forecast costs tokens."""
    state = session.state
    if _forecasts_cost(session):
        return []
    hashes = dict.fromkeys([*state.most_hopeful(AGAIN), *state.longest_ignored(AGAIN)])
    return [session.briefing.kernel(hash, False) for hash in hashes]


def _overrated(session: Session, said: Container[str], hopes: Hopes, consider: int) -> list[Candidate]:
    """Undecided candidates that would be decided on because of a score from before the latest measurement. Empty if a
    forecast costs tokens."""
    if _forecasts_cost(session) or len(hopes) < consider:
        return []
    bar = heapq.nlargest(consider, hopes.values())[-1]
    undecided = session.state.undecided
    rated = {hash: each.hope for hash, each in undecided.items() if each.forecast and hash not in said}
    above = [hash for hash, hope in rated.items() if hope > bar]
    return [session.briefing.kernel(hash, False) for hash in heapq.nlargest(AGAIN, above, key=lambda hash: rated[hash])]


def _forecasts_cost(session: Session) -> bool:
    forecaster = session.parts.forecaster
    dearest = session.state.dearest.get("forecast", Amounts())
    return bool(forecaster and (forecaster.is_paid or dearest.tokens or dearest.dollars))
