"""The page that compares runs: the best so far of each run on the same axes. Runs that differ only in their seed are
one line with the range over the seeds. Each problem and device has its own axes, as their speedups are not comparable.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.core.statistics import Interval
from presage.core.text import one_line
from presage.report import page, run_page, words
from presage.report.figure import COLOURS, Axis, Series, figure
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Page, Section
from presage.report.run_page import Standing
from presage.report.run_view import RunView
from presage.searches import words as said

MOST = 60
"""The most runs on one page."""
_POINTS = 200
_NOT_COMPARED = ("seed", "problem", "device")


@dataclass(frozen=True)
class Compared:
    """The values of a run that the page shows."""

    name: str
    problem: str
    device: str
    settings: Mapping[str, Any]
    state: str
    speedup: Interval | None
    believed: str
    """Whose time the best one is, once the run has finished."""
    curves: Mapping[str, tuple[list[float], list[float]]]
    """Best-so-far curves by x axis, `measured` (count) or `at` (seconds): where the best changed, and S there."""
    measured: int
    unmeasured: int
    seconds: float
    device_seconds: float
    dollars: float

    @classmethod
    def of(cls, view: RunView, standing: Standing) -> Compared:
        return cls(
            view.name, view.problem, one_line(str(view.configuration.get("device", "")), 80), view.configuration,
            run_page.state(view, standing.is_running)[0], standing.speedup,
            str(standing.ended["best"].get("believed") or "") if standing.ended else "",
            {x: run_page.best_so_far(view, x) for x in ("measured", "at")}, view.spent.measurements,
            len(view.kernels) - len(view.measured) - view.counts["broken"], view.clock(view.last_time),
            view.spent.device_seconds, view.spent.dollars,
        )  # fmt: skip


def build(runs: Sequence[Compared], known: Sequence[str]) -> Page:
    sections = [Section("choice", "", _choice(runs, known))]
    places = list(dict.fromkeys((run.problem, run.device) for run in runs))
    for number, place in enumerate(places):
        mine = [run for run in runs if (run.problem, run.device) == place]
        sections.append(Section(f"figures-{number}", f"{place[0]} on {place[1]}", _figures(mine)))
    if runs:
        sections += [
            Section("table", "In numbers", _table(runs)),
            Section("settings", "Settings that differ", _settings(runs)),
        ]
    return Page("Compare runs", sections, "/compare")


def _choice(runs: Sequence[Compared], known: Sequence[str]) -> Html:
    chosen = {run.name for run in runs}
    boxes = (
        tag(
            "li",
            tag("label", tag("input", type="checkbox", name="run", value=name, checked=name in chosen), f" {name}"),
        )
        for name in known
    )
    form = tag("form", tag("ul", boxes, class_="legend"), tag("button", "Compare"), action="/compare", method="get")
    told = (
        f"{len(runs)} runs."
        if runs
        else "Choose two runs or more. Runs that differ only in their seed are drawn as one line."
    )
    return join([page.paragraph(told), tag("details", tag("summary", "Choose runs"), form, open=not runs)])


# -- figures ----------------------------------------------------------------------------------------------------------


def groups(runs: Sequence[Compared]) -> dict[str, list[Compared]]:
    """Group the runs that differ only in their seed, and name each group."""
    found: dict[str, list[Compared]] = {}
    for run in runs:
        same = {name: value for name, value in run.settings.items() if name not in _NOT_COMPARED and value is not None}
        found.setdefault(json.dumps(same, sort_keys=True, default=str), []).append(run)
    named: dict[str, list[Compared]] = {}
    for mine in found.values():
        label = mine[0].name if len(mine) == 1 else f"{mine[0].name} and {len(mine) - 1} more seeds"
        named[label if label not in named else f"{label} ({len(named)})"] = mine
    return named


def _figures(runs: Sequence[Compared]) -> Html:
    return page.figures([_over(runs, "measured", "measurements"), _over(runs, "at", "seconds")])


def _over(runs: Sequence[Compared], x: str, label: str) -> Html:
    bands, lines = [], []
    for number, (name, mine) in enumerate(groups(runs).items()):
        colour = number % COLOURS
        curves = [run.curves[x] for run in mine if run.curves[x][0]]
        if not curves:
            continue
        across, low, middle, high = together(curves)
        if len(curves) > 1:
            bands.append(Series("", across, middle, "band", low=low, high=high, colour=colour))
        lines.append(Series(name, across, middle, "steps", colour=colour, dashed=number >= COLOURS))
    axes = Axis(label, low=0), Axis("times the anchor's speed", log=True)
    over = "measurements" if x == "measured" else "time"
    return figure(f"Best so far over {over}; bands: from the worst to the best seed", *axes, [*bands, *lines], rule=1.0)


def together(
    curves: Sequence[tuple[list[float], list[float]]],
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Combine step curves. Return x, and the lowest value, geometric mean and highest value at each x.

    A curve that has ended keeps its last value.

    >>> together([([1, 3], [1.0, 4.0]), ([1, 2], [1.0, 1.0])])
    ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 4.0])
    """
    every = sorted({float(x) for xs, _ in curves for x in xs})
    start = max(xs[0] for xs, _ in curves)
    across = [x for x in every if x >= start]
    across = across[:: max(1, math.ceil(len(across) / _POINTS))] + ([across[-1]] if len(across) > _POINTS else [])
    values = np.log2([[ys[bisect.bisect_right(xs, x) - 1] for x in across] for xs, ys in curves])
    low, middle, high = (2**part for part in (values.min(axis=0), values.mean(axis=0), values.max(axis=0)))
    return across, low.tolist(), middle.tolist(), high.tolist()


# -- tables -----------------------------------------------------------------------------------------------------------


def _table(runs: Sequence[Compared]) -> Html:
    rows: list[Sequence[Content]] = []
    for run in runs:
        S = run.speedup
        known = S is not None and S.is_known and S.low < S.high
        reach = f" ({S.low:.3g} to {S.high:.3g})" if S and known else ""
        best = f"{S.value:.3g}{words.TIMES}{reach}{said.in_short(run.believed)}" if S else ""
        rows.append(
            (
                tag("a", run.name, href=address("runs", run.name)), run.problem, run.device, run.state, best,
                f"{run.measured:,}", f"{run.unmeasured:,}", words.duration(run.device_seconds),
                words.duration(run.seconds), words.money(run.dollars) if run.dollars else "",
            )
        )  # fmt: skip
    header = [
        "run",
        "problem",
        "device",
        "state",
        "best (95 %)",
        "measured",
        "not measured",
        "device time",
        "time",
        "models",
    ]
    means = [
        page.paragraph(f"{name}: {told}")
        for place in dict.fromkeys((run.problem, run.device) for run in runs)
        for name, mine in groups([run for run in runs if (run.problem, run.device) == place]).items()
        if (told := _over_seeds(mine))
    ]
    return join([page.table(rows, header, "Runs that are compared"), *means])


def _over_seeds(runs: Sequence[Compared]) -> str:
    """Return a sentence with the mean of the best speedups and its interval; empty for fewer than three seeds."""
    logs = [math.log2(run.speedup.value) for run in runs if run.speedup and run.speedup.value > 0]
    if len(logs) < 3:
        return ""
    from scipy.special import stdtrit  # imported late, because it is slow to import

    reach = float(stdtrit(len(logs) - 1, 0.975)) * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    middle = float(np.mean(logs))
    low, high = words.times(middle - reach), words.times(middle + reach)
    return f"{words.times(middle)} on average over {len(logs)} seeds, 95 % interval {low} to {high}."


def _settings(runs: Sequence[Compared]) -> Html:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    different = [name for name in names if len({str(run.settings.get(name)) for run in runs}) > 1]
    if not different:
        return page.paragraph("None.")
    rows = [(name, *(one_line(str(run.settings.get(name)), 80) for run in runs)) for name in different]
    return page.table(rows, ["setting", *(run.name for run in runs)], "Settings that differ")
