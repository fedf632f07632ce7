"""Following runs: a cached RunView for each run, updated by reading only the new events.

The sizes and modification times of a run's files show whether it has changed, and its database is open only while it
is read. So the web view never blocks a search, and leaves no trace in its files.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.report import frozen
from presage.report.run_page import Standing
from presage.report.run_view import RunView, no_collecting, readable
from presage.report.runs_page import Summary, summary
from presage.searches.run import folders
from presage.store.store import FILE, LOCK, Store

_ALIVE = 6.0
"""Seconds after which a run counts as stopped if its process has not touched the lock file, as it does every second."""
_FRESH = 0.1
"""A file that changed less than this many seconds ago may change again without a new modification time."""
_KEPT = 8
"""The number of runs that are kept in memory."""

Signature = tuple[object, ...]


def signature(folder: Path) -> Signature:
    """Return a value that changes whenever the run's files may have changed."""
    told: list[object] = []
    for name in (FILE, f"{FILE}-wal"):
        try:
            about = os.stat(folder / name)
        except OSError:
            told.append(None)
            continue
        is_fresh = time.time() - about.st_mtime < _FRESH
        told.append((about.st_ino, about.st_size, about.st_mtime_ns, time.monotonic() if is_fresh else 0))
    return tuple(told)


def is_alive(folder: Path) -> bool:
    """Whether a process works on the run. The lock itself is not taken: that could prevent a search from starting."""
    try:
        return time.time() - os.stat(folder / LOCK, follow_symlinks=False).st_mtime < _ALIVE
    except OSError:
        return False


class Followed:
    """One run with its view, which is refreshed when the run has changed. It is thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._signature: Signature = ()
        self._view: RunView | None = None
        self._standing: Standing | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[RunView, Standing, Store]]:
        """Yield the current view, its standing and the open store. A lock is held, so that the view does not change."""
        with self._lock, no_collecting(), Store(self.folder, writes=False) as store, readable(self.folder):
            now, is_running = signature(self.folder), is_alive(self.folder)
            view = self._view = self._view or RunView(self.folder)
            if now != self._signature:
                if _is_another(store, view):
                    view, self._standing = RunView(self.folder), None
                    self._view = view
                if view.refresh(store) or self._standing is None:
                    self._standing = frozen.standing(view, store, is_running)
                self._signature = now
            assert self._standing is not None
            if self._standing.is_running != is_running:
                self._standing = frozen.standing(view, store, is_running)
            yield view, self._standing, store

    def version(self) -> Signature:
        """Return a value that changes whenever a page of the run may have changed."""
        return (*signature(self.folder), is_alive(self.folder))


def _is_another(store: Store, view: RunView) -> bool:
    """Whether a new run has replaced that of the view in the folder."""
    first = store.first()
    return view.seq > 0 and (first is None or first.time != view.begun or len(store) < view.seq)


class Runs:
    """The runs of a folder. If the folder is itself a run, it is the only one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._followed: OrderedDict[str, Followed] = OrderedDict()
        self._summaries: dict[str, tuple[Signature, Summary]] = {}

    def folders(self) -> dict[str, Path]:
        """Return every run's folder by the name that addresses use."""
        if (self.folder / FILE).exists():
            return {self.folder.absolute().name: self.folder}
        return {folder.name: folder for folder in folders(self.folder)}

    def get(self, name: str) -> Followed:
        """Return the run of this name. Raises PresageError if there is none."""
        folder = self.folders().get(name)
        if folder is None:
            raise PresageError(f"there is no run {one_line(name, 80)} in {self.folder}")
        with self._lock:
            found = self._followed.pop(name, None) or Followed(folder)
            self._followed[name] = found
            while len(self._followed) > _KEPT:
                self._followed.popitem(last=False)
        return found

    def summaries(self) -> list[Summary]:
        """Return a summary of every run. Only runs that have changed are read."""
        found = []
        for name, folder in self.folders().items():
            now: Signature = (*signature(folder), is_alive(folder))
            known = self._summaries.get(name)
            if known is None or known[0] != now:
                known = self._summaries[name] = (now, summary(folder, is_alive(folder)))
            found.append(known[1])
        return found

    def version(self) -> Signature:
        return tuple((name, signature(folder), is_alive(folder)) for name, folder in self.folders().items())
