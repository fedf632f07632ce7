"""Lineage: a tree of the best kernels of a run and all their ancestors, as nested lists."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from presage.report import page, words
from presage.report.html import Html, join, tag
from presage.report.page import Links
from presage.report.run_view import RunView, Seen

_MOST = 200
_DEEPEST = 40
"""The largest depth of nested lists. Deeper descendants stay at this depth."""


def tree(view: RunView, links: Links) -> Html:
    shown = worth_showing(view)
    children: dict[str | None, list[Seen]] = {}
    for hash in sorted(shown, key=lambda hash: view.kernels[hash].number):
        seen = view.kernels[hash]
        children.setdefault(seen.parent if seen.parent in shown else None, []).append(seen)
    note = f"The best kernels and all their ancestors: {len(shown)} of {len(view.kernels):,}."
    best = view.best.hash if view.best else ""
    branches = Html("".join(_branches(children, best, links)))
    return join(
        [page.paragraph(note if len(shown) < len(view.kernels) else "All kernels."), tag("ul", branches, class_="tree")]
    )


def worth_showing(view: RunView) -> set[str]:
    """Return the hashes of the best kernels and of all their ancestors, at most about 200."""
    shown: set[str] = set()
    for seen in _ranked(view):
        line: dict[str, None] = {}
        at: Seen | None = seen
        while at is not None and at.hash not in shown and at.hash not in line and len(line) <= _MOST:
            line[at.hash] = None
            at = view.kernels.get(at.parent) if at.parent else None
        if shown and len(shown) + len(line) > _MOST:
            break
        shown.update(line)
    return shown


def _ranked(view: RunView) -> list[Seen]:
    """Return kernels in order of interest: the result, then measured kernels, then unmeasured ones by forecast."""

    def value(seen: Seen) -> float:
        return -math.inf if seen.value is None else seen.value

    def hope(seen: Seen) -> float:
        return seen.forecast.quantile(0.5) if seen.forecast else -math.inf

    ranked = [view.best] if view.best else []
    ranked += heapq.nlargest(_MOST, view.measured, key=value)
    if len(view.measured) < _MOST:
        ranked += heapq.nlargest(_MOST, (seen for seen in view.kernels.values() if seen.measured is None), key=hope)
    return ranked


def _branches(children: Mapping[str | None, Sequence[Seen]], best: str, links: Links) -> Iterator[str]:
    """Yield the markup of each node and its descendants, depth first, without recursion."""
    waiting: list[Seen | str] = list(reversed(children.get(None, ())))
    depth = 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            depth -= 1
            yield item
            continue
        own = children.get(item.hash, ())
        yield f'<li data-key="{escape(item.hash)}">{_node(item, item.hash == best, links)}'
        if own and depth < _DEEPEST:
            depth += 1
            yield "<ul>"
            waiting.append("</ul></li>")
        else:
            yield "</li>"
        waiting += reversed(own)


def _node(seen: Seen, is_best: bool, links: Links) -> Html:
    expected = f", forecast {words.forecast(seen.forecast)}" if seen.forecast else ""
    outcome = words.outcome(seen) or f"not measured{expected}"
    idea = f" – {seen.why}" if seen.why else ""
    return tag(
        "span",
        links.kernel(seen.hash, seen.name or seen.hash),
        f": {outcome}{idea}",
        class_="best" if is_best else None,
    )
