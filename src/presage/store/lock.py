"""Lock: one process at a time has a run's folder; the file also tells when that process was last alive."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
from pathlib import Path

from presage.core.errors import PresageError

_LONGEST = 32
_HEARTBEAT = 1.0
"""Seconds between two touches of the file, and so how closely the time of a killed process is known."""


class Lock:
    """Held until it is closed or its process ends, however it ends: nothing is ever left locked."""

    def __init__(self, file: Path) -> None:
        self._file = os.fdopen(_opened(file, os.O_RDWR | os.O_CREAT), "r+")
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
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile
                os.utime(self._file.fileno())


def owner(file: Path) -> str | None:
    """The process that holds the lock, for people; None where nobody does."""
    try:
        handle = _opened(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        told = os.read(handle, _LONGEST).decode(errors="replace").strip()
        return f"process {told if told.isdecimal() else '?'}"
    finally:
        os.close(handle)
    return None


def _opened(file: Path, flags: int) -> int:
    """The file itself, and not what a link in a folder of others points to; a pipe would be waited for."""
    try:
        handle = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PresageError(f"{file} is a symbolic link; remove it, or name another folder") from error
        raise
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(handle)
        raise PresageError(f"{file} is no file of its own, but a pipe, a device or a link; remove it")
    return handle
