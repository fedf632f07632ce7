"""A cache of static reports, keyed by the content of their jobs, so that a kernel is compiled once per machine.

The cache is optional: if its file cannot be used, kernels are compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from presage.core.files import inflate
from presage.core.machine import cache_folder
from presage.static.launch_request import Job
from presage.static.report import StaticReport

KEPT = ("ok", "runtime_error")
"""Statuses that are cached. Others may differ next time: a compiler may have been killed, or short of time, once."""
_MOST = 200_000
_AT_A_TIME = 500
_LARGEST = 64 << 20
"""Most bytes of a report."""
_PATIENCE = 5.0
"""Seconds to wait for another process that holds the file's lock."""
_T = TypeVar("_T")


def name_of(job: Job, request: Mapping[str, Any], compiler: str) -> str:
    """The cache key: a hash of all that a report depends on, including the code that makes it."""
    about = [request, job.dims, job.kernel.values, asdict(job.target), compiler, _own_code()]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def find(names: Iterable[str]) -> dict[str, StaticReport]:
    """The cached reports among those with these names."""
    wanted = list(dict.fromkeys(names))

    def read(database: sqlite3.Connection) -> list[tuple[str, bytes]]:
        rows: list[tuple[str, bytes]] = []
        for start in range(0, len(wanted), _AT_A_TIME):
            some = wanted[start : start + _AT_A_TIME]
            marks = ",".join("?" * len(some))
            rows += database.execute(f"SELECT name, report FROM reports WHERE name IN ({marks})", some)
        return rows

    found = {}
    for name, packed in _with_database(read) or ():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a damaged entry is made again
            found[name] = StaticReport.from_record(json.loads(inflate(packed, _LARGEST)))
    return found


def add(reports: Mapping[str, StaticReport]) -> None:
    """Cache the reports whose status is in KEPT. The oldest ones are deleted when there are too many."""
    kept = {name: report for name, report in reports.items() if report.status in KEPT}
    rows = [(name, zlib.compress(json.dumps(report.to_json()).encode())) for name, report in kept.items()]

    def write(database: sqlite3.Connection) -> None:
        with database:
            database.executemany("INSERT OR REPLACE INTO reports VALUES (?, ?)", rows)
            database.execute("DELETE FROM reports WHERE rowid <= (SELECT max(rowid) FROM reports) - ?", (_MOST,))

    if rows:
        _with_database(write)


def _with_database(work: Callable[[sqlite3.Connection], _T]) -> _T | None:
    """Return the result of `work`; None if the file cannot be used. A damaged file is deleted."""
    try:
        path = cache_folder() / "reports.db"
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no cache folder, or no home directory
        return None
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_PATIENCE)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("CREATE TABLE IF NOT EXISTS reports (name TEXT UNIQUE NOT NULL, report BLOB NOT NULL)")
            return work(database)
    except sqlite3.OperationalError:  # read-only, full, or locked for too long by another process
        return None
    except sqlite3.DatabaseError:
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            with contextlib.suppress(OSError):
                file.unlink()
        return None


@cache
def _own_code() -> str:
    files = sorted(file for file in Path(__file__).parent.rglob("*.*") if file.suffix in (".py", ".h", ".cpp"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
