"""The agent loop: the agent proposes a step, the critic checks it, and a step that passes is carried out.

Every proposal and every step is an event on disk. The agent may revise a rejected step at most `Limits.revisions`
times, and each revision is checked. If no proposal passes, the likeliest is carried out, unless it is irreversible: a
person decides on irreversible steps. With `insist`, nobody is asked: a step that needs a person is first sent back, and
passes if the agent proposes it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from presage import PresageError
from presage_gui.action import ENDING, ActionError
from presage_gui.agent import Agent, Objection
from presage_gui.changes import Watcher
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.deciding import Decided, Gate
from presage_gui.environment import Environment
from presage_gui.episode import Choice, Episode, Proposal
from presage_gui.history import Effect, Entry, History
from presage_gui.reading import Reader
from presage_gui.screen import Screen
from presage_gui.step import Step

Person = Callable[[Step, Verdict], bool | None]
"""Asks a person about a step. Returns True to carry it out, False to reject it, None if nobody can answer."""
_ABOUT = 30
"""The largest difference in x and in y, in pixels, of two points that count as the same place."""
_UNREADABLE = 3
"""The episode ends after this many consecutive turns in which no proposal could be carried out."""


@dataclass(frozen=True)
class Limits:
    """The budgets of an episode."""

    steps: int = 30
    """The maximum number of steps that are carried out."""
    revisions: int = 2
    """How many times a step may be sent back for revision."""
    checks: int = 200
    """The maximum number of proposals that are checked."""
    seconds: float = 600.0
    """The maximum duration of the episode, summed over all processes that continued it."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("revisions", 0), ("checks", 1), ("seconds", 0)):
            if getattr(self, name) < least:
                raise PresageError(f"'{name}' must be {least} or more, not {getattr(self, name)}")


@dataclass(frozen=True)
class Result:
    success: bool
    reason: str
    steps: int
    proposals: int
    revised: int
    asked: int
    seconds: float


class Loop:
    """Runs one episode, from its start or from where an earlier process stopped."""

    def __init__(
        self, environment: Environment, agent: Agent, critic: Critic, gate: Gate, episode: Episode,
        limits: Limits | None = None, person: Person | None = None, fixes: bool = True,
        reader: Reader | None = None, insist: bool = False,
    ) -> None:  # fmt: skip
        self.environment, self.agent, self.critic, self.gate = environment, agent, critic, gate
        self.episode, self.limits, self.fixes, self.insist = episode, limits or Limits(), fixes, insist
        self.person: Person = person or (lambda step, verdict: None)
        self.watcher = Watcher(reader=reader or critic.reader)
        self.history = History()
        self._unreadable = 0
        self._started = time.monotonic()

    @property
    def _seconds(self) -> float:
        before = float(self.episode.events[-1].get("clock", 0.0)) if self.episode.events else 0.0
        return max(before, self._before + time.monotonic() - self._started)

    def run(self, seed: int) -> Result:
        """Run until the task is over, the agent ends it, or a budget is spent. A finished episode is not run again.

        Raises PresageError if the environment gives another task than before, or does not repeat the recorded steps.
        """
        state = self.episode.state
        self._before = float(self.episode.events[-1].get("clock", 0.0)) if self.episode.events else 0.0
        if state.ended is None:
            goal = self.environment.reset(seed)
            self.agent.begin(goal, seed)
            screen = self.environment.screen()
            if not state.begun:
                self._append("began", goal=goal, seed=seed, screen=self.episode.keep(screen))
            elif state.goal != goal:
                raise PresageError("the environment gives another task than before; the episode cannot be continued")
            screen = self._repeat(screen)
            while state.ended is None:
                screen = self._turn(screen)
        return self.result()

    def result(self) -> Result:
        state = self.episode.state
        assert state.ended is not None
        choices = [each.choice for each in state.proposals]
        return Result(
            state.ended["success"], state.ended["reason"], len(state.dispatched), len(choices),
            choices.count(Choice.REVISE), choices.count(Choice.ASK), round(float(state.ended["clock"]), 3),
        )  # fmt: skip

    def _repeat(self, screen: Screen) -> Screen:
        """Repeat the recorded steps, to continue an episode. Raises PresageError if a step's effect differs.

        Only whether a step changed anything is compared. Returns the screen after the last step."""
        for event in self.episode.state.dispatched:
            step = Step.from_json(event["step"])
            before = screen
            self.environment.do(step.action)
            screen = self.environment.screen()
            entry = self.watcher.entry(step, before, screen, self.history)
            if (entry.effect is Effect.NOTHING) != (event["effect"] == Effect.NOTHING):
                raise PresageError(
                    "the environment does not repeat what it did: the episode cannot be continued; name another folder"
                )
            self.history += replace(entry, effect=Effect(event["effect"]), note=event["note"])
        return screen

    def _turn(self, last: Screen) -> Screen:
        """Take one step: collect proposals until one passes and carry it out. Return the screen after it."""
        if spent := self._spent():
            self._end(self.environment.outcome().success, spent)
            return last
        screen = self.environment.screen()
        self.watcher.idle(last, screen)
        chosen = self._choose(screen)
        if chosen is None:
            return screen
        return self._dispatch(chosen, screen)

    def _choose(self, screen: Screen) -> Proposal | None:
        waiting = [each for each in self.episode.state.waiting if each.screen == screen.digest]
        objections = [Objection(each.step, self._shown(each.verdict)) for each in waiting]
        for _ in range(self.limits.revisions + 1 - len(waiting)):
            if self._spent():
                return None
            proposal = self._propose(screen, objections)
            again = self.insist and any(_alike(proposal, each) for each in waiting)
            waiting.append(proposal)
            if proposal.choice is Choice.TRUST and proposal.step:
                return proposal
            if proposal.choice is Choice.ASK and proposal.step and self.insist:
                if again:
                    return proposal
            elif proposal.choice is Choice.ASK and proposal.step:
                answer = self.person(proposal.step, proposal.verdict)
                if answer is None:
                    self._end(False, "a person has to decide, and nobody is there")
                    return None
                if answer:
                    return proposal
            objections.append(Objection(proposal.step, self._shown(proposal.verdict)))
        return self._least_bad(waiting)

    def _shown(self, verdict: Verdict) -> Verdict:
        """Return the verdict as the agent sees it: without the critic's fix if fixes are disabled."""
        return verdict if self.fixes else replace(verdict, fix=None)

    def _least_bad(self, proposals: list[Proposal]) -> Proposal | None:
        able = [each for each in proposals if each.step and (self.insist or _may_be_undone(each))]
        if able:
            self._unreadable = 0
            return max(able, key=lambda each: each.verdict.probability)
        self._unreadable += 1
        if self._unreadable >= _UNREADABLE:
            self._end(False, "the agent proposes nothing that can be carried out")
        return None

    def _propose(self, screen: Screen, objections: list[Objection]) -> Proposal:
        started = time.monotonic()
        step: Step | None = None
        try:
            step = self.agent.propose(self.episode.state.goal, self.history, screen, objections)
            step = replace(step, action=step.action.on(screen.size))
            started = time.monotonic()
            verdict = self.critic.check(self.episode.state.goal, self.history, screen, step)
            decided = self.gate.decide(verdict)
        except ActionError as error:
            step, verdict = None, Verdict(0.0, ErrorClass.MALFORMED, str(error))
            decided = Decided(Choice.REVISE, "it cannot be carried out")
        took = round(time.monotonic() - started, 4)
        proposal = Proposal(step, self.episode.keep(screen), verdict, decided.choice, decided.reason, took)
        self._append("proposed", **proposal.to_json())
        return proposal

    def _dispatch(self, chosen: Proposal, before: Screen) -> Screen:
        step = chosen.step
        assert step is not None
        if step.action.kind in ENDING:
            entry = Entry(step, before, before, Effect.NOTHING, (), "the task was ended")
            self._keep(entry)
            outcome = self.environment.outcome()
            self._end(outcome.success and step.action.success, "the agent ended the task")
            return before
        self.environment.do(step.action)
        after = self.environment.screen()
        entry = _doubted(self.watcher.entry(step, before, after, self.history), chosen.verdict)
        self._keep(entry)
        self.history += entry
        outcome = self.environment.outcome()
        if outcome.over:
            self._end(outcome.success, outcome.note or "the task is over")
        return after

    def _keep(self, entry: Entry) -> None:
        self.episode.keep(entry.before)
        self.episode.keep(entry.after)
        self._append("dispatched", **entry.to_json())

    def _spent(self) -> str:
        state = self.episode.state
        if len(state.dispatched) >= self.limits.steps:
            return f"all {self.limits.steps} steps are taken"
        if len(state.proposals) >= self.limits.checks:
            return f"all {self.limits.checks} checks are made"
        if self._seconds >= self.limits.seconds:
            return f"all {self.limits.seconds:g} seconds are spent"
        return ""

    def _append(self, kind: str, **fields: Any) -> None:
        self.episode.append(kind, clock=round(self._seconds, 3), **fields)

    def _end(self, success: bool, reason: str) -> None:
        self._append("ended", success=success, reason=reason)


def _may_be_undone(proposal: Proposal) -> bool:
    return proposal.choice is Choice.REVISE and not proposal.verdict.irreversible


def _alike(a: Proposal, b: Proposal) -> bool:
    """Whether two proposals are practically the same step: the same kind and text, at about the same place."""
    if not a.step or not b.step:
        return False
    one, other = a.step.action, b.step.action
    if (one.kind, one.text, one.keys, one.success) != (other.kind, other.text, other.keys, other.success):
        return False
    if not one.at or not other.at:
        return one.at == other.at
    return abs(one.at.x - other.at.x) <= _ABOUT and abs(one.at.y - other.at.y) <= _ABOUT


def _doubted(entry: Entry, verdict: Verdict) -> Entry:
    """Mark a step's effect as `OTHER` if the critic doubted the step and it was carried out all the same."""
    if entry.effect is not Effect.EXPECTED or verdict.abstains or verdict.probability >= 0.5:
        return entry
    return replace(entry, effect=Effect.OTHER, note=f"{entry.note}; {verdict.explanation or 'the critic doubted it'}")
