"""The compiling process, from outside: it is started once, since its imports take seconds, and answers until we end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError

Answer = dict[str, Any]

_CRASH = {"status": "compile_error", "error": "the compiling process ended before it answered"}


def answers(requests: Sequence[Mapping[str, Any]], timeout: float, processes: int | None = None) -> list[Answer]:
    """An answer to each request, compiled by so many processes, all cores by default. `timeout` is for each case, in
    seconds. What the compiling process does not live to answer counts as a crash."""
    if not requests:
        return []
    processes = processes or machine.cores()
    rounds = -(-len(requests) // processes) * max(len(request["cases"]) for request in requests)
    document = {"requests": requests, "timeout": timeout, "processes": processes}
    with _lock:
        found = _process().ask(document, time.monotonic() + 60.0 + timeout * rounds)
    return [found.get(index, dict(_CRASH)) for index in range(len(requests))]


class Process:
    """One compiling process: an empty environment, a folder and a process group of its own. It ends with our input."""

    def __init__(self, path: str) -> None:
        self.path, self.owner = path, os.getpid()
        self.folder = tempfile.mkdtemp(prefix="presage-static-")
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": self.folder,
            "TMPDIR": self.folder,
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": path,
        }
        self._errors = Path(self.folder, "errors.txt")
        with self._errors.open("wb") as errors:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-s", "-m", "presage.kernels.static_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        atexit.register(self.end)

    @property
    def is_alive(self) -> bool:
        return self.owner == os.getpid() and self._child.poll() is None

    def ask(self, document: Mapping[str, Any], until: float) -> dict[int, Answer]:
        """What it answers, by the number of the request; where it is late or dies, what it had answered by then."""
        assert self._child.stdin
        found: dict[int, Answer] = {}
        done = False
        try:
            self._child.stdin.write(json.dumps(document).encode() + b"\n")
            self._child.stdin.flush()
            for line in self._lines(until):
                answer = json.loads(line)
                if done := "index" not in answer:
                    break
                found[answer.pop("index")] = answer
        except BrokenPipeError:
            pass
        finally:
            if not done:
                said = self._errors.read_text(errors="replace").strip()[-1000:]
                self.end()
        if not done and not found and self._child.returncode not in (0, -signal.SIGKILL):
            raise PresageError(f"the compiling process failed: {said or self._child.returncode}")
        return found

    def _lines(self, until: float) -> Any:
        assert self._child.stdout
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, until - time.monotonic())):
                chunk = os.read(self._child.stdout.fileno(), 1 << 20)
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines

    def end(self) -> None:
        """End it, with all that it has started, and remove its folder."""
        atexit.unregister(self.end)
        if self.owner != os.getpid():  # a copy of us that was forked: it is not ours to end
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        shutil.rmtree(self.folder, ignore_errors=True)


_lock = threading.Lock()
_current: Process | None = None


def _process() -> Process:
    global _current
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    if _current and not (_current.is_alive and _current.path == path):
        _current.end()
        _current = None
    if _current is None:
        _current = Process(path)
    return _current
