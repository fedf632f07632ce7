"""A page: a title and sections of HTML, either for the web view or frozen into one self-contained file.

Kernels and models' answers are untrusted, so control characters are escaped, and the page's policy forbids all scripts
that are not ours.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.core.text import printable
from presage.report.html import Content, Html, address, join, tag

ASSETS = Path(__file__).with_name("assets")
_PLACES = (("Runs", "/"), ("Compare", "/compare"), ("Corpus", "/corpus"), ("Evaluations", "/evaluations"))
_CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Section:
    """A part of a page that a live page can replace separately. The first section of a page has no heading."""

    id: str
    heading: str
    content: Html


@dataclass(frozen=True)
class Page:
    """The content of one address."""

    title: str
    sections: Sequence[Section]
    place: str = "/"
    """The path of the menu entry to which the page belongs."""
    trail: Sequence[tuple[str, str]] = field(default=())
    """The names and addresses of the pages above this one."""


@dataclass(frozen=True)
class Links:
    """How pages link to kernels of a run: to the kernel's own page, or to its section in a frozen file."""

    run: str
    frozen: frozenset[str] | None = None
    """The hashes of the kernels that a frozen file shows; None for the web view."""

    @property
    def is_frozen(self) -> bool:
        return self.frozen is not None

    def kernel(self, hash: str, name: str, **attributes: str) -> Html:
        if self.frozen is None:
            return tag("a", name, href=address("runs", self.run, "kernels", hash), **attributes)
        return tag("a", name, href=f"#kernel-{hash}", **attributes) if hash in self.frozen else join(name)


def live(page: Page, stream: str | None) -> str:
    """Return the document for the web view. `stream` is the address of the events that update it, or None."""
    places = (
        tag("li", tag("a", name, href=path, aria_current="page" if path == page.place else None))
        for name, path in _PLACES
    )
    header = tag(
        "header",
        tag("a", "Presage", href="/", class_="brand"),
        tag("nav", tag("ul", places), aria_label="Pages"),
        tag("p", id="connection", role="status"),
        class_="site",
    )
    head = [
        tag("link", rel="stylesheet", href="/assets/presage.css"),
        tag("link", rel="icon", href="/assets/icon.svg", type="image/svg+xml"),
        tag("script", type="module", src="/assets/presage.js"),
    ]
    return _document(page, head, header, {"data_stream": stream} if stream else {})


def frozen(page: Page) -> str:
    """Return the document as one file, which has no scripts and loads nothing."""
    style, hash = _style()
    rules = f"{_CLOSED}; style-src 'sha256-{hash}'"
    head = [tag("meta", http_equiv="Content-Security-Policy", content=rules), Html(f"<style>{style}</style>")]
    return _document(replace(page, trail=()), head, Html(), {})


def _document(page: Page, head: Sequence[Html], header: Html, attributes: dict[str, str]) -> str:
    above = (tag("li", tag("a", name, href=path)) for name, path in page.trail)
    trail = tag("nav", tag("ul", above), class_="trail", aria_label="Above this page") if page.trail else None
    main = tag(
        "main",
        trail,
        tag("h1", page.title),
        *(section(each) for each in page.sections),
        id="main",
        tabindex=-1,
        **attributes,
    )
    known = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{page.title} – Presage" if header else page.title),
    ]
    body = tag("body", tag("a", "Skip to the content", href="#main", class_="skip"), header, main)
    return printable(f'<!doctype html><html lang="en">{tag("head", known, head)}{body}</html>\n')


def section(of: Section) -> Html:
    heading = tag("h2", of.heading, id=f"{of.id}-heading") if of.heading else None
    return tag("section", heading, of.content, id=of.id, aria_labelledby=f"{of.id}-heading" if of.heading else None)


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet, and its hash for the content security policy."""
    style = (ASSETS / "presage.css").read_text(encoding="utf-8")
    return style, base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


# -- parts ------------------------------------------------------------------------------------------------------------


def paragraph(*text: Content, class_: str = "note") -> Html:
    return tag("p", *text, class_=class_)


def figures(drawn: Iterable[Html]) -> Html:
    """Return figures side by side, if there is room."""
    return tag("div", drawn, class_="figures")


def facts(told: Iterable[tuple[str, Content]]) -> Html:
    """Return names with a text about each, as cards."""
    return tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in told), class_="facts")


def pairs(told: Iterable[tuple[str, Content]]) -> Html:
    """Return names with a short value of each, one per line."""
    return tag("dl", ([tag("dt", name), tag("dd", value)] for name, value in told), class_="pairs")


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    key: str = ""
    """The name of this column in the page's address, if rows can be sorted by it."""
    kind: str = ""
    """The CSS class: `number`, `wide`, `narrow` or empty."""


@dataclass(frozen=True)
class Sorting:
    """The key of the column by which rows are sorted, and a function that returns the address of another order."""

    key: str
    is_descending: bool
    link: Callable[[str, bool], str]


def table(
    rows: Iterable[Sequence[Content]],
    columns: Sequence[Column | str],
    title: str,
    sorting: Sorting | None = None,
    *,
    tall: bool = False,
    keys: Sequence[str] = (),
) -> Html:
    """Return a table in a scrollable box. On a narrow screen each row is a card. A row's first cell is its header.

    `keys` identifies each row, so that a live page can match it with the old row after an update."""
    known = [Column(each) if isinstance(each, str) else each for each in columns]
    head = tag("tr", (_header(column, sorting) for column in known))
    body = (
        tag("tr", (_cell(at, *pair) for at, pair in enumerate(zip(row, known, strict=True))), data_key=key)
        for row, key in zip(rows, keys or itertools.repeat(None), strict=False)
    )
    inner = tag("table", tag("thead", head), tag("tbody", body), class_="cards")
    return tag("div", inner, class_="box tall" if tall else "box", tabindex=0, role="region", aria_label=title)


def _header(column: Column, sorting: Sorting | None) -> Html:
    kind = column.kind or None
    if not sorting or not column.key:
        return tag("th", column.name, scope="col", class_=kind)
    is_this = column.key == sorting.key
    order = ("descending" if sorting.is_descending else "ascending") if is_this else None
    link = tag("a", column.name, href=sorting.link(column.key, is_this and not sorting.is_descending), data_soft=True)
    return tag("th", link, scope="col", class_=kind, aria_sort=order)


def _cell(at: int, cell: Content, column: Column) -> Html:
    kind = column.kind or None
    if at == 0:
        return tag("th", cell, scope="row", class_=kind)
    return tag("td", cell, class_=kind, data_label=column.name or None)


def search_box(action: str, fields: Iterable[Html], kept: Iterable[tuple[str, str]] = ()) -> Html:
    """Return a form that requests the same page with other settings. `kept` are hidden fields to send along."""
    hidden = (tag("input", type="hidden", name=name, value=value) for name, value in kept)
    return tag(
        "form", fields, hidden, tag("button", "Show"), class_="filter", action=action, method="get", data_soft=True
    )


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Html:
    known = (tag("option", said, value=value, selected=value == chosen) for value, said in options)
    return tag("label", label, tag("select", known, name=name))


def text_box(label: str, name: str, value: str) -> Html:
    return tag("label", label, tag("input", type="search", name=name, value=value, maxlength=200))


def write(path: Path, document: str) -> Path:
    """Write a page atomically and return its path. Raises PresageError if it cannot be written."""
    try:
        write_whole(path, document)
    except OSError as error:
        raise PresageError(f"cannot write {path}: {error.strerror or error}") from error
    return path
