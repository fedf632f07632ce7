"""What the report of a run shows, as plain values, read from the run's store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.core.statistics import Interval
from presage.core.text import excerpt
from presage.searches import words
from presage.searches.run import Run
from presage.searches.state import State
from presage.store.store import Event, Store

_LARGEST = 1000
"""log2 of the largest speedup that can be real."""


@dataclass(frozen=True)
class Seen:
    """A kernel that the search saw, and what happened to it."""

    hash: str
    name: str
    parent: str | None = None
    """The hash of its parent; None for the anchor."""
    why: str = ""
    """The idea behind it, in the proposer's words."""
    forecast: Forecast | None = None
    action: str = ""
    """`trust`, `measure` or `audit`; `broken` if it cannot work; empty for the anchor."""
    reason: str = ""
    """The reason of the decision."""
    measured: int | None = None
    """The number of its measurement, from 1; None if it was not measured."""
    value: float | None = None
    """log2 S as measured; None if it was not measured or failed."""
    failure: str = ""
    """How it failed, if it did."""


@dataclass(frozen=True)
class RunView:
    """All that the report of a run shows."""

    run: str
    problem: str
    facts: Mapping[str, str]
    """Settings and costs, by name, as text."""
    kernels: Sequence[Seen]
    """The anchor, then every candidate in the order of proposal."""
    best: str
    """The hash of the best kernel."""
    speedup: Interval | None
    """Its speedup, from the last measurement of the finalists if there was one."""
    anchor_source: str
    best_source: str
    missed: str = ""
    """What was trusted and not measured, and what that may have missed; empty until the run is finished."""
    notes: Sequence[str] = ()
    """What to know about the result."""
    early_stop: str = ""
    """Whether the run stopped early, or why not; empty if that is not known."""
    ended: str = ""
    """Why the run ended; empty until it is finished."""

    @cached_property
    def by_hash(self) -> dict[str, Seen]:
        return {seen.hash: seen for seen in self.kernels}


def read(run_folder: Path) -> RunView:
    """Read the view from a run's folder, finished or not."""
    with Store(run_folder, writes=False) as store, _readable(run_folder):
        state = State()
        kernels: dict[str, Seen] = {}
        for event in store.events():
            state.apply(event)
            _take_in(event, state, kernels)
        if not state.hashes:
            raise PresageError(f"nothing has been measured in {run_folder} yet")
        names = store.names()
        named = [replace(seen, name=Path(names[hash]).name) for hash, seen in kernels.items()]
        best, speedup = _best(state)
        run = Run(run_folder)
        ended = run.summary() if state.finished else None
        return RunView(
            run=run_folder.name,
            problem=str((state.configuration or {}).get("problem", "")),
            facts=_facts(state),
            kernels=named,
            best=best,
            speedup=speedup,
            anchor_source=store.kernel(state.hashes[0]).source,
            best_source=store.kernel(best).source,
            missed=words.missed(ended, run.delta) if ended else "",
            notes=ended["notes"] if ended else (),
            early_stop=words.early_stop(ended) if ended else "",
            ended=str(ended["why"]) if ended else "",
        )


@contextmanager
def _readable(run_folder: Path) -> Iterator[None]:
    """Turn errors in events into a message: the folder may come from anyone."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = excerpt(str(error)) or type(error).__name__
        raise PresageError(f"the run in {run_folder} is damaged; its events contradict each other: {what}") from error


def _take_in(event: Event, state: State, kernels: dict[str, Seen]) -> None:
    """Add what an event says about kernels."""
    told = event.payload
    if event.kind == "proposed":
        for hash, why in told["candidates"]:
            kernels[hash] = Seen(hash, hash, state.hashes[told["parent"]], str(why))
    elif event.kind == "forecast":
        for hash, kept in told["forecasts"].items():
            kernels[hash] = replace(kernels[hash], forecast=_forecast(kept))
        for hash, why in told["broken"].items():
            kernels[hash] = replace(kernels[hash], failure=str(why), action="broken", reason=str(why))
    elif event.kind == "decided":
        for hash, action, reason in told["decisions"]:
            if kernels[hash].action != "broken":  # older runs name it here, too
                kernels[hash] = replace(kernels[hash], action=str(action), reason=str(reason))
    elif event.kind == "measured":
        seen = kernels.get(told["kernel"]) or Seen(told["kernel"], told["kernel"])
        failure = "" if told["value"] is not None else f"{told['status'].replace('_', ' ')}: {told['reason']}"
        number = state.spent.measurements
        kernels[seen.hash] = replace(seen, measured=number, value=_log2(told["value"]), failure=failure)


def _best(state: State) -> tuple[str, Interval]:
    """The result, or the best so far."""
    if state.finished:
        best = state.finished["best"]
        return best["kernel"], _interval(best["speedup"], best["low"], best["high"])
    value, id = state.best[-1]
    return state.hashes[id], Interval(2**value, -math.inf, math.inf)


def _forecast(kept: Mapping[str, Any]) -> Forecast:
    """A forecast, checked again: the folder may come from anyone."""
    knots, cdf = (tuple(map(float, kept[name])) for name in ("knots", "cdf"))
    if not all(abs(knot) < _LARGEST for knot in knots):
        raise ValueError(f"a forecast from 2**{knots[0]} to 2**{knots[-1]}")
    return Forecast(knots, cdf, float(kept["p_fail"]), float(kept["raw_sum"]))


def _log2(value: float | None) -> float | None:
    """log2 of a recorded speedup, checked."""
    if value is not None and not abs(float(value)) < _LARGEST:
        raise ValueError(f"a speedup of 2**{value}")
    return None if value is None else float(value)


def _interval(value: float, low: float, high: float) -> Interval:
    return Interval(float(value), float(low), float(high))


def _facts(state: State) -> dict[str, str]:
    asked = {name: str(value) for name, value in (state.configuration or {}).items() if value is not None}
    spent = (state.finished or {}).get("spent") or state.spent.to_json()
    return asked | {f"spent: {name.replace('_', ' ')}": f"{value:.6g}" for name, value in spent.items()}
