"""Recordings from elsewhere: Kernel Tuner caches, T4 files, and data sets with the research's columns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from presage.core import scale
from presage.core.errors import PresageError
from presage.core.statistics import Interval
from presage.devices import recording
from presage.devices.recording import RecordedCase, Recording, Row
from presage.devices.status import Status
from presage.kernels.header import Value
from presage.kernels.normalise import digest

_MS = 1e6
_STATUSES = {
    "CompilationFailedConfig": Status.COMPILE_ERROR,
    "RuntimeFailedConfig": Status.RUNTIME_ERROR,
    "InvalidConfig": Status.COMPILE_ERROR,
    "compile": Status.COMPILE_ERROR,
    "runtime": Status.RUNTIME_ERROR,
    "timeout": Status.TIMEOUT,
    "correctness": Status.WRONG_RESULT,
    "constraints": Status.COMPILE_ERROR,
}
_UNITS = {"miliseconds": 1e6, "milliseconds": 1e6, "microseconds": 1e3, "nanoseconds": 1.0, "seconds": 1e9}


def import_tuning(
    path: Path, to: Path, *, name: str | None = None, hardware: str | None = None, source: Path | None = None
) -> Recording:
    """Make a recording of a Kernel Tuner cache or a T4 file. A candidate's source is `#define` lines, and the kernel's
    text where it is given, which is how Kernel Tuner compiles it."""
    document = _load(path)
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix("_T4")
    text = source.read_text() if source else ""
    if "cache" in document:
        problem, case = str(document["kernel_name"]), "x".join(map(str, _sizes(document["problem_size"])))
        found = list(_kernel_tuner(document, path))
        hardware = hardware or document.get("device_name") or stem
    elif "results" in document:
        problem, case = stem, "as tuned"
        found = list(_t4(document, path))
    else:
        raise PresageError(f"{path} is neither a Kernel Tuner cache (it has no 'cache') nor T4 (it has no 'results')")
    if not found:
        raise PresageError(f"{path} holds no results")
    rows = [_tuned(name or problem, case, text, *each) for each in found]
    return _write(to, rows, hardware or stem, path)


def import_space(path: Path, to: Path) -> Recording:
    """Make a recording of an exhaustively measured tuning space: a Parquet file with a row per configuration, beside it
    `spaces.json`, which says what was tuned on what, and `sources.jsonl.zst`, the kernels' texts. The first sample of a
    configuration is left out, since it warmed up the GPU."""
    import pyarrow.parquet

    try:
        space = next(one for one in json.loads((path.parent / "spaces.json").read_text()) if one["space"] == path.stem)
        records = pyarrow.parquet.read_table(path).to_pylist()
        with pyarrow.input_stream(path.parent / "sources.jsonl.zst", compression="zstd") as stream:
            sources = [json.loads(line) for line in stream.read().splitlines()]
    except (OSError, ValueError, StopIteration) as error:
        raise PresageError(
            f"{path} is no tuning space with spaces.json and sources.jsonl.zst beside it: {error}"
        ) from error
    texts = [one["text"] for one in sources if one["kernel"] == space["kernel"] and one["path"].endswith(".cu")]
    case = "x".join(map(str, _sizes(space["problem_size"])))
    found = _exhaustive(records, list(space["tune_params"]))
    rows = [_tuned(space["kernel"], case, texts[0] if texts else "", *each) for each in found]
    return _write(to, rows, space["gpu"], path)


def _write(to: Path, rows: list[Row], hardware: str, path: Path) -> Recording:
    """The first kernel that worked is the anchor of all."""
    anchor = next((row for row in rows if row.cases), None)
    if anchor:
        rows = [_relative(row, anchor) for row in rows]
    return recording.write(to, rows, {"name": to.stem, "kind": "gpu", "hardware": hardware, "from": path.name})


def _load(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        document = json.loads(data)
    except FileNotFoundError as error:
        raise PresageError(f"there is no file {path}") from error
    except (OSError, EOFError) as error:
        raise PresageError(f"{path} cannot be read, or was cut short: {error}") from error
    except ValueError as error:
        raise PresageError(
            f"{path} is not complete JSON ({error}); a Kernel Tuner cache that is still open lacks its end: add '}}}}'"
        ) from error
    if not isinstance(document, dict):
        raise PresageError(f"{path} is JSON, but no object")
    return document


def _sizes(size: Any) -> list[Any]:
    return list(size) if isinstance(size, list | tuple) else [size]


_Result = tuple[dict[str, Value], Status, str, list[float], float | None]
"""A configuration, its status, the file's word for it, its samples, and what the file itself says it takes."""


def _kernel_tuner(document: Mapping[str, Any], path: Path) -> Iterator[_Result]:
    keys = document["tune_params_keys"]
    for label, entry in document["cache"].items():
        try:
            values = {key: entry[key] for key in keys}
            time = entry["time"]
            if isinstance(time, str):
                yield values, _STATUSES.get(time, Status.RUNTIME_ERROR), time, [], None
            else:
                times = [float(ms) * _MS for ms in entry.get("times") or [time]]
                yield values, Status.OK, "", times, float(time) * _MS
        except (KeyError, TypeError, ValueError) as error:
            raise PresageError(f"{path}: configuration '{label}' cannot be read: {error!r}") from error


def _exhaustive(records: list[dict[str, Any]], names: list[str]) -> Iterator[_Result]:
    for record in records:
        values, status = {name: record[name] for name in names}, str(record["status"])
        if status == "ok":
            yield values, Status.OK, "", [float(ms) * _MS for ms in record["times_ms"][1:]], None
        else:
            yield values, _STATUSES.get(status, Status.RUNTIME_ERROR), status, [], None


def _t4(document: Mapping[str, Any], path: Path) -> Iterator[_Result]:
    unit = _UNITS.get(str(document.get("metadata", {}).get("timeunit", "miliseconds")), _MS)
    for number, entry in enumerate(document["results"], start=1):
        try:
            values = dict(entry["configuration"])
            reason = str(entry["invalidity"])
            if reason == "correct":
                times = [float(time) * unit for time in entry["times"]["runtimes"]]
                yield values, Status.OK, "", times, float(entry["measurements"][0]["value"]) * unit
            else:
                yield values, _STATUSES.get(reason, Status.RUNTIME_ERROR), reason, [], None
        except (KeyError, TypeError, ValueError) as error:
            raise PresageError(f"{path}: result {number} cannot be read: {error!r}") from error


def _tuned(
    problem: str,
    case: str,
    text: str,
    values: dict[str, Value],
    status: Status,
    reason: str,
    samples: list[float],
    objective: float | None,
) -> Row:
    source = "".join(f"#define {name} {value}\n" for name, value in values.items()) + text
    return Row(
        problem=problem,
        room="imported",
        split="",
        family=problem,
        language="cuda",
        hash=digest(source, "cuda"),
        source=source,
        values=values,
        status=status,
        reason=reason,
        cases=(RecordedCase(case, 0.0, tuple(samples)),) if status is Status.OK else (),
        facts={"objective_ns": objective} if objective is not None else {},
    )


def _relative(row: Row, anchor: Row) -> Row:
    speedup = recording.speedup_over(anchor.cases, row.cases) if row.cases else None
    return replace(row, anchor=anchor.hash, speedup=speedup)


# -- pairs ------------------------------------------------------------------------------------------------------------

PAIR_COLUMNS = ("anchor_code", "candidate_code", "hardware", "aggregated_speedup")
"""What a data set of the research has at least; its labels are left aside, since they disagree with its own prompt."""


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Pairs of kernels with a speedup, from Parquet or JSON lines, labelled with our scale."""
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet

            records = pyarrow.parquet.read_table(path).to_pylist()
        except (OSError, ValueError) as error:
            raise PresageError(f"{path} is no Parquet file, or was cut short: {error}") from error
    else:
        records = _lines(path)
    missing = [name for name in PAIR_COLUMNS if not records or name not in records[0]]
    if missing:
        raise PresageError(f"{path} has no column '{missing[0]}'; a data set of pairs has {', '.join(PAIR_COLUMNS)}")
    found = []
    for number, record in enumerate(records, start=1):
        try:
            speedup = float(record["aggregated_speedup"])
            label = int(scale.bin_of([speedup])[0])
        except (TypeError, ValueError) as error:
            raise PresageError(f"{path}: row {number} has no speedup that is a positive number") from error
        found.append({**record, "speedup": Interval(speedup, speedup, speedup), "bin": label})
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PresageError(f"{path} cannot be read: {error}") from error
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise PresageError(f"{path}:{number}: is no JSON: {error}") from error
    return records
