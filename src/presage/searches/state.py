"""State: the current state of a search, computed by applying its events in order. Resuming applies them again.

The kinds of events, with their payloads:

    begun      The run begins. Written once, first. configuration.
    session    A process starts to work on the run. pid; lived: the total seconds of earlier processes; notes: remarks
               for the user; model: the hardware's own name, if it has one; limits: the limits of the budget, and
               `until`, that let the run go on for longer from here, by the configuration's names. With limits, a
               finished run is open again.
    measured   A kernel was measured alone; the anchor comes first. kernel, name, status, reason; value: log2 S;
               expected: the forecast's mean; surprise: the distance of the value from the forecast's median, where 1
               is the distance to the forecast's end on that side; seconds.
    lost       A pool lost the worker that was measuring a kernel. The kernel waits again. kernel, seconds, why;
               cancelled: whether the search itself cancelled the measurement.
    asking     A request to a language model is about to be sent, within a budget. tokens, dollars: the most that all
               requests for the next answer may have cost so far. The event of that answer holds the actual cost.
    asked      A step begins. The strategy chose parents, or none if only undecided candidates are to be decided on.
               step; parents: their ids; wanted: how many parents were requested; consider: how many candidates the
               policy will decide on.
    proposed   The proposer has answered for the next parent. parent: its id; parent_kernel; candidates: new kernels
               with the idea of each; duplicates: how many proposals were not new; notes: what went wrong; tokens,
               dollars; short: why the proposer stopped early, if the budget does not cover another question.
    forecast   The candidates were compiled and forecast, and some undecided ones were forecast again. hopes: the
               acquisition's score and the mean, by hash; forecasts, notes: those of the candidates and of the ones with
               the highest scores, by hash; is_short: whether only the candidates in `hopes` may be decided on, because
               the forecaster saw all undecided ones; broken: why some candidates cannot work, by hash; memory: what
               the forecaster must be told again after a restart, if anything; tokens, dollars, short.
    decided    The policy decided on the candidates with the highest scores. decisions: kernel, action, reason; chances:
               the probability of trust, by hash, where not 0; standing. Older runs also list broken candidates here,
               as trusted; these entries are ignored.
    looked     All remaining kernels were forecast again, before anything else is measured. left: how many; chance: the
               probability that any of them is faster than the best by more than `until`; quiet: how many looks in a
               row found this improbable (if not 0, the step ends here); doubted: trusted kernels among the most likely
               to be faster, by id, with their forecasts.
    promoted   Some trusted kernels are to be measured after all, because nothing new comes or because they are doubted.
               nodes: their ids.
    finals     The best kernels were measured again, side by side with the anchor. results: kernel, status, value (S),
               low, high; seconds.
    finished   The run ended. Written last, unless the run is given a larger budget later. why, best, favourite,
               forecasts, decisions, broken, missed, early_stop, optimum, spent; delta: by how much a winner beats the
               best.
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
"""How many of the best and how many of the latest measurements are kept for forecasters."""
UNDECIDED = 2_048
"""The most undecided candidates. Beyond this, those with the lowest scores are dropped."""
IN_VIEW = 32_768
"""The most undecided candidates for a forecaster that sees all of them after each measurement. Beyond this, the oldest
are dropped."""
DRY = 3
"""After this many steps in a row without a new candidate, no new candidates are expected."""
_FAILED = 3
"""How many of the latest failures are kept for proposers."""
_TRUSTED_TO_FAIL = 0.5
"""A trusted kernel with a larger p_fail does not enter the archive."""
UNKNOWN = (math.inf, math.inf)
"""The score and mean of a kernel without a forecast: it is decided on first."""
FAULT = "device_fault"
"""The status of a measurement that says nothing about the kernel."""


@dataclass
class Step:
    """The current step of a search."""

    number: int
    parents: tuple[int, ...]
    """The ids of the distinct parents, in the order in which the proposer is asked."""
    shares: tuple[int, ...]
    """How often the strategy named each parent."""
    consider: int
    """How many candidates the policy will decide on."""
    answered: int = 0
    """For how many parents the proposer has answered."""
    candidates: list[tuple[str, int]] = field(default_factory=list)
    """The new candidates: the hash and the parent's id of each."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why some candidates cannot work, by hash."""
    shortlist: tuple[str, ...] | None = None
    """The candidates that may be decided on, by hash, if the forecaster saw all undecided ones; None: any of these."""
    is_forecast: bool = False
    is_decided: bool = False


@dataclass(slots=True)
class Undecided:
    """A candidate that the policy has not decided on, because others had higher scores so far."""

    parent: int
    forecast: dict[str, Any] | None
    hope: tuple[float, float]
    """The acquisition's score and the mean, of the latest forecast."""


@dataclass(slots=True)
class Waiting:
    """A kernel that waits to be measured."""

    parent: int = 0
    forecast: dict[str, Any] | None = None
    decision: Decision | None = None
    """None for a kernel that was trusted in an earlier step and is now measured after all."""
    standing: Standing | None = None
    node: int | None = None
    """The kernel's id, if it is already in the archive."""


@dataclass(frozen=True)
class Outlook:
    """The result of a look at all remaining kernels; see early_stop.py."""

    left: int
    """How many kernels were proposed, may work, and have not been measured."""
    chance: float
    """An upper bound on the probability that any of them is faster than the best by more than `until`."""
    quiet: int = 0
    """How many looks in a row have found this improbable."""
    doubted: Sequence[tuple[int, dict[str, Any] | None]] = ()
    """Trusted kernels among the most likely to be faster, which are measured next: id and current forecast."""


class State:
    """The state after the events so far. Only `apply` changes it. It calls no other part of the search."""

    def __init__(self) -> None:
        self.configuration: dict[str, Any] | None = None
        self.spent = Amounts()
        self.session_start = self.last_time = 0.0
        self.step: Step | None = None
        self.undecided: dict[str, Undecided] = {}
        """Candidates that the policy has not decided on, by hash, in the order of their latest forecasts, the oldest
        first. The policy decides on those with the highest scores next."""
        self.waiting: dict[str, Waiting] = {}
        """Kernels that wait to be measured, by hash."""
        self.lost: Counter[str] = Counter()
        """How many workers were lost while they measured each kernel, by hash."""
        self.model = ""
        """The hardware's own name."""
        self.dry = 0
        """How many steps in a row have brought no new candidate."""
        self.fruitless = 0
        """How many candidates were proposed since the best kernel was measured."""
        self.is_orphaned = False
        """Whether the strategy was last asked for parents and named none."""
        self.known: set[str] = set()
        """The hashes of all kernels that were ever proposed."""
        self.broken: set[str] = set()
        """The hashes of those that cannot work."""
        self.hashes: list[str] = []
        """The archive, by id: the kernel's hash, and below the parent's id, the value and whether it was measured."""
        self.parents = array("q")
        self.values = array("d")
        self.is_measured = bytearray()
        self.numbers = array("q")
        """By id: the number of the kernel's measurement, from 1; 0 if it was not measured."""
        self.bars = array("d")
        """By id: log2 S of the best kernel when this kernel was decided on."""
        self.best: list[tuple[float, int]] = []
        """The value and id of the best measured kernels, the very best last."""
        self.recent: deque[str] = deque(maxlen=REMEMBERED)
        """The hashes of the kernels measured last, including failed ones."""
        self.failed: deque[tuple[str, str, str]] = deque(maxlen=_FAILED)
        """The latest kernels that failed or were broken: hash, status and reason."""
        self._trusted: list[tuple[float, int]] = []
        self.decisions: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """How many candidates were forecast (`forecasts`), failed when measured (`failed`), were not new
        (`duplicates`), cannot work (`broken`), and were trusted and measured after all (`promoted`)."""
        self.dearest: dict[str, Amounts] = {}
        """The highest cost of a single answer, by kind of event (`proposed`, `forecast`)."""
        self.short: dict[str, str] = {}
        """Why the budget no longer covers a question, by kind of event (`proposed`, `forecast`)."""
        self.asking = Amounts()
        """The most that the pending question may have cost. If its answer never comes, this counts as its cost."""
        self.surprise = 1.0
        """The largest surprise of a measurement (see the event `measured`); at least 1."""
        self.outlook: Outlook | None = None
        """The result of the last look at all remaining kernels."""
        self.has_looked = False
        """Whether the last look was in this step, and after the last measurement."""
        self.finals: list[dict[str, Any]] | None = None
        """The results of the finals; None if another kernel was measured after them."""
        self.finished: dict[str, Any] | None = None
        self._folds: dict[str, Callable[[Event], None]] = {
            "begun": self._begun, "session": self._session, "asking": self._asking, "asked": self._asked,
            "proposed": self._proposed,
            "forecast": self._forecast, "decided": self._decided, "promoted": self._promoted,
            "looked": self._looked, "measured": self._measured, "finals": self._finals, "finished": self._finished,
            "lost": self._lost,
        }  # fmt: skip

    def apply(self, event: Event) -> None:
        """Update the state with the next event."""
        self.last_time = event.time
        self._folds[event.kind](event)

    @property
    def best_value(self) -> float:
        """log2 S of the best kernel measured so far; 0 while the anchor is the best."""
        return self.best[-1][0] if self.best else 0.0

    @property
    def has_cost(self) -> bool:
        """Whether more was spent than the measurement of the anchor."""
        asked = self.spent.tokens or self.spent.dollars or self.asking.tokens or self.asking.dollars
        return self.spent.measurements > 1 or bool(asked)

    @property
    def has_trusted(self) -> bool:
        return bool(self._trusted)

    @property
    def trusted(self) -> dict[str, int]:
        """The ids of the kernels in the archive that were trusted and never measured, by hash."""
        return {self.hashes[id]: id for _, id in self._trusted}

    def is_between_steps(self, can_propose: bool, under_way: int = 0) -> bool:
        """Whether the last step is complete. can_propose: whether the budget still covers the proposer. under_way: how
        many of the waiting kernels are being measured."""
        step = self.step
        if step is None or step.is_decided:
            return len(self.waiting) <= under_way
        is_answered = step.answered == len(step.parents) or not can_propose
        return is_answered and not step.candidates and not self.undecided

    def most_hopeful(self, count: int) -> list[str]:
        """The candidates that the policy decides on next, by hash: those with the highest scores."""
        shortlist = self.step.shortlist if self.step else None
        among = self.undecided if shortlist is None else shortlist
        return sorted(among, key=lambda hash: self.undecided[hash].hope, reverse=True)[:count]

    def longest_ignored(self, count: int) -> list[str]:
        """The undecided candidates with the oldest forecasts, by hash."""
        return list(itertools.islice(self.undecided, count))

    def most_promising(self, count: int) -> list[int]:
        """The ids of the trusted, unmeasured kernels with the best expected values."""
        return [id for _, id in heapq.nsmallest(count, self._trusted)]

    def node(self, id: int) -> Node:
        """A kernel of the archive, in the form that strategies are told."""
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
        self.fruitless += max(1, len(told["candidates"]) + told["duplicates"])  # an answer without any counts, too
        self._pay("proposed", told)
        if step.answered == len(step.parents):
            self.dry = 0 if step.candidates else self.dry + 1

    def _forecast(self, event: Event) -> None:
        step, told = self._open(), event.payload
        step.is_forecast, step.broken = True, told["broken"]
        self.broken.update(step.broken)
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
        if not self.best or value > self.best_value:
            self.fruitless = 0
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
