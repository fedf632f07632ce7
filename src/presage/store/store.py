"""The store of a run: an SQLite database with its events, kernels and measurements.

Events are small, so that the state of a run is rebuilt quickly. Sources, static reports and samples are in separate
tables and are read on demand. An event is written in one transaction with the kernels, reports and samples that belong
to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from presage.core.errors import PresageError
from presage.core.files import inflate
from presage.core.text import excerpt, printable
from presage.devices.base import CaseTiming, Measurement
from presage.devices.status import Status
from presage.kernels import header as headers
from presage.kernels.kernel import LANGUAGES, Kernel
from presage.static.report import StaticReport
from presage.store.lock import Lock

FILE = "run.db"
LOCK = "run.lock"
_APPLICATION = 0x50524553
_VERSION = 1
_SCHEMA = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL);
CREATE TABLE kernels (hash TEXT PRIMARY KEY, language TEXT NOT NULL, name TEXT NOT NULL, tunables TEXT NOT NULL,
                      source BLOB NOT NULL, reports BLOB) WITHOUT ROWID;
CREATE TABLE measurements (seq INTEGER NOT NULL REFERENCES events, hash TEXT NOT NULL REFERENCES kernels,
                           document BLOB NOT NULL);
CREATE INDEX measurements_of ON measurements (hash);
"""
OWN = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", LOCK, "report.html", "best.c", "best.cu", "best.py")
"""All files that a run may write into its folder."""
_MEND = (
    "restore a copy of it, or name another folder with --run; 'sqlite3 run.db .recover' prints what can still be read"
)
_ROWS = 256
_LARGEST = 64 << 20
"""The largest value in a row, in bytes, packed or unpacked."""
_LARGEST_SOURCE = 4 << 20
_FREE = '"dollars":0.0}'
"""The end of an event that cost nothing, as a search writes it."""
_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that damaged values in rows can raise."""
_PAGES_IN_MEMORY = -32_000  # KiB


class StorageError(PresageError):
    """The disk is full or fails. Events that were written before are safe."""


class Event(NamedTuple):
    """One event of a run. searches/state.py describes the payload of each kind."""

    seq: int
    time: float
    """Seconds since the epoch."""
    kind: str
    payload: dict[str, Any]


class Store:
    """The database in a run's folder. One process writes; any number of processes may read at the same time."""

    def __init__(self, folder: Path, writes: bool = True) -> None:
        """Open the run in this folder. With `writes`, take the lock, and create the run if there is none.

        Raises PresageError if another process is writing, if the database is damaged or belongs to another program, or,
        without `writes`, if there is no run. Raises StorageError if the folder cannot be written to."""
        self.folder = folder
        _refuse_links(folder)
        self._lock = _locked(folder) if writes else None
        self._appending = threading.Lock()
        """Guards `append`: several threads send requests to language models, and each request is an event."""
        self.last_alive = self._lock.last_alive if self._lock else 0.0
        self._path = folder / FILE
        try:
            with self._explained():
                self._database = self._opened(writes)
                self._seq = int(self._database.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if "_database" in self.__dict__:
            self._database.close()
        if self._lock:
            self._lock.close()

    # -- writing ------------------------------------------------------------------------------------------------------

    def append(
        self,
        kind: str,
        payload: Mapping[str, Any],
        kernels: Iterable[Kernel] = (),
        reports: Mapping[str, Sequence[StaticReport]] | None = None,
        measurements: Iterable[Measurement] = (),
    ) -> Event:
        """Write an event with its new kernels, its static reports by kernel hash, and its measurements.

        The event survives a kill of the process once this returns. Returns the event. Raises StorageError if the disk
        is full or fails. May be called from several threads."""
        with self._appending:
            return self._append(kind, payload, kernels, reports or {}, measurements)

    def _append(
        self,
        kind: str,
        payload: Mapping[str, Any],
        kernels: Iterable[Kernel],
        reports: Mapping[str, Sequence[StaticReport]],
        measurements: Iterable[Measurement],
    ) -> Event:
        event = Event(self._seq + 1, time.time(), kind, dict(payload))
        text = json.dumps(event.payload, separators=(",", ":"))
        with self._explained(), self._database as transaction:
            transaction.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (event.seq, event.time, kind, text))
            transaction.executemany(
                "INSERT OR IGNORE INTO kernels VALUES (?, ?, ?, ?, ?, NULL)",
                [_kernel_row(kernel) for kernel in kernels],
            )
            transaction.executemany(
                "UPDATE kernels SET reports = ? WHERE hash = ?",
                [(_pack([report.to_json() for report in told]), hash) for hash, told in reports.items()],
            )
            transaction.executemany(
                "INSERT INTO measurements VALUES (?, ?, ?)", [_measurement_row(event.seq, m) for m in measurements]
            )
        self._seq = event.seq
        return event

    # -- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of events."""
        return self._seq

    def events(self, kind: str | None = None, after: int = 0) -> Iterator[Event]:
        """Iterate over all events, or those of one kind, in order. Events up to number `after` are skipped."""
        for rows in self._event_rows(kind, after):
            with self._readable():
                payloads = json.loads(f"[{','.join(row[3] for row in rows)}]")  # one call is faster than one per row
                told = zip(rows, payloads, strict=True)
                events = [_event(seq, at, name, payload) for (seq, at, name, _), payload in told]
            yield from events

    def texts(self, after: int = 0) -> Iterator[tuple[int, float, str, str]]:
        """Iterate over all events as (number, time, kind, payload), where the payload is the stored JSON text."""
        for rows in self._event_rows(None, after):
            yield from rows

    def payments(self) -> Iterator[Event]:
        """Iterate over the events that say what language models cost, in order. Of an event that cost nothing, only
        that is read: free forecasts are most of a run."""
        query = (
            "SELECT seq, time, kind, CASE WHEN substr(payload, -length(?1)) = ?1 THEN '{' || ?1 ELSE payload END"
            " FROM events WHERE kind IN ('session', 'asking', 'proposed', 'forecast') ORDER BY seq"
        )
        with self._explained(), self._readable():
            for seq, at, kind, payload in self._database.execute(query, (_FREE,)):
                yield _event(seq, at, kind, json.loads(payload))

    def _event_rows(self, kind: str | None, after: int) -> Iterator[list[tuple[int, float, str, str]]]:
        query = "SELECT seq, time, kind, payload FROM events WHERE seq > ?"
        with self._explained():
            found = (
                self._database.execute(f"{query} ORDER BY seq", (after,))
                if kind is None
                else self._database.execute(f"{query} AND kind = ? ORDER BY seq", (after, kind))
            )
            while rows := found.fetchmany(_ROWS):
                yield rows

    def first(self) -> Event | None:
        """The first event; None if there are no events."""
        return self._event_at("ASC")

    def last(self) -> Event | None:
        """The last event; None if there are no events."""
        return self._event_at("DESC")

    def _event_at(self, order: str) -> Event | None:
        with self._explained(), self._readable():
            query = f"SELECT seq, time, kind, payload FROM events ORDER BY seq {order} LIMIT 1"
            for seq, at, kind, payload in self._database.execute(query):
                return _event(seq, at, kind, json.loads(payload))
        return None

    def kernel(self, hash: str) -> Kernel:
        """Return the kernel with this hash. Raises PresageError if there is none, or if its row is damaged."""
        language, name, tunables, source = self._row(
            "SELECT language, name, tunables, source FROM kernels WHERE hash = ?", hash
        )
        with self._readable():
            text = inflate(source, _LARGEST_SOURCE).decode()
            if language not in LANGUAGES:
                raise ValueError(f"it has a kernel in '{excerpt(str(language))}'")
            kernel = Kernel(text, language, headers.parse(text, name), name, dict(json.loads(tunables)))
        kernel.__dict__["hash"] = hash  # fill the cached property, so that the hash is not computed again
        return kernel

    def names(self, hashes: Sequence[str] | None = None) -> dict[str, str]:
        """Return names of kernels by hash: at least those of `hashes`, or of every kernel if that is None."""
        query = "SELECT hash, name FROM kernels"
        with self._explained():
            if hashes is None or len(hashes) > _ROWS:
                found = self._database.execute(query).fetchall()
            else:
                places = ",".join("?" * len(hashes))
                found = self._database.execute(f"{query} WHERE hash IN ({places})", list(hashes)).fetchall()
            return {str(hash): str(name) for hash, name in found}

    def reports(self, hash: str) -> tuple[StaticReport, ...]:
        """The static reports of a kernel; empty if the kernel was not compiled."""
        (packed,) = self._row("SELECT reports FROM kernels WHERE hash = ?", hash)
        with self._readable():
            return tuple(StaticReport.from_record(record) for record in _unpack(packed)) if packed else ()

    def measurements(self, hash: str) -> list[Measurement]:
        """All measurements of a kernel, in order."""
        query = "SELECT document FROM measurements WHERE hash = ? ORDER BY rowid"
        with self._explained():
            found = self._database.execute(query, (hash,)).fetchall()
        with self._readable():
            return [_measurement(self.kernel(hash), _unpack(document)) for (document,) in found]

    def measured(self) -> Iterator[str]:
        """Iterate over the kernel hash of each measurement. A kernel that was measured twice comes twice."""
        with self._explained():
            for (hash,) in self._database.execute("SELECT hash FROM measurements"):
                yield hash

    # -- SQLite -------------------------------------------------------------------------------------------------------

    def _opened(self, writes: bool) -> sqlite3.Connection:
        if not writes and not self._path.exists():
            raise PresageError(f"{self.folder} holds no run")
        # Quote the path: ?, # and % have a special meaning in a URI.
        how = "mode=rwc" if writes else "mode=ro&immutable=1" if self._cannot_change() else "mode=ro"
        where = f"file:{quote(os.fsencode(self._path.absolute()))}?{how}"
        database = sqlite3.connect(where, uri=True, check_same_thread=False)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute(f"PRAGMA cache_size = {_PAGES_IN_MEMORY}")
        known = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if known and application != _APPLICATION:
            raise PresageError(f"{self._path} is a database of another program; name another folder")
        if known and version != _VERSION:
            raise PresageError(f"{self._path} has version {version}; this presage reads version {_VERSION}")
        if known and not _schema(database) == _schema(_in_memory()):
            raise PresageError(
                f"{self._path} does not have the tables of a run: it is damaged, or another program made it"
            )
        if writes:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
        if not known and not writes:
            raise PresageError(f"the run in {self.folder} has not begun")
        if not known:
            marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION};"
            database.executescript(f"BEGIN; {marks} {_SCHEMA} COMMIT;")
        return database

    def _cannot_change(self) -> bool:
        """Whether to read without the files that SQLite keeps beside an open database, because nobody has it open and
        this process could not write them."""
        return not os.access(self.folder, os.W_OK) and not (self.folder / f"{FILE}-wal").exists()

    def _row(self, query: str, hash: str) -> tuple[Any, ...]:
        with self._explained():
            found: tuple[Any, ...] | None = self._database.execute(query, (hash,)).fetchone()
        if found is None:
            raise PresageError(f"{self._path} has no kernel {hash}: it is damaged; {_MEND}")
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into PresageError or StorageError, whose messages say what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's message quotes damaged text
            if "full" in str(error) or "I/O" in str(error):
                raise StorageError(
                    f"cannot write to {self._path}: {error}; what was written before is safe; make room and run the"
                    " same command again"
                ) from error
            raise PresageError(f"{self._path} is not a run of presage, or is damaged: {error}; {_MEND}") from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors from damaged values in rows into PresageError."""
        try:
            yield
        except _WRONG as error:
            what = excerpt(str(error) or type(error).__name__)
            raise PresageError(f"{self._path} is damaged: {what}; {_MEND}") from error


def _refuse_links(folder: Path) -> None:
    """Raise PresageError if one of the run's files is a link. It could make us write elsewhere."""
    for name in OWN:
        with contextlib.suppress(OSError):
            about = (folder / name).lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
                raise PresageError(
                    f"{folder / name} is not a regular file, but a link or something else, and a run would write to it;"
                    " remove it, or name another folder"
                )


def _in_memory() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(_SCHEMA)
    return database


def _schema(database: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """Everything that a database defines, including views and triggers, which would run on reads or writes."""
    return database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()


def _locked(folder: Path) -> Lock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Lock(folder / LOCK)
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror}") from error


def _event(seq: int, at: float, kind: str, payload: Any) -> Event:
    if not isinstance(payload, dict) or not isinstance(at, int | float) or not isinstance(kind, str):
        raise ValueError(f"event {seq} is none")
    return Event(seq, at, kind, payload)


def _pack(document: Any) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":"), default=str).encode(), 1)


def _unpack(packed: bytes) -> Any:
    return json.loads(inflate(packed, _LARGEST))


def _kernel_row(kernel: Kernel) -> tuple[str, str, str, str, bytes]:
    source = zlib.compress(kernel.source.encode(), 1)
    return kernel.hash, kernel.language, printable(kernel.name), json.dumps(dict(kernel.values)), source


def _measurement_row(seq: int, measurement: Measurement) -> tuple[int, str, bytes]:
    document = {
        "problem": measurement.problem,
        "device": measurement.device,
        "status": str(measurement.status),
        "reason": measurement.reason,
        "cases": [
            [c.case, c.samples_ns, c.rounds, c.floor_ns, c.calls, c.processes, c.wait_ns] for c in measurement.cases
        ],
        "output": measurement.output,
        "facts": dict(measurement.facts),
        "believed": measurement.believed,
        "not_replayed": measurement.not_replayed,
    }
    return seq, measurement.kernel.hash, _pack(document)


def _measurement(kernel: Kernel, document: Mapping[str, Any]) -> Measurement:
    cases = (_timing(*case) for case in document["cases"])
    return Measurement(
        document["problem"],
        kernel,
        document["device"],
        Status(document["status"]),
        document["reason"],
        tuple(cases),
        output=document["output"],
        facts=document["facts"],
        believed=document.get("believed"),
        not_replayed=document.get("not_replayed", ""),
    )


def _timing(
    case: str,
    samples: Sequence[float],
    rounds: Sequence[int],
    floor: float,
    calls: int,
    processes: Sequence[int] = (),
    wait: float | None = None,
) -> CaseTiming:
    return CaseTiming(case, tuple(samples), tuple(rounds), floor, calls, tuple(processes), wait)
