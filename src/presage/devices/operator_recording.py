"""Recordings of operators: calls of torch's operators with their times on one GPU, as `presage corpus operators` packs
them. Packages ship them as entry points in the group `presage.operator_recordings`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.devices.recording import read_parquet
from presage.plugins.group import OPERATOR_RECORDINGS
from presage.problems import splits
from presage.static import hardware, operator_calls
from presage.static.hardware import Hardware
from presage.static.trace import Trace, TraceError

KEY, VERSION = b"presage_operators", 1
_COLUMNS = (
    *("operator", "tensors", "arguments", "flags", "precision", "inputs", "bytes", "flops", "origins"),
    *("median_ns", "warm_ns", "host_ns", "kernels", "status", "device"),
)


@dataclass(frozen=True)
class TimedCall:
    """One call, and its measured times."""

    call: Trace
    origins: tuple[str, ...]
    """The problems, or the lists of packages, that contain the call."""
    hardware: Hardware
    cold_ns: float
    """Nanoseconds with nothing in the cache."""
    warm_ns: float
    """Nanoseconds right after an identical call."""
    host_ns: float
    """Nanoseconds for the host to queue the call."""
    kernels: int | None

    @property
    def split(self) -> str:
        return splits.of_origins(self.origins)


def find(name: str) -> Path:
    """The path of a recording of operators: that of an installed one, by its name, or the given path itself."""
    return Path(OPERATOR_RECORDINGS.load(name)) if name in OPERATOR_RECORDINGS.names() else Path(name)


def table(path: Path) -> Any:
    """All calls with all columns, as a table. Raises PresageError."""
    if not path.is_file():
        known = ", ".join(OPERATOR_RECORDINGS.names()) or "none is installed"
        raise PresageError(f"there is no recording of operators {path}; there are: {known}; or give a .parquet file")
    found = read_parquet(path)
    if KEY not in (found.schema.metadata or {}):
        raise PresageError(f"{path} is no recording of operators; 'presage corpus operators' makes one")
    try:
        version = json.loads(found.schema.metadata[KEY])["version"]
    except (LookupError, TypeError, ValueError) as error:
        raise _unreadable(path, error) from error
    if version != VERSION:
        raise PresageError(
            f"{path} is a recording of operators of version {version}; this presage reads version {VERSION}"
        )
    return found


def read(path: Path) -> list[TimedCall]:
    """The calls that succeeded."""
    found = table(path)
    try:
        records: Sequence[dict[str, Any]] = found.select(_COLUMNS).to_pylist()
        return [_timed(record) for record in records if record["status"] == "ok"]
    except (LookupError, TypeError, ValueError, TraceError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> PresageError:
    return PresageError(f"{path} cannot be read: {type(error).__name__}: {str(error)[:200]}")


def _timed(record: dict[str, Any]) -> TimedCall:
    cold, host = float(record["median_ns"]), float(record["host_ns"])
    warm = float(record["warm_ns"] or cold)
    if not (0 < cold < 1e15 and 0 < warm < 1e15 and 0 <= host < 1e15):
        raise ValueError("a time that is none")
    device = hardware.find(record["device"])
    origins = tuple(map(str, record["origins"]))
    return TimedCall(operator_calls.from_row(record), origins, device, cold, min(warm, cold), host, record["kernels"])
