"""Measure calls of torch's operators on a device, and pack the measurements into an operator recording.

A folder holds the list of calls and the journals of all runs (see lines.py). Running the same command again continues
where the last run ended.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.corpus import operator_list
from presage.corpus.lines import Lines, read_lines
from presage.devices import operator_recording
from presage.devices.operator_timing import DeviceLostError, OperatorTimer, OperatorTiming, TooLargeError

MOST_FAULTS = 2
"""A call is not measured again after this many runs have ended while they measured it."""
_SYNC_SECONDS, _SAY_SECONDS = 5.0, 10.0
_REASON = 300


@dataclass
class State:
    """The contents of the journals of a folder."""

    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The record of each measured call, by hash."""
    begun: Counter[str] = field(default_factory=Counter)
    """How many runs ended while they measured a call, by hash."""
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    damaged: int = 0

    def is_done(self, hash: str) -> bool:
        return hash in self.measured or self.begun[hash] >= MOST_FAULTS


def read(folder: Path) -> State:
    """Read all journals of a folder. A line that was cut short is ignored."""
    state = State()
    for file in sorted(folder.glob("*.jsonl")):
        names: list[str] = []
        for record in read_lines(file):
            try:
                _take(state, names, record)
            except (LookupError, TypeError, ValueError):
                state.damaged += 1
    return state


def _take(state: State, names: list[str], record: dict[str, Any]) -> None:
    match record["kind"]:
        case "run":
            state.runs[record["run"]] = record
        case "name":
            names.append(str(record["name"]))
        case "begin":
            state.begun[str(record["hash"])] += 1
        case "call":
            launches = record["launches"]
            if launches is not None:
                launches = [{**each, "name": names[each["name"]]} for each in launches]
            found = {**record, "launches": launches, "samples_ns": [float(ns) for ns in record["samples_ns"]]}
            state.measured[str(record["hash"])] = found
            state.begun[str(record["hash"])] -= 1


class Journal(Lines):
    """The journal file of this run. The methods raise PresageError if the file cannot be written."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self._names: dict[str, int] = {}
        self._synced = time.monotonic()
        super().__init__(folder, about)

    def begin(self, hash: str) -> None:
        self.write({"kind": "begin", "hash": hash})

    def end(self, hash: str, status: str, reason: str = "", timing: OperatorTiming | None = None) -> None:
        """Write the result of the call that `begin` named."""
        record: dict[str, Any] = {"kind": "call", "hash": hash, "run": self.run, "status": status, "reason": reason}
        record |= {"samples_ns": [], "warm_ns": None, "host_ns": None, "waits": None, "launches": None}
        if timing is not None:
            record["samples_ns"] = [round(ns, 1) for ns in timing.samples_ns]
            record["warm_ns"] = None if timing.warm_ns is None else round(timing.warm_ns, 1)
            record["host_ns"], record["waits"] = round(timing.host_ns, 1), timing.waits
            if timing.launches is not None:
                record["launches"] = [{**each, "name": self._name(each["name"])} for each in timing.launches]
        self.write(record)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self.sync()
            self._synced = time.monotonic()

    def _name(self, name: str) -> int:
        """The number of a kernel's name. Names are long, so each is written only once."""
        if name not in self._names:
            self._names[name] = len(self._names)
            self.write({"kind": "name", "name": name})
        return self._names[name]


def measure(
    rows: Sequence[dict[str, Any]],
    timer: OperatorTimer,
    folder: Path,
    *,
    seconds: float | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Measure the calls that no run in the folder has measured, until all are measured or the time is up. Returns how
    many were measured. Raises PresageError if a call breaks the device, or if the journal cannot be written."""
    deadline = time.monotonic() + seconds if seconds else math.inf
    state = read(folder)
    waiting = [row for row in rows if not state.is_done(row["hash"])]
    with timer.alone():
        own = Journal(folder, {"device": timer.place, "facts": timer.facts()})
        statuses: Counter[str] = Counter()
        started = said = time.monotonic()
        try:
            for row in waiting:
                if time.monotonic() > deadline:
                    break
                statuses[_measured(row, timer, own)] += 1
                if time.monotonic() - said > _SAY_SECONDS:
                    said = time.monotonic()
                    say(_progress(statuses, len(waiting), said - started))
        finally:
            own.close()
    say(_progress(statuses, len(waiting), time.monotonic() - started))
    return statuses.total()


def _measured(row: dict[str, Any], timer: OperatorTimer, own: Journal) -> str:
    """Measure one call, write its result, and return its status. An error of the operator is a result, too."""
    hash = row["hash"]
    own.begin(hash)
    try:
        timing = timer.time(operator_list.call_of(row))
    except DeviceLostError as error:
        own.end(hash, "device_fault", one_line(str(error), _REASON))
        raise PresageError(
            f"{row['operator']} broke the device: {one_line(str(error), 100)}; that is recorded, and the same command"
            " goes on behind it"
        ) from error
    except TooLargeError as error:
        own.end(hash, "too_large", one_line(str(error), _REASON))
        return "too_large"
    except Exception as error:
        own.end(hash, "error", one_line(f"{type(error).__name__}: {error}", _REASON))
        return "error"
    own.end(hash, "ok", timing=timing)
    return "ok"


def _progress(statuses: Counter[str], every: int, seconds: float) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in statuses.items()) or "none"
    return f"{statuses.total()} of {every} calls: {counts} ({statuses.total() / max(1e-9, seconds):.1f} a second)"


# -- the recording ----------------------------------------------------------------------------------------------------


def pack(rows: Sequence[dict[str, Any]], folder: Path, path: Path, earlier: Path | None = None) -> dict[str, Any]:
    """Write all measurements of the folder into one file, with one row per call, and return its main numbers. Calls
    that are only in the recording `earlier` are taken from there. Raises PresageError if nothing was measured."""
    import pyarrow as pa

    state = read(folder)
    found = [{**row, **_columns(state, row["hash"])} for row in rows if state.is_done(row["hash"])]
    if not found:
        raise PresageError(f"{folder} holds no measured calls; leave out --list to measure some")
    text, real = pa.string(), pa.float64()
    launch = pa.struct(
        [("name", text), *((n, pa.list_(pa.int64())) for n in ("grid", "block")), ("shared", pa.int64())]
    )
    measured = [
        *(("median_ns", real), ("low_ns", real), ("high_ns", real), ("samples_ns", pa.list_(real)), ("warm_ns", real)),
        *(("host_ns", real), ("waits", pa.bool_()), ("kernels", pa.int32()), ("launches", pa.list_(launch))),
        *(("status", text), ("reason", text), ("run", text), ("device", text), ("versions", text)),
    ]
    runs = list(state.runs.values())
    if earlier:
        table, new = operator_recording.table(earlier), {row["hash"] for row in found}
        found = [*(row for row in table.to_pylist() if row["hash"] not in new), *found]
        runs = [*json.loads(table.schema.metadata[operator_recording.KEY])["runs"], *runs]
    about = {"version": operator_recording.VERSION, "kind": "operators", "runs": runs}
    schema = pa.schema([*operator_list.columns(), *measured]).with_metadata({operator_recording.KEY: json.dumps(about)})
    operator_list.save(path, pa.Table.from_pylist(found, schema=schema))
    return {
        "calls": len(found),
        "operators": len({row["operator"] for row in found}),
        "statuses": dict(Counter(row["status"] for row in found)),
        "unreadable_lines": state.damaged,
        "bytes": path.stat().st_size,
    }


def _columns(state: State, hash: str) -> dict[str, Any]:
    """The columns of a call's measurement: the median and the quartiles, the samples, and how it was measured."""
    record = state.measured.get(hash)
    if record is None:
        return {"status": "device_fault", "reason": "the process ended each time it was measured"}
    run = state.runs.get(record["run"], {})
    facts = dict(run.get("facts", {}))
    samples, launches = record["samples_ns"], record["launches"]
    low, median, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else (None, None, None)
    same = ("samples_ns", "warm_ns", "host_ns", "waits", "launches", "status", "reason", "run")
    return {
        **{name: record[name] for name in same},
        **{"median_ns": median, "low_ns": low, "high_ns": high},
        "kernels": None if launches is None else len(launches),
        "device": facts.get("hardware"),
        "versions": json.dumps({name: facts[name] for name in ("torch", "cuda", "cudnn", "driver") if name in facts}),
    }
