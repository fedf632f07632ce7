"""Folders of children: creates them, and removes them whatever a child did to them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import secrets
import stat
import tempfile

from presage.core.errors import PresageError

_left_behind: dict[str, int] = {}
"""Folders that have not been removed yet, for example after an interrupt, and the process that made each."""


def make(prefix: str = "presage-") -> str:
    """Create a folder that is removed when this process ends, at the latest. It is registered before it exists, since a
    signal may end this process at any moment."""
    folder = ""
    try:
        folder = os.path.join(tempfile.gettempdir(), f"{prefix}{secrets.token_hex(8)}")
        _left_behind[folder] = os.getpid()
        os.mkdir(folder, 0o700)
    except OSError as error:
        _left_behind.pop(folder, None)
        place = tempfile.gettempdir() if tempfile.tempdir else "a temporary folder"
        raise PresageError(f"cannot write to {place}: {error.strerror}; set TMPDIR to a place with room") from error
    return folder


def remove(folder: str) -> None:
    """Remove a folder with its contents. Inner folders that are locked, or nested too deep for a path, are unlocked and
    moved up."""
    if os.path.lexists(folder):
        _empty(folder)
    if not os.path.lexists(folder):  # otherwise it is tried again when this process ends
        _left_behind.pop(folder, None)


def _empty(folder: str) -> None:
    names = itertools.count()
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
        waiting = [folder]
        while waiting:
            inside = waiting.pop()
            folders = []
            for entry in list(os.scandir(inside)):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.unlink(entry.path)
            for path in folders:
                moved = os.path.join(folder, f".{next(names)}-{os.getpid()}")
                os.chmod(path, stat.S_IRWXU)
                os.rename(path, moved)
                waiting.append(moved)
            if inside != folder:
                os.rmdir(inside)
        os.rmdir(folder)


@atexit.register
def _clear_up() -> None:
    for folder, owner in tuple(_left_behind.items()):
        if owner == os.getpid():
            remove(folder)
