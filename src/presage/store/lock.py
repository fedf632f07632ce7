"""Lock: one process at a time has a run's folder; the file also tells when that process was last alive."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

from presage.core.errors import PresageError

_HEARTBEAT = 1.0
"""Seconds between two touches of the file, and so how closely the time of a killed process is known."""


class Lock:
    """Held until it is closed or its process ends, however it ends: nothing is ever left locked."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = owner(file) or "another process"
            self._file.close()
            raise PresageError(f"{holder} is working on {file.parent}; wait for it, or name another folder") from error
        self.last_alive = os.fstat(self._file.fileno()).st_mtime
        """When the process that held it before was last seen, in seconds since the epoch."""
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        self._closed = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._file.close()

    def _beat(self) -> None:
        while not self._closed.wait(_HEARTBEAT):
            with contextlib.suppress(OSError):  # whoever removed the folder hears of it from the next event
                os.utime(self._file.name)


def owner(file: Path) -> str | None:
    """The process that holds the lock, for people; None where nobody does."""
    try:
        with file.open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return f"process {held.read().strip() or '?'}"
    except FileNotFoundError:
        pass
    return None
