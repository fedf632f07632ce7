"""Reads the trace of a call that a worker has recorded. The parent does not trust its content."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from presage.core.text import most_values
from presage.static.trace import Trace, TraceError

FILE = "trace.json"
MOST_BYTES, MOST_VALUES = 256 << 20, 12_000_000


class NotReplayedError(Exception):
    """The reason why a module is not timed by replaying it."""


def read(folder: str) -> Trace:
    """Read the trace in a worker's folder, where the file of this name may be anything. Raises TraceError."""
    try:
        with open(Path(folder, FILE), "rb", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TraceError("its trace is no file")
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TraceError(f"no trace was written: {error.strerror}") from error
    if len(text) > MOST_BYTES:
        raise TraceError(f"its trace has more than {MOST_BYTES >> 20} MiB")
    if most_values(text) > MOST_VALUES:
        raise TraceError(f"its trace has more than {MOST_VALUES:,} values")
    try:
        return Trace.from_document(json.loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError("its trace is no JSON") from error


def _opened(path: str, flags: int) -> int:
    """Open the file without waiting for the other end of a pipe, and without following a link out of the folder."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def write(trace: Trace, folder: str, name: str) -> str:
    """Write the parsed trace, and nothing else, to a file in the folder. Returns its path."""
    path = Path(folder, name)
    path.write_text(json.dumps(trace.to_document(with_code=True)))
    return str(path)
