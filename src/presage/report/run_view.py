"""RunView: the values that the pages of a run show. It is computed from the run's events, and updated from new events.

It is smaller than the state of a search, and cheaper to update: forecasts, which are most of the data in a run, are
parsed only when they are shown.
"""

from __future__ import annotations

import bisect
import gc
import itertools
import json
import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.core.scale import LOG2_EDGES
from presage.core.statistics import Interval, speedup_interval
from presage.core.text import excerpt, one_line
from presage.devices.status import Status
from presage.searches.budget import Amounts, Budget
from presage.searches.configuration import limits_of
from presage.store.store import Event, Store

_LARGEST = 1000
"""The bound of log2 S. A value outside ±1000 is an error in the events."""
_LONGEST = 400
"""The most characters of a name, an idea or a reason that pages show."""
_NOTES = 50
_JUDGED = 4_000
"""The number of latest forecasts that are compared with measurements."""
_WRONG = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError,
)  # fmt: skip
"""The errors that wrong values in events can raise."""
_FORECASTS = '{"forecasts":{"'
"""The beginning of the JSON text of a forecast event."""
_EDGES = tuple(map(float, LOG2_EDGES))


class Packed(NamedTuple):
    """A forecast in a compact form."""

    knots: array[float]
    cdf: array[float]
    p_fail: float

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Packed:
        knots, cdf, p_fail = array("d", kept["knots"]), array("d", kept["cdf"]), float(kept["p_fail"])
        if len(knots) != len(cdf) or not (abs(knots[0]) < _LARGEST and abs(knots[-1]) < _LARGEST and 0 <= p_fail <= 1):
            raise ValueError(f"a forecast from 2**{knots[0]} to 2**{knots[-1]}")
        return cls(knots, cdf, p_fail)

    def quantile(self, q: float) -> float:
        at = min(max(1, bisect.bisect_left(self.cdf, q)), len(self.cdf) - 1)
        rise = self.cdf[at] - self.cdf[at - 1]
        share = (q - self.cdf[at - 1]) / rise if rise else 1.0
        return (1 - share) * self.knots[at - 1] + share * self.knots[at]

    def below(self, value: float) -> float:
        """P(log2 S <= value)."""
        at = bisect.bisect_right(self.knots, value)
        if at in (0, len(self.knots)):
            return float(at > 0)
        share = (value - self.knots[at - 1]) / (self.knots[at] - self.knots[at - 1])
        return (1 - share) * self.cdf[at - 1] + share * self.cdf[at]

    def unpacked(self) -> Forecast:
        """Return the forecast, validated, because the folder may come from anyone."""
        return Forecast(tuple(self.knots), tuple(self.cdf), self.p_fail)


@dataclass(slots=True)
class Seen:
    """A kernel of the search, with its forecast, decision and measurement."""

    hash: str
    number: int
    """The kernel's index in the order of proposal; 0 for the anchor."""
    name: str = ""
    parent: str | None = None
    """The hash of the parent; None for the anchor."""
    why: str = ""
    """The idea behind the kernel, in the proposer's words."""
    step: int = 0
    kept: str | Packed | None = None
    """The forecast, as JSON text until `forecast` is first read."""
    notes: tuple[str, ...] = ()
    """The forecaster's notes on its forecast."""
    action: str = ""
    """`trust`, `measure` or `audit`; `broken` if it cannot work; empty for the anchor and undecided kernels."""
    reason: str = ""
    """The reason for the decision."""
    decided: float = 0.0
    """The time of the decision, in seconds of the run."""
    measured: int | None = None
    """The number of its measurement, counted from 1; None if it was not measured."""
    at: float = 0.0
    """The time of the measurement, in seconds of the run."""
    value: float | None = None
    """log2 S as measured; None if it was not measured or failed."""
    status: str = ""
    failure: str = ""
    """How the kernel failed; empty if it did not."""
    again: Interval | None = None
    """S from the final measurement beside the anchor; None if there was none."""

    @property
    def forecast(self) -> Packed | None:
        if isinstance(self.kept, str):
            self.kept = Packed.of(json.loads(self.kept))
        return self.kept

    @property
    def is_promoted(self) -> bool:
        return self.action == "trust" and self.measured is not None


class Judged(NamedTuple):
    """A forecast compared with the measured value."""

    confidence: float
    """The probability of the likeliest bin."""
    is_hit: bool
    """Whether the value lies in the likeliest bin."""
    is_inside: bool
    """Whether the value lies in the 90 % interval."""
    error: float
    """The distance between the median and the value, in octaves."""


class RunView:
    """All values of a run that pages show."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seq = 0
        """The number of the last event that was applied."""
        self.configuration: dict[str, Any] = {}
        self.kernels: dict[str, Seen] = {}
        """The anchor, then every candidate in the order of proposal, by hash."""
        self.decided: list[Seen] = []
        """Kernels in the order of their decisions, broken ones included."""
        self.measured: list[Seen] = []
        """Kernels in the order of their measurements."""
        self.records: list[Seen] = []
        """The measured kernels that were the best when they were measured; the last is the best so far."""
        self.checked: list[Seen] = []
        """The measured kernels that work and have a forecast."""
        self.spent = Amounts()
        self.models = {"proposer": Amounts(), "forecaster": Amounts()}
        """What the language models of each part have cost."""
        self.counts: Counter[str] = Counter()
        self.notes: deque[str] = deque(maxlen=_NOTES)
        """Problems and remarks that the run's parts reported, the latest 50."""
        self.outlook: Mapping[str, Any] | None = None
        self.finished: dict[str, Any] | None = None
        self.last = ""
        """The kind of the last event."""
        self.last_time = 0.0
        self.begun = 0.0
        self._asking = Amounts()
        self._lived = self._session = 0.0
        self._step = 0
        self._unnamed: list[str] = []
        self._judged: dict[str, Judged] = {}
        self._folds: dict[str, Callable[[Mapping[str, Any], float], None]] = {
            "begun": self._begun, "session": self._session_began, "asking": self._asked_model, "asked": self._asked,
            "proposed": self._proposed, "forecast": self._forecast, "decided": self._decided, "looked": self._looked,
            "measured": self._measured, "finals": self._finals, "finished": self._finished,
        }  # fmt: skip

    @property
    def name(self) -> str:
        return self.folder.absolute().name

    @property
    def problem(self) -> str:
        return one_line(str(self.configuration.get("problem", "")), _LONGEST)

    @property
    def anchor(self) -> Seen | None:
        return next(iter(self.kernels.values()), None)

    @property
    def budget(self) -> Budget:
        return limits_of(self.configuration)

    @property
    def judged(self) -> list[Judged]:
        """The latest forecasts compared with the measurements."""
        latest = self.checked[-_JUDGED:]
        for seen in latest:
            if seen.hash not in self._judged and seen.forecast and seen.value is not None:
                self._judged[seen.hash] = _judged(seen.forecast, seen.value)
        return [self._judged[seen.hash] for seen in latest]

    @property
    def best(self) -> Seen | None:
        """The final result, or the best so far; None before the first measurement."""
        if self.finished:
            return self.kernels[self.finished["best"]["kernel"]]
        return self.records[-1] if self.records else None

    def refresh(self, store: Store) -> bool:
        """Apply the new events. Return whether there were any."""
        before = self.seq
        with readable(self.folder), no_collecting():
            for seq, at, kind, text in store.texts(after=self.seq):
                self.apply(Event(seq, float(at), str(kind), self._payload(kind, text)))
            names = store.names(self._unnamed) if self._unnamed else {}
            for hash in self._unnamed:
                self.kernels[hash].name = one_line(names[hash].rpartition("/")[2], _LONGEST)
            self._unnamed = []
        return self.seq > before

    def apply(self, event: Event) -> None:
        """Apply one event."""
        if fold := self._folds.get(event.kind):
            fold(event.payload, event.time)
        self.seq, self.last, self.last_time = event.seq, event.kind, event.time

    def _payload(self, kind: str, text: str) -> dict[str, Any]:
        """Parse an event. Forecasts that are written in the form that a search writes are kept as text."""
        end = text.find("}},")
        if kind == "forecast" and text.startswith(_FORECASTS) and end > 0:
            pairs = [part.partition('":') for part in text[len(_FORECASTS) : end].split('},"')]
            if all(hash in self.kernels for hash, _, _ in pairs):
                told: dict[str, Any] = json.loads(f"{_FORECASTS[:-1]}{text[end + 1 :]}")
                return told | {"forecasts": {hash: f"{rest}}}" for hash, _, rest in pairs}}
        return dict(json.loads(text))

    def clock(self, time: float) -> float:
        """Return the seconds for which the run's processes had run in total at this time."""
        return self._lived + max(0.0, time - self._session) if self._session else self._lived

    # -- events -------------------------------------------------------------------------------------------------------

    def _begun(self, told: Mapping[str, Any], time: float) -> None:
        self.configuration, self.begun = dict(told["configuration"]), time

    def _session_began(self, told: Mapping[str, Any], time: float) -> None:
        self._lived, self._session = float(told["lived"]), time
        self.spent.tokens += self._asking.tokens
        self.spent.dollars += self._asking.dollars
        self._asking = Amounts()
        self._note(told.get("notes", ()))
        if limits := told.get("limits"):
            self.configuration |= limits
            self.finished = self.outlook = None

    def _asked_model(self, told: Mapping[str, Any], time: float) -> None:
        self._asking = Amounts(tokens=told["tokens"], dollars=told["dollars"])

    def _asked(self, told: Mapping[str, Any], time: float) -> None:
        self._step = int(told["step"])

    def _proposed(self, told: Mapping[str, Any], time: float) -> None:
        anchor = next(iter(self.kernels))
        parent = str(told.get("parent_kernel") or anchor)
        for hash, why in told["candidates"]:
            self._enter(Seen(hash, len(self.kernels), "", parent, one_line(str(why), _LONGEST), self._step))
        self.counts["duplicates"] += told["duplicates"]
        self._note([*told.get("notes", ()), told.get("short")])
        self._pay("proposer", told)

    def _forecast(self, told: Mapping[str, Any], time: float) -> None:
        notes = told.get("notes", {})
        for hash, kept in told["forecasts"].items():
            seen = self.kernels[hash]
            self.counts["forecasts"] += seen.kept is None
            seen.kept = kept if isinstance(kept, str) else Packed.of(kept)
            if hash in notes:
                seen.notes = tuple(one_line(str(note), _LONGEST) for note in notes[hash])
        for hash, why in told["broken"].items():
            seen = self.kernels[hash]
            seen.failure = seen.reason = one_line(str(why), _LONGEST)
            self._decide(seen, "broken", time)
        self._note([told.get("short")])
        self._pay("forecaster", told)

    def _decided(self, told: Mapping[str, Any], time: float) -> None:
        for hash, action, reason in told["decisions"]:
            seen = self.kernels[hash]
            if seen.action != "broken":  # older runs repeat broken kernels here
                seen.reason = one_line(str(reason), _LONGEST)
                self._decide(seen, one_line(str(action), 20), time)

    def _looked(self, told: Mapping[str, Any], time: float) -> None:
        self.outlook = {"left": int(told["left"]), "chance": float(told["chance"])}

    def _measured(self, told: Mapping[str, Any], time: float) -> None:
        self.spent.measurements += 1
        self.spent.device_seconds += told["seconds"]
        if not self.kernels:
            self._enter(Seen(told["kernel"], 0))
        seen = self.kernels[told["kernel"]]
        seen.measured, seen.at, seen.status = (
            self.spent.measurements,
            self.clock(time),
            one_line(str(told["status"]), 40),
        )
        seen.value = _log2(told["value"])
        self.measured.append(seen)
        if seen.value is None:
            self.counts["failed"] += 1
            seen.failure = one_line(f"{seen.status.replace('_', ' ')}: {told['reason']}", _LONGEST)
            return
        if not self.records or seen.value > (self.records[-1].value or 0.0):
            self.records.append(seen)
        if seen.kept:
            self.checked.append(seen)

    def _finals(self, told: Mapping[str, Any], time: float) -> None:
        self.spent.measurements += len(told["results"])
        self.spent.device_seconds += told["seconds"]
        for result in told["results"]:
            if result["value"] is not None:
                self.kernels[result["kernel"]].again = Interval(*(float(result[end]) for end in Interval._fields))

    def _finished(self, told: Mapping[str, Any], time: float) -> None:
        self.finished = dict(told)
        self._lived, self._session = float(told["spent"]["wall_seconds"]), 0.0

    # -- parts of events ----------------------------------------------------------------------------------------------

    def _enter(self, seen: Seen) -> None:
        self.kernels[seen.hash] = seen
        self._unnamed.append(seen.hash)

    def _decide(self, seen: Seen, action: str, time: float) -> None:
        seen.action, seen.decided = action, self.clock(time)
        self.counts[action] += 1
        self.decided.append(seen)

    def _note(self, notes: Iterable[object]) -> None:
        self.notes.extend(one_line(str(note), _LONGEST) for note in notes if note)

    def _pay(self, who: str, told: Mapping[str, Any]) -> None:
        self._asking = Amounts()
        for amounts in (self.spent, self.models[who]):
            amounts.tokens += told["tokens"]
            amounts.dollars += told["dollars"]


def read(folder: Path) -> RunView:
    """Read a run, finished or not. Raises PresageError if nothing has been measured in it."""
    view = RunView(folder)
    with Store(folder, writes=False) as store:
        view.refresh(store)
    if not view.kernels:
        raise PresageError(f"nothing has been measured in {folder} yet")
    return view


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turn errors from invalid values in events into a PresageError, because the folder may come from anyone."""
    try:
        yield
    except _WRONG as error:
        what = excerpt(str(error)) or type(error).__name__
        raise PresageError(f"the run in {folder} is damaged; its events contradict each other: {what}") from error


@contextmanager
def no_collecting() -> Iterator[None]:
    """Disable the garbage collector. Applying events and building pages create no reference cycles, and searching for
    cycles would take up to half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def speedup(view: RunView, store: Store) -> Interval | None:
    """Return the best kernel's speedup: from the run's result if it is finished, else from the separate measurements of
    the anchor and of the kernel."""
    best, anchor = view.best, view.anchor
    if best is None or anchor is None:
        return None
    if view.finished:
        told = view.finished["best"]
        return Interval(float(told["speedup"]), float(told["low"]), float(told["high"]))
    if best is anchor:
        return Interval(1.0, 1.0, 1.0)
    one, other = (
        [m.cases for m in store.measurements(each.hash) if m.status is Status.OK][:1] for each in (anchor, best)
    )
    if not one or not other:
        return Interval(2 ** (best.value or 0.0), 0.0, math.inf)
    return speedup_interval([case.parts for case in one[0]], [case.parts for case in other[0]], paired=False)


def _judged(forecast: Packed, value: float) -> Judged:
    inner = [0.0, *(forecast.below(edge) for edge in _EDGES), 1.0]
    shares = [high - low for low, high in itertools.pairwise(inner)]
    likeliest = max(range(len(shares)), key=shares.__getitem__)
    low, middle, high = (forecast.quantile(q) for q in (0.05, 0.5, 0.95))
    return Judged(
        shares[likeliest], likeliest == bisect.bisect_left(_EDGES, value), low <= value <= high, abs(value - middle)
    )


def _log2(value: float | None) -> float | None:
    """Validate a recorded log2 S. Raises ValueError if it is out of range."""
    if value is not None and not abs(float(value)) < _LARGEST:
        raise ValueError(f"a speedup of 2**{value}")
    return None if value is None else float(value)
