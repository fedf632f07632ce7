"""Draw the figure of a replay as SVG: distance from the optimum against measurements, a line per method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 60, 190, 20, 50
COLOURS = ("#0b6e4f", "#1f77b4", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf", "#ff7f0e")
TICKS = (1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
NEAREST = 0.002
"""The least distance from the optimum that is drawn: on a logarithmic scale, 0 would be infinitely low."""


def figure(budgets: Sequence[int], methods: Mapping[str, Sequence[float]]) -> str:
    """Return the figure. `budgets` increase; `methods` has, for each method, best found over optimum at each budget."""
    highest = max(max(max(off) for off in methods.values()), 1.1)

    def x(budget: float) -> float:
        share = math.log(budget / budgets[0]) / math.log(budgets[-1] / budgets[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(off: float) -> float:
        share = math.log(max(off - 1, NEAREST) / NEAREST) / math.log((highest - 1) / NEAREST)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tick in (tick for tick in TICKS if tick <= highest):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for budget in budgets:
        parts.append(f'<text x="{x(budget):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{budget}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">measurements</text>')
    parts.append(
        f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">best found / optimum</text>'
    )
    last = -math.inf
    for number, (name, off) in enumerate(sorted(methods.items(), key=lambda item: y(item[1][-1]))):
        colour, wide = COLOURS[number % len(COLOURS)], 3 if name.startswith("presage") else 1.5
        line = " ".join(f"{x(budget):.1f},{y(value):.1f}" for budget, value in zip(budgets, off, strict=True))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        last = max(last + 14, y(off[-1]) + 4)
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{last:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])
