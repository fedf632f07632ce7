"""Make recordings from Kernel Tuner caches, T4 files, measured tuning spaces and published pairs of kernels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from presage.core import scale
from presage.core.errors import PresageError
from presage.core.files import gunzip, read_limited
from presage.core.text import excerpt
from presage.devices import recording
from presage.devices.recording import RecordedCase, Recording, Row
from presage.devices.status import Status
from presage.kernels import header as headers
from presage.kernels.header import Value
from presage.kernels.normalise import digest

_MS = 1e6
_LONGEST_TIME = 1e15
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
_LARGEST = 512 << 20
"""The largest file in bytes, packed or unpacked. Parsed into Python objects, it takes ten times as much memory."""
_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)
_UNITS = {"miliseconds": 1e6, "milliseconds": 1e6, "microseconds": 1e3, "nanoseconds": 1.0, "seconds": 1e9}


def import_tuning(
    path: Path, to: Path, *, name: str | None = None, hardware: str | None = None, source: Path | None = None
) -> Recording:
    """Make a recording from a Kernel Tuner cache or a T4 file, and write it to `to`. The source of a candidate is its
    `#define` lines followed by the text of `source`, if given, as Kernel Tuner compiles it.

    name: the problem's name, hardware: the GPU's; both are taken from the file by default.

    Raises PresageError if the file cannot be read or does not have the format."""
    document = _load(path)
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix("_T4")
    text = _text(source) if source else ""
    with _understood(path):
        if "cache" in document:
            problem, case = str(document["kernel_name"]), "x".join(map(str, _sizes(document["problem_size"])))
            found = list(_kernel_tuner(document, path))
            hardware = hardware or str(document.get("device_name") or stem)
        elif "results" in document:
            problem, case = stem, "as tuned"
            found = list(_t4(document, path))
        else:
            raise PresageError(
                f"{path} is neither a Kernel Tuner cache (it has no 'cache') nor T4 (it has no 'results')"
            )
        if not found:
            raise PresageError(f"{path} has no results")
        rows = [_tuned(name or problem, case, text, *each) for each in found]
        return _write(to, rows, hardware or stem, path)


def import_space(path: Path, to: Path, *, source: Path | None = None) -> Recording:
    """Make a recording from a fully measured tuning space, and write it to `to`. `path` is a Parquet file with one row
    per configuration. `spaces.json` beside it describes the space, and `sources.jsonl.zst` holds the sources, unless
    `source` is given. The first sample of each configuration is left out, because it warmed up the GPU. Raises
    PresageError if a file is missing or does not have the format."""
    beside = f"{path} is no tuning space with spaces.json and sources.jsonl.zst beside it"
    try:
        spaces = json.loads(read_limited(path.parent / "spaces.json", _LARGEST))
        space = next(one for one in spaces if one["space"] == path.stem)
        sources = _packed_lines(path.parent / "sources.jsonl.zst")
    except (OSError, *_WRONG) as error:
        raise PresageError(f"{beside}: {error}") from error
    records = _table(path)
    with _understood(path):
        texts = [one["text"] for one in sources if one["kernel"] == space["kernel"] and one["path"].endswith(".cu")]
        texts = [_text(source)] if source else texts
        case = "x".join(map(str, _sizes(space["problem_size"])))
        found = _exhaustive(records, list(space["tune_params"]))
        rows = [_tuned(str(space["kernel"]), case, texts[0] if texts else "", *each) for each in found]
        return _write(to, rows, str(space["gpu"]), path)


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """Turn errors from a document of the wrong form into PresageError."""
    try:
        yield
    except _WRONG as error:
        what = excerpt(str(error)) or type(error).__name__
        raise PresageError(f"{path} does not hold what its format says: {type(error).__name__}: {what}") from error


def _text(path: Path) -> str:
    try:
        return read_limited(path, _LARGEST).decode()
    except (OSError, ValueError) as error:
        raise PresageError(f"{path} cannot be read: {error}") from error


def _packed_lines(path: Path) -> list[dict[str, Any]]:
    """Read the JSON lines of a zstd file. Raises ValueError if it unpacks to more than _LARGEST bytes."""
    import pyarrow

    with pyarrow.input_stream(path, compression="zstd") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"{path.name} unpacks to more than {_LARGEST} bytes")
    return [json.loads(line) for line in data.splitlines()]


def _write(to: Path, rows: list[Row], hardware: str, path: Path) -> Recording:
    """Write the recording. The first kernel that worked is the anchor of all rows."""
    anchor = next((row for row in rows if row.cases), None)
    if anchor:
        rows = [_relative(row, anchor) for row in rows]
    return recording.write(to, rows, {"name": to.stem, "kind": "gpu", "hardware": hardware, "from": path.name})


def _load(path: Path) -> dict[str, Any]:
    try:
        data = read_limited(path, _LARGEST)
        data = gunzip(data, _LARGEST) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError as error:
        raise PresageError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise PresageError(f"{path} cannot be read, or was cut short: {error}") from error
    try:
        document = _closed(data)
    except (ValueError, RecursionError) as error:
        raise PresageError(f"{path} is no JSON, and no Kernel Tuner cache that was left open: {error}") from error
    if not isinstance(document, dict):
        raise PresageError(f"{path} is JSON, but not an object")
    return document


def _closed(data: bytes) -> Any:
    """Parse a JSON document. Kernel Tuner writes one line per result, and the end of the document only when it closes a
    cache. A cache that was left open is completed here; a last line that was cut short is dropped."""
    try:
        return json.loads(data)
    except ValueError:
        if b'"cache"' not in data:
            raise
    lines = data.decode().rstrip().rstrip(",").split("\n")
    for whole in (lines, lines[:-1]):
        text = "\n".join(whole).rstrip().rstrip(",")
        for end in ("}", "}}"):
            try:
                return json.loads(f"{text}{end}")
            except ValueError:
                continue
    return json.loads(data)


def _sizes(size: Any) -> list[Any]:
    return list(size) if isinstance(size, list | tuple) else [size]


_Result = tuple[dict[str, Value], Status, str, list[float], float | None]
"""A configuration, its status, the file's name for the status, the samples in ns, and the file's objective in ns."""


def _kernel_tuner(document: Mapping[str, Any], path: Path) -> Iterator[_Result]:
    keys = document["tune_params_keys"]
    for label, entry in document["cache"].items():
        try:
            values = {key: entry[key] for key in keys}
            time = entry["__error__"] if "__error__" in entry else entry["time"]
            if isinstance(time, str):
                yield values, _STATUSES.get(time, Status.RUNTIME_ERROR), time, [], None
            else:
                times = [_positive(ms) * _MS for ms in entry.get("times") or [time]]
                yield values, Status.OK, "", times, float(time) * _MS
        except _WRONG as error:
            raise PresageError(f"{path}: configuration '{excerpt(label)}' cannot be read: {error!r}") from error


def _exhaustive(records: list[dict[str, Any]], names: list[str]) -> Iterator[_Result]:
    for record in records:
        values, status = {name: record[name] for name in names}, str(record["status"])
        if status == "ok":
            yield values, Status.OK, "", [_positive(ms) * _MS for ms in record["times_ms"][1:]], None
        else:
            yield values, _STATUSES.get(status, Status.RUNTIME_ERROR), status, [], None


def _t4(document: Mapping[str, Any], path: Path) -> Iterator[_Result]:
    unit = _UNITS.get(str(document.get("metadata", {}).get("timeunit", "miliseconds")), _MS)
    for number, entry in enumerate(document["results"], start=1):
        try:
            values = dict(entry["configuration"])
            reason = str(entry["invalidity"])
            if reason == "correct":
                times = [_positive(time) * unit for time in entry["times"]["runtimes"]]
                yield values, Status.OK, "", times, float(entry["measurements"][0]["value"]) * unit
            else:
                yield values, _STATUSES.get(reason, Status.RUNTIME_ERROR), reason, [], None
        except _WRONG as error:
            raise PresageError(f"{path}: result {number} cannot be read: {error!r}") from error


def _positive(time: Any) -> float:
    if not 0 < float(time) < _LONGEST_TIME:
        raise ValueError(f"{time} is not a time")
    return float(time)


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
    source = _candidate(text, values)
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
        cases=(RecordedCase(case, 0.0, tuple(_some(samples))),) if status is Status.OK else (),
        facts={"objective_ns": objective} if objective is not None else {},
    )


def _candidate(text: str, values: Mapping[str, Value]) -> str:
    """The kernel's text with these values: in place of its `tune` lines, or, for values without a `tune` line, as
    `#define` lines before the text."""
    header = headers.parse(text, "the source")
    if missing := [name for name in header.tunables if name not in values]:
        raise PresageError(f"the source declares the tunable {missing[0]}, of which the file has no values")
    others = {name: value for name, value in values.items() if name not in header.tunables}
    return "".join(f"#define {name} {value}\n" for name, value in others.items()) + headers.render(text, values)


def _some(samples: list[float]) -> list[float]:
    if not samples:
        raise ValueError("a configuration that worked has no times")
    return samples


def _relative(row: Row, anchor: Row) -> Row:
    speedup = recording.speedup_over(anchor.cases, row.cases) if row.cases else None
    return replace(row, anchor=anchor.hash, speedup=speedup)


# -- pairs ------------------------------------------------------------------------------------------------------------

PAIR_COLUMNS = ("anchor_code", "candidate_code", "hardware", "aggregated_speedup")
"""The columns that published pairs must have. Published labels are not used: they disagree with the published
prompt."""
_ANCHOR_NS = 1e6
"""The time given to every anchor if only ratios are published."""
_LIBRARY = "import torch\n\n\ndef custom_kernel(data):\n    return torch.matmul(*data)\n"


@dataclass(frozen=True)
class Pair:
    """Two kernels for one problem, and the speedup of the candidate over the anchor."""

    problem: str
    hardware: str
    anchor: str
    candidate: str
    speedup: float

    @property
    def bin(self) -> int:
        """The 0-based bin of the speedup on the scale of core/scale.py."""
        return int(scale.bin_of([self.speedup])[0])


def import_pairs(path: Path, to: Path, *, hardware: str | None = None) -> Recording:
    """Make a recording from published pairs on one GPU, and write it to `to`. `path` is a file or folder that
    `read_pairs` can read. Only ratios are known, so all anchors get the same time.

    Raises PresageError if `path` cannot be read, or if `hardware` does not select exactly one GPU."""
    with _understood(path):
        pairs = read_pairs(path)
        return _import_pairs(path, to, pairs, hardware)


def _import_pairs(path: Path, to: Path, pairs: list[Pair], hardware: str | None) -> Recording:
    places = sorted({pair.hardware for pair in pairs})
    chosen = [place for place in places if hardware is None or hardware.lower() in place.lower()]
    if len(chosen) != 1:
        raise PresageError(f"{path} has pairs on {', '.join(places)}; name one of them with --hardware")
    rows: dict[tuple[str, str], Row] = {}
    anchors: dict[str, Row] = {}
    for pair in pairs:
        if pair.hardware == chosen[0]:
            anchor = anchors.setdefault(pair.problem, _paired(pair.problem, pair.anchor, 1.0))
            if anchor.source != pair.anchor:  # pairs with another anchor become a separate problem
                name = f"{pair.problem}-{digest(pair.anchor, 'torch')[:8]}"
                anchor = anchors.setdefault(name, _paired(name, pair.anchor, 1.0))
            for row in (anchor, _paired(anchor.problem, pair.candidate, pair.speedup)):
                rows.setdefault((row.problem, row.hash), _relative(row, anchor))
    facts = {"name": to.stem, "kind": "gpu", "hardware": chosen[0], "from": path.name}
    return recording.write(to, list(rows.values()), facts)


def _paired(problem: str, text: str, speedup: float) -> Row:
    starts = [line.lstrip() for line in text.split("\n")]
    language = "torch"
    if "import torch" not in text and any(line.startswith("#include") for line in starts):
        language = "cuda"
    elif any(line.startswith(("import triton", "from triton")) for line in starts):
        language = "triton"
    return Row(
        problem=problem,
        room="imported",
        split="",
        family=problem,
        language=language,
        hash=digest(text, language),
        source=text,
        values={},
        status=Status.OK,
        reason="",
        cases=(RecordedCase("as published", 0.0, (_ANCHOR_NS / speedup,)),),
        facts={},
    )


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs from a Parquet or JSON lines file, or from a folder. A folder holds the sources in `codes.jsonl.zst`
    and the ratios in `pairs.parquet` (a candidate against several references) or `speedups.parquet` (matrix products
    against a library). Raises PresageError for any other layout."""
    if path.is_dir():
        return list(_folder_pairs(path))
    records = _table(path) if path.suffix == ".parquet" else _lines(path)
    missing = [name for name in PAIR_COLUMNS if not records or name not in records[0]]
    if missing:
        raise PresageError(f"{path} has no column '{missing[0]}'; a data set of pairs has {', '.join(PAIR_COLUMNS)}")
    found = []
    for number, record in enumerate(records, start=1):
        try:
            speedup = float(record["aggregated_speedup"])
            if not 0 < speedup < math.inf:
                raise ValueError
        except (TypeError, ValueError) as error:
            raise PresageError(f"{path}: row {number} has no positive speedup") from error
        anchor, candidate = str(record["anchor_code"]), str(record["candidate_code"])
        problem = str(record.get("problem") or record.get("op_name") or digest(anchor, "torch"))
        found.append(Pair(problem, str(record["hardware"]), anchor, candidate, speedup))
    return found


def _folder_pairs(folder: Path) -> Iterator[Pair]:
    try:
        codes = {record["code_id"]: record["text"] for record in _packed_lines(folder / "codes.jsonl.zst")}
    except (OSError, *_WRONG) as error:
        raise PresageError(f"{folder} has no readable codes.jsonl.zst: {error}") from error
    try:
        if (folder / "pairs.parquet").exists():
            yield from _against_references(_table(folder / "pairs.parquet"), codes)
        else:
            for record in _table(folder / "speedups.parquet"):
                if record["mode"] == "offline":
                    text, ratio = codes[record["candidate_code_id"]], record["speedup_vs_torch_matmul"]
                    yield Pair(record["config"], record["hardware"], _LIBRARY, text, _positive(ratio))
    except KeyError as error:
        raise PresageError(f"{folder}: {error} is missing; this layout is not known") from error


def _against_references(records: list[dict[str, Any]], codes: Mapping[str, str]) -> Iterator[Pair]:
    """Pairs from a candidate's ratios to several references. These ratios also give the speedups of the other
    references over the eager one."""
    groups: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for record in records:
        key = (record["problem_id"], record["hardware"], record["candidate_code_id"])
        groups.setdefault(key, {})[record["reference_kind"]] = record
    for (problem, hardware, candidate), against in groups.items():
        eager = against.get("torch_eager")
        if eager is None:
            continue
        anchor = codes[eager["reference_code_id"]]
        yield Pair(problem, hardware, anchor, codes[candidate], _positive(eager["speedup"]))
        for kind in ("cuda_graph", "cudnn_flags"):
            if kind in against:
                ratio = eager["speedup"] / against[kind]["speedup"]
                yield Pair(problem, hardware, anchor, codes[against[kind]["reference_code_id"]], _positive(ratio))


def _table(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise PresageError(f"there is no file {path}")
    table = recording.read_parquet(path)
    with _understood(path):
        records: list[dict[str, Any]] = table.to_pylist()
    return records


def _lines(path: Path) -> list[dict[str, Any]]:
    records = []
    for number, line in enumerate(_text(path).split("\n"), start=1):  # other ends of lines may stand in a text
        if line.strip():
            try:
                records.append(dict(json.loads(line)))
            except (ValueError, TypeError, RecursionError) as error:
                raise PresageError(f"{path}:{number}: is not a JSON object: {error}") from error
    return records
