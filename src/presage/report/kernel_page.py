"""The page of one kernel: its idea, the decision and its reason, its forecast, measurements, static reports and source,
all compared with its parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.devices.base import Measurement
from presage.kernels.kernel import Kernel
from presage.report import page, source, words
from presage.report.figure import Axis, Series, figure
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Links, Page, Section
from presage.report.run_view import Packed, RunView, Seen, readable
from presage.static import operations, roofline
from presage.static.report import LaunchReport, StaticReport
from presage.static.trace import Trace
from presage.store.store import Store

_MOST_CASES = 8
_MOST_LAUNCHES = 12
_MOST_STEPS = 40
_MOST_CHILDREN = 50
_LONGEST_OUTPUT = 20_000


@dataclass(frozen=True)
class Known:
    """A kernel with all that its run has stored about it."""

    seen: Seen
    kernel: Kernel
    reports: Sequence[StaticReport]
    measurements: Sequence[Measurement]

    @classmethod
    def read(cls, store: Store, seen: Seen) -> Known:
        return cls(seen, store.kernel(seen.hash), store.reports(seen.hash), store.measurements(seen.hash))


def build(view: RunView, store: Store, hash: str, links: Links) -> Page:
    """Return the page of the kernel with this hash. Raises PresageError if the run has no such kernel."""
    seen = find(view, hash)
    with readable(view.folder):
        this = Known.read(store, seen)
        parent = Known.read(store, view.kernels[this.seen.parent]) if this.seen.parent in view.kernels else None
        title = this.seen.name or hash
        trail = (("Runs", "/"), (view.name, address("runs", view.name)))
        return Page(title, list(_sections(view, this, parent, links)), trail=() if links.is_frozen else trail)


def find(view: RunView, hash: str) -> Seen:
    if hash not in view.kernels:
        raise PresageError(f"the run {view.name} has no kernel {one_line(hash, 40)}")
    return view.kernels[hash]


def _sections(view: RunView, this: Known, parent: Known | None, links: Links) -> Iterator[Section]:
    yield Section("answer", "", _answer(view, this, parent, links))
    pictures = [each for each in (_forecast(this.seen), *_samples(this, parent)) if each]
    if pictures:
        yield Section("pictures", "Forecast and samples", page.figures(pictures))
    if this.measurements:
        yield Section("timing", "Measurements", _timing(this, parent))
    if parent:
        names = parent.seen.name, this.seen.name
        yield Section(
            "difference", "Difference to its parent", source.difference(parent.kernel.source, this.kernel.source, names)
        )
    if this.reports:
        yield Section("compiled", "What compiling told", _compiled(this, parent))
    if any(report.trace for report in this.reports):
        yield Section("trace", "What a call does", _trace(this, parent))
    yield Section("source", "Source", source.highlighted(this.kernel.source, this.kernel.language))
    if children := [seen for seen in view.kernels.values() if seen.parent == this.seen.hash]:
        yield Section("children", "Children", _children(children, links))


# -- the answer -------------------------------------------------------------------------------------------------------


def headline(seen: Seen) -> str:
    if seen.again:
        reach = f" (95 %: {seen.again.low:.3g} to {seen.again.high:.3g})" if seen.again.is_known else ""
        return f"{seen.again.value:.3g}{words.TIMES} the anchor's speed{reach}"
    if seen.value is not None:
        return f"{words.times(seen.value)} the anchor's speed"
    if seen.measured is not None or seen.action == "broken":
        return "It does not work"
    return (
        f"Forecast: {words.forecast(seen.forecast)} the anchor's speed; not measured"
        if seen.forecast
        else "Not measured"
    )


def _answer(view: RunView, this: Known, parent: Known | None, links: Links) -> Html:
    seen, kernel = this.seen, this.kernel
    told: list[tuple[str, Content]] = []
    if seen.failure:
        told.append(("How it failed", tag("span", seen.failure, class_="bad")))
    if seen.action:
        how = "trusted, and measured later" if seen.is_promoted else seen.action
        told.append(
            (
                "Decision",
                [tag("strong", how), tag("p", seen.reason), *(tag("p", note, class_="note") for note in seen.notes)],
            )
        )
    elif seen.number:
        told.append(("Decision", "It was not decided on: others were more hopeful."))
    else:
        told.append(("Role", "The anchor: speedups are relative to it."))
    if seen.forecast:
        told.append(("Forecast", [words.forecast(seen.forecast), tag("p", f"may fail: {seen.forecast.p_fail:.0%}")]))
    if seen.measured:
        told.append(
            (
                "Measured",
                [
                    words.outcome(seen) or "failed",
                    tag("p", f"measurement {seen.measured}, after {words.duration(seen.at)}"),
                ],
            )
        )
    if seen.why:
        told.append(("Idea", seen.why))
    if parent:
        told.append(
            ("Parent", [links.kernel(parent.seen.hash, parent.seen.name), tag("p", words.outcome(parent.seen))])
        )
    if kernel.values:
        values = ", ".join(
            f"{one_line(str(name), 60)} = {one_line(str(value), 60)}" for name, value in kernel.values.items()
        )
        told.append(("Tunables", values))
    told.append(("Identity", [tag("code", seen.hash), tag("p", kernel.language)]))
    return join([tag("p", headline(seen), class_="headline", aria_live="polite"), page.facts(told)])


def _children(children: Sequence[Seen], links: Links) -> Html:
    rows = [
        (links.kernel(seen.hash, seen.name), seen.action, words.forecast(seen.forecast), words.outcome(seen), seen.why)
        for seen in children[:_MOST_CHILDREN]
    ]
    note = (
        page.paragraph(f"The first {_MOST_CHILDREN} of {len(children):,}.") if len(children) > _MOST_CHILDREN else None
    )
    return join([note, page.table(rows, ["kernel", "decision", "forecast", "measured", "idea"], "Children")])


# -- pictures ---------------------------------------------------------------------------------------------------------


def _forecast(seen: Seen) -> Html | None:
    """Return a figure of the forecast distribution, with the measured value."""
    if seen.forecast is None:
        return None
    x, y = density(seen.forecast)
    series = [Series("forecast", x, y, "area")]
    if seen.value is not None:
        series.append(Series("measured", [2**seen.value] * 2, [0.0, max(y)], "line"))
    axes = Axis("times the anchor's speed", log=True), Axis("density, if it works")
    return figure(f"Forecast: {words.forecast(seen.forecast)}; may fail: {seen.forecast.p_fail:.0%}", *axes, series)


def density(forecast: Packed) -> tuple[list[float], list[float]]:
    """Return the forecast's density over S as the corners of a curve: x and y."""
    checked = forecast.unpacked()
    x, y = [], []
    knots, cdf = checked.knots, checked.cdf
    for at in range(len(knots) - 1):
        height = (cdf[at + 1] - cdf[at]) / (knots[at + 1] - knots[at])
        x += [2 ** knots[at], 2 ** knots[at + 1]]
        y += [height, height]
    return x, y


def _samples(this: Known, parent: Known | None) -> Iterator[Html]:
    """Yield a figure for each case: its samples in the order in which they were taken, beside the parent's."""
    if not this.measurements or not this.measurements[-1].cases:
        return
    theirs = {case.case: case for case in parent.measurements[-1].cases} if parent and parent.measurements else {}
    for case in this.measurements[-1].cases[:_MOST_CASES]:
        series = [
            Series("this kernel", range(1, len(case.samples_ns) + 1), [ns / 1e3 for ns in case.samples_ns], "points")
        ]
        if other := theirs.get(case.case):
            y = [ns / 1e3 for ns in other.samples_ns]
            series.append(Series("its parent", range(1, len(y) + 1), y, "points"))
        name = one_line(case.case, 60)
        yield figure(f"Samples of {name}", Axis("sample"), Axis("µs a call", log=True), series)


# -- tables -----------------------------------------------------------------------------------------------------------


def _timing(this: Known, parent: Known | None) -> Html:
    rows: list[Sequence[Content]] = []
    theirs = {case.case: case for case in parent.measurements[-1].cases} if parent and parent.measurements else {}
    for number, measurement in enumerate(this.measurements, start=1):
        if not measurement.cases:
            said = one_line(f"{measurement.status}: {measurement.reason}", 400)
            rows.append((str(number), "", tag("span", said, class_="bad"), "", "", ""))
        for case in measurement.cases:
            median = case.median
            reach = f" ({words.nanoseconds(median.low)} to {words.nanoseconds(median.high)})" if median.is_known else ""
            other = theirs.get(case.case)
            rows.append(
                (
                    str(number),
                    one_line(case.case, 100),
                    f"{words.nanoseconds(median.value)}{reach}",
                    words.nanoseconds(other.median.value) if other else "",
                    f"{case.floor_ns / median.value:.0%}" if median.value else "",
                    f"{len(case.samples_ns)} in {max(1, len(case.processes))}",
                )
            )
    header = ["measurement", "case", "median (95 %)", "parent's", "of the roofline", "samples in processes"]
    outputs = [measurement.output for measurement in this.measurements if measurement.output.strip()]
    told = (
        [tag("h3", "What it wrote"), tag("pre", outputs[-1][-_LONGEST_OUTPUT:], class_="words", tabindex=0)]
        if outputs
        else []
    )
    believed = [m.not_replayed for m in this.measurements if m.believed == "worker"]
    note = (
        page.paragraph(one_line(f"Timed in its own process and not replayed: {believed[-1]}", 400), class_="warm")
        if believed
        else None
    )
    return join([note, page.table(rows, header, "Measurements"), *told])


def _launch_facts(launch: LaunchReport) -> dict[str, str]:
    return {
        "grid": " x ".join(map(str, launch.grid)),
        "block": " x ".join(map(str, launch.block)),
        "launches like it": str(launch.count),
        "registers": str(launch.registers),
        "spilled": f"{launch.spill_bytes} B",
        "stack": f"{launch.stack_bytes} B",
        "shared memory": f"{launch.shared_bytes} B",
        "occupancy": f"{launch.occupancy:.0%}, limited by {launch.occupancy_limiter.replace('_', ' ')}",
        "waves": "?" if launch.waves is None else f"{launch.waves:.3g}",
        "instructions": f"{sum(launch.instructions.values()):,}",
        "loops": str(launch.loops),
        **{f"instructions: {name.replace('_', ' ')}": f"{count:,}" for name, count in launch.instructions.items()},
        **{f"a warp runs: {name.replace('_', ' ')}": f"{count:.4g}" for name, count in (launch.executed or {}).items()},
    }


def _compiled(this: Known, parent: Known | None) -> Html:
    """Return the static report of each launch, beside the parent's launch of the same number."""
    parts: list[Content] = []
    theirs = [launch for report in parent.reports for launch in report.launches] if parent else []
    launches = [launch for report in this.reports for launch in report.launches]
    for report in this.reports[:_MOST_CASES]:
        parts += (
            [
                tag(
                    "pre",
                    one_line(report.status, 40) + ": " + (report.error or "")[-_LONGEST_OUTPUT:],
                    class_="words",
                    tabindex=0,
                )
            ]
            if report.error
            else []
        )
    for note in dict.fromkeys(note for report in this.reports for note in report.notes):
        parts.append(page.paragraph(one_line(note, 400)))
    for number, launch in enumerate(launches[:_MOST_LAUNCHES]):
        other = _launch_facts(theirs[number]) if number < len(theirs) else {}
        rows = [
            (name, value, tag("span", other.get(name, ""), class_="warm" if other.get(name, value) != value else None))
            for name, value in _launch_facts(launch).items()
        ]
        name = one_line(launch.name, 100)
        box = page.table(rows, ["", "this kernel", "its parent"], f"Launch of {name}")
        parts.append(tag("details", tag("summary", f"Launch {number + 1}: {name}"), box, open=number == 0))
    if len(launches) > _MOST_LAUNCHES:
        parts.append(page.paragraph(f"And {len(launches) - _MOST_LAUNCHES} more launches."))
    return join(parts)


def _steps(trace: Trace | None) -> dict[tuple[str, str], list[float]]:
    """Return the count, bytes and flops of the steps, by kind and name, without views and allocations."""
    found: dict[tuple[str, str], list[float]] = {}
    for step in trace.steps if trace else ():
        if trace and step.kind not in ("view", "allocation"):
            count, moved, flops = found.get((step.kind, step.name), [0, 0, 0])
            moved, flops = moved + roofline.moved_bytes(trace, step), flops + operations.of_step(trace, step)[0]
            found[step.kind, step.name] = [count + 1, moved, flops]
    return found


def _trace(this: Known, parent: Known | None) -> Html:
    mine = _steps(next((report.trace for report in this.reports if report.trace), None))
    theirs = _steps(next((report.trace for report in parent.reports if report.trace), None)) if parent else {}
    rows = [
        (
            one_line(key[1].removeprefix("aten::"), 100), key[0],
            *_compared([mine.get(key), theirs.get(key)] if parent else [mine.get(key)]),
        )
        for key in list(dict.fromkeys([*mine, *theirs]))[:_MOST_STEPS]
    ]  # fmt: skip
    header = ["step", "kind", "times", "bytes", "flops", *(["parent: times", "bytes", "flops"] if parent else [])]
    count = Counter(kind for kind, _ in mine)
    told = ", ".join(f"{number} kinds of {kind}" for kind, number in count.items())
    return join([page.paragraph(f"{told}; the first case."), page.table(rows, header, "Steps of a call")])


def _compared(counts: Sequence[Sequence[float] | None]) -> Iterator[str]:
    for each in counts:
        times, size, flops = each or (0, 0, 0)
        yield from (f"{times:.0f}", words.amount(size, "B"), words.amount(flops)) if times else ("–", "", "")


def to_json(view: RunView, seen: Seen) -> Mapping[str, object]:
    """Return the JSON document of one kernel."""
    low, middle, high = (2 ** seen.forecast.quantile(q) for q in (0.05, 0.5, 0.95)) if seen.forecast else (None,) * 3
    return {
        "kernel": seen.hash,
        "name": seen.name,
        "parent": seen.parent,
        "idea": seen.why,
        "forecast": {"value": middle, "low": low, "high": high, "p_fail": seen.forecast.p_fail}
        if seen.forecast
        else None,
        "action": seen.action or None,
        "reason": seen.reason,
        "decided_seconds": seen.decided if seen.action else None,
        "measured": seen.measured,
        "measured_seconds": seen.at if seen.measured else None,
        "speedup": None if seen.value is None else 2**seen.value,
        "status": seen.status or None,
        "failure": seen.failure,
    }
