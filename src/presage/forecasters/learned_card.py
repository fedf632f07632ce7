"""Describe a folder of trained models: write a model card, and a picture of the features that the trees use most."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

CARD, PICTURE = "CARD.md", "importance.svg"
_SHOWN = 24
_WIDTH, _LEFT, _LINE, _TOP = 720, 210, 18, 30
_WHAT = {
    "compiled": "GPU kernels with a static report",
    "source": "GPU kernels without one: from source and launch alone",
    "cpu": "CPU kernels, from source alone",
}

_TEXT = """# The `learned` forecaster's models

Gradient-boosted trees (LightGBM) that say how far a kernel stays from its roofline, how uncertain that is, and how
likely it fails. Made by `presage train learned`, which gives the same bytes again from the same recordings.

| model | for | kernels learned from | operations | features | recordings |
|---|---|---|---|---|---|
{rows}

- **Learned from** the `train` split; on the `validation` split its intervals were widened until they hold. How good it
  is on operations and families that it has never met: docs/measured/forecasting.md.
- **Meant for** ranking candidates of one operation on the hardware of the recordings, and for deciding which to
  measure. The anchor's measured time is part of every forecast; measured neighbours improve it.
- **Not meant for** other hardware, for kernels whose time depends on the values of their inputs, or as the only word on
  a kernel: a forecast is not a measurement.
- **Does not look at** names, comments or texts: only at what compiling, walking and parsing find.
- **Looks at** most: {picture}.
"""


def write(folder: Path) -> None:
    """Write the card and the picture for the models in a folder."""
    found = {kind: json.loads((folder / f"{kind}.json").read_text()) for kind in _WHAT if _is_there(folder, kind)}
    (folder / CARD).write_text(_card(found))
    first = next(iter(found))
    (folder / PICTURE).write_text(_picture(f"{_WHAT[first]}: share of what splits gain", found[first]["importance"]))


def _is_there(folder: Path, kind: str) -> bool:
    return (folder / f"{kind}.json").exists()


def _card(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        f"| `{kind}` | {_WHAT[kind]} | {facts['kernels']:,} ({facts['failed']:,} failed) | {facts['operations']} |"
        f" {len(facts['names'])} | {', '.join(facts['recordings'])} |"
        for kind, facts in found.items()
    ]
    return _TEXT.format(rows="\n".join(rows), picture=PICTURE)


def _picture(title: str, importance: Mapping[str, float]) -> str:
    """The most important features as a bar chart in SVG."""
    shown = list(importance.items())[:_SHOWN]
    most = max((share for _, share in shown), default=1.0)
    height = _TOP + _LINE * len(shown) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, share) in enumerate(shown):
        y = _TOP + _LINE * number
        width = (_WIDTH - _LEFT - 60) * share / most
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="{_LINE - 5}" fill="#0b6e4f"/>')
        parts.append(f'<text x="{_LEFT + width + 5:.1f}" y="{y + 12}">{100 * share:.1f} %</text>')
    return "\n".join([*parts, "</svg>", ""])
