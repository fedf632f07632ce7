"""report.html: the pages of a run in one self-contained file without scripts. It contains the run's page, and the pages
of the best kernel, of its ancestors and of the fastest other kernels."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from presage.report import kernel_page, page, run_page, run_view
from presage.report.decisions import Query
from presage.report.html import Html, join, tag
from presage.report.page import Links, Section
from presage.report.run_page import Standing
from presage.report.run_view import RunView, Seen
from presage.searches.run import REPORT, Run
from presage.store.store import Store

_KERNELS = 12
_LARGEST = 2_000_000
"""The most characters that the pages of all kernels may have together."""


def write(folder: Path) -> Path:
    """Write the report of a run into its folder and return the path. The run need not be finished."""
    return page.write(folder / REPORT, render(folder))


def render(folder: Path) -> str:
    """Return the text of the report."""
    view = run_view.read(folder)
    with Store(folder, writes=False) as store, run_view.readable(folder):
        links = Links(view.name, frozenset(seen.hash for seen in _chosen(view)))
        found = run_page.build(view, standing(view, store, False), links, Query())
        sections = [*found.sections, *_kernels(view, store, links)]
        return page.frozen(replace(found, sections=sections))


def standing(view: RunView, store: Store, is_running: bool) -> Standing:
    """Return what a run's page needs besides the events."""
    ended = Run(view.folder).summary() if view.finished else None
    delta = Run(view.folder).delta if view.finished else 0.0
    return Standing(is_running, run_view.speedup(view, store), ended, delta)


def _chosen(view: RunView) -> list[Seen]:
    """Return the best kernel, its ancestors, and the fastest other kernels; at most 12 in total."""
    found: dict[str, Seen] = {}
    at = view.best
    while at is not None and at.hash not in found and len(found) < _KERNELS:
        found[at.hash] = at
        at = view.kernels.get(at.parent) if at.parent else None
    fastest = heapq.nlargest(_KERNELS, view.measured, key=lambda seen: -math.inf if seen.value is None else seen.value)
    for seen in fastest:
        if len(found) < _KERNELS:
            found.setdefault(seen.hash, seen)
    return list(found.values())


def _kernels(view: RunView, store: Store, links: Links) -> Iterator[Section]:
    size = 0
    for seen in _chosen(view):
        found = kernel_page.build(view, store, seen.hash, links)
        parts = join(_part(seen.hash, each) for each in found.sections)
        if seen is not view.best:
            parts = tag("details", tag("summary", kernel_page.headline(seen)), parts)
        size += len(parts)
        if size > _LARGEST:
            parts = page.paragraph(
                "It is not shown here, since this file would become too large. 'presage ui' shows it."
            )
        yield Section(f"kernel-{seen.hash}", f"Kernel {found.title}", parts)


def _part(hash: str, section: Section) -> Html:
    if not section.heading:
        return section.content
    is_open = section.id in ("difference", "pictures")
    return tag("details", tag("summary", section.heading), section.content, open=is_open, id=f"{section.id}-{hash}")
