"""The lock file of a run's folder. It lets only one process at a time work on the run, and its modification time shows
when that process was last alive."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from pathlib import Path

from presage.core.errors import PresageError

_LONGEST = 32
_TRIES, _PAUSE = 50, 0.02
_HEARTBEAT = 1.0
"""Seconds between two updates of the file's modification time. The end of a killed process is known this precisely."""


class Lock:
    """An exclusive lock, held until `close` or until the process ends. A killed process leaves nothing locked.

    Raises PresageError if another process holds the lock, or if the file is not a regular file; OSError if the file
    cannot be opened."""

    def __init__(self, file: Path) -> None:
        self._file = os.fdopen(_opened(file, os.O_RDWR | os.O_CREAT), "r+")
        if not _taken(self._file.fileno(), file):
            self._file.close()
            holder = owner(file) or "another process"
            raise PresageError(f"{holder} is working on {file.parent}; wait for it, or name another folder")
        self.last_alive = os.fstat(self._file.fileno()).st_mtime
        """When the previous holder was last alive, in seconds since the epoch."""
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
            with contextlib.suppress(OSError, ValueError):  # the file has been closed in the meantime
                os.utime(self._file.fileno())


def _taken(handle: int, file: Path) -> bool:
    """Take the lock, and return whether that succeeded. `owner` holds it for a moment, too; that is waited for."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if owner(file):
                return False
            time.sleep(_PAUSE)
    return False


def owner(file: Path) -> str | None:
    """Return the process that holds the lock, as in `process 123`; None if the lock is free."""
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
    """Open a regular file and refuse anything else. A link in an untrusted folder could point anywhere, and a pipe
    would block."""
    try:
        handle = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PresageError(f"{file} is a symbolic link; remove it, or name another folder") from error
        raise
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(handle)
        raise PresageError(f"{file} is not a regular file, but a pipe, a device or a link; remove it")
    return handle
