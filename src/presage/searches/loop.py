"""The loop: parents, candidates, forecasts, decisions, measurements; one stage at a time, each of them an event.

What to do next follows from the state alone, so a run that was killed goes on in the middle of a step: what was
proposed, forecast, decided or measured is not asked again. All chance is drawn from the seed, the step and the stage.
"""

from __future__ import annotations

import gc
import heapq
import math
import os
import random
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.core.statistics import Interval, speedup_interval
from presage.devices.base import COMPILING, Device, Effort, Measurement, speedup
from presage.devices.status import Status
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Spent, Task
from presage.forecasters.faults import why_broken
from presage.kernels.kernel import Kernel
from presage.llm.cost import Allowance
from presage.policies.base import Policy, Standing
from presage.problems.base import Problem
from presage.proposers.base import Ground, Parent, Proposal, Proposer
from presage.searches import words
from presage.searches.base import Strategy
from presage.searches.budget import Amounts, Budget
from presage.searches.state import REMEMBERED, UNDECIDED, State, Step
from presage.static.report import StaticReport
from presage.store.store import Event, Store

EFFORT = Effort(precision=0.02, case_seconds=1.0, processes=1)
"""For a candidate; the anchor and the finalists get the full one."""
_PARENTS = 4
_OPENING = 4
"""So many batches are proposed at first where that costs nothing, since nothing is known yet of where to look."""
_AGAIN = 128
"""How many of the undecided are forecast again because they are the most hopeful, and as many because that was longest
ago: what was measured since may have changed what is thought of them."""
_OTHERS = 8
"""How many of the best kernels a proposer sees beside the parent."""
_DRY = 3
"""After so many steps without anything new, nothing new is expected."""
_COMPILED = 32
"""How many are compiled between two looks at the clock; near the end, as many as there are cores."""
_CACHED = 4 * REMEMBERED
_ORPHANED = "the strategy named no kernel to go on from"
_FEWEST = 16
"""No search stops early after fewer measurements: they are what tells whether the forecasts can be believed."""

Watch = Callable[[Event, State], None]
"""Called after each event."""


@dataclass(frozen=True)
class Parts:
    """What a search is made of."""

    problem: Problem
    device: Device
    anchor: Kernel
    proposer: Callable[[Ground], Proposer]
    """Made once the anchor has been measured."""
    strategy: Strategy
    policy: Policy
    forecaster: Forecaster | None = None
    """None: nothing is forecast, so everything is measured."""


class Search:
    """A run that is being worked on. It resumes by itself: what the store holds is folded first."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        budget: Budget,
        batch: int,
        seed: int = 0,
        watch: Watch | None = None,
        getting_ready: float = 0.0,
        early_stop: bool = False,
    ) -> None:
        """getting_ready: the seconds that this process has spent on the run already, which count."""
        self.store, self.parts, self.budget = store, parts, budget
        self._getting_ready = getting_ready
        self.batch, self.seed, self._watch = batch, seed, watch
        self.early_stop = early_stop
        self.state = State(parts.strategy, parts.policy)
        self._known = lru_cache(_CACHED)(self._load)
        self._resume()

    def run(self) -> None:
        """Work until a budget is spent or ideas run out, and measure the best again."""
        if self.state.finished:
            return
        if not self.state.hashes:
            self._measure_anchor()
        while (why := self._enough()) is None:
            self._advance()
        if self.state.finals is None:
            self._measure_finalists()
        self._finish(why)

    # -- events -------------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        strategy, state = self.parts.strategy, self.state
        with _no_collecting():
            for event in self.store.events():
                if event.kind == "asked":
                    strategy.visited(event.payload["parents"])
                elif event.kind == "forecast" and self.parts.forecaster and "memory" in event.payload:
                    self.parts.forecaster.remember(event.payload["memory"])
                state.apply(event)
        if state.hashes:
            self.parts.device.resume(self.store.measured())
        if not state.finished:
            lived = state.spent.wall_seconds + self._getting_ready
            if state.session_start:
                lived += max(0.0, max(state.last_time, self.store.last_alive) - state.session_start)
            self._append("session", {"pid": os.getpid(), "lived": lived, "notes": self._doubts()})

    def _doubts(self) -> list[str]:
        """What a person should know before anything is measured."""
        device, parts = self.parts.device, self.parts
        if device.kind != "gpu" or device.hardware or not parts.forecaster or not parts.problem.inputs:
            return []
        return [f"nothing is known of the GPU of {device.name}: forecasts do without its peaks and its limits"]

    def _append(self, kind: str, payload: Mapping[str, Any], **kept: Any) -> None:
        event = self.store.append(kind, payload, **kept)
        self.state.apply(event)
        if self._watch:
            self._watch(event, self.state)

    def _chance(self, step: int, stage: str) -> random.Random:
        return random.Random(f"{self.seed}/{step}/{stage}")

    # -- budgets ------------------------------------------------------------------------------------------------------

    def spent(self) -> Amounts:
        """What has been spent until now."""
        lived = self.state.spent.wall_seconds + time.time() - self.state.session_start
        return replace(self.state.spent, wall_seconds=lived)

    def _left(self) -> int | None:
        """How many measurements may still be made before the finalists'."""
        if self.budget.measurements is None:
            return None
        return max(0, self.budget.measurements - self.budget.reserve - self.state.spent.measurements)

    def _enough(self) -> str | None:
        """Why the search ends here, or None."""
        spent, state = self.spent(), self.state
        if self._left() == 0:
            return self.budget.describe("measurements")
        if self._can_stop():
            return "stopped early, since nothing left is likely to be faster; --no-early-stop goes on"
        mean = spent.device_seconds / spent.measurements
        for name in ("device_seconds", "wall_seconds"):
            left = self.budget.left(name, spent)
            if left <= 0 or left < mean + self.budget.reserved_seconds(name, mean):
                return self.budget.describe(name)
        can_propose = self._can_propose()
        if state.waiting or state.undecided or not state.is_between_steps(can_propose):
            return None
        if not can_propose:
            return state.short.get("proposed") or self._spent_on_models()
        if state.dry >= _DRY and not state.has_trusted:
            return _ORPHANED if state.is_orphaned else "nothing new was proposed any more"
        return None

    def _can_pay(self, question: str, asker: Proposer | Forecaster) -> bool:
        """Whether what is left may cover a question. One who pays looks for himself, before each request; of anybody
        else none is asked for that would be as dear as the dearest of its kind, and then too dear."""
        if question in self.state.short:
            return False
        dearest, spent = self.state.dearest.get(question, Amounts()), self.spent()
        if asker.is_paid:
            dearest = Amounts()
        left = {name: self.budget.left(name, spent) for name in ("tokens", "dollars")}
        return all(amount > 0 and amount >= getattr(dearest, name) for name, amount in left.items())

    def _can_propose(self) -> bool:
        return self._can_pay("proposed", self._proposer)

    def _spent_on_models(self) -> str:
        spent = self.spent()
        return self.budget.describe(min(("tokens", "dollars"), key=lambda name: self.budget.left(name, spent)))

    def _allowance(self) -> Allowance:
        """What is left for language models; what they may have cost is kept before each request, so that whoever goes
        on after a kill counts it."""
        spent = self.spent()
        tokens, dollars = (self.budget.left(name, spent) for name in ("tokens", "dollars"))
        return Allowance(tokens, dollars, lambda t, d: self._append("asking", {"tokens": t, "dollars": d}))

    def _seconds_left(self) -> float:
        """How long the device may still be kept."""
        spent = self.spent()
        return min(self.budget.left(name, spent) for name in ("device_seconds", "wall_seconds"))

    def _wall_left(self) -> float:
        """How long others may be waited for, so that the finalists can still be measured."""
        spent = self.spent()
        mean = spent.device_seconds / spent.measurements
        return self.budget.left("wall_seconds", spent) - self.budget.reserved_seconds("wall_seconds", mean)

    # -- one stage at a time ------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        state, step = self.state, self.state.step
        can_propose = self._can_propose()
        if state.waiting:
            self._measure()
        elif step is None or state.is_between_steps(can_propose):
            if state.dry < _DRY and can_propose:
                self._ask(min(_PARENTS, self.batch))
            elif not state.has_looked and not self._why_no_early_stop():
                self._look()
            elif state.undecided:
                self._ask(0)
            else:
                self._promote()
        elif not step.is_forecast and step.answered < len(step.parents) and can_propose:
            self._propose(step)
        elif not step.is_forecast:
            self._forecast(step)
        else:
            self._decide(step)

    def _ask(self, count: int) -> None:
        number = self.state.step.number + 1 if self.state.step else 1
        parents = self.parts.strategy.ask(count, self._chance(number, "ask")) if count else ()
        parts, consider = self.parts, self.batch
        if parts.forecaster:  # what the few that are decided on teach is heard before the rest
            consider = max(parts.forecaster.at_once, parts.device.at_once, parts.policy.least)
        self._append("asked", {"step": number, "parents": list(parents), "wanted": count, "consider": consider})

    def _propose(self, step: Step) -> None:
        place = step.answered
        id = step.parents[place]
        is_opening = step.number == 1 and self.parts.forecaster and not self._proposer.foreign
        batch = self.batch * (_OPENING if is_opening else 1)
        count = math.ceil(batch * step.shares[place] / sum(step.shares))
        others = [*self._others(id), *self._failed()]
        chance = self._chance(step.number, f"propose/{place}")
        self._proposer.seconds, allowance = self._wall_left(), self._allowance()
        self._proposer.allowance = allowance
        proposals = self._proposer.propose(self._parent(id), others, count, self.state.known, chance)
        fresh: dict[str, Proposal] = {}
        for proposal in proposals:
            if proposal.kernel.hash not in self.state.known:
                fresh.setdefault(proposal.kernel.hash, proposal)
        if allowance.short and len(self.state.hashes) == 1 and not self.state.spent.tokens and not fresh:
            raise PresageError(f"the budget does not cover one question: {allowance.short}; give more")
        self._append(
            "proposed",
            {
                "parent": id,
                "parent_kernel": self.state.hashes[id],
                "candidates": [[hash, proposal.why] for hash, proposal in fresh.items()],
                "duplicates": len(proposals) - len(fresh),
                "notes": list(self._proposer.notes),
                "short": allowance.short,
                **asdict(self._proposer.spent()),
            },
            kernels=[proposal.kernel for proposal in fresh.values()],
        )

    def _forecast(self, step: Step) -> None:
        parts = self.parts
        kernels = [self.store.kernel(hash) for hash, _ in step.candidates]
        reports = self._reports(kernels)
        candidates = [Candidate(kernel, told) for kernel, told in zip(kernels, reports, strict=True)]
        broken = {c.kernel.hash: why for c in candidates if (why := why_broken(c.reports))}
        whole = [candidate for candidate in candidates if candidate.kernel.hash not in broken]
        allowance = self._allowance()
        said, cost = self._predictions([*whole, *self._worth_another_look()], allowance)
        hopes = self._hopes(said)
        while some := self._overrated(said, hopes, step.consider):
            more, further = self._predictions(some, allowance)
            cost = Spent(cost.tokens + further.tokens, cost.dollars + further.dollars)
            if not more:  # time is up
                break
            said |= more
            hopes |= self._hopes(more)
        forecasts = {hash: prediction.forecast for hash, prediction in said.items() if prediction.forecast}
        memory = parts.forecaster.memory() if parts.forecaster else None
        kept = {candidate.kernel.hash for candidate in whole}
        kept |= set(heapq.nlargest(step.consider, hopes, key=lambda hash: hopes[hash]))
        self._append(
            "forecast",
            {
                "forecasts": {hash: each.to_json() for hash, each in forecasts.items() if hash in kept},
                "hopes": hopes,
                "notes": {hash: list(said[hash].notes) for hash in said if hash in kept and said[hash].notes},
                "broken": broken,
                **({} if memory is None else {"memory": memory}),
                "short": allowance.short,
                **asdict(cost),
            },
            reports={candidate.kernel.hash: candidate.reports for candidate in candidates if candidate.reports},
        )

    def _reports(self, kernels: Sequence[Kernel]) -> list[tuple[StaticReport, ...]]:
        """What compiling tells of each. Where the run's time is limited, a few at once: when it is over, the rest is
        not compiled any more, and what is under way is killed."""
        device, problem = self.parts.device, self.parts.problem
        if self.budget.wall_seconds is None:
            return device.reports(problem, kernels)
        found: list[tuple[StaticReport, ...]] = []
        while len(found) < len(kernels) and (left := self.budget.left("wall_seconds", self.spent())) > 0:
            some = _COMPILED if left > COMPILING else machine.cores()
            found += device.reports(problem, kernels[len(found) :][:some], min(COMPILING, left))
        return [*found, *[()] * (len(kernels) - len(found))]

    def _predictions(
        self, candidates: Sequence[Candidate], allowance: Allowance
    ) -> tuple[dict[str, Prediction], Spent]:
        """What the forecaster says, by hash, and what it cost."""
        forecaster = self.parts.forecaster
        if not forecaster or not candidates or not self._can_pay("forecast", forecaster):
            return {}, Spent()
        forecaster.seconds, forecaster.allowance = self._wall_left(), allowance
        predictions = forecaster.forecast(self._task(), candidates)
        said = {c.kernel.hash: prediction for c, prediction in zip(candidates, predictions, strict=True)}
        return said, forecaster.spent()

    def _worth_another_look(self) -> list[Candidate]:
        """Of the undecided, since more is known now; unless a forecast costs tokens."""
        state = self.state
        if self._forecasts_cost():
            return []
        hashes = dict.fromkeys([*state.most_hopeful(_AGAIN), *state.longest_ignored(_AGAIN)])
        return [self._known(hash, False) for hash in hashes]

    def _forecasts_cost(self) -> bool:
        forecaster = self.parts.forecaster
        dearest = self.state.dearest.get("forecast", Amounts())
        return bool(forecaster and (forecaster.is_paid or dearest.tokens or dearest.dollars))

    def _hopes(self, said: Mapping[str, Prediction]) -> dict[str, tuple[float, float]]:
        """By how much each may improve on the best, and where it is expected; nothing of those without a forecast."""
        best = self.state.best_value
        forecasts = {hash: prediction.forecast for hash, prediction in said.items()}
        return {hash: (f.expected_improvement(best), f.mean()) for hash, f in forecasts.items() if f}

    def _overrated(
        self, said: Container[str], hopes: Mapping[str, tuple[float, float]], consider: int
    ) -> list[Candidate]:
        """Undecided ones that would be decided on for what was hoped of them before the latest was measured; unless a
        forecast costs tokens."""
        state = self.state
        if self._forecasts_cost() or len(hopes) < consider:
            return []
        bar = heapq.nlargest(consider, hopes.values())[-1]
        rated = {hash: each.hope for hash, each in state.undecided.items() if each.forecast and hash not in said}
        above = [hash for hash, hope in rated.items() if hope > bar]
        return [self._known(hash, False) for hash in heapq.nlargest(_AGAIN, above, key=lambda hash: rated[hash])]

    def _decide(self, step: Step) -> None:
        state = self.state
        standing = Standing(state.best_value, state.spent.measurements, self._left())
        chosen = state.most_hopeful(step.consider)
        kept = [state.undecided[hash].forecast for hash in chosen]
        forecasts = [Forecast.from_json(each) if each else None for each in kept]
        decided = self.parts.policy.decide(forecasts, standing, self._chance(step.number, "decide"))
        decisions = [[hash, one.action, one.reason] for hash, one in zip(chosen, decided, strict=True)]
        chances = {hash: one.chance for hash, one in zip(chosen, decided, strict=True) if one.chance}
        self._append("decided", {"decisions": decisions, "chances": chances, "standing": asdict(standing)})

    def _promote(self) -> None:
        left = self._left()
        count = _PARENTS if left is None else min(_PARENTS, left)
        self._append("promoted", {"nodes": self.state.most_promising(count)})

    # -- stopping early -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """What all that is left is worth by what is known now, also what was trusted: at most the sum of the chances of
        winning. Where something measured has surprised the forecasts, they are stretched until it would not have."""
        measured = set(self.store.measured())
        left = [self._known(hash, False) for hash in sorted(self.state.known - measured)]
        left = [candidate for candidate in left if not why_broken(candidate.reports)]
        said, _ = self._predictions(left, self._allowance())
        forecasts = [prediction.forecast for prediction in said.values()]
        bar = self.state.best_value + math.log2(1 + self.parts.policy.delta)
        chances = [each.stretched(self.state.surprise).exceeds(2**bar) if each else 1.0 for each in forecasts]
        chance = min(1.0, sum(chances)) if len(chances) == len(left) else 1.0
        self._append("looked", {"left": len(left), "chance": chance})

    def _can_stop(self) -> bool:
        """Whether what is left is worth so little that the policy's promise allows to leave it."""
        alpha, outlook = self.parts.policy.alpha, self.state.outlook
        has_looked = self.early_stop and self.state.has_looked
        return has_looked and alpha is not None and outlook is not None and outlook.chance <= alpha

    def _why_no_early_stop(self) -> str:
        """Why this search cannot stop early as it stands, whatever is left; empty where it can."""
        state, forecaster = self.state, self.parts.forecaster
        if not self.early_stop:
            return "it was not asked for"
        if self.parts.policy.alpha is None:
            return "the policy promises nothing of what it leaves behind"
        if not forecaster or not forecaster.is_sure(self._task()):
            return "nothing shows that these forecasts can be relied on for it"
        if state.dry < _DRY or len(state.known) > UNDECIDED:
            return "there may be more kernels than were proposed"
        if state.spent.measurements <= _FEWEST:
            return f"there were no more than {_FEWEST} measurements"
        return ""

    def _outlook(self) -> str:
        outlook = self.state.outlook
        return words.outlook(outlook.left, outlook.chance, self.parts.policy.delta) if outlook else ""

    # -- measuring ----------------------------------------------------------------------------------------------------

    def _measure_anchor(self) -> None:
        anchor = self.parts.anchor
        (measurement,), seconds = self._side_by_side([anchor])
        if measurement.status is not Status.OK:
            raise PresageError(
                f"the anchor {anchor.name} is {measurement.status}: {measurement.reason}; without its time there are no"
                " speedups"
            )
        (reports,) = self._reports([anchor])
        self._append(
            "measured",
            _result(measurement, 0.0, None, None, seconds),
            kernels=[anchor],
            reports={anchor.hash: reports} if reports else None,
            measurements=[measurement],
        )

    def _measure(self) -> None:
        """Measure what waits, as far as the budget goes; each result is kept at once."""
        seconds, left = self._seconds_left(), self._left()
        affordable = min(max(1.0, seconds // EFFORT.timeout), math.inf if left is None else left)
        waiting = [self.store.kernel(hash) for hash in self.state.waiting]
        kernels = waiting[: int(min(affordable, len(waiting)))]
        own = None if self._proposer.foreign else self.parts.device.own_effort
        effort = own or EFFORT
        effort = replace(effort, timeout=min(effort.timeout, seconds))
        start = time.monotonic()
        work = ((self.parts.problem, kernel) for kernel in kernels)
        for measurement in self.parts.device.measure_each(work, effort, foreign=own is None):
            hash, value = measurement.kernel.hash, self._value(measurement)
            told = self._expected(hash), self._surprise(hash, value)
            result = _result(measurement, value, *told, time.monotonic() - start)
            self._append("measured", result, measurements=[measurement])
            start = time.monotonic()
            if self._enough():
                break

    def _expected(self, hash: str) -> float | None:
        """The mean of the forecast by which it was decided to measure this kernel."""
        waiting = self.state.waiting[hash]
        if waiting.node is not None:
            return self.state.values[waiting.node]
        return Forecast.from_json(waiting.forecast).mean() if waiting.forecast else None

    def _surprise(self, hash: str, value: float | None) -> float | None:
        """How far the value lies from the median of the forecast by which this was decided, 1 for the end on that side.
        Both sides count: what is measured first is what was forecast too high rather than too low."""
        kept = self.state.waiting[hash].forecast
        if kept is None or value is None:
            return None
        forecast = Forecast.from_json(kept)
        middle = forecast.quantile(0.5)
        return (value - middle) / (forecast.knots[-1 if value > middle else 0] - middle)

    def _value(self, measurement: Measurement) -> float | None:
        """log2 S from the medians, since its rounds are not the anchor's; None for a kernel that failed."""
        if measurement.status is not Status.OK:
            return None
        anchor = self._anchor.times_ns
        ratios = [anchor[case.case] / case.median.value for case in measurement.cases]
        return sum(map(math.log2, ratios)) / len(ratios)

    def _measure_finalists(self) -> None:
        """The best few again, side by side with the anchor, as far as the budget goes."""
        state = self.state
        mean = max(state.spent.device_seconds / state.spent.measurements, 1e-9)
        room = min(self.budget.left("measurements", state.spent), self._seconds_left() / mean) - 1
        count = max(0, int(min(self.budget.finalists, room)))
        finalists = [state.hashes[id] for _, id in reversed(state.best) if id != 0][:count]
        if not finalists:
            return
        hashes = [state.hashes[0], *finalists]
        measured, seconds = self._side_by_side([self.store.kernel(hash) for hash in hashes])
        results = []
        for hash, measurement in zip(hashes, measured, strict=True):
            interval = speedup(measured[0], measurement)
            ends = interval._asdict() if interval else dict.fromkeys(Interval._fields)
            results.append({"kernel": hash, "status": str(measurement.status), **ends})
        self._append("finals", {"results": results, "seconds": seconds}, measurements=measured)

    def _side_by_side(self, kernels: Sequence[Kernel]) -> tuple[list[Measurement], float]:
        """Kernels that were measured together, with care, and the seconds that it took."""
        effort, each = Effort(further_processes=0), self._seconds_left() / len(kernels)
        if each < effort.processes * effort.timeout:
            effort = replace(effort, timeout=min(effort.timeout, each), processes=1)
        start = time.monotonic()
        measured = self.parts.device.measure(self.parts.problem, kernels, effort, lambda doing, share: None)
        return measured, time.monotonic() - start

    # -- the end ------------------------------------------------------------------------------------------------------

    def _finish(self, why: str) -> None:
        state = self.state
        hash, interval = self._best()
        id = state.hashes.index(hash)
        self._append(
            "finished",
            {
                "why": why,
                "best": {
                    "kernel": hash,
                    **{"speedup": interval.value, "low": interval.low, "high": interval.high},
                    "found_at": state.numbers[id],
                    "alone": 2 ** state.values[id],
                },
                "favourite": self._favourite(),
                "forecasts": state.counts["forecasts"],
                **state.totals(),
                "early_stop": self._early_stop(),
                "spent": self.spent().to_json(),
            },
        )

    def _favourite(self) -> dict[str, Any] | None:
        """The fastest of those measured alone, and what became of it in the finals; None where there were none."""
        value, id = self.state.best[-1]
        hash = self.state.hashes[id]
        for result in self.state.finals or ():
            if result["kernel"] == hash:
                name = Path(self.store.kernel(hash).name).name
                return {"kernel": hash, "name": name, "alone": 2**value, "again": result["value"]}
        return None

    def _early_stop(self) -> dict[str, Any]:
        """Whether the search stopped early, and if not, why not."""
        stopped, outlook = self._can_stop(), self.state.outlook
        why_not = "" if stopped else self._why_no_early_stop() or self._outlook() or "the budget was spent first"
        return {"stopped": stopped, "why_not": why_not, **(asdict(outlook) if outlook else {})}

    def _best(self) -> tuple[str, Interval]:
        """The fastest kernel that was measured, and its speedup: from the finals where there were any. A kernel that
        failed there is not the result; but where the anchor failed, too, it was not the kernels' fault."""
        state, anchor = self.state, (self.state.hashes[0], Interval(1.0, 1.0, 1.0))
        finals = state.finals or ()
        if any(result["kernel"] == anchor[0] and result["status"] != Status.OK for result in finals):
            finals = ()
        finals = [result for result in finals if result["kernel"] != anchor[0]]
        timed = [result for result in finals if result["value"] is not None]
        failed = {result["kernel"] for result in finals if result["status"] not in (Status.OK, Status.DEVICE_FAULT)}
        if timed:
            best = max(timed, key=lambda result: result["value"])
            return (best["kernel"], Interval(best["value"], best["low"], best["high"])) if best["value"] > 1 else anchor
        for value, id in reversed(state.best):
            if value <= 0 or id == 0:
                return anchor
            if (hash := state.hashes[id]) not in failed:
                return hash, self._interval(hash)
        return anchor

    def _interval(self, hash: str) -> Interval:
        """The speedup of a kernel that was measured apart from the anchor."""
        one, other = (self.store.measurements(each)[0].cases for each in (self.state.hashes[0], hash))
        return speedup_interval([c.parts for c in one], [c.parts for c in other], paired=False)

    # -- what others are told -----------------------------------------------------------------------------------------

    @cached_property
    def _anchor(self) -> Measured:
        return self._known(self.state.hashes[0], True)

    @cached_property
    def _proposer(self) -> Proposer:
        return self.parts.proposer(Ground(self.parts.problem, self.parts.device, self._anchor))

    def _load(self, hash: str, measured: bool) -> Measured:
        kernel, reports = self.store.kernel(hash), self.store.reports(hash)
        if not measured:
            return Measured(kernel, reports, status="trusted")
        measurement = self.store.measurements(hash)[0]
        times = {case.case: case.median.value for case in measurement.cases}
        return Measured(kernel, reports, times, str(measurement.status))

    def _parent(self, id: int) -> Parent:
        return Parent(self._known(self.state.hashes[id], bool(self.state.is_measured[id])), self.state.values[id])

    def _others(self, id: int) -> list[Parent]:
        """The best kernels but this one."""
        return [self._parent(other) for _, other in reversed(self.state.best[-_OTHERS - 1 :]) if other != id][:_OTHERS]

    def _failed(self) -> list[Parent]:
        """What failed lately, the latest first."""
        return [
            Parent(Measured(self.store.kernel(hash), self.store.reports(hash), status=status), None, reason)
            for hash, status, reason in reversed(self.state.failed)
        ]

    def _task(self) -> Task:
        state = self.state
        best = [state.hashes[id] for _, id in reversed(state.best) if id != 0]
        telling = dict.fromkeys([*best, *reversed(state.recent)])
        telling.pop(state.hashes[0], None)
        neighbours = [self._known(hash, True) for hash in telling]
        device = self.parts.device
        return Task(self.parts.problem, self._anchor, device.hardware, neighbours, device.kind)


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Folding makes no cycles, and looking for some would take a third of its time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _result(
    measurement: Measurement, value: float | None, expected: float | None, surprise: float | None, seconds: float
) -> dict[str, Any]:
    return {
        "kernel": measurement.kernel.hash,
        "name": Path(measurement.kernel.name).name,
        "status": str(measurement.status),
        "reason": measurement.reason,
        "value": value,
        "expected": expected,
        "surprise": surprise,
        "seconds": seconds,
    }
