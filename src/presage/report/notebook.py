"""The HTML that a notebook shows for forecasts, measurements, static reports, problems and runs. It has no scripts.

A notebook calls `_repr_html_` of the object (see core/shown.py). All text is escaped, because names, sources and
compiler messages may come from anyone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.forecast import Forecast
from presage.core.statistics import Interval
from presage.devices.base import Measurement
from presage.evaluations.evaluation import Evaluation
from presage.forecasters.base import Prediction
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem
from presage.report.figure import Axis, Series, figure
from presage.searches import words
from presage.searches.run import Run
from presage.static.report import StaticReport
from presage.store.store import Store

_STYLE = (
    "<style>.presage{font:14px/1.5 system-ui,sans-serif;max-width:60em}.presage table{border-collapse:collapse}"
    ".presage th,.presage td{text-align:left;padding:.1em .9em .1em 0;vertical-align:top}.presage th{font-weight:600}"
    ".presage pre{white-space:pre-wrap;max-height:24em;overflow:auto;margin:.3em 0}"
    ".presage figure{margin:.4em 0;max-width:26em}.presage figcaption{font-weight:600}"
    ".presage svg{width:100%;height:auto}.presage svg text{fill:currentColor;opacity:.7;font-size:12px}"
    ".presage .grid{stroke:currentColor;stroke-opacity:.15}.presage .axis{stroke:currentColor;fill:none}"
    ".presage .line{fill:none;stroke-width:2}.presage .dashed{stroke-dasharray:6 4}"
    ".presage .c0{stroke:#1f77b4}.presage circle.c0,.presage rect.c0{fill:#1f77b4}.presage .c1{stroke:#d9730d}"
    ".presage .legend{list-style:none;padding:0;margin:0}.presage .legend li{display:inline-block;margin-right:1em}"
    ".presage .key{display:inline-block;width:1.5em;border-top:2px solid;margin:0 .4em .3em 0}</style>"
)
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@singledispatch
def html(thing: Any) -> str:
    """Return the HTML of an object as one block."""
    return _block(f"<pre>{escape(repr(thing))}</pre>")


@html.register
def _(forecast: Forecast) -> str:
    return _block(_forecast(forecast))


@html.register
def _(prediction: Prediction) -> str:
    parts = [_forecast(prediction.forecast)] if prediction.forecast else []
    if prediction.why_broken:
        parts.append(f"<p>It cannot work: {escape(prediction.why_broken)}</p>")
    elif not prediction.forecast:
        parts.append("<p>There is no forecast.</p>")
    return _block(*parts, *(f"<p>{escape(note)}</p>" for note in prediction.notes))


@html.register
def _(measurement: Measurement) -> str:
    name = Path(measurement.kernel.name).name
    head = f"<b>{escape(name)}</b> on {escape(measurement.problem)}, {escape(measurement.device)}"
    if not measurement.cases:
        said = f"<pre>{escape(measurement.output)}</pre>" if measurement.output else ""
        return _block(f"<p>{head}: {escape(str(measurement.status))}</p><p>{escape(measurement.reason)}</p>{said}")
    fast = f": {_times(measurement.speedup)} the anchor's speed" if measurement.speedup else ""
    rows = [
        (case.case, _interval(case.median), str(len(case.samples_ns)), f"{case.floor_ns / case.median.value:.0%}")
        for case in measurement.cases
    ]
    if measurement.believed == "worker":
        fast += f" (timed in its own process, not replayed: {escape(measurement.not_replayed)})"
    return _block(f"<p>{head}{fast}</p>", _table(("case", "median (95 %)", "samples", "of the roofline"), rows))


@html.register
def _(report: StaticReport) -> str:
    head = f"<p>compiled for {escape(report.target)} ({escape(report.arch)}): {escape(report.status)}</p>"
    error = f"<pre>{escape(report.error)}</pre>" if report.error else ""
    rows = [
        (
            each.name, "×".join(map(str, each.grid)), "×".join(map(str, each.block)), str(each.registers),
            str(each.spill_bytes), str(each.shared_bytes), f"{each.occupancy:.0%} ({each.occupancy_limiter})",
        )
        for each in report.launches
    ]  # fmt: skip
    names = ("launch", "grid", "block", "registers", "spilled bytes", "shared bytes", "occupancy")
    notes = [f"<p>{escape(note)}</p>" for note in report.notes]
    return _block(head, error, _table(names, rows) if rows else "", *notes)


@html.register
def _(problem: Problem) -> str:
    cases = {kind: ", ".join(case.name for case in cases) for kind, cases in problem.timed.items()}
    arrays = {"inputs": problem.inputs, "outputs": problem.outputs}
    told = {name: ", ".join(f"{a.name}: {a.dtype or '?'}[{a.shape}]" for a in each) for name, each in arrays.items()}
    told |= {f"cases on a {kind}": names for kind, names in cases.items()}
    shown = {name: text for name, text in told.items() if text}
    return _block(f"<p><b>{escape(problem.name)}</b>: {escape(problem.summary)}</p>", _facts(shown))


@html.register
def _(kernel: Kernel) -> str:
    values = ", ".join(f"{name}={value}" for name, value in kernel.values.items())
    told = ", ".join(filter(None, (kernel.language, values)))
    return _block(
        f"<p><b>{escape(Path(kernel.name).name)}</b>, {escape(told)}</p>", f"<pre>{escape(kernel.source)}</pre>"
    )


@html.register
def _(run: Run) -> str:
    asked = run.configuration
    head = f"<p><b>{escape(str(asked['problem']))}</b> on {escape(str(asked['device']))}</p>"
    if not run.measurements:
        return _block(head, "<p>nothing has been measured yet</p>")
    best, state = run.best, "finished" if run.result else "under way" if run.owner else "stopped; the same call goes on"
    told = {
        "best": f"{_times(best.speedup) if run.result else f'{best.speedup.value:.3g}x'} the anchor's speed"
        + (words.in_short(run.result["best"].get("believed")) if run.result else ""),
        "kernel": Path(best.kernel.name).name,
        "measured": f"{run.measurements}; {run.result['why']}" if run.result else f"{run.measurements}; {state}",
        "decisions": words.decisions(run.summary()) if run.result else "",
        "file": str(best.path),
    }
    return _block(head, _facts({name: text for name, text in told.items() if text}), _progress(run))


@html.register
def _(evaluation: Evaluation) -> str:
    rows = [(name, f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}") for name, one in evaluation.numbers.items()]
    head = (
        f"<p><b>{escape(evaluation.forecaster)}</b> on {escape(evaluation.split)} of {escape(evaluation.recording)}</p>"
    )
    return _block(head, _table(("score", "value", "95 %"), rows))


def _progress(run: Run) -> str:
    """Return a figure of each measurement and of the best so far."""
    with Store(run.folder, writes=False) as store:
        values = [event.payload["value"] for event in store.events("measured")]
    speeds = [float("nan") if value is None else 2.0**value for value in values]
    numbers = [float(number) for number in range(1, len(speeds) + 1)]
    best = np.fmax.accumulate(speeds).tolist()
    series = [Series("measured", numbers, speeds, "points"), Series("best so far", numbers, best, "steps")]
    return figure("speedup over measurements", Axis("measurement"), Axis("times the anchor's speed", log=True), series)


def _forecast(forecast: Forecast) -> str:
    low, middle, high = (2 ** forecast.quantile(level) for level in (0.05, 0.5, 0.95))
    faster = forecast.exceeds(1.0)
    told = f"{middle:.3g}x (90 %: {low:.3g} to {high:.3g}), faster than the anchor with {faster:.0%}, fails with"
    knots, cdf = np.asarray(forecast.knots), np.asarray(forecast.cdf)
    density = np.diff(cdf) / np.diff(knots)
    speeds = 2.0 ** np.clip(knots, -60, 60)
    drawn = Series("density", speeds.tolist(), [0.0, *density.tolist()][: len(speeds)], "steps")
    axes = Axis("times the anchor's speed", log=True), Axis("probability an octave", low=0.0)
    return f"<p>{told} {forecast.p_fail:.0%}</p>{figure('forecast speedup', *axes, [drawn])}"


def _block(*parts: str) -> str:
    return f'{_STYLE}<div class="presage">{"".join(parts)}</div>'


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(told: Mapping[str, str]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in told.items())
    return f"<table><tbody>{rows}</tbody></table>"


def _times(speedup: Interval) -> str:
    return escape(words.speedup(speedup))


def _interval(median: Interval) -> str:
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if median.value >= scale), _UNITS[-1])
    reach = f" ({median.low / scale:.4g} to {median.high / scale:.4g})" if median.is_known else ""
    return f"{median.value / scale:.4g} {unit}{reach}"
