"""Lines: append-only files of JSON lines, one for each run, so that folders from several machines can be merged by
copying files. What was written before a kill or a full disk is safe; a line that was cut short is counted and ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError


class Lines:
    """The file of this run, in a folder of such files. The methods raise PresageError if it cannot be written."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Begin the file with a line `run`, which says `about` the run what readers must know."""
        now = datetime.now(UTC)
        self.run = f"{now:%Y%m%dT%H%M%S}-{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"{self.run}.jsonl").open("ab", buffering=0)
        except OSError as error:
            raise PresageError(f"cannot write to {folder}: {error.strerror}") from error
        self.write({"kind": "run", "run": self.run, "date": f"{now:%Y-%m-%d}", **about})

    def write(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":"), default=str).encode() + b"\n"
        try:
            if self._file.write(line) != len(line):
                raise OSError(0, "the disk is full")
        except OSError as error:
            raise PresageError(
                f"cannot write to {self._file.name}: {error.strerror}; what was written before is safe; make room and"
                " run the same command again"
            ) from error

    def sync(self) -> None:
        """Have the system write what it holds back, so that a loss of power costs little."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_lines(file: Path) -> Iterator[Any]:
    """Iterate over the records of a file; None for a line that is damaged. Raises PresageError."""
    try:
        with file.open("rb") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    yield None
    except OSError as error:
        raise PresageError(f"cannot read {file}: {error.strerror}") from error
