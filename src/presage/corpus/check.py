"""Check a recording, and compute the numbers of its data card."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from presage.devices import recording
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.kernels.normalise import digest, normalise
from presage.problems import registry, splits
from presage.problems.base import SPLITS
from presage.problems.external import CONVENTIONS

FLOOR_SHARE = 0.8
"""A time below this share of the roofline's floor counts as impossible. The error of the measured peaks is smaller than
the remaining share."""
SIMILAR_OPERATIONS, SIMILAR_FAMILIES = 0.985, 0.8
"""The greatest similarity of sources in two splits (Jaccard index of five-token shingles). A new operation may share
code with other operations of its family; a new family may not share code with other families."""
_TOLD = re.compile(r"\b(naive|baseline|fast(?:er|est)?|slow(?:er|est)?|speed_?up|optimi[sz]ed|\d+(?:\.\d+)?x)\b", re.I)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_SHOWN = 5


def check(found: Recording, hashes: bool = True, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Return the numbers of the data card and, under `problems`, everything that is wrong with the recording.

    hashes: whether to recompute and compare the hash of every source. say: called with a line for each stage."""
    say("reading")
    rows = found.rows()
    problems = list(_columns(found))
    for name, promise in (
        ("duplicates", _duplicates),
        ("statuses", _statuses),
        ("speedups", _speedups),
        ("floors", _floors),
        ("splits", _splits),
        ("likeness", _likeness),
        ("words", _words),
        *((("hashes", _hashes),) if hashes else ()),
    ):
        say(f"checking {name}")
        broken = list(promise(rows))
        problems += broken[:_SHOWN]
        if len(broken) > _SHOWN:
            problems.append(f"{name}: {len(broken) - _SHOWN} more")
    return {"recording": found.name, **card(found, rows), "problems": problems}


# -- promises ---------------------------------------------------------------------------------------------------------


def _columns(found: Recording) -> Iterator[str]:
    """The file must have exactly the columns of a recording. Reports of an earlier version may lack newer fields."""
    import pyarrow.parquet

    held, known = (_fields(schema) for schema in (pyarrow.parquet.read_schema(found.path), recording.schema()))
    yield from (f"the column {name} is unknown" for name in sorted(held.keys() - known.keys()))
    missing = (name for name in known.keys() - held.keys() if not name.startswith("reports."))
    yield from (f"the column {name} is missing" for name in sorted(missing))
    for name in sorted(held.keys() & known.keys()):
        if held[name] != known[name]:
            yield f"the column {name} holds {held[name]}, not {known[name]}"


def _fields(columns: Any, within: str = "") -> dict[str, str]:
    """The types of all fields of a schema or a struct, by dotted name, including fields of list elements."""
    found: dict[str, str] = {}
    for field in columns:
        name, kind = f"{within}{field.name}", field.type
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        fields = getattr(kind, "fields", None)
        found[name] = "struct" if fields else str(kind)
        found |= _fields(fields or (), f"{name}.")
    return found


def _duplicates(rows: Sequence[Row]) -> Iterator[str]:
    counts = Counter((row.problem, row.hash) for row in rows)
    yield from (f"{problem} {hash} is there {n} times" for (problem, hash), n in counts.items() if n > 1)


def _statuses(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        ok = row.status is Status.OK
        if ok != bool(row.cases) or ok == bool(row.reason) or row.status is Status.DEVICE_FAULT:
            yield f"{row.problem} {row.hash} is {row.status} with {len(row.cases)} timed cases"
        if any(not case.samples_ns or min(case.samples_ns) <= 0 for case in row.cases):
            yield f"{row.problem} {row.hash} has a case without times"


def _speedups(rows: Sequence[Row]) -> Iterator[str]:
    by_key = {(row.problem, row.hash): row for row in rows}
    for row in rows:
        anchor = by_key.get((row.problem, row.anchor))
        if row.anchor and anchor is None:
            yield f"{row.problem} {row.hash} is relative to {row.anchor}, which is not there"
        elif anchor is not None and row.cases and [c.case for c in row.cases] != [c.case for c in anchor.cases]:
            yield f"{row.problem} {row.hash} has other cases than its anchor"
        elif anchor is not None and row.cases:
            again = _ratio(anchor, row)
            if row.speedup is None or not math.isclose(again, row.speedup.value, rel_tol=1e-6):
                yield f"{row.problem} {row.hash} has a speedup of {row.speedup}, but its samples say {again:.6g}"


def _ratio(anchor: Row, row: Row) -> float:
    logs = [
        median(map(math.log, a.samples_ns)) - median(map(math.log, c.samples_ns))
        for a, c in zip(anchor.cases, row.cases, strict=True)
    ]
    return math.exp(sum(logs) / len(logs))


def _floors(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for case in row.cases:
            if case.median.value < FLOOR_SHARE * case.floor_ns:
                time, floor = case.median.value, case.floor_ns
                yield f"{row.problem} {row.hash} takes {time:.0f} ns, less than the floor of {floor:.0f}"


def _splits(rows: Sequence[Row]) -> Iterator[str]:
    of_problem, of_room = defaultdict(set), defaultdict(set)
    for row in rows:
        of_problem[row.problem].add(row.split)
        of_room[row.room].add(row.split)
    for row in rows:
        if row.room in CONVENTIONS and row.split != splits.of_problem(row.problem):
            yield f"{row.problem} is in {row.split}; it belongs in {splits.of_problem(row.problem)}"
            return
    if not any(row.split for row in rows if row.room not in CONVENTIONS):
        return  # the recording has no other splits
    yield from (f"{name} is in {' and '.join(sorted(found))}" for name, found in of_problem.items() if len(found) > 1)
    for room, found in of_room.items():
        if "test_family" in found and len(found) > 1:
            yield f"the room {room} is in test_family and in {' and '.join(sorted(found - {'test_family'}))}"
    kind = "cpu" if any(row.language == "c" for row in rows) else "gpu"  # not every operation has cases for a CPU
    known = {name: registry.get(name) for name in registry.names()}
    possible = {problem.split for problem in known.values() if kind in problem.timed}
    yield from (f"the split {name} is empty" for name in sorted(possible - {row.split for row in rows}))
    for row in rows:
        if row.problem in known and row.split != known[row.problem].split:
            yield f"{row.problem} is in {row.split}; it belongs in {known[row.problem].split}"
            return


def _likeness(rows: Sequence[Row]) -> Iterator[str]:
    """The first kernel of each family must not be too similar to those of other splits. PyTorch modules are left out,
    because they are all similar."""
    firsts = {
        (row.problem, row.family, row.language): row for row in reversed(rows) if row.language != "torch" and row.source
    }.values()
    seen = [(row, _shingles(row)) for row in firsts if row.split in ("train", "validation")]
    for row in firsts:
        limit = {"test_op": SIMILAR_OPERATIONS, "test_family": SIMILAR_FAMILIES}.get(row.split)
        if limit is None:
            continue
        shingles = _shingles(row)
        for other, others in seen:
            if other.language == row.language and _are_alike(shingles, others, limit):
                twin = f"{other.problem} {other.family} of {other.split}"
                yield f"{row.split}: {row.problem} {row.family} is nearly {twin}"
                break


def _shingles(row: Row) -> frozenset[int]:
    """Hashes of five consecutive tokens of the normalised source; all numbers count as the same token."""
    text = normalise(row.source, row.language).replace(row.problem, "f")
    tokens = ["0" if token[0].isdigit() else token for token in _TOKEN.findall(text)]
    return frozenset(hash(tuple(tokens[i : i + 5])) for i in range(max(1, len(tokens) - 4)))


def _are_alike(one: frozenset[int], other: frozenset[int], limit: float) -> bool:
    """Whether the Jaccard index is above the limit. If the sizes alone rule this out, the sets are not compared."""
    fewer, more = sorted((len(one), len(other)))
    if fewer <= limit * more:
        return False
    common = len(one & other)
    return common > limit * (fewer + more - common)


def _hashes(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.source and digest(row.source, row.language) != row.hash:
            yield f"{row.problem} {row.hash}: the source has another hash"


def _words(rows: Sequence[Row]) -> Iterator[str]:
    """A normalised source must not say how fast it is. Imported and external sources are exempt."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if (row.problem, row.family) in seen or row.room in ("imported", *CONVENTIONS):
            continue
        seen.add((row.problem, row.family))
        if told := _TOLD.search(normalise(row.source, row.language)):
            yield f"{row.problem} {row.family}: its source says '{told[0]}'"


# -- the card ---------------------------------------------------------------------------------------------------------


def card(found: Recording, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the numbers of the data card: counts, spreads and noise."""
    by_problem: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_problem[row.problem].append(row)
    languages = {name: {row.language for row in each} for name, each in by_problem.items()}
    failures = sum(row.status is not Status.OK for row in rows)
    near = [share for each in by_problem.values() if (share := _near_best(each)) is not None]
    return {
        "hardware": found.facts.get("hardware"),
        "kernels": len(rows),
        "operations": len(by_problem),
        "operations_with_both_languages": sum({"cuda", "triton"} <= each for each in languages.values()),
        "failures": failures / max(1, len(rows)),
        "statuses": dict(Counter(str(row.status) for row in rows)),
        "languages": dict(Counter(row.language for row in rows)),
        "splits": {
            name: {
                "kernels": sum(row.split == name for row in rows),
                "operations": len({row.problem for row in rows if row.split == name}),
            }
            for name in SPLITS
            if any(row.split == name for row in rows)
        },
        "rooms": {
            room: {"operations": len({row.problem for row in rows if row.room == room}), "kernels": count}
            for room, count in sorted(Counter(row.room for row in rows).items())
        },
        "least_variants": min((len(each) for each in by_problem.values()), default=0),
        "with_reports": sum(bool(row.reports) for row in rows),
        "noise": _noise(found, rows),
        "spread": {name: spread(each) for name, each in sorted(by_problem.items())},
        "near_best": median(near) if near else None,
        "bytes": found.path.stat().st_size,
        "digest": hashlib.sha256(found.path.read_bytes()).hexdigest()[:16],
        "device_seconds": sum(run.get("seconds") or 0.0 for run in found.facts.get("runs", ())),
    }


def _noise(found: Recording, rows: Sequence[Row]) -> dict[str, Any]:
    within = [
        case.median.relative_half_width
        for row in rows
        for case in row.cases
        if math.isfinite(case.median.relative_half_width)
    ]
    between = sorted(abs(math.expm1(shift)) for shift in found.facts.get("between_runs", ()))
    return {
        "within_run": median(within) if within else None,
        "between_runs": median(between) if between else None,
        "between_runs_95": between[int(0.95 * len(between))] if between else None,
        "repeated": len(between),
    }


def spread(rows: Sequence[Row]) -> dict[str, float | None]:
    """The speedup of an operation's best kernel over the seed, over PyTorch and over compiled PyTorch."""
    best = min((row.total_ns for row in rows if row.family not in ("eager.py", "compiled.py")), default=math.inf)

    def over(*families: str) -> float | None:
        times = [row.total_ns for row in rows if row.family in families and row.cases]
        return times[0] / best if times and math.isfinite(best) else None

    return {
        "over_seed": over("naive.cu", "naive.c"),
        "over_eager": over("eager.py"),
        "over_compiled": over("compiled.py"),
    }


def _near_best(rows: Sequence[Row]) -> float | None:
    """The share of an operation's kernels within 5 % of its best; None if none works."""
    times = [row.total_ns for row in rows if row.language != "torch"]
    best = min(times, default=math.inf)
    return sum(time <= 1.05 * best for time in times) / len(times) if math.isfinite(best) else None
