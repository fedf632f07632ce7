"""Recording: measured kernels of one device in a Parquet file, one row each, to look up and to learn from.

A file is written completely and then moved into place. Rows are sorted by problem, and the rows of one problem can be
read alone.
"""

from __future__ import annotations

import json
import math
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.core.errors import PresageError
from presage.core.statistics import Interval, median_interval, speedup_interval
from presage.devices.status import Status
from presage.kernels import header as headers
from presage.kernels.header import Value
from presage.kernels.kernel import Kernel
from presage.static.pipes import PIPES
from presage.static.report import StaticReport
from presage.static.sass import CLASSES
from presage.static.warp import KINDS

if TYPE_CHECKING:
    import pyarrow

VERSION = 1
_KEY = b"presage"
_ROW_GROUP = 1 << 16
_MOST_ROWS = 5_000_000
_MOST_BYTES = 4 << 30
_DAMAGED_ROW = "holds a row that cannot be read"
_WRONG = (
    ArithmeticError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class RecordedCase:
    """The recorded times of one timed case."""

    case: str
    floor_ns: float
    samples_ns: tuple[float, ...]

    @cached_property
    def median(self) -> Interval:
        return median_interval(self.samples_ns)


@dataclass(frozen=True)
class Row:
    """One kernel, its measurement, and its static reports."""

    problem: str
    room: str
    """The family of operations that the problem belongs to."""
    split: str
    """`train`, `validation`, `test_op`, `test_family` or `test_problem`; empty if the problems are not split."""
    family: str
    """The file that the kernel was rendered from. Forecasters do not see it."""
    language: str
    hash: str
    source: str
    values: Mapping[str, Value]
    status: Status
    reason: str = ""
    cases: tuple[RecordedCase, ...] = ()
    anchor: str = ""
    """The hash of the kernel that the speedup is relative to."""
    speedup: Interval | None = None
    repeat_ns: tuple[float, ...] = ()
    """The medians of a second measurement, in a process of its own and in another run; only for some rows."""
    reports: tuple[StaticReport, ...] = ()
    """The static reports, one for each timed case; empty if the kernel cannot be compiled without a device."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Clocks and temperature as the device reported them, and the run it was measured in."""

    @property
    def believed(self) -> str | None:
        """See `Measurement.believed`; None if the recording does not say."""
        found = self.facts.get("believed")
        return found if found in ("replay", "worker") else None

    @property
    def kernel(self) -> Kernel:
        """The kernel as it was measured."""
        kernel = Kernel(self.source, self.language, headers.parse(self.source, self.name), self.name, dict(self.values))
        kernel.__dict__["hash"] = self.hash  # need not be computed again
        return kernel

    @property
    def name(self) -> str:
        label = ",".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.family}@{label}" if label else self.family

    @property
    def total_ns(self) -> float:
        """The geometric mean of its medians, which orders the kernels of one problem; infinite for one that failed."""
        if not self.cases:
            return math.inf
        return math.exp(sum(math.log(case.median.value) for case in self.cases) / len(self.cases))


class Recording:
    """The rows of one file. Only the columns that are asked for are read."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path, self.facts = path, facts

    @property
    def name(self) -> str:
        return str(self.facts.get("name") or self.path.stem)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many kernels each problem has, in alphabetical order."""
        return dict(sorted(Counter(map(str, self.columns("problem")["problem"])).items()))

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The problem and the hash of every kernel."""
        found = self.columns("problem", "hash")
        return set(zip(found["problem"], found["hash"], strict=True))

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """Whole columns, as lists, without reading the others."""
        table = read_parquet(self.path, list(names))
        with _damaged(self.path, "cannot be read"):
            found: dict[str, list[Any]] = table.to_pydict()
        return found

    def rows(self, problem: str | None = None, reports: bool = True) -> list[Row]:
        """The rows of one problem, or all of them. Leaving out static reports is faster."""
        if not problem:
            table = self._table(reports)
            with _damaged(self.path, _DAMAGED_ROW):
                return [_row(record) for record in table.to_pylist()]
        return next(rows for _, rows in self.each([problem], reports))

    def each(self, chosen: Iterable[str], reports: bool = True) -> Iterator[tuple[str, list[Row]]]:
        """The rows of these problems, one problem after the other. The file is read once for all of them: that takes
        longer than to make the rows of one."""
        table = self._table(reports)
        places: dict[str, list[int]] = {}
        with _damaged(self.path, _DAMAGED_ROW):
            for at, name in enumerate(table["problem"].to_pylist()):
                places.setdefault(name, []).append(at)
        for problem in chosen:
            with _damaged(self.path, _DAMAGED_ROW):
                found = _rows_at(table, places.get(problem, []), problem)
            yield problem, found

    def _table(self, reports: bool) -> pyarrow.Table:
        return read_parquet(self.path, [name for name in schema().names if reports or name != "reports"])


def _rows_at(table: pyarrow.Table, places: Sequence[int], problem: str) -> list[Row]:
    if not places:
        return []
    near = table.slice(places[0], places[-1] + 1 - places[0])  # they are together in every file that we write
    return [_row(record) for record in near.to_pylist() if record["problem"] == problem]


def open_recording(path: Path) -> Recording:
    """Open a recording. Raises PresageError if the file is missing, cut short or not a recording."""
    if not path.is_file():
        raise PresageError(f"there is no recording {path}")
    with _damaged(path, "is no Parquet file, or was cut short"):
        metadata = _parquet().read_schema(path).metadata or {}
    try:
        facts = dict(json.loads(metadata[_KEY]))
        version = facts["version"]
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise PresageError(
            f"{path} is a Parquet file, but no recording; 'presage corpus import' makes one from other formats"
        ) from error
    if version != VERSION:
        raise PresageError(f"{path} is a recording of version {version}; this presage reads version {VERSION}")
    return Recording(path, facts)


def write(path: Path, rows: Iterable[Row], facts: Mapping[str, Any]) -> Recording:
    """Write rows to a file, which appears only when it is complete."""
    import pyarrow

    ordered = sorted(rows, key=lambda row: (row.problem, row.language, row.family, row.hash))
    described = schema().with_metadata({_KEY: json.dumps({"version": VERSION, **facts})})
    with _damaged(path, "cannot hold these rows"):
        table = pyarrow.Table.from_pylist([_record(row) for row in ordered], schema=described)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _parquet().write_table(
            table,
            part,
            compression="zstd",
            compression_level=19,
            row_group_size=_ROW_GROUP,
            data_page_size=16 << 20,
            dictionary_pagesize_limit=16 << 20,
        )
        part.replace(path)
    except OSError as error:
        raise PresageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return open_recording(path)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """Read an untrusted Parquet file, or some of its columns. The sizes that it states are checked against limits
    before anything is unpacked. pyarrow's own `read_table` and its filters import pandas if it is installed, which
    takes longer."""
    with _damaged(path, "cannot be read"), _parquet().ParquetFile(path) as file:
        held = file.metadata
        size = sum(held.row_group(at).total_byte_size for at in range(held.num_row_groups))
        if held.num_rows > _MOST_ROWS or size > _MOST_BYTES:
            raise ValueError(f"it says it holds {held.num_rows} rows of {size} bytes")
        return file.read(columns)


@contextmanager
def _damaged(path: Path, what: str) -> Iterator[None]:
    """Raise PresageError for the errors that a damaged or manipulated file causes."""
    import pyarrow

    try:
        yield
    except (*_WRONG, pyarrow.lib.ArrowException) as error:
        raise PresageError(f"{path} {what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise PresageError("recordings need pyarrow; 'pip install pyarrow' installs it") from error
    return pyarrow.parquet


# -- rows and records ------------------------------------------------------------------------------------------------


@cache
def schema() -> pyarrow.Schema:
    """The schema of a recording: its columns."""
    import pyarrow as pa

    def record(**fields: pa.DataType) -> pa.DataType:
        return pa.struct(list(fields.items()))

    text, real, whole = pa.string(), pa.float64(), pa.int32()
    mix = record(**{name: whole for name in CLASSES})
    counts = record(**{name: pa.float32() for name in KINDS})
    pipes = record(**{name: pa.float32() for name in PIPES})
    launch = record(
        name=text, grid=pa.list_(whole), block=pa.list_(whole), count=whole, registers=whole, spill_bytes=whole,
        stack_bytes=whole, shared_bytes=whole, code_bytes=whole, occupancy=real, occupancy_limiter=text,
        blocks_per_sm=whole, waves=real, loops=whole, instructions=mix, instructions_in_loops=mix, options=text,
        executed=counts, unbounded=counts, machine=pipes,
    )  # fmt: skip
    report = record(
        target=text, arch=text, status=text, compiler=text, launches=pa.list_(launch), error=text, operators=text,
        notes=pa.list_(text), trace=text,
    )  # fmt: skip
    case = record(
        case=text, floor_ns=real, median_ns=real, low_ns=real, high_ns=real, samples_ns=pa.list_(real)
    )  # fmt: skip
    columns = dict(
        problem=text, room=text, split=text, family=text, language=text, hash=text, source=text, values=text,
        status=text, reason=text, cases=pa.list_(case), anchor=text, speedup=real, speedup_low=real, speedup_high=real,
        repeat_ns=pa.list_(real), reports=pa.list_(report), facts=text,
    )  # fmt: skip
    return pa.schema(list(columns.items()))


def _record(row: Row) -> dict[str, Any]:
    plain = ("problem", "room", "split", "family", "language", "hash", "source", "reason", "anchor", "repeat_ns")
    return {name: getattr(row, name) for name in plain} | {
        "values": json.dumps(dict(row.values)),
        "status": str(row.status),
        "cases": [case_record(case) for case in row.cases],
        "speedup": row.speedup.value if row.speedup else None,
        "speedup_low": row.speedup.low if row.speedup else None,
        "speedup_high": row.speedup.high if row.speedup else None,
        "reports": [_report_record(report) for report in row.reports],
        "facts": json.dumps(dict(row.facts)),
    }


def case_record(case: RecordedCase) -> dict[str, Any]:
    """A case as it is stored and shown."""
    value, low, high = case.median
    return {
        "case": case.case,
        "floor_ns": case.floor_ns,
        "median_ns": value,
        "low_ns": low,
        "high_ns": high,
        "samples_ns": case.samples_ns,
    }


def _report_record(report: StaticReport) -> dict[str, Any]:
    record = report.to_json()
    record["operators"] = json.dumps(dict(report.operators))
    record["trace"] = json.dumps(record["trace"]) if record["trace"] else None
    for launch in record["launches"]:
        launch["options"] = json.dumps(launch["options"], default=str)
    return record


def _row(record: dict[str, Any]) -> Row:
    plain = ("problem", "room", "split", "family", "language", "hash", "source", "reason", "anchor")
    speedup = record["speedup"]
    return Row(
        **{name: str(record[name]) for name in plain},
        values={name: _value(value) for name, value in json.loads(record["values"]).items()},
        status=Status(record["status"]),
        cases=tuple(
            RecordedCase(str(case["case"]), float(case["floor_ns"]), tuple(map(_positive, case["samples_ns"])))
            for case in record["cases"]
        ),
        speedup=None if speedup is None else Interval(speedup, record["speedup_low"], record["speedup_high"]),
        repeat_ns=tuple(record["repeat_ns"] or ()),
        reports=tuple(StaticReport.from_record(report) for report in record.get("reports") or ()),
        facts=dict(json.loads(record["facts"])),
    )


_LEAST_NS, _MOST_NS = 1e-12, 1e18
"""A time beyond these is damage. The ratio of any two others can be computed."""


def _value(value: Any) -> Value:
    if type(value) not in (bool, int, float, str):
        raise ValueError("a tunable's value that is neither a number nor a text")
    found: Value = value
    return found


def _positive(ns: float) -> float:
    if not _LEAST_NS <= ns <= _MOST_NS:
        raise ValueError(f"a time of {ns} ns")
    return float(ns)


def speedup_over(anchor: Sequence[RecordedCase], candidate: Sequence[RecordedCase]) -> Interval | None:
    """Anchor time over candidate time, for two kernels that were not measured in the same rounds; None if their cases
    differ."""
    if not candidate or [case.case for case in candidate] != [case.case for case in anchor]:
        return None
    times, others = ([[np.asarray(case.samples_ns)] for case in cases] for cases in (anchor, candidate))
    return speedup_interval(times, others, paired=False, resamples=200)
