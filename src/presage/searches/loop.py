"""The main loop of a search: parents, candidates, forecasts, decisions, measurements. Each stage is stored as an event.

The next stage follows from the state alone, so a killed run resumes in the middle of a step: nothing that was proposed,
forecast, decided or measured is done again. The random numbers of a stage depend only on the seed, the step and the
stage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.devices.pool import Pool
from presage.policies.base import Standing
from presage.proposers.base import Proposal
from presage.searches import forecasting, measuring, optimum, result
from presage.searches.budget import Budget
from presage.searches.early_stop import EarlyStop
from presage.searches.session import Parts, Session, Watch
from presage.searches.state import DRY, IN_VIEW, Step
from presage.searches.under_way import UnderWay
from presage.store.store import Store

_PARENTS = 4
_OPENING = 4
"""How many batches the first step proposes if proposals are free, because nothing is known yet of where to look."""
_ORPHANED = "the strategy named no kernel to go on from"


class Search:
    """A run that this process works on."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        budget: Budget,
        batch: int,
        seed: int = 0,
        watch: Watch | None = None,
        getting_ready: float = 0.0,
        until: float | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        """getting_ready, limits: see Session. until: see EarlyStop."""
        self.session = Session(store, parts, budget, seed, watch, getting_ready, limits)
        self.parts, self.batch, self.state = parts, batch, self.session.state
        self._spending = self.session.spending
        self._early_stop = EarlyStop(self.session, until)
        self._under_way = UnderWay(self.session, parts.device) if isinstance(parts.device, Pool) else None

    def run(self) -> None:
        """Work until a budget is spent, the proposer runs out of ideas, or the search can stop early. Then measure the
        best kernels again beside the anchor."""
        if self.state.finished:
            return
        if not self.state.hashes:
            measuring.measure_anchor(self.session)
        why = self._work()
        if self.state.finals is None:
            measuring.measure_finalists(self.session)
        self._finish(why)

    def close(self) -> None:
        """Close the proposer."""
        self.session.close()

    def _work(self) -> str:
        """Run one stage after another until the search ends, and return why. Measurements that are still under way are
        waited for first: they are already paid for, and their results may let the search go on."""
        under_way = self._under_way
        try:
            while (why := self._enough()) is None or self.session.under_way:
                if why is None:
                    self.advance()
                elif under_way and not under_way.collect():
                    under_way.stop()
        except BaseException:
            if isinstance(self.parts.device, Pool):
                self.parts.device.cancel()
            raise
        return why

    def _enough(self) -> str | None:
        """Why the search ends now; None if it goes on."""
        state = self.state
        if self._spending.measurements_left() == 0:
            return self._spending.budget.describe("measurements")
        if self._early_stop.can_stop():
            return self._early_stop.why()
        if late := self._spending.out_of_time():
            return late
        can_propose = self.session.can_propose()
        if state.waiting or state.undecided or not state.is_between_steps(can_propose):
            return None
        if not can_propose:
            return state.short.get("proposed") or self._spending.out_of_models()
        if state.dry >= DRY and not state.has_trusted:
            return _ORPHANED if state.is_orphaned else "nothing new was proposed any more"
        return None

    def advance(self) -> None:
        """Do the next stage."""
        state, step = self.state, self.state.step
        can_propose = self.session.can_propose()
        is_between_steps = state.is_between_steps(can_propose, len(self.session.under_way))
        if state.waiting and not self._under_way:
            measuring.measure_waiting(self.session, self._enough)
        elif self._under_way and self._under_way.advance(is_between_steps and self._has_to_wait()):
            return
        elif step is None or is_between_steps:
            if state.dry < DRY and can_propose:
                self._ask(min(_PARENTS, self.batch))
            elif state.undecided:
                self._ask(0)
            elif self._early_stop.should_look():
                self._early_stop.look()
            else:
                self._promote(state.most_promising(_PARENTS))
        elif not step.is_forecast and step.answered < len(step.parents) and can_propose:
            self._propose(step)
        elif not step.is_forecast:
            forecasting.forecast(self.session, step)
        elif self._early_stop.should_look():
            self._early_stop.look()
        elif state.has_looked and state.outlook and state.outlook.doubted:
            self._promote([id for id, _ in state.outlook.doubted])
        else:
            self._decide(step)

    def _has_to_wait(self) -> bool:
        """Whether to wait for results of the pool before the next step: the last steps brought no new candidates,
        nothing is undecided, and results may change that."""
        return 0 < self.state.dry < DRY and not self.state.undecided

    def _ask(self, count: int) -> None:
        """Begin a step with `count` parents from the strategy; with none, only undecided candidates are decided on."""
        number = self.state.step.number + 1 if self.state.step else 1
        parents = self.parts.strategy.ask(count, self.session.chance(number, "ask")) if count else ()
        parts, consider = self.parts, self.batch
        if parts.forecaster:  # decide on a few at a time, to learn from their results before the rest
            room = self._under_way.consider if self._under_way else parts.device.at_once
            consider = max(parts.forecaster.at_once, room, parts.policy.least)
        told = {"step": number, "parents": list(parents), "wanted": count, "consider": consider}
        self.session.append("asked", told)

    def _propose(self, step: Step) -> None:
        """Ask the proposer for candidates from the next parent."""
        place, proposer, state = step.answered, self.session.proposer, self.state
        id = step.parents[place]
        count = math.ceil(self._wanted(step) * step.shares[place] / sum(step.shares))
        chance = self.session.chance(step.number, f"propose/{place}")
        briefing, allowance = self.session.briefing, self.session.allowance()
        proposer.seconds, proposer.allowance, proposer.fruitless = (
            self._spending.wall_left(),
            allowance,
            state.fruitless,
        )
        proposals = proposer.propose(briefing.parent(id), briefing.others(id), count, state.known, chance)
        fresh: dict[str, Proposal] = {}
        for proposal in proposals:
            if proposal.kernel.hash not in state.known:
                fresh.setdefault(proposal.kernel.hash, proposal)
        self.session.fresh |= {hash: proposal.kernel for hash, proposal in fresh.items()}
        if allowance.short and len(state.hashes) == 1 and not state.spent.tokens and not fresh:
            raise PresageError(f"the budget does not cover one question: {allowance.short}; give more")
        self.session.append(
            "proposed",
            {
                "parent": id,
                "parent_kernel": state.hashes[id],
                "candidates": [[hash, proposal.why] for hash, proposal in fresh.items()],
                "duplicates": len(proposals) - len(fresh),
                "notes": list(proposer.notes),
                "short": allowance.short,
                **asdict(proposer.spent()),
            },
            kernels=[proposal.kernel for proposal in fresh.values()],
        )

    def _wanted(self, step: Step) -> int:
        """How many candidates a step should propose: one batch. The first step proposes several batches, or everything,
        if proposals are free and a forecaster can look at them."""
        forecaster, proposer = self.parts.forecaster, self.session.proposer
        if step.number > 1 or not forecaster:
            return self.batch
        if forecaster.sees_all and proposer.is_list:
            return max(self.batch, IN_VIEW)
        return self.batch * (1 if proposer.foreign else _OPENING)

    def _decide(self, step: Step) -> None:
        """Ask the policy about the undecided candidates with the highest scores."""
        state = self.state
        standing = Standing(state.best_value, state.spent.measurements, self._spending.measurements_left())
        chosen = state.most_hopeful(step.consider)
        kept = [state.undecided[hash].forecast for hash in chosen]
        forecasts = [Forecast.from_json(each) if each else None for each in kept]
        decided = self.parts.policy.decide(forecasts, standing, self.session.chance(step.number, "decide"))
        decisions = [[hash, one.action, one.reason] for hash, one in zip(chosen, decided, strict=True)]
        chances = {hash: one.chance for hash, one in zip(chosen, decided, strict=True) if one.chance}
        self.session.append("decided", {"decisions": decisions, "chances": chances, "standing": asdict(standing)})

    def _promote(self, nodes: Sequence[int]) -> None:
        """Queue trusted kernels to be measured after all."""
        self.session.append("promoted", {"nodes": list(nodes[: self._spending.measurements_left()])})

    def _finish(self, why: str) -> None:
        ended = result.ended(self.state, self.session.store, self.parts.policy)
        stopped, spent = self._early_stop.told(), self._spending.spent().to_json()
        measured = len(set(self.session.store.measured()))
        ended["optimum"] = optimum.known(self.parts.device, self.parts.problem, ended["best"]["kernel"], measured)
        self.session.append("finished", {"why": why, **ended, "early_stop": stopped, "spent": spent})
