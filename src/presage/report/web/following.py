"""Following runs: what pages show of each, kept up to date by reading only what is new.

Whether a run has changed is seen from its files' sizes and times, and its database is open only while it is read. So a
search is never kept waiting, and its files are as they would be if nobody looked.
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
"""Seconds without a sign of life after which nobody works on a run: its process gives one every second."""
_FRESH = 0.1
"""A file that changed so few seconds ago may change again without another time."""
_KEPT = 8
"""So many runs are kept in memory."""

Signature = tuple[object, ...]


def signature(folder: Path) -> Signature:
    """Changes whenever the run does."""
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
    """Whether a process works on the run. Its lock is not touched: that could stop a search from beginning."""
    try:
        return time.time() - os.stat(folder / LOCK, follow_symlinks=False).st_mtime < _ALIVE
    except OSError:
        return False


class Followed:
    """One run: its view, refreshed when it has changed. Several threads may ask."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._signature: Signature = ()
        self._view: RunView | None = None
        self._standing: Standing | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[RunView, Standing, Store]]:
        """What is known now, and the store to read more from. Others wait meanwhile: the view must not change."""
        with self._lock, no_collecting(), Store(self.folder, writes=False) as store, readable(self.folder):
            now, is_running = signature(self.folder), is_alive(self.folder)
            view = self._view = self._view or RunView(self.folder)
            if now != self._signature:
                if len(store) < view.seq:  # another run has taken its place
                    view = self._view = RunView(self.folder)
                if view.refresh(store) or self._standing is None:
                    self._standing = frozen.standing(view, store, is_running)
                self._signature = now
            assert self._standing is not None
            if self._standing.is_running != is_running:
                self._standing = frozen.standing(view, store, is_running)
            yield view, self._standing, store

    def version(self) -> Signature:
        """Changes whenever a page of the run might."""
        return (*signature(self.folder), is_alive(self.folder))


class Runs:
    """The runs of a folder. A folder that is itself a run is the only one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._followed: OrderedDict[str, Followed] = OrderedDict()
        self._summaries: dict[str, tuple[Signature, Summary]] = {}

    def folders(self) -> dict[str, Path]:
        """Every run's folder by its name, which is what addresses call it."""
        if (self.folder / FILE).exists():
            return {self.folder.absolute().name: self.folder}
        return {folder.name: folder for folder in folders(self.folder)}

    def get(self, name: str) -> Followed:
        """The run of this name. Raises PresageError where there is none."""
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
        """Every run in a few words. Only those that have changed are read."""
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
