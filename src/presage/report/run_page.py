"""The page of a search run: its progress, its forecasts against what was measured, every decision, and the winner."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from presage.core import scoring
from presage.core.forecast import Forecast
from presage.core.scale import bin_of
from presage.report import page
from presage.report.figure import Axis, Series, figure
from presage.report.page import Section
from presage.report.run_view import RunView, Seen, read
from presage.searches import words

FILE = "report.html"
_MOST_DECISIONS = 500
_MOST_NODES = 300
_DEEPEST = 60
_FEWEST_FOR_RELIABILITY = 10
_LONGEST_DIFF = 2000
_LONGEST_COMPARED = 5000


def write(run_folder: Path) -> Path:
    """Write the report of a run into its folder, finished or not."""
    return page.write(run_folder / FILE, render(read(run_folder)))


def render(view: RunView) -> str:
    """The page as text."""
    sections = [
        Section("Result", page.table([[name, value] for name, value in _result(view)], ["", ""])),
        Section("Figures", page.figures([f for f in (_progress(view), _accuracy(view), _reliability(view)) if f])),
        Section("The winner against the anchor", _difference(view)),
        Section("Lineage", _lineage(view)),
        Section("Decisions", _decisions(view)),
    ]
    return page.page(f"Search: {view.problem}", _summary(view), sections)


def _summary(view: RunView) -> str:
    count = sum(seen.measured is not None for seen in view.kernels)
    told = f"Run {view.run}: {len(view.kernels)} kernels, {count} of them measured."
    return f"{told} {view.ended[:1].upper()}{view.ended[1:]}." if view.ended else f"{told} It has not ended."


def _result(view: RunView) -> Iterator[tuple[str, str]]:
    if best := view.by_hash.get(view.best):
        yield "best kernel", f"{best.name} ({best.hash})"
    if view.speedup:
        yield "speedup over the anchor", words.speedup(view.speedup)
    if best and best.measured:
        yield "found at measurement", str(best.measured)
    for note in view.notes:
        yield "note", note
    if view.missed:
        yield "missed", view.missed
    for action in ("measure", "trust", "audit"):
        yield f"decided to {action}", str(sum(seen.action == action for seen in view.kernels))
    yield "broken: did not compile, or could not launch", str(sum(seen.action == "broken" for seen in view.kernels))
    if view.early_stop:
        yield "stopped early", view.early_stop
    yield from view.facts.items()


# -- figures ----------------------------------------------------------------------------------------------------------


def _measured(view: RunView) -> list[Seen]:
    found = [seen for seen in view.kernels if seen.measured is not None]
    return sorted(found, key=lambda seen: seen.measured or 0)


def _progress(view: RunView) -> str:
    order = _measured(view)
    if not order:
        return ""
    speeds = [math.nan if seen.value is None else 2**seen.value for seen in order]
    best, so_far = [], 0.0
    for S in speeds:
        so_far = max(so_far, 0.0 if math.isnan(S) else S)
        best.append(so_far)
    numbers = [float(seen.measured or 0) for seen in order]
    titles = [f"{seen.name}: {S:.3g}x" for seen, S in zip(order, speeds, strict=True)]
    series = [
        Series("best so far", numbers, best, "steps"),
        Series("measured", numbers, speeds, "points", titles=titles),
    ]
    return figure("Progress", Axis("measurement"), Axis("speedup over the anchor", log=True), series)


def _accuracy(view: RunView) -> str:
    series = []
    for action in ("measure", "audit"):
        pairs = [(f, seen) for seen in _measured(view) if (f := seen.forecast) and seen.action == action]
        pairs = [(forecast, seen) for forecast, seen in pairs if seen.value is not None]
        if pairs:
            x, y = [2 ** f.mean() for f, _ in pairs], [2 ** (seen.value or 0.0) for _, seen in pairs]
            titles = [
                f"{seen.name}: {a:.3g}x forecast, {b:.3g}x measured"
                for (_, seen), a, b in zip(pairs, x, y, strict=True)
            ]
            series.append(Series({"measure": "measured", "audit": "audited"}[action], x, y, "points", titles=titles))
    axes = Axis("speedup forecast", log=True), Axis("speedup measured", log=True)
    return figure("Forecast against measured", *axes, series, diagonal=True) if series else ""


def _reliability(view: RunView) -> str:
    pairs = [(seen.forecast, seen.value) for seen in _measured(view) if seen.forecast and seen.value is not None]
    if len(pairs) < _FEWEST_FOR_RELIABILITY:
        return ""
    probabilities = [forecast.bin_probabilities() for forecast, _ in pairs]
    hits = scoring.hits(probabilities, bin_of([2**value for _, value in pairs]))
    curve = scoring.reliability_curve([p.max() for p in probabilities], hits, bins=5, binning="equal_mass")
    axes = Axis("probability given to the likeliest bin", 0, 1), Axis("how often it was the true one", 0, 1)
    series = [Series("forecasts of measured kernels", curve.confidence.tolist(), curve.accuracy.tolist())]
    return figure("Reliability of what was measured", *axes, series, diagonal=True)


# -- text -------------------------------------------------------------------------------------------------------------


def _difference(view: RunView) -> str:
    if view.best_source == view.anchor_source:
        return page.paragraph("The winner is the anchor itself.")
    both = view.anchor_source.splitlines(), view.best_source.splitlines()
    if max(map(len, both)) > _LONGEST_COMPARED:
        return page.paragraph(f"They have more than {_LONGEST_COMPARED} lines, which are not compared here.")
    lines = list(difflib.unified_diff(*both, "anchor", "winner", lineterm="", n=10_000))[2:]
    marks = {"+": "added", "-": "removed", "@": "place"}
    shown = [f'<span class="{marks.get(line[:1], "same")}">{escape(line)}</span>' for line in lines[:_LONGEST_DIFF]]
    left_out = f"\n({len(lines) - _LONGEST_DIFF} more lines)" if len(lines) > _LONGEST_DIFF else ""
    return "<pre>" + "\n".join(shown) + left_out + "</pre>"


def _decisions(view: RunView) -> str:
    decided = [seen for seen in view.kernels if seen.action]
    if not decided:
        return page.paragraph("Nothing was decided yet.")
    header = ["", "kernel", "idea", "forecast", "may fail", "decision", "why", "measured"]
    rows = [
        [str(number), seen.name, seen.why, _forecast(seen.forecast), _p_fail(seen.forecast), seen.action, seen.reason,
         _outcome(seen)]
        for number, seen in enumerate(decided, start=1)
    ]  # fmt: skip
    note = page.paragraph(f"The last {_MOST_DECISIONS} of {len(rows)}.") if len(rows) > _MOST_DECISIONS else ""
    return note + page.table(rows[-_MOST_DECISIONS:], header)


def _forecast(forecast: Forecast | None) -> str:
    if forecast is None:
        return "none"
    low, middle, high = (2 ** forecast.quantile(q) for q in (0.05, 0.5, 0.95))
    return f"{middle:.3g}x ({low:.3g} to {high:.3g})"


def _p_fail(forecast: Forecast | None) -> str:
    return "" if forecast is None else f"{forecast.p_fail:.2f}"


def _outcome(seen: Seen) -> str:
    if seen.value is not None:
        return f"{2**seen.value:.3g}x"
    return seen.failure or ("failed" if seen.measured is not None else "")


def _lineage(view: RunView) -> str:
    """A tree of nested lists: the best kernels with all their ancestors. The winner is marked."""
    shown = _worth_showing(view)
    children: dict[str | None, list[Seen]] = {}
    for seen in view.kernels:
        if seen.hash in shown:
            children.setdefault(seen.parent if seen.parent in shown else None, []).append(seen)
    note = f"The best kernels and their ancestors: {len(shown)} of {len(view.kernels)}."
    told = page.paragraph(note) if len(shown) < len(view.kernels) else ""
    return told + f'<ul class="tree">{"".join(_branches(children, view.best))}</ul>'


def _worth_showing(view: RunView) -> set[str]:
    def worth(seen: Seen) -> float:
        expected = seen.forecast.mean() if seen.forecast else -math.inf
        return -math.inf if seen.failure else expected if seen.value is None else seen.value

    ranked = sorted(view.kernels, key=lambda seen: (seen.hash != view.best, -worth(seen)))
    shown: set[str] = set()
    for seen in ranked:
        line: dict[str, None] = {}
        at: Seen | None = seen
        while at is not None and at.hash not in shown and at.hash not in line and len(line) < _MOST_NODES:
            line[at.hash] = None
            at = view.by_hash.get(at.parent) if at.parent else None
        if len(shown) + len(line) > _MOST_NODES:
            break
        shown.update(line)
    return shown


def _branches(children: Mapping[str | None, Sequence[Seen]], best: str) -> Iterator[str]:
    """Each node and its descendants, depth first. Beyond a depth, lists are not nested further."""
    waiting: list[Seen | str] = list(reversed(children.get(None, ())))
    depth = 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            depth -= 1
            yield item
            continue
        own = children.get(item.hash, ())
        yield f"<li>{_node(item, item.hash == best)}"
        if own and depth < _DEEPEST:
            depth += 1
            yield "<ul>"
            waiting.append("</ul></li>")
        else:
            yield "</li>"
        waiting += reversed(own)


def _node(seen: Seen, is_best: bool) -> str:
    expected = f", forecast {_forecast(seen.forecast)}" if seen.forecast else ""
    outcome = _outcome(seen) or f"not measured{expected}"
    idea = f" – {seen.why}" if seen.why else ""
    return f'<span class="{"best" if is_best else "kernel"}">{escape(f"{seen.name}: {outcome}{idea}")}</span>'
