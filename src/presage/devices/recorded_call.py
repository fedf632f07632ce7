"""What a worker has written down of a call, read by a parent that believes nothing in it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from presage.static.trace import Trace, TraceError

FILE = "trace.json"
MOST_BYTES = 256 << 20


class NotReplayedError(Exception):
    """Why a module is not timed by replaying it."""


def read(folder: str) -> Trace:
    """The trace in a worker's folder, in which anything may lie under its name. Raises TraceError."""
    try:
        with open(Path(folder, FILE), "rb", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TraceError("its trace is no file")
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TraceError(f"no trace was written: {error.strerror}") from error
    if len(text) > MOST_BYTES:
        raise TraceError(f"its trace has more than {MOST_BYTES >> 20} MiB")
    try:
        return Trace.from_document(json.loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError("its trace is no JSON") from error


def _opened(path: str, flags: int) -> int:
    """Of a pipe nobody waits for the other end, and no link is followed out of the folder."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def write(trace: Trace, folder: str, name: str) -> str:
    """Hand on what was understood of a trace, and nothing else. Returns the file."""
    path = Path(folder, name)
    path.write_text(json.dumps(trace.to_document(with_code=True)))
    return str(path)
