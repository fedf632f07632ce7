"""State: where a search stands, as a fold over its events. Resuming is folding again.

The events, and what each carries:

    begun      configuration. Once, first.
    session    A process starts to work on the run. pid; lived: the seconds of the processes before it; notes: what a
               person should know; model: the hardware by its own name, where it has one; limits: those of the budget
               that are larger from here on, and until when it goes on, by the configuration's names, where they differ.
               A finished run is then open again.
    measured   A kernel was measured alone, the anchor first. kernel, name, status, reason; value: log2 S; expected: the
               forecast's mean; surprise: how far the value lies from the forecast's median, 1 for as far as that
               forecast reaches on its side; seconds.
    lost       The worker of a pool that was measuring a kernel was lost, and the kernel waits again. kernel, seconds,
               why; cancelled: whether it was the search that gave it up.
    asking     A language model is asked within a budget. tokens, dollars: the most that all requests for the next
               answer may have cost so far; that answer's own event tells what they did.
    asked      A step begins: the strategy chose parents, or none where only what is undecided is looked at again. step;
               parents: their ids; wanted: how many it was asked for; consider: how many candidates the policy will
               decide on.
    proposed   The proposer has answered for the next of them. parent: its id; parent_kernel; candidates: new kernels
               and the idea of each; duplicates: how many were not new; notes: what went wrong; tokens, dollars; short:
               why not all was asked, where what is left of a budget does not cover another question.
    forecast   The candidates were compiled and forecast, and others that are undecided were forecast again. hopes: the
               acquisition's score and the mean, by hash; forecasts and notes of the candidates and the most hopeful, by
               hash; is_short: whether these are all that may be decided on, because the forecaster saw all that is
               undecided; broken: why some cannot work, by hash; memory: what the forecaster must be told again after
               a restart, where there is such; tokens, dollars, short.
    decided    The policy has decided on the most hopeful. decisions: kernel, action, reason; standing. Older runs also
               name the broken here, as trusted; they are not.
    looked     All that is left was forecast again, before anything else is measured. left: how many; chance: that any
               of it is faster than the best by more than the share asked for; quiet: how many times in a row that was
               improbable, and the step ends here if it is; doubted: trusted ones among the most likely, by id, with
               their forecasts.
    promoted   Some that were trusted are measured after all, since nothing new comes, or since they are doubted now.
               nodes: their ids.
    finals     The best were measured again, side by side with the anchor. results: kernel, status, value: S, low, high;
               seconds.
    finished   why, best, forecasts, decisions, broken, missed, early_stop, spent; delta: by how much a winner beats the
               best. The last, unless the run is given a larger budget later.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from presage.policies.base import Action, Decision, Standing
from presage.searches.base import Node
from presage.searches.budget import Amounts
from presage.store.store import Event

REMEMBERED = 256
"""So many of the best and of the latest measurements are at hand for forecasters."""
UNDECIDED = 2_048
"""So many candidates stay undecided: beyond, the least hopeful are forgotten."""
IN_VIEW = 32_768
"""The same for a forecaster that sees all of them after each measurement; beyond, the oldest are forgotten."""
DRY = 3
"""After so many steps without anything new, nothing new is expected."""
_FAILED = 3
"""So many of the latest failures are at hand for proposers."""
_TRUSTED_TO_FAIL = 0.5
UNKNOWN = (math.inf, math.inf)
"""What is hoped of a kernel without a forecast: it comes first."""
FAULT = "device_fault"
"""The status of a measurement that tells nothing of the kernel."""


@dataclass
class Step:
    """A batch on its way."""

    number: int
    parents: tuple[int, ...]
    """Each once, in the order in which the proposer is asked."""
    shares: tuple[int, ...]
    """How often the strategy named each of them."""
    consider: int
    """How many candidates the policy will decide on."""
    answered: int = 0
    """For how many parents the proposer has answered."""
    candidates: list[tuple[str, int]] = field(default_factory=list)
    """What is new: each one's hash and its parent's id."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why some candidates cannot work, by hash."""
    shortlist: tuple[str, ...] | None = None
    """What may be decided on, by hash, where the forecaster has seen all that is undecided; None: any of it."""
    is_forecast: bool = False
    is_decided: bool = False


@dataclass(slots=True)
class Undecided:
    """A candidate that the policy has not been asked about: so far others were more hopeful."""

    parent: int
    forecast: dict[str, Any] | None
    hope: tuple[float, float]
    """Its score, by the acquisition, and its mean, as last forecast."""


@dataclass(slots=True)
class Waiting:
    """A kernel that is to be measured."""

    parent: int = 0
    forecast: dict[str, Any] | None = None
    decision: Decision | None = None
    """None where it was trusted, and is measured only because nothing new comes: it was decided on in an earlier
    step."""
    standing: Standing | None = None
    node: int | None = None
    """Its id, where it is in the archive already."""


@dataclass(frozen=True)
class Outlook:
    """What is hoped of all that is left."""

    left: int
    """How many kernels were proposed, may work, and have not been measured."""
    chance: float
    """That any of them is so much faster than the best that it is worth to go on, at most."""
    quiet: int = 0
    """How many looks in a row have found that improbable."""
    doubted: Sequence[tuple[int, dict[str, Any] | None]] = ()
    """The trusted ones that are among the most likely, and are measured next: their ids, and their forecasts now."""


class State:
    """What is known after the events so far. Nothing but `apply` changes it, and it calls nobody."""

    def __init__(self) -> None:
        self.configuration: dict[str, Any] | None = None
        self.spent = Amounts()
        self.session_start = self.last_time = 0.0
        self.step: Step | None = None
        self.undecided: dict[str, Undecided] = {}
        """Candidates by hash, the most hopeful of which the policy decides on next; those last that were last looked
        at."""
        self.waiting: dict[str, Waiting] = {}
        """What is to be measured now, by hash."""
        self.lost: Counter[str] = Counter()
        """How many workers were lost with each kernel, by hash."""
        self.model = ""
        """The hardware, by its own name."""
        self.dry = 0
        """How many steps in a row have brought nothing new."""
        self.is_orphaned = False
        """Whether the strategy was asked for parents and named none."""
        self.known: set[str] = set()
        """The hashes of all kernels that were ever proposed."""
        self.hashes: list[str] = []
        """The archive: the kernel, parent and value of each id, and whether that was measured."""
        self.parents = array("q")
        self.values = array("d")
        self.is_measured = bytearray()
        self.numbers = array("q")
        """Of each id, the number of its measurement, from 1; 0 where there is none."""
        self.bars = array("d")
        """Of each id, log2 S of the best when it was decided on."""
        self.best: list[tuple[float, int]] = []
        """The best that were measured, by value and id, the very best last."""
        self.recent: deque[str] = deque(maxlen=REMEMBERED)
        """The latest that were measured, failed ones too, by hash."""
        self.failed: deque[tuple[str, str, str]] = deque(maxlen=_FAILED)
        """The latest that failed, or could not even be compiled: hash, status and reason."""
        self._trusted: list[tuple[float, int]] = []
        self.decisions: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """How many candidates were forecast, failed, were duplicates, were broken: cannot work, as compiling tells,
        and how many were promoted: trusted, and measured after all."""
        self.dearest: dict[str, Amounts] = {}
        """The most that proposing and forecasting have cost at one time."""
        self.short: dict[str, str] = {}
        """Why nothing can be paid for any more, of proposing or forecasting."""
        self.asking = Amounts()
        """The most that the question under way may have cost: if its answer never comes, it counts as that."""
        self.surprise = 1.0
        """How many times as far from its median as a forecast reached something was measured; at least 1."""
        self.outlook: Outlook | None = None
        """What was hoped of all that is left, when that was last looked at."""
        self.has_looked = False
        """Whether that was in this step, and after the last measurement."""
        self.finals: list[dict[str, Any]] | None = None
        """The last measurements beside the anchor; None where something else was measured since."""
        self.finished: dict[str, Any] | None = None
        self._folds: dict[str, Callable[[Event], None]] = {
            "begun": self._begun, "session": self._session, "asking": self._asking, "asked": self._asked,
            "proposed": self._proposed,
            "forecast": self._forecast, "decided": self._decided, "promoted": self._promoted,
            "looked": self._looked, "measured": self._measured, "finals": self._finals, "finished": self._finished,
            "lost": self._lost,
        }  # fmt: skip

    def apply(self, event: Event) -> None:
        """Take in what happened."""
        self.last_time = event.time
        self._folds[event.kind](event)

    @property
    def best_value(self) -> float:
        """log2 S of the best kernel measured so far; 0 while that is the anchor."""
        return self.best[-1][0] if self.best else 0.0

    @property
    def has_cost(self) -> bool:
        """Whether more was spent than the anchor's measurement."""
        asked = self.spent.tokens or self.spent.dollars or self.asking.tokens or self.asking.dollars
        return self.spent.measurements > 1 or bool(asked)

    @property
    def has_trusted(self) -> bool:
        return bool(self._trusted)

    @property
    def trusted(self) -> dict[str, int]:
        """The ids of kernels that were trusted and never measured, by hash."""
        return {self.hashes[id]: id for _, id in self._trusted}

    def is_between_steps(self, can_propose: bool, under_way: int = 0) -> bool:
        """Whether nothing is left to do in the last step, given whether the proposer can still be paid, and how many of
        those that wait are being measured."""
        step = self.step
        if step is None or step.is_decided:
            return len(self.waiting) <= under_way
        is_answered = step.answered == len(step.parents) or not can_propose
        return is_answered and not step.candidates and not self.undecided

    def most_hopeful(self, count: int) -> list[str]:
        """What the policy is asked about next, by hash."""
        shortlist = self.step.shortlist if self.step else None
        among = self.undecided if shortlist is None else shortlist
        return sorted(among, key=lambda hash: self.undecided[hash].hope, reverse=True)[:count]

    def longest_ignored(self, count: int) -> list[str]:
        """The undecided whose forecasts are the oldest, by hash."""
        return list(itertools.islice(self.undecided, count))

    def most_promising(self, count: int) -> list[int]:
        """The ids of the best kernels that were trusted and never measured."""
        return [id for _, id in heapq.nsmallest(count, self._trusted)]

    def node(self, id: int) -> Node:
        """A kernel of the archive, as strategies are told of it."""
        parent = self.parents[id]
        return Node(id, None if parent < 0 else parent, self.values[id], bool(self.is_measured[id]))

    # -- events -------------------------------------------------------------------------------------------------------

    def _begun(self, event: Event) -> None:
        self.configuration = event.payload["configuration"]

    def _session(self, event: Event) -> None:
        self.spent.wall_seconds = event.payload["lived"]
        self.session_start = event.time
        self.spent.tokens += self.asking.tokens
        self.spent.dollars += self.asking.dollars
        self.asking = Amounts()
        self.model = event.payload.get("model", self.model)
        if limits := event.payload.get("limits"):
            self.configuration = {**(self.configuration or {}), **limits}
            self.finished = self.outlook = None
            self.has_looked = False
            self.short.clear()

    def _asking(self, event: Event) -> None:
        self.asking = Amounts(tokens=event.payload["tokens"], dollars=event.payload["dollars"])

    def _asked(self, event: Event) -> None:
        self.has_looked = False
        shares = Counter(event.payload["parents"])
        self.step = Step(event.payload["step"], tuple(shares), tuple(shares.values()), event.payload["consider"])
        if event.payload.get("wanted"):
            self.is_orphaned = not shares
            self.dry += self.is_orphaned and not self.undecided

    def _proposed(self, event: Event) -> None:
        step, told = self._open(), event.payload
        step.answered += 1
        for hash, _ in told["candidates"]:
            self.known.add(hash)
            step.candidates.append((hash, told["parent"]))
        self.counts["duplicates"] += told["duplicates"]
        self._pay("proposed", told)
        if step.answered == len(step.parents):
            self.dry = 0 if step.candidates else self.dry + 1

    def _forecast(self, event: Event) -> None:
        step, told = self._open(), event.payload
        step.is_forecast, step.broken = True, told["broken"]
        is_short = told.get("is_short", False)
        self.failed.extend((hash, "not_measured", why) for hash, why in step.broken.items())
        self.counts["broken"] += len(step.broken)
        for hash, parent in step.candidates:
            if hash not in step.broken:
                self.undecided[hash] = Undecided(parent, None, UNKNOWN)
                self.counts["forecasts"] += is_short or hash in told["forecasts"]
        for hash, (improvement, mean) in told["hopes"].items():
            candidate = self.undecided[hash] = self.undecided.pop(hash)
            candidate.forecast = told["forecasts"].get(hash, candidate.forecast)
            candidate.hope = (improvement, mean)
        if is_short:
            step.shortlist = tuple(told["hopes"])
            oldest = max(0, len(self.undecided) - IN_VIEW)
            self.undecided = dict(itertools.islice(self.undecided.items(), oldest, None)) if oldest else self.undecided
        elif len(self.undecided) > UNDECIDED:
            hopeful = set(self.most_hopeful(UNDECIDED))
            self.undecided = {hash: each for hash, each in self.undecided.items() if hash in hopeful}
        self._pay("forecast", told)

    def _decided(self, event: Event) -> None:
        step, standing = self._open(), Standing(**event.payload["standing"])
        step.is_decided = True
        chances = event.payload.get("chances", {})
        for hash, action, reason in event.payload["decisions"]:
            if hash in step.broken:
                continue
            self.decisions[action] += 1
            candidate = self.undecided.pop(hash)
            forecast, parent = candidate.forecast, candidate.parent
            if action != Action.TRUST:
                decision = Decision(Action(action), reason, chances.get(hash, 0.0))
                self.waiting[hash] = Waiting(parent, forecast, decision, standing)
            elif forecast and forecast["p_fail"] <= _TRUSTED_TO_FAIL:
                self._enter(hash, parent, candidate.hope[1], standing.best, measured=False)

    def _promoted(self, event: Event) -> None:
        promoted = set(event.payload["nodes"])
        now = dict(self.outlook.doubted) if self.outlook else {}
        self.waiting |= {self.hashes[id]: Waiting(forecast=now.get(id), node=id) for id in event.payload["nodes"]}
        self._trusted = [entry for entry in self._trusted if entry[1] not in promoted]

    def _looked(self, event: Event) -> None:
        self.outlook, self.has_looked = Outlook(**event.payload), True
        if self.outlook.quiet and self.step:
            self.step.is_decided = True

    def _measured(self, event: Event) -> None:
        told = event.payload
        self.has_looked, self.finals = False, None
        self.surprise = max(self.surprise, told.get("surprise") or 0.0)
        hash, value = told["kernel"], told["value"]
        self.spent.measurements += 1
        self.spent.device_seconds += told["seconds"]
        self.recent.append(hash)
        if value is None:
            self.counts["failed"] += 1
            self.failed.append((hash, told["status"], told["reason"]))
        if not self.hashes:
            self.known.add(hash)
            self._enter(hash, None, value, 0.0, measured=True)
            return
        waited = self.waiting.pop(hash)
        self.counts["promoted"] += waited.node is not None and told["status"] != FAULT
        if value is not None and waited.node is not None:
            self._remeasured(waited.node, value)
        elif value is not None:
            self._enter(hash, waited.parent, value, waited.standing.best if waited.standing else 0.0, measured=True)

    def _lost(self, event: Event) -> None:
        self.spent.device_seconds += event.payload["seconds"]
        self.lost[event.payload["kernel"]] += not event.payload["cancelled"]

    def _finals(self, event: Event) -> None:
        self.finals = event.payload["results"]
        self.spent.measurements += len(event.payload["results"])
        self.spent.device_seconds += event.payload["seconds"]

    def _finished(self, event: Event) -> None:
        self.finished = event.payload
        self.spent.wall_seconds, self.session_start = event.payload["spent"]["wall_seconds"], event.time

    # -- the archive --------------------------------------------------------------------------------------------------

    def _enter(self, hash: str, parent: int | None, value: float, bar: float, measured: bool) -> None:
        id = len(self.hashes)
        self.hashes.append(hash)
        self.parents.append(-1 if parent is None else parent)
        self.values.append(value)
        self.is_measured.append(measured)
        self.numbers.append(self.spent.measurements if measured else 0)
        self.bars.append(bar)
        if measured:
            self._rank(value, id)
        else:
            self._trusted.append((-value, id))

    def _remeasured(self, id: int, value: float) -> None:
        """A trusted kernel was measured after all."""
        self.values[id], self.is_measured[id], self.numbers[id] = value, True, self.spent.measurements
        self._rank(value, id)

    def _rank(self, value: float, id: int) -> None:
        bisect.insort(self.best, (value, id))
        if len(self.best) > REMEMBERED:
            del self.best[0]

    def _open(self) -> Step:
        assert self.step is not None, "a step begins with its parents"
        return self.step

    def _pay(self, what: str, told: Mapping[str, Any]) -> None:
        self.asking = Amounts()
        if why := told.get("short"):
            self.short[what] = why
        if not told["tokens"] and not told["dollars"]:
            return
        self.spent.tokens += told["tokens"]
        self.spent.dollars += told["dollars"]
        dearest = self.dearest.setdefault(what, Amounts())
        dearest.tokens = max(dearest.tokens, told["tokens"])
        dearest.dollars = max(dearest.dollars, told["dollars"])
