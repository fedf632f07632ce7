"""Figures as inline SVG: lines, points, steps, bars and bands on axes. Colours come from the page's style, so that
figures are readable on light and dark backgrounds. Below each figure, the reader can open a table of its numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from presage.report.html import Html, tag

WIDTH, HEIGHT = 560, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 14, 48
COLOURS = 6
"""The number of colours: classes c0, c1, … of the page's style. Further series start again at c0."""
_MOST_POINTS = 800
_MOST_ROWS = 40
_LARGEST = 1e100
_FEWEST_TICKS, _MOST_OCTAVES = 3, 8
_LEAST = 1e-200


@dataclass(frozen=True)
class Series:
    """Points to draw. Points that are not finite, or whose size is 1e100 or more, are left out."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    kind: Literal["line", "points", "steps", "bars", "band", "area"] = "line"
    dashed: bool = False
    titles: Sequence[str] = ()
    """The tooltip of each point."""
    low: Sequence[float] = ()
    """The lower ends of the intervals of points, or of a band around y. `high` has the upper ends."""
    high: Sequence[float] = ()
    colour: int | None = None
    """The number of the colour. None takes the series' index."""


@dataclass(frozen=True)
class Axis:
    """An axis: its label, and its ends; an end of None follows from the points."""

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    """Whether the axis is logarithmic, with ticks at powers of two. Points that are not positive are left out."""
    ticks: Sequence[float] = ()
    """The values of the ticks. If empty, they follow from the ends."""


def figure(
    title: str, x: Axis, y: Axis, series: Sequence[Series], *, diagonal: bool = False, rule: float | None = None
) -> Html:
    """Return a figure with its caption, legend and table. `diagonal` draws the line y = x, `rule` a line at one y."""
    shown = [_finite(each, x.log, y.log) for each in series]
    across = _Scale.of(x, (v for each in shown for v in each.x), _LEFT, WIDTH - _RIGHT)
    heights = [v for each in shown for v in (*each.y, *each.low, *each.high)] + ([rule] if rule is not None else [])
    from_zero = any(each.kind in ("bars", "area") for each in shown)
    up = _Scale.of(y, heights, HEIGHT - _BOTTOM, _TOP, from_zero)
    parts = [_grid(across, up), *([_diagonal(across, up)] if diagonal else [])]
    if rule is not None:
        parts.append(f'<path class="rule" d="M{_LEFT} {up.at(rule):.1f}H{WIDTH - _RIGHT}"/>')
    parts += [_draw(each, f"c{_colour(i, each)}", across, up) for i, each in enumerate(shown)]
    parts.append(_labels(x, y))
    described = "; ".join(f"{each.label}: {len(each.x)} points" for each in shown) or "nothing to show"
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    told = f"<title>{escape(title)}</title><desc>{escape(described)}</desc>"
    drawing = Html(f"{head}{told}{''.join(parts)}</svg>")
    return tag("figure", tag("figcaption", title), drawing, _legend(shown), _table(title, x, y, shown))


def _colour(place: int, series: Series) -> int:
    return (place if series.colour is None else series.colour) % COLOURS


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return about this many round numbers from low to high: multiples of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / max(about - 1, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


@dataclass(frozen=True)
class _Scale:
    """Maps values of an axis to SVG coordinates."""

    low: float
    high: float
    start: float
    end: float
    axis: Axis

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], start: float, end: float, from_zero: bool = False) -> _Scale:
        placed = [math.log2(value) if axis.log else value for value in values]
        low, high = min(placed, default=0.0), max(placed, default=1.0)
        low = min(low, 0.0) if from_zero and not axis.log else low
        least = max(1e-9, 1e-6 * max(abs(low), abs(high)))
        low, high = (low - max(0.5, least), high + max(0.5, least)) if high - low < least else (low, high)
        margin = 0.04 * (high - low)
        low, high = (low if from_zero else low - margin), high + margin
        ends = [end if end is None or not axis.log else math.log2(end) for end in (axis.low, axis.high)]
        return cls(low if ends[0] is None else ends[0], high if ends[1] is None else ends[1], start, end, axis)

    def at(self, value: float) -> float:
        placed = math.log2(value) if self.axis.log else value
        share = (placed - self.low) / (self.high - self.low)
        return self.start + min(max(share, -0.01), 1.01) * (self.end - self.start)

    def _octaves(self) -> list[float]:
        """Return the ticks of a logarithmic axis: powers of two, or round numbers if there are fewer than three."""
        step = max(1, math.ceil((self.high - self.low) / _MOST_OCTAVES))
        found = [2.0**tick for tick in range(math.ceil(self.low), math.floor(self.high) + 1) if tick % step == 0]
        ends = 2.0**self.low, 2.0**self.high
        if len(found) >= _FEWEST_TICKS or ends[1] - ends[0] < _LEAST:
            return found or list(ends)
        return [tick for tick in ticks(*ends) if tick > 0]

    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinate and the label of each tick."""
        found = list(self.axis.ticks) or ticks(self.low, self.high)
        if self.axis.log and not self.axis.ticks:
            found = self._octaves()
        return [(self.at(tick), f"{tick:.4g}") for tick in found]


def _finite(series: Series, log_x: bool, log_y: bool) -> Series:
    """Return the series without points that cannot be drawn, thinned out evenly to at most about 800 points."""
    ends = list(zip(series.low or series.y, series.high or series.y, strict=True))
    kept = [at for at in range(len(series.x)) if _drawn(series.x[at], log_x) and _drawn(series.y[at], log_y)]
    most = _MOST_POINTS // 3 if series.kind == "points" and series.low else _MOST_POINTS
    kept = kept[:: max(1, math.ceil(len(kept) / most))]
    titles = [series.titles[at] if series.titles else "" for at in kept]
    x, y = ([float(values[at]) for at in kept] for values in (series.x, series.y))
    shown = replace(series, x=x, y=y, titles=titles)
    if not series.low:
        return shown
    known = [
        ends[at] if _drawn(ends[at][0], log_y) and _drawn(ends[at][1], log_y) else (series.y[at],) * 2 for at in kept
    ]
    return replace(shown, low=[float(low) for low, _ in known], high=[float(high) for _, high in known])


def _drawn(value: float, log: bool) -> bool:
    return abs(value) < _LARGEST and (value > 0 or not log)


def _grid(across: _Scale, up: _Scale) -> str:
    left, right, bottom, top = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM, _TOP
    parts = []
    for place, label in across.marks():
        parts.append(f'<path class="grid" d="M{place:.1f} {bottom}V{top}"/>')
        parts.append(f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>')
    for place, label in up.marks():
        parts.append(f'<path class="grid" d="M{left} {place:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 7}" y="{place + 4:.1f}" text-anchor="end">{label}</text>')
    return "".join([*parts, f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>'])


def _diagonal(across: _Scale, up: _Scale) -> str:
    low, high = max(across.low, up.low), min(across.high, up.high)
    ends = [2.0**v if across.axis.log else v for v in (low, high)]
    (x0, y0), (x1, y1) = ((across.at(v), up.at(v)) for v in ends)
    return f'<path class="diagonal" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>'


def _draw(series: Series, colour: str, across: _Scale, up: _Scale) -> str:
    places = [(across.at(x), up.at(y)) for x, y in zip(series.x, series.y, strict=True)]
    if not places:
        return ""
    if series.kind == "points":
        marks = zip(places, series.titles, strict=True)
        return _reach(series, colour, across, up) + "".join(
            f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3">{_told(t)}</circle>' for (x, y), t in marks
        )
    if series.kind == "band":
        low, high = (_stepped(series.x, side, across, up) for side in (series.low, series.high))
        around = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in [*low, *reversed(high)]) + "Z"
        return f'<path class="band {colour}" d="{around}"/>'
    if series.kind == "area":
        top = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        ground = up.at(max(0.0, up.low))
        line = f"M{places[0][0]:.1f} {ground:.1f}L{top}L{places[-1][0]:.1f} {ground:.1f}Z"
        return f'<path class="area {colour}" d="{line}"/>'
    if series.kind == "bars":
        return "".join(
            _bar(x, y, colour, title, len(places)) for (x, y), title in zip(places, series.titles, strict=True)
        )
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    if series.kind == "steps":
        line = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    return f'<path class="line {colour}{" dashed" if series.dashed else ""}" d="{line}"/>'


def _stepped(x: Sequence[float], y: Sequence[float], across: _Scale, up: _Scale) -> list[tuple[float, float]]:
    """Return the corners of a step line: each value holds until the next x."""
    places = [(across.at(a), up.at(b)) for a, b in zip(x, y, strict=True)]
    return [corner for one, other in itertools.pairwise([*places, places[-1]]) for corner in (one, (other[0], one[1]))]


def _bar(x: float, y: float, colour: str, title: str, count: int) -> str:
    width = max(2.0, 0.7 * (WIDTH - _LEFT - _RIGHT) / count)
    height = max(0.0, HEIGHT - _BOTTOM - y)
    corner = f'x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{colour}" {corner}>{_told(title)}</rect>'


def _told(title: str) -> str:
    return f"<title>{escape(title)}</title>" if title else ""


def _labels(x: Axis, y: Axis) -> str:
    places = (
        (x.label, f'x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 8}"'),
        (y.label, f'transform="translate(15 {(HEIGHT - _BOTTOM + _TOP) / 2}) rotate(-90)"'),
    )
    return "".join(f'<text {place} text-anchor="middle">{escape(label)}</text>' for label, place in places)


def _reach(series: Series, colour: str, across: _Scale, up: _Scale) -> str:
    """Draw a vertical line through each point, from the lower to the upper end of its interval."""
    if not series.low:
        return ""
    lines = (
        f"M{across.at(x):.1f} {up.at(low):.1f}V{up.at(high):.1f}"
        for x, low, high in zip(series.x, series.low, series.high, strict=True)
        if low < high
    )
    return f'<path class="reach {colour}" d="{"".join(lines)}"/>'


def _legend(series: Sequence[Series]) -> Html:
    named = [(i, each) for i, each in enumerate(series) if each.label]
    if len(series) < 2:
        return Html()
    keys = (tag("li", tag("span", class_=f"key c{_colour(i, each)}"), each.label) for i, each in named)
    return tag("ul", keys, class_="legend")


def _table(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> Html:
    """Return the figure's numbers as a table, for readers who cannot see the figure. Long series are thinned evenly."""
    rows = []
    for each in series:
        every = max(1, math.ceil(len(each.x) / _MOST_ROWS))
        for at in [*range(0, len(each.x), every)]:
            reach = f" ({each.low[at]:.4g} to {each.high[at]:.4g})" if each.low else ""
            rows.append([each.label, f"{each.x[at]:.4g}", f"{each.y[at]:.4g}{reach}", each.titles[at]])
    if not rows:
        return Html()
    head = tag("tr", (tag("th", name, scope="col") for name in ("", x.label, y.label, "")))
    body = (tag("tr", (tag("td", cell) for cell in row)) for row in rows)
    table = tag("table", tag("thead", head), tag("tbody", body))
    box = tag("div", table, class_="box tall", tabindex=0, role="region", aria_label=f"Numbers: {title}")
    return tag("details", tag("summary", "Numbers"), box)
