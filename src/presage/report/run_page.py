"""The page of a run. It starts with the answer: what was found, how sure that is, what it cost and what it saved. The
progress, the forecasts and the decisions follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presage.core import scoring
from presage.core.statistics import Interval
from presage.core.text import one_line
from presage.report import decisions, lineage, page, words
from presage.report.decisions import Query
from presage.report.figure import Axis, Series, figure
from presage.report.html import Content, Html, join, tag
from presage.report.page import Links, Page, Section
from presage.report.run_view import RunView, Seen, readable
from presage.searches import words as said

_FEWEST_JUDGED = 10
_MOST_POINTS = 600
_DOING = {
    "begun": "measuring the anchor", "session": "starting", "asking": "waiting for a model's answer",
    "asked": "proposing kernels", "proposed": "compiling and forecasting", "forecast": "deciding",
    "decided": "measuring", "looked": "looking at what is left", "promoted": "measuring", "measured": "measuring",
    "finals": "finishing",
}  # fmt: skip
"""What a running search does now, by the kind of its last event."""
_BUDGETS = {
    "measurements": "measurements", "device_seconds": "time on the device", "wall_seconds": "time", "tokens": "tokens",
    "dollars": "dollars",
}  # fmt: skip
_COUNTS = {
    "duplicates": "proposed again", "forecasts": "forecast", "measure": "chosen for measuring", "trust": "trusted",
    "audit": "audited", "failed": "failed when measured",
}  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """What is not in the events: whether a process works on the run, and the best kernel's speedup from its samples."""

    is_running: bool
    speedup: Interval | None
    ended: Mapping[str, Any] | None
    """The summary of a finished run."""
    delta: float = 0.0


def build(view: RunView, standing: Standing, links: Links, query: Query) -> Page:
    """Return the page of a run."""
    with readable(view.folder):
        sections = [
            Section("answer", "", _answer(view, standing, links)),
            Section("budget", "Budget", _budget(view, standing)),
            Section("progress", "Progress", _progress(view)),
            Section("forecasts", "Forecasts against measurements", _forecasts(view)),
            Section("decisions", "Kernels and decisions", decisions.table(view, links, query)),
            Section("lineage", "Lineage", lineage.tree(view, links)),
            Section("settings", "Settings", _settings(view)),
        ]
    title = f"{view.problem} on {view.configuration.get('device', 'a device')}"
    return Page(title, sections, trail=() if links.is_frozen else (("Runs", "/"),))


# -- the answer -------------------------------------------------------------------------------------------------------


def state(view: RunView, is_running: bool) -> tuple[str, str]:
    """Return the state of the run in one word, and the CSS class that colours it."""
    if view.finished:
        return "finished", "good"
    return ("running", "warm") if is_running else ("stopped", "faint")


def _answer(view: RunView, standing: Standing, links: Links) -> Html:
    word, colour = state(view, standing.is_running)
    badge = tag("span", word, class_=f"badge {colour}")
    cards = [("What was found", _found(view, standing, links)), ("How sure", _sureness(view, standing))]
    cards += [("What it cost", _cost(view)), ("What it saved", _saved(view, standing))]
    return join(
        [
            tag("p", badge, " ", _doing(view, standing), class_="note"),
            tag("p", _headline(view, standing), class_="headline", aria_live="polite"),
            page.facts(cards),
        ]
    )


def _doing(view: RunView, standing: Standing) -> str:
    if standing.ended:
        why = str(standing.ended["why"])
        return f"{why[:1].upper()}{why[1:]}."
    if standing.is_running:
        return f"Run {view.name}: {_DOING.get(view.last, 'working')}."
    return f"Run {view.name} was stopped; the command that began it continues it."


def _headline(view: RunView, standing: Standing) -> str:
    best, S = view.best, standing.speedup
    if best is None or S is None:
        return "The anchor is being measured."
    if best is view.anchor:
        return "Nothing faster than the anchor was found." if view.finished else "Nothing faster than the anchor yet."
    so_far = "" if view.finished else " so far"
    reach = f" (95 %: {S.low:.3g} to {S.high:.3g})" if S.is_known and S.low < S.high else ""
    return f"{S.value:.3g}{words.TIMES} the anchor's speed{so_far}{reach}"


def _found(view: RunView, standing: Standing, links: Links) -> Content:
    best = view.best
    if best is None:
        return "Nothing yet."
    parts: list[Content] = [tag("strong", links.kernel(best.hash, best.name or best.hash))]
    if best.measured and best is not view.anchor:
        parts.append(
            tag(
                "p",
                f"Found at measurement {best.measured} of {view.spent.measurements}, after {words.duration(best.at)}.",
            )
        )
    if best.why:
        parts.append(tag("p", best.why, class_="note"))
    if standing.ended and standing.ended.get("optimum"):
        parts.append(tag("p", _sentence(said.optimum(standing.ended["optimum"]))))
    return parts


def _sureness(view: RunView, standing: Standing) -> Content:
    parts: list[Content] = []
    if view.finished and view.best is not view.anchor:
        again = view.best is not None and view.best.again is not None
        parts.append(
            "Measured again at the end, beside the anchor." if again else "Measured once, apart from the anchor."
        )
    elif view.best is not view.anchor:
        parts.append("Measured once, apart from the anchor. The best are measured again at the end, beside it.")
    if standing.ended:
        parts += [tag("p", _sentence(note), class_="warm") for note in standing.ended["notes"]]
        parts.append(tag("p", f"Missed: {said.missed(standing.ended, standing.delta)}."))
    elif view.outlook and (until := view.configuration.get("until")) is not None:
        told = said.outlook(view.outlook["left"], view.outlook["chance"], float(until))
        parts.append(tag("p", _sentence(told)))
    if len(judged := view.judged) >= _FEWEST_JUDGED:
        inside = sum(each.is_inside for each in judged)
        parts.append(
            tag(
                "p",
                f"Of {len(judged)} forecasts that were checked, {inside} held the value in their 90 % interval.",
            )
        )
    return parts or "Nothing is known yet."


def _cost(view: RunView) -> Content:
    spent = view.spent
    parts: list[Content] = [tag("strong", f"{spent.measurements:,} measurements")]
    device, every = words.duration(spent.device_seconds), words.duration(view.clock(view.last_time))
    parts.append(tag("p", f"{device} of the device, {every} in all."))
    for who, amounts in view.models.items():
        if amounts.tokens or amounts.dollars:
            parts.append(tag("p", f"The {who}'s model: {amounts.tokens:,} tokens, {words.money(amounts.dollars)}."))
    return parts


def _saved(view: RunView, standing: Standing) -> Content:
    unmeasured = len(view.kernels) - len(view.measured) - view.counts["broken"]
    parts: list[Content] = [tag("strong", f"{unmeasured:,} of {len(view.kernels):,} kernels not measured")]
    each = view.spent.device_seconds / view.spent.measurements if view.spent.measurements else 0.0
    if unmeasured and view.counts["forecasts"]:
        parts.append(
            tag("p", f"To measure them, too, would take about {words.duration(unmeasured * each)} more of the device.")
        )
    if view.counts["broken"]:
        parts.append(tag("p", f"{view.counts['broken']:,} did not compile or could not launch, and were not tried."))
    if standing.ended and (stop := said.early_stop(standing.ended["early_stop"])):
        parts.append(tag("p", _sentence(stop)))
    return parts


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# -- budget and settings ----------------------------------------------------------------------------------------------


def _budget(view: RunView, standing: Standing) -> Html:
    budget, clock = view.budget, view.clock(view.last_time)
    rows: list[tuple[str, Content]] = []
    for name, limit in budget.limits().items():
        spent = clock if name == "wall_seconds" else float(getattr(view.spent, name))
        shown = (
            words.duration if name.endswith("seconds") else words.money if name == "dollars" else lambda n: f"{n:,.0f}"
        )
        told = f"{shown(spent)} of {shown(limit)} spent, {shown(max(0.0, limit - spent))} left"
        meter = tag("meter", told, min=0, max=limit, value=min(spent, limit), aria_label=_BUDGETS[name])
        rows.append((_BUDGETS[name], [tag("p", told), meter]))
    if "wall_seconds" not in budget.limits():
        running = {"data_elapsed": f"{clock:.0f}"} if standing.is_running and not view.finished else {}
        rows.append(
            ("time", tag("p", tag("span", words.duration(clock), **running), "" if view.finished else " so far"))
        )
    return page.facts(rows)


def _settings(view: RunView) -> Html:
    asked = [(name, one_line(str(value), 400)) for name, value in view.configuration.items() if value is not None]
    counted = [(_COUNTS.get(name, name), f"{count:,}") for name, count in view.counts.items()]
    notes = [tag("h3", "Notes of the run"), tag("ul", (tag("li", note) for note in view.notes))] if view.notes else []
    return join([page.pairs([*asked, *counted]), *notes])


# -- figures ----------------------------------------------------------------------------------------------------------


def some(measured: Sequence[Seen], most: int = _MOST_POINTS) -> Sequence[Seen]:
    """Thin a sequence out evenly to at most `most` kernels, the number that a figure can show."""
    return measured[:: max(1, math.ceil(len(measured) / most))]


def best_so_far(view: RunView, x: str) -> tuple[list[float], list[float]]:
    """Return where the best changed, in measurements or seconds, and S there. It ends at the last measurement."""
    steps = [*view.records, *view.measured[-1:]]
    across = [float(seen.measured or 0) if x == "measured" else seen.at for seen in steps]
    highs = [2 ** (seen.value or 0.0) for seen in view.records]
    return across, [*highs, *highs[-1:]]


def _progress(view: RunView) -> Html:
    if not view.records:
        return page.paragraph("Nothing has been measured yet.")
    return page.figures([_over(view, "measured", "measurement"), _over(view, "at", "seconds")])


def _over(view: RunView, x: str, label: str) -> Html:
    shown = [seen for seen in some(view.measured) if seen.value is not None]
    y = [2 ** (seen.value or 0.0) for seen in shown]
    across = [float(getattr(seen, x)) for seen in shown]
    titles = [f"{seen.name}: {words.outcome(seen)}" for seen in shown]
    series = [
        Series("best so far", *best_so_far(view, x), "steps"),
        Series("measured", across, y, "points", titles=titles),
    ]
    over = "measurements" if x == "measured" else "time"
    axes = Axis(label, low=0), Axis("speedup (dashed: the anchor)", log=True)
    return figure(f"Best so far over {over}", *axes, series, rule=1.0)


def _forecasts(view: RunView) -> Html:
    if not view.counts["forecasts"]:
        return page.paragraph("Nothing was forecast.")
    drawn = [each for each in (_accuracy(view), _reliability(view)) if each]
    return join([*([page.figures(drawn)] if drawn else []), *_calibration(view)])


def _calibration(view: RunView) -> Iterator[Html]:
    judged = view.judged
    count = len(judged)
    if not count:
        yield page.paragraph("No kernel that was forecast has been measured yet.")
        return
    inside = sum(each.is_inside for each in judged)
    middle = sorted(each.error for each in judged)[count // 2]
    which = "" if count == len(view.checked) else f"Of {len(view.checked):,} forecasts the last {count:,}: "
    yield page.paragraph(
        f"{which}{count:,} forecasts were followed by a measurement. {inside:,} of them ({inside / count:.0%}) held the"
        f" value in their 90 % interval; 90 % is right. Half of the medians were off by less than"
        f" {100 * (2**middle - 1):.3g} %."
    )


def _accuracy(view: RunView) -> Html | None:
    series = []
    groups = (("chosen for measuring", "measure"), ("audited", "audit"), ("trusted first, measured later", "trust"))
    for colour, (label, action) in enumerate(groups):
        if mine := some([seen for seen in view.checked if seen.action == action], 400):
            quantiles = [[2 ** seen.forecast.quantile(q) for seen in mine if seen.forecast] for q in (0.5, 0.05, 0.95)]
            x = [2 ** (seen.value or 0.0) for seen in mine]
            titles = [
                f"{seen.name}: forecast {words.forecast(seen.forecast)}, measured {words.outcome(seen)}"
                for seen in mine
            ]
            y, low, high = quantiles
            series.append(Series(label, x, y, "points", titles=titles, low=low, high=high, colour=colour))
    if not series:
        return None
    axes = Axis("times the anchor's speed, measured", log=True), Axis("forecast: median and 90 % interval", log=True)
    return figure("Forecast against measured: on the diagonal is right", *axes, series, diagonal=True)


def _reliability(view: RunView) -> Html | None:
    if len(judged := view.judged) < _FEWEST_JUDGED:
        return None
    confidence, hits = [each.confidence for each in judged], [each.is_hit for each in judged]
    curve = scoring.reliability_curve(confidence, hits, bins=5, binning="equal_mass")
    axes = Axis("probability given to the likeliest bin", 0, 1), Axis("how often it was the true one", 0, 1)
    series = [Series("forecasts of measured kernels", curve.confidence.tolist(), curve.accuracy.tolist())]
    return figure("Calibration so far: on the diagonal is honest", *axes, series, diagonal=True)


def to_json(view: RunView, standing: Standing) -> dict[str, Any]:
    """Return the JSON document of the run."""
    best, judged = view.best, view.judged
    return {
        "run": view.name,
        "state": state(view, standing.is_running)[0],
        "configuration": view.configuration,
        "best": best.hash if best else None,
        "speedup": standing.speedup._asdict() if standing.speedup else None,
        "spent": view.spent.to_json() | {"wall_seconds": view.clock(view.last_time)},
        "models": {who: {"tokens": amounts.tokens, "dollars": amounts.dollars} for who, amounts in view.models.items()},
        "kernels": len(view.kernels),
        "counts": dict(view.counts),
        "coverage_90": sum(each.is_inside for each in judged) / len(judged) if judged else None,
        "ended": standing.ended,
    }
