"""The table of a run's kernels: the decision on each with its reason, the forecast, and the measurement. Rows are
filtered, sorted and paginated on the server, so that a page stays small for a run of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from presage.report import page, words
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Column, Links, Sorting
from presage.report.run_view import RunView, Seen

_ROWS = 50
_FROZEN = 300
_CHOICES = (
    ("", "all that were decided"), ("measure", "chosen for measuring"), ("audit", "audited"), ("trust", "trusted"),
    ("broken", "broken"), ("failed", "failed when measured"), ("undecided", "not decided"),
)  # fmt: skip
_COLUMNS = (
    Column("kernel and idea", "name"), Column("when", "time", "number"), Column("decision", "action"),
    Column("why", kind="wide"), Column("forecast", "forecast", "number"), Column("may fail", "fail", "number"),
    Column("measured", "measured"),
)  # fmt: skip
_KEYS: Mapping[str, Callable[[Seen], tuple[float, str]]] = {
    "time": lambda seen: (seen.decided, ""),
    "name": lambda seen: (0.0, seen.name),
    "action": lambda seen: (0.0, seen.action),
    "forecast": lambda seen: (seen.forecast.quantile(0.5) if seen.forecast else -math.inf, ""),
    "fail": lambda seen: (seen.forecast.p_fail if seen.forecast else -1.0, ""),
    "measured": lambda seen: (-math.inf if seen.value is None else seen.value, ""),
}


@dataclass(frozen=True)
class Query:
    """Which rows to show, and their order."""

    sort: str = "time"
    is_descending: bool = True
    show: str = ""
    text: str = ""
    page: int = 1

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Query:
        """Read the query from a page's address. An unknown value becomes the default."""
        sort = asked.get("sort", "time")
        number = asked.get("page", "1")
        return cls(
            sort if sort in _KEYS else "time",
            asked.get("order", "down") != "up",
            next((show for show, _ in _CHOICES if show == asked.get("show")), ""),
            asked.get("q", "")[:200],
            int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 1,
        )

    def link(self, run: str, **changes: object) -> str:
        told = {"sort": self.sort, "order": "down" if self.is_descending else "up", "show": self.show, "q": self.text}
        return address("runs", run, **(told | {"page": self.page} | changes)) + "#decisions"


def rows(view: RunView, query: Query) -> list[Seen]:
    """Return all rows that match the query, in its order."""
    found: Sequence[Seen] = view.decided
    if query.show == "undecided":
        found = [seen for seen in view.kernels.values() if not seen.action and seen.number]
    elif query.show == "failed":
        found = [seen for seen in found if seen.measured is not None and seen.value is None]
    elif query.show:
        found = [seen for seen in found if seen.action == query.show]
    if text := query.text.casefold():
        found = [
            s for s in found if any(text in each.casefold() for each in (s.name, s.why, s.reason, s.failure, s.hash))
        ]
    if query.sort == "time":  # `found` is in order of time already
        return list(reversed(found)) if query.is_descending else list(found)
    return sorted(found, key=_KEYS[query.sort], reverse=query.is_descending)


def table(view: RunView, links: Links, query: Query) -> Html:
    if not view.decided:
        return page.paragraph("Nothing was decided yet.")
    if links.is_frozen:
        few = view.decided[-_FROZEN:]
        note = (
            f"In order of time, the last {len(few)} of {len(view.decided):,}."
            if len(few) < len(view.decided)
            else "In order of time."
        )
        return join(
            [page.paragraph(note), page.table(_cells(few, links), _COLUMNS, "Kernels and decisions", tall=True)]
        )
    found = rows(view, query)
    pages = max(1, math.ceil(len(found) / _ROWS))
    at = min(max(1, query.page), pages)
    few = found[(at - 1) * _ROWS : at * _ROWS]
    sorting = Sorting(
        query.sort,
        query.is_descending,
        lambda key, down: query.link(links.run, sort=key, order="down" if down else "up", page=1),
    )
    return join(
        [
            _form(view, query),
            page.paragraph(f"{len(found):,} kernels; page {at:,} of {pages:,}."),
            page.table(
                _cells(few, links),
                _COLUMNS,
                "Kernels and decisions",
                sorting,
                tall=True,
                keys=[seen.hash for seen in few],
            ),
            _pages(query, links.run, at, pages),
        ]
    )


def _form(view: RunView, query: Query) -> Html:
    kept = [("sort", query.sort), ("order", "down" if query.is_descending else "up")]
    fields = [page.choice("Show", "show", _CHOICES, query.show), page.text_box("With these words", "q", query.text)]
    return page.search_box(address("runs", view.name), fields, kept)


def _pages(query: Query, run: str, at: int, pages: int) -> Html:
    """Return links to the other pages of the table."""
    places = [("First", 1), ("Previous", at - 1), ("Next", at + 1), ("Last", pages)]
    known = [(name, to) for name, to in places if 1 <= to <= pages and to != at]
    links = (tag("a", name, href=query.link(run, page=to), data_soft=True) for name, to in known)
    return tag("nav", links, class_="pages", aria_label="Pages of the table") if known else Html()


def _cells(shown: Sequence[Seen], links: Links) -> Iterator[Sequence[Content]]:
    for seen in shown:
        action = "trust, measured later" if seen.is_promoted else seen.action or "not decided"
        yield (
            [links.kernel(seen.hash, seen.name or seen.hash), tag("small", seen.why) if seen.why else None],
            words.duration(seen.decided) if seen.action else "",
            action,
            seen.reason,
            words.forecast(seen.forecast),
            f"{seen.forecast.p_fail:.0%}" if seen.forecast else "",
            tag("span", words.outcome(seen), class_="bad" if seen.value is None and seen.measured else None),
        )
