"""Describe a recording for its documentation page: tables in Markdown, and a picture.

The picture shows the best kernel of every operation against PyTorch.

    python benchmarks/corpus_card.py h200 --picture docs/measured/corpus_best.svg
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from presage.corpus.check import card
from presage.devices import recorded
from presage.devices.recording import Row

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1080, 420, 56, 12, 34, 104
SERIES = (("over_eager", "over PyTorch eager", "#0b6e4f"), ("over_compiled", "over torch.compile", "#d97706"))
LOW, HIGH = 0.25, 64.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording")
    parser.add_argument("--picture", type=Path, help="where to write the picture")
    arguments = parser.parse_args()
    found = recorded.find(arguments.recording)
    rows = list(found.rows(reports=True))
    numbers = card(found, rows)
    print("\n".join([*_counts(rows), "", *_spread(rows, numbers["spread"]), "", *_facts(numbers)]))
    if arguments.picture:
        arguments.picture.write_text(picture(numbers["spread"], {row.problem: row.room for row in rows}))
    return 0


def _counts(rows: Sequence[Row]) -> Iterator[str]:
    statuses = [status for status, _ in Counter(str(row.status) for row in rows).most_common()]
    by_room: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_room[row.room].append(row)
    yield f"| room | operations | kernels | CUDA | Triton | PyTorch | {' | '.join(statuses)} |"
    yield "|---" * (6 + len(statuses)) + "|"
    for room, mine in [*sorted(by_room.items()), ("**all**", list(rows))]:
        languages, found = Counter(row.language for row in mine), Counter(str(row.status) for row in mine)
        cells = [len({row.problem for row in mine}), len(mine), *(languages[x] for x in ("cuda", "triton", "torch"))]
        yield f"| {room} | {' | '.join(map(str, [*cells, *(found[status] for status in statuses)]))} |"


def _spread(rows: Sequence[Row], spread: dict[str, dict[str, float | None]]) -> Iterator[str]:
    rooms = {row.problem: row.room for row in rows}
    yield "| room | best over the seed | best over eager | best over torch.compile | operations faster than both |"
    yield "|---|---|---|---|---|"
    for room in [*sorted(set(rooms.values())), "**all**"]:
        mine = [each for name, each in spread.items() if room in (rooms[name], "**all**")]
        means = [_mean([each[name] for each in mine]) for name in ("over_seed", "over_eager", "over_compiled")]
        wins = sum(all((each[name] or 9.0) > 1.0 for name, _, _ in SERIES) for each in mine)
        yield f"| {room} | {' | '.join(means)} | {wins} of {len(mine)} |"


def _mean(ratios: Sequence[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio]
    return f"{geometric_mean(known):.2f}x ({min(known):.2f} to {max(known):.1f})" if known else ""


def _facts(numbers: dict[str, Any]) -> Iterator[str]:
    noise = numbers["noise"]
    yield f"- noise within a run: {noise['within_run']:.2%} (median half-width of a case's interval)"
    if noise["between_runs"] is not None:
        yield (
            f"- noise between runs: {noise['between_runs']:.2%} median, {noise['between_runs_95']:.2%} at the 95th"
            f" percentile, of {noise['repeated']} kernels measured again in processes of their own"
        )
    yield f"- variants within 5 % of an operation's best: {numbers['near_best']:.1%} (median over operations)"
    yield f"- the fewest variants of an operation: {numbers['least_variants']}"
    yield f"- device time: {numbers['device_seconds'] / 60:.0f} minutes; file: {numbers['bytes'] / 1e6:.1f} MB"
    spans = [math.log2(each["over_seed"]) for each in numbers["spread"].values() if each["over_seed"]]
    yield f"- the best kernel is {2 ** median(spans):.1f} times as fast as the seed (median over operations)"


def picture(spread: dict[str, dict[str, float | None]], rooms: dict[str, str]) -> str:
    """Return an SVG with one column per operation, ordered by room and then by speedup over PyTorch eager."""

    def gain(name: str) -> float:
        return spread[name]["over_eager"] or 0.0

    names = sorted(spread, key=lambda name: (rooms[name], gain(name)))
    step = (WIDTH - LEFT - RIGHT) / len(names)

    def y(ratio: float) -> float:
        share = math.log2(min(max(ratio, LOW), HIGH) / LOW) / math.log2(HIGH / LOW)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    ratio = LOW
    while ratio <= HIGH:
        colour = "#555" if ratio == 1.0 else "#e2e2e2"
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" stroke="{colour}"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}x</text>')
        ratio *= 2
    for room in dict.fromkeys(rooms[name] for name in names):
        mine = [i for i, name in enumerate(names) if rooms[name] == room]
        start, middle = LEFT + mine[0] * step, LEFT + (mine[0] + mine[-1] + 1) / 2 * step
        parts.append(f'<line x1="{start:.1f}" x2="{start:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#bbb"/>')
        at = f'x="{middle:.1f}" y="{HEIGHT - BOTTOM + 12}"'
        turn = f'transform="rotate(-38 {middle:.1f} {HEIGHT - BOTTOM + 12})"'
        parts.append(f'<text {at} text-anchor="end" {turn}>{escape(room)}</text>')
    for index, name in enumerate(names):
        for key, label, colour in SERIES:
            value = spread[name][key]
            if value:
                told = f"<title>{escape(name)}: {value:.2f}x {label}</title>"
                centre = f'cx="{LEFT + (index + 0.5) * step:.1f}" cy="{y(value):.1f}"'
                parts.append(f'<circle {centre} r="2.4" fill="{colour}" fill-opacity="0.8">{told}</circle>')
    for number, (_, label, colour) in enumerate(SERIES):
        x = LEFT + 10 + 210 * number
        parts.append(
            f'<circle cx="{x}" cy="16" r="4" fill="{colour}"/><text x="{x + 9}" y="20">best kernel {label}</text>'
        )
    return "".join(parts) + "</svg>\n"


if __name__ == "__main__":
    raise SystemExit(main())
