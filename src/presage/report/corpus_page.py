"""The pages of the corpus: the installed recordings, the operations of a recording, and the kernels of an operation.
PyTorch is shown beside the best kernel."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.corpus.check import spread
from presage.devices import recorded
from presage.devices.recording import Recording, Row
from presage.report import page, source, words
from presage.report.figure import Axis, Series, figure
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Column, Page, Section, Sorting

_TOP = 50
_OF_TORCH = ("eager.py", "compiled.py")
_PLACE = "/corpus"


@dataclass(frozen=True)
class Operation:
    """An operation of a recording in a few numbers. A kernel's time is the geometric mean of its cases' medians."""

    name: str
    room: str
    split: str
    kernels: int
    failed: int
    best_ns: float | None
    seed_ns: float | None
    eager_ns: float | None
    compiled_ns: float | None

    def over(self, ns: float | None) -> float | None:
        """Return the speedup of the best kernel over this time."""
        return ns / self.best_ns if ns and self.best_ns else None


_KEYS: Mapping[str, Callable[[Operation], Any]] = {
    "name": lambda each: each.name,
    "room": lambda each: (each.room, each.name),
    "split": lambda each: (each.split, each.name),
    "kernels": lambda each: each.kernels,
    "failed": lambda each: each.failed,
    "best": lambda each: each.best_ns or math.inf,
    "seed": lambda each: each.over(each.seed_ns) or 0.0,
    "eager": lambda each: each.over(each.eager_ns) or 0.0,
    "compiled": lambda each: each.over(each.compiled_ns) or 0.0,
}
_COLUMNS = (
    Column("operation", "name"), Column("room", "room"), Column("split", "split"),
    Column("kernels", "kernels", "number"), Column("failed", "failed", "number"),
    Column("best", "best", "number"), Column("over the seed", "seed", "number"),
    Column("over PyTorch", "eager", "number"), Column("over torch.compile", "compiled", "number"),
)  # fmt: skip


@dataclass(frozen=True)
class Query:
    """Which operations to show, and their order, as a page's address states them."""

    sort: str = "name"
    is_descending: bool = False
    text: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Query:
        sort = asked.get("sort", "name")
        return cls(sort if sort in _KEYS else "name", asked.get("order") == "down", asked.get("q", "")[:200])


class Corpus:
    """The installed recordings. The operations of each are computed once and cached."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, list[Operation]] = {}

    def names(self) -> list[str]:
        return recorded.packaged()

    def recording(self, name: str) -> Recording:
        """Return an installed recording. Raises PresageError for any other name: an address must not open files."""
        if name not in self.names():
            raise PresageError(f"there is no recording {one_line(name, 80)}; there are: {', '.join(self.names())}")
        return recorded.find(name)

    def operations(self, name: str) -> list[Operation]:
        found = self.recording(name)
        with self._lock:
            if name not in self._operations:
                self._operations[name] = _operations(found)
            return self._operations[name]


def _operations(found: Recording) -> list[Operation]:
    """Return every operation, computed from the medians. Sources and reports are not read."""
    columns = found.columns("problem", "room", "split", "family", "status", "cases")
    times: dict[str, dict[str, list[float]]] = {}
    about: dict[str, tuple[str, str]] = {}
    counts, failed = Counter[str](), Counter[str]()
    for problem, room, split, family, status, cases in zip(*columns.values(), strict=True):
        about[problem] = (room, split)
        counts[problem] += 1
        failed[problem] += status != "ok"
        if cases:
            time = math.exp(sum(math.log(case["median_ns"]) for case in cases) / len(cases))
            times.setdefault(problem, {}).setdefault(family, []).append(time)

    def first(problem: str, *families: str) -> float | None:
        return next((times[problem][each][0] for each in families if each in times.get(problem, {})), None)

    operations = []
    for problem, (room, split) in sorted(about.items()):
        own = [ns for family, mine in times.get(problem, {}).items() if family not in _OF_TORCH for ns in mine]
        operations.append(
            Operation(
                problem, room, split, counts[problem], failed[problem], min(own, default=None),
                first(problem, "naive.cu", "naive.c"), first(problem, "eager.py"), first(problem, "compiled.py"),
            )
        )  # fmt: skip
    return operations


# -- pages ------------------------------------------------------------------------------------------------------------


def recordings(corpus: Corpus) -> Page:
    rows = []
    for name in corpus.names():
        counts, facts = corpus.recording(name).counts, corpus.recording(name).facts
        hardware = one_line(str(facts.get("hardware", "")), 80)
        rows.append(
            (tag("a", name, href=address("corpus", name)), hardware, str(len(counts)), f"{sum(counts.values()):,}")
        )
    told = page.table(rows, ["recording", "hardware", "operations", "kernels"], "Recordings")
    return Page(
        "Corpus", [Section("answer", "", told if rows else page.paragraph("No recording is installed."))], _PLACE
    )


def recording(corpus: Corpus, name: str, query: Query) -> Page:
    operations = corpus.operations(name)
    text = query.text.casefold()
    found = [each for each in operations if any(text in part.casefold() for part in (each.name, each.room, each.split))]
    found = sorted(found, key=_KEYS[query.sort], reverse=query.is_descending)

    def link(key: str, down: bool) -> str:
        return address("corpus", name, sort=key, order="down" if down else "up", q=query.text)

    kept = [("sort", query.sort), ("order", "down" if query.is_descending else "up")]
    form = page.search_box(address("corpus", name), [page.text_box("With these words", "q", query.text)], kept)
    rows = [_operation_row(name, each) for each in found]
    table = page.table(rows, _COLUMNS, "Operations", Sorting(query.sort, query.is_descending, link))
    sections = [
        Section("answer", "", _summary(operations)),
        Section("picture", "PyTorch beside the best", page.figures([_against_torch(operations)])),
        Section("operations", "Operations", join([form, page.paragraph(f"{len(found)} operations."), table])),
    ]
    return Page(f"Corpus: {name}", sections, _PLACE, (("Corpus", _PLACE),))


def _summary(operations: Sequence[Operation]) -> Html:
    compared = [over for each in operations if (over := each.over(each.eager_ns))]
    kernels = sum(each.kernels for each in operations)
    told = f"{len(operations)} operations, {kernels:,} kernels."
    if compared:
        faster = sum(over > 1 for over in compared)
        mean = math.exp(sum(map(math.log, compared)) / len(compared))
        told += f" The best is faster than PyTorch on {faster} of {len(compared)}; {mean:.3g}{words.TIMES} on average."
    return tag("p", told, class_="headline")


def _against_torch(operations: Sequence[Operation]) -> Html:
    series = []
    for label, pick in (("PyTorch", "eager_ns"), ("torch.compile", "compiled_ns")):
        known = sorted((over, each.name) for each in operations if (over := each.over(getattr(each, pick))))
        titles = [f"{name}: {over:.3g}{words.TIMES}" for over, name in known]
        series.append(
            Series(f"over {label}", range(1, len(known) + 1), [over for over, _ in known], "points", titles=titles)
        )
    axes = Axis("operations, in order"), Axis("the best kernel is so many times as fast", log=True)
    return figure("The best kernel of each operation against PyTorch", *axes, series, rule=1.0)


def _operation_row(recording: str, each: Operation) -> Sequence[Content]:
    ratios = [each.over(ns) for ns in (each.seed_ns, each.eager_ns, each.compiled_ns)]
    return (
        tag("a", each.name, href=address("corpus", recording, each.name)), each.room, each.split, f"{each.kernels:,}",
        f"{each.failed:,}", words.nanoseconds(each.best_ns) if each.best_ns else "",
        *(f"{ratio:.3g}{words.TIMES}" if ratio else "" for ratio in ratios),
    )  # fmt: skip


def operation(corpus: Corpus, name: str, problem: str) -> Page:
    rows = corpus.recording(name).rows(problem, reports=False)
    if not rows:
        raise PresageError(f"{name} has no operation {one_line(problem, 80)}")
    ranked = sorted(rows, key=lambda row: row.total_ns)
    best = next((row for row in ranked if row.cases and row.family not in _OF_TORCH), None)
    sections = [
        Section("answer", "", _pool_summary(rows, best)),
        Section("picture", "The pool", page.figures([_pool(ranked)])),
        Section("kernels", f"The fastest {min(_TOP, len(rows))}", _fastest(ranked)),
    ]
    if best:
        sections.append(Section("source", "The best kernel's source", source.highlighted(best.source, best.language)))
    return Page(one_line(problem, 100), sections, _PLACE, (("Corpus", _PLACE), (name, address("corpus", name))))


def _pool_summary(rows: Sequence[Row], best: Row | None) -> Html:
    ratios = {"the seed": "over_seed", "PyTorch": "over_eager", "torch.compile": "over_compiled"}
    found = spread(rows)
    told = [f"{over:.3g}{words.TIMES} {what}" for what, key in ratios.items() if (over := found[key])]
    headline = f"The best is {', '.join(told)}." if told else "The best kernel of the pool."
    statuses = Counter(str(row.status) for row in rows)
    facts: list[tuple[str, Content]] = [
        ("kernels", ", ".join(f"{count} {status}" for status, count in statuses.items()))
    ]
    if best:
        facts.append(("best", [tag("strong", one_line(best.name, 200)), tag("p", words.nanoseconds(best.total_ns))]))
    return join([tag("p", headline, class_="headline"), page.facts([*facts, ("split", rows[0].split or "none")])])


def _pool(ranked: Sequence[Row]) -> Html:
    series = []
    for label, mine in (
        ("kernels", [row for row in ranked if row.cases and row.family not in _OF_TORCH]),
        ("PyTorch and torch.compile", [row for row in ranked if row.cases and row.family in _OF_TORCH]),
    ):
        places = [1 + ranked.index(row) for row in mine]
        titles = [f"{one_line(row.name, 100)}: {words.nanoseconds(row.total_ns)}" for row in mine]
        series.append(Series(label, places, [row.total_ns / 1e3 for row in mine], "points", titles=titles))
    return figure("Kernels from the fastest to the slowest", Axis("place"), Axis("µs", log=True), series)


def _fastest(ranked: Sequence[Row]) -> Html:
    rows: list[Sequence[Content]] = []
    for place, row in enumerate(ranked[:_TOP], start=1):
        S = row.speedup
        told = f"{S.value:.3g}{words.TIMES} ({S.low:.3g} to {S.high:.3g})" if S else one_line(row.reason, 200)
        time = words.nanoseconds(row.total_ns) if row.cases else ""
        rows.append((one_line(row.name, 200), str(place), row.language, str(row.status), time, told))
    return page.table(rows, ["kernel", "place", "language", "status", "time", "over the anchor"], "The fastest kernels")
