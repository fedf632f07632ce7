"""A cache of paid answers in a folder: one small file per question, named by a hash of the question."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from presage.core.errors import PresageError

_POLL = 0.02
_LARGEST = 64 << 20
"""The largest entry in bytes; a larger one is a miss."""


def digest(question: Any) -> str:
    """The name of a question: a hash of everything that the answer depends on."""
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


class Entry:
    """The answers to one question. One process or thread at a time holds it."""

    def __init__(self, file: IO[bytes] | None, name: str) -> None:
        self._file, self._name = file, name

    def read(self) -> list[dict[str, Any]]:
        """The cached answers; none if the entry is damaged or belongs to another question."""
        if self._file is None:
            return []
        self._file.seek(0)
        data = self._file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            return []
        try:
            document = json.loads(data)
            text = json.dumps(document["answers"], sort_keys=True)
            whole = document["question"] == self._name and document["check"] == _check(text)
        except (ValueError, KeyError, TypeError, RecursionError):
            return []
        answers = document["answers"]
        fits = isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers)
        return answers if whole and fits else []

    def write(self, answers: list[dict[str, Any]]) -> None:
        """Replace the answers. A write that is interrupted, or for which there is no room, leaves a damaged entry,
        which counts as a miss. It is no error, because the caller has the answers."""
        if self._file is None:
            return
        document = {
            "question": self._name,
            "check": _check(json.dumps(answers, sort_keys=True)),
            "answers": answers,
        }
        with suppress(OSError):
            self._file.seek(0)
            self._file.truncate()
            self._file.write(json.dumps(document).encode())


class Cache:
    """A folder of entries. An entry is locked while its question is asked, so two concurrent askers pay only once."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @contextmanager
    def holding(self, name: str, seconds: float, sleep: Callable[[float], None] = time.sleep) -> Iterator[Entry]:
        """The entry of this question, as soon as its lock is free. After this timeout, an entry that stores nothing."""
        if self._folder is None:
            yield Entry(None, name)
            return
        path = self._folder / name[:2] / f"{name[2:]}.json"
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise PresageError(
                f"cannot keep answers in {self._folder}: {error.strerror}; set PRESAGE_CACHE_DIR to a folder of yours"
            ) from error
        with file:
            yield Entry(file if _lock(file, seconds, sleep) else None, name)


def _lock(file: IO[bytes], seconds: float, sleep: Callable[[float], None]) -> bool:
    """Take the lock, and return whether that succeeded in time. The system releases it when the file is closed."""
    for _ in range(max(1, round(seconds / _POLL))):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            sleep(_POLL)
    return False


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
