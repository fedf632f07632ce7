"""The lane of a device, a lock by which only one process at a time checks and times on it, so that searches do not
disturb each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from presage.core.errors import PresageError

PLACES = ("/dev/shm", "/tmp")


_mine = threading.local()


@contextmanager
def only(device: object, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lane of this device, after the process that holds it now. A process that dies releases it. The lock is
    reentrant within a thread. `waiting` is called if the lane is not free at once."""
    held: set[object] = _mine.__dict__.setdefault("lanes", set())
    if device in held:
        yield
        return
    fd = _locked(_place() / f"presage-lane-{device}", waiting)
    held.add(device)
    try:
        yield
    finally:
        held.discard(device)
        os.close(fd)


def _locked(path: Path, waiting: Callable[[], None]) -> int:
    try:
        fd = _open(path)
    except OSError as error:
        raise PresageError(f"cannot open {path}: {error.strerror}; it keeps measurements apart: remove it") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise PresageError(f"cannot lock {path}, which keeps measurements apart: {error.strerror}") from error
        raise
    return fd


def _place() -> Path:
    """A local folder that all processes of this machine share, whatever their TMPDIR."""
    return next((Path(path) for path in PLACES if os.access(path, os.W_OK)), Path(tempfile.gettempdir()))


def _open(path: Path) -> int:
    """Open the file read-only, since it may belong to another user. Create it if it does not exist."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
