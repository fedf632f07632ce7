"""The page that lists all runs in a folder. The list can be sorted and filtered, and runs can be chosen to compare."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.report import page, words
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Column, Page, Section, Sorting
from presage.searches import words as said
from presage.store.store import Event, Store

_ROWS = 200
_COLOURS = {"finished": "good", "running": "warm", "unreadable": "bad"}
_STATES = ("running", "finished", "stopped", "unreadable")
_KEYS: Mapping[str, Callable[[Summary], Any]] = {
    "name": lambda run: run.name,
    "problem": lambda run: (run.problem, run.device, run.name),
    "device": lambda run: (run.device, run.problem, run.name),
    "state": lambda run: (run.state, run.name),
    "best": lambda run: -math.inf if run.best is None else run.best,
    "measured": lambda run: run.measured,
    "time": lambda run: run.seconds,
    "begun": lambda run: run.begun,
}
_COLUMNS = (
    Column("run", "name"), Column("compare", kind="narrow"), Column("problem", "problem"), Column("device", "device"),
    Column("state", "state"), Column("best", "best"), Column("measured", "measured", "number"),
    Column("time", "time", "number"), Column("cost of models", kind="number"), Column("begun", "begun"),
)  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """One run in the list."""

    name: str
    state: str
    problem: str = ""
    device: str = ""
    seed: int | None = None
    best: float | None = None
    """The best speedup S, if it is known. `low` and `high` are its 95 % interval."""
    low: float | None = None
    high: float | None = None
    believed: str = ""
    """Whose time the best one is, once the run has finished."""
    measured: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    begun: float = 0.0
    error: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """Which runs to show, and their order."""

    sort: str = "begun"
    is_descending: bool = True
    state: str = ""
    text: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Query:
        sort, state = asked.get("sort", "begun"), asked.get("state", "")
        return cls(
            sort if sort in _KEYS else "begun",
            asked.get("order", "down") != "up",
            state if state in _STATES else "",
            asked.get("q", "")[:200],
        )

    def link(self, **changes: object) -> str:
        told = {"sort": self.sort, "order": "down" if self.is_descending else "up", "state": self.state, "q": self.text}
        return address(**(told | changes))


def build(runs: Sequence[Summary], folder: str, query: Query) -> Page:
    counts = [f"{sum(run.state == state for run in runs)} {state}" for state in _STATES]
    told = f"{len(runs)} in {folder}: {', '.join(count for count in counts if not count.startswith('0 ')) or 'none'}."
    sections = [Section("answer", "", page.paragraph(told)), Section("runs", "All runs", _table(runs, folder, query))]
    return Page("Runs", sections)


def chosen(runs: Sequence[Summary], query: Query) -> list[Summary]:
    """Return the runs that match the query, in its order."""
    text = query.text.casefold()
    found = [run for run in runs if not query.state or run.state == query.state]
    found = [run for run in found if any(text in each.casefold() for each in (run.name, run.problem, run.device))]
    return sorted(found, key=_KEYS[query.sort], reverse=query.is_descending)


def _table(runs: Sequence[Summary], folder: str, query: Query) -> Html:
    if not runs:
        hint = tag("code", "presage search softmax")
        return tag("p", f"There is no run in {folder} yet. ", hint, " makes one, and it appears here by itself.")
    found = chosen(runs, query)
    options = [("", "all"), *((state, state) for state in _STATES)]
    fields = [page.choice("State", "state", options, query.state), page.text_box("With these words", "q", query.text)]
    kept = [("sort", query.sort), ("order", "down" if query.is_descending else "up")]
    sorting = Sorting(
        query.sort, query.is_descending, lambda key, down: query.link(sort=key, order="down" if down else "up")
    )
    table = page.table(
        [_row(run) for run in found[:_ROWS]], _COLUMNS, "Runs", sorting, keys=[run.name for run in found[:_ROWS]]
    )
    more = page.paragraph(f"The first {_ROWS} of {len(found)}; narrow them down above.") if len(found) > _ROWS else None
    compare = tag("form", table, tag("button", "Compare the chosen runs"), action="/compare", method="get", id="choose")
    return join([page.search_box("/", fields, kept), compare, more])


def _row(run: Summary) -> Sequence[Content]:
    link = tag("a", run.name, href=address("runs", run.name))
    if run.error:
        return [link, "", "", "", tag("span", f"{run.state}: {run.error}", class_="bad"), *[""] * 5]
    box = tag("input", type="checkbox", name="run", value=run.name, aria_label=f"Compare {run.name}")
    begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.begun)) if run.begun else ""
    return [
        link, box, run.problem, run.device, tag("span", run.state, class_=f"badge {_COLOURS.get(run.state, 'faint')}"),
        _best(run), f"{run.measured:,}", words.duration(run.seconds), words.money(run.dollars) if run.dollars else "",
        begun,
    ]  # fmt: skip


def _best(run: Summary) -> str:
    if run.best is None:
        return ""
    known = run.low is not None and run.high is not None and 0 < run.low < run.high < math.inf
    reach = f" ({run.low:.3g} to {run.high:.3g})" if known else ""
    return f"{run.best:.3g}{words.TIMES}{reach}{said.in_short(run.believed)}"


def to_json(run: Summary) -> dict[str, Any]:
    """Return the JSON document of a run."""
    told = {name: getattr(run, name) for name in ("name", "state", "problem", "device", "seed", "best", "low", "high")}
    told |= {name: getattr(run, name) for name in ("measured", "seconds", "dollars", "begun")}
    return told | {"error": run.error or None}


def summary(folder: Path, is_running: bool) -> Summary:
    """Summarise a run without reading all of its events. An unreadable run gets a summary with its error."""
    name = folder.absolute().name
    try:
        with Store(folder, writes=False) as store:
            first, last = store.first(), store.last()
            if first is None or last is None or first.kind != "begun":
                return Summary(name, "starting" if is_running else "empty")
            asked = {str(key): value for key, value in first.payload["configuration"].items()}
            begun = Summary(
                name, "running" if is_running else "stopped", one_line(str(asked.get("problem", "")), 80),
                one_line(str(asked.get("device", "")), 80), asked.get("seed"), begun=first.time, settings=asked,
            )  # fmt: skip
            return _ended(begun, last) if last.kind == "finished" else _so_far(begun, store, last)
    except PresageError as error:
        return Summary(name, "unreadable", error=str(error))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return Summary(name, "unreadable", error=f"its events contradict each other: {one_line(str(error), 80)}")


def _ended(run: Summary, last: Event) -> Summary:
    best, spent = last.payload["best"], last.payload["spent"]
    return replace(
        run, state="finished", best=float(best["speedup"]), low=float(best["low"]), high=float(best["high"]),
        believed=str(best.get("believed") or ""),
        measured=int(spent["measurements"]), seconds=float(spent["wall_seconds"]), dollars=float(spent["dollars"]),
    )  # fmt: skip


def _so_far(run: Summary, store: Store, last: Event) -> Summary:
    values = [event.payload["value"] for event in store.events("measured")]
    known = [float(value) for value in values if value is not None]
    sessions = list(store.events("session"))
    seconds = float(sessions[-1].payload["lived"]) + last.time - sessions[-1].time if sessions else 0.0
    best = 2 ** max(known) if known else None
    return replace(run, best=best, measured=len(values), seconds=seconds, dollars=_dollars(store))


def _dollars(store: Store) -> float:
    """What language models have cost so far: answers, and requests that a process which ended had under way."""
    spent = asking = 0.0
    for event in store.payments():
        if event.kind == "asking":
            asking = float(event.payload["dollars"])
            continue
        spent += asking if event.kind == "session" else float(event.payload["dollars"])
        asking = 0.0
    return spent
