"""The stage that compiles and forecasts candidates, and scores them by the acquisition.

Candidates that are still undecided are forecast again, since more is known now: the most hopeful, those whose forecasts
are the oldest, and any that would be decided on for what was hoped of them before the latest measurement.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict
from random import Random

from presage.core import machine
from presage.devices.base import COMPILING
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
"""How many of the undecided are forecast again because they are the most hopeful, and as many because that was longest
ago."""
FAVOURITES = 32
"""How many candidates a forecaster that sees all of them may choose from them for the acquisition to put in order."""
_COMPILED = 32
"""How many are compiled between two looks at the clock; near the end, as many as there are cores."""

Hopes = dict[str, tuple[float, float]]
"""Score and mean, by hash."""


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
    """Of those that compute something else on the CPU, what; by hash."""
    rehearser = session.parts.rehearser
    if rehearser is None or not kernels or (seconds := session.spending.wall_left()) <= 0:
        return {}
    found = rehearser.rehearse(session.parts.problem, kernels, min(SECONDS, seconds))
    return {
        kernel.hash: f"on the CPU it computes something else: {each.reason}"
        for kernel, each in zip(kernels, found, strict=True)
        if each.status == "wrong"
    }


def reports(session: Session, kernels: Sequence[Kernel]) -> list[tuple[StaticReport, ...]]:
    """What compiling tells of each. Where the run's time is limited, a few at once: when it is over, the rest is not
    compiled any more, and what is under way is killed."""
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
    """What the forecaster says, by hash, and what it cost; nothing where that cannot be paid."""
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
    """What is said and hoped of those to decide on, chosen from all that is undecided: the forecaster names its
    favourites, and the acquisition orders them. While others are being measured there are only as many favourites as
    are decided on: which kernels are worth it beside those, the forecaster alone knows."""
    forecaster, view, state = session.parts.forecaster, session.view, session.state
    assert forecaster is not None
    for hash in view.keys() - state.undecided.keys():
        del view[hash]
    if len(view) < len(state.undecided):  # after a restart
        view |= {hash: session.briefing.kernel(hash, False) for hash in state.undecided if hash not in view}
    view |= {candidate.kernel.hash: candidate for candidate in candidates}
    task = session.briefing.task()
    chosen = forecaster.favourites(task, view, step.consider if task.pending else FAVOURITES)
    said, cost = predictions(session, [view[hash] for hash in chosen], allowance)
    hopes = _hopes(session, said, session.chance(step.number, "score"))
    # sorted keeps the order of equals: the forecaster's
    best = sorted(hopes, key=lambda hash: hopes[hash], reverse=True)[: step.consider]
    return said, {hash: hopes[hash] for hash in best}, cost


def _forecast_and_score(
    session: Session, step: Step, candidates: Sequence[Candidate], allowance: Allowance
) -> tuple[dict[str, Prediction], Hopes, Cost]:
    """What is said and hoped of the candidates, and of the undecided that are forecast again."""
    rng = session.chance(step.number, "score")
    said, cost = predictions(session, [*candidates, *_worth_another_look(session)], allowance)
    hopes = _hopes(session, said, rng)
    while some := _overrated(session, said, hopes, step.consider):
        more, further = predictions(session, some, allowance)
        cost += further
        if not more:  # time is up
            break
        said |= more
        hopes |= _hopes(session, more, rng)
    return said, hopes, cost


def _hopes(session: Session, said: Mapping[str, Prediction], rng: Random) -> Hopes:
    """The score of each, and where it is expected; nothing of those without a forecast."""
    best, score = session.state.best_value, session.parts.acquisition.score
    forecasts = {hash: prediction.forecast for hash, prediction in said.items()}
    return {hash: (float(score(f, best, rng)), f.mean()) for hash, f in forecasts.items() if f}


def _worth_another_look(session: Session) -> list[Candidate]:
    """Of the undecided, since more is known now; unless a forecast costs tokens."""
    state = session.state
    if _forecasts_cost(session):
        return []
    hashes = dict.fromkeys([*state.most_hopeful(AGAIN), *state.longest_ignored(AGAIN)])
    return [session.briefing.kernel(hash, False) for hash in hashes]


def _overrated(session: Session, said: Container[str], hopes: Hopes, consider: int) -> list[Candidate]:
    """Undecided ones that would be decided on for what was hoped of them before the latest was measured; unless a
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
