"""Starts confined children. Every process that presage starts is started here.

A child is either a new Python process, which enters the sandbox first, or forked from a `Zygote`, which has imported
what its children need and runs no foreign code itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from presage.sandbox import memory, scratch
from presage.sandbox.rules import Rules, environment, program_paths
from presage.sandbox.zygote import Zygote

EXECUTE, TELL_LAYERS = "presage.sandbox.launch:execute", "presage.sandbox.launch:tell_layers"
SOURCE = str(Path(__file__).parents[2])
_OUTPUT_BYTES, _LEAST_MEMORY = 1 << 20, 1 << 30
_END_SECONDS = 30.0
_STOPPED, _CONTINUED = signal.SIGSTOP << 8 | 0x7F, 0xFFFF


class ChildProcess(Protocol):
    """A child as its parent sees it. It leads a process group of its own, which is stopped and killed as a whole."""

    pid: int

    def news(self) -> int | None:
        """A wait status that has not been reported yet (it stopped, resumed or ended), or None."""

    def resumed(self) -> None:
        """Note that the parent has resumed the child, so that `news` does not report it."""

    def wait(self) -> None:
        """Wait until the child has ended, and release its resources."""


@dataclass(frozen=True)
class Task:
    """The task of a child: a function inside the sandbox, by name, and its settings."""

    target: str
    """`module:function`; it takes the settings and a `launch.Gate`."""
    rules: Rules
    environment: dict[str, str]
    descriptors: tuple[int, ...] = ()
    """File descriptors that the child inherits. Their numbers in the child are under `descriptors` in its settings."""
    output: int = -1
    """The descriptor for the child's stdout and stderr; none by default."""
    listener: int = -1
    """The socket through which the child sends its seccomp listener; none by default."""
    settings: dict[str, Any] | None = None
    """Further settings."""

    def message(self, group: memory.MemoryGroup | None) -> dict[str, Any]:
        return {
            **(self.settings or {}),
            "target": self.target,
            "rules": self.rules.to_json(),
            "environment": self.environment,
            "group": group.door if group else None,
        }


def start(task: Task) -> ChildProcess:
    """Start a child as a new Python process."""
    group = memory.group(task.rules.memory_bytes)
    told = task.message(group) | {"descriptors": task.descriptors}
    passed = task.descriptors
    if task.listener >= 0:
        told["listener"], passed = task.listener, (*passed, task.listener)
    code = f"import sys; sys.path.insert(0, {SOURCE!r}); from presage.sandbox.launch import main; main()"
    output = task.output if task.output >= 0 else subprocess.DEVNULL
    popen = subprocess.Popen(
        [sys.executable, "-I", "-c", code, json.dumps(told)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=passed,
        start_new_session=True,
        cwd=task.rules.scratch,
        env=task.environment,
    )
    return _OwnProcess(popen, group)


def start_own(module: str, without: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start an unconfined process that runs `main` of one of our modules and communicates by its stdin and stdout. No
    foreign code runs in it; it starts confined children itself. `without`: environment variables that it does not
    get."""
    paths = [SOURCE, *(path for path in sys.path if path and Path(path).is_dir())]
    code = f"import sys; sys.path[:0] = {paths!r}; from {module} import main; main()"
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
        env={name: value for name, value in os.environ.items() if name not in without},
    )


def stop_own(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Ask such a process to end within this many seconds, or else kill it."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def fork(zygote: Zygote, task: Task, watched: bool = False) -> ForkedProcess:
    """Fork a child from a zygote, which takes milliseconds. `watched`: whether every stop and resume of the child is
    reported."""
    group = memory.group(task.rules.memory_bytes)
    try:
        pid = zygote.fork(task.message(group), task.output, task.descriptors, task.listener)
    except BaseException:
        memory.release(group)
        raise
    return (WatchedProcess if watched else ForkedProcess)(zygote, pid, group)


class _OwnProcess:
    """A direct child of this process. Linux reports each of its stops and resumes."""

    def __init__(self, popen: subprocess.Popen[bytes], group: memory.MemoryGroup | None) -> None:
        self._popen, self.pid, self._group = popen, popen.pid, group

    def news(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return None
        if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            self._popen.returncode = os.waitstatus_to_exitcode(status)
        return status if pid else None

    def resumed(self) -> None:
        return  # the kernel drops the report of a resume once the process has stopped again

    def wait(self) -> None:
        self._popen.wait()
        memory.release(self._group)


class ForkedProcess:
    """A child of a zygote. Its state is read from /proc, and the zygote reports its end."""

    def __init__(self, zygote: Zygote, pid: int, group: memory.MemoryGroup | None) -> None:
        self._zygote, self.pid, self._group = zygote, pid, group
        self._stopped = False
        self._ended: int | None = None

    @property
    def is_gone(self) -> bool:
        return _state(f"/proc/{self.pid}") in ("", "Z", "X")

    def news(self) -> int | None:
        if self._ended is not None:
            return None
        state = _state(f"/proc/{self.pid}")
        if state in ("", "Z", "X"):
            self._ended = self._zygote.reap(self.pid)
            return self._ended
        stopped = state == "T" and (self._stopped or self._all_stopped())
        if stopped == self._stopped:
            return None
        self._stopped = stopped
        return _STOPPED if stopped else _CONTINUED

    def _all_stopped(self) -> bool:
        """Whether all threads have stopped. A thread may wait where a signal does not reach it."""
        tasks = f"/proc/{self.pid}/task"
        with contextlib.suppress(OSError):
            return all(_state(f"{tasks}/{thread}") in ("T", "Z", "X", "") for thread in os.listdir(tasks))
        return True

    def resumed(self) -> None:
        self._stopped = False

    def status(self) -> int | None:
        """The child's wait status when it has ended; None while it lives."""
        if self._ended is None and self.is_gone:
            self.news()
        return self._ended

    def wait(self) -> None:
        patience = time.monotonic() + _END_SECONDS
        while self._ended is None and time.monotonic() < patience:
            if self.status() is None:
                time.sleep(0.002)
        memory.release(self._group)


class WatchedProcess(ForkedProcess):
    """A child of a zygote. Linux reports each of its stops and resumes to the zygote, which passes them on."""

    def news(self) -> int | None:
        if self._ended is not None:
            return None
        status = self._zygote.news(self.pid)
        if status is not None and not (os.WIFSTOPPED(status) or os.WIFCONTINUED(status)):
            self._ended = status
        return status


def _state(folder: str) -> str:
    """The state as one letter, as in ps; empty if there is no such process or thread."""
    try:
        with open(f"{folder}/stat", "rb", buffering=0) as stat:
            return stat.read(512).rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def end(process: ChildProcess) -> None:
    """Kill the child's whole process group at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


# -- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """The exit status of a program, and its output."""

    status: int
    """The exit status, or the negative number of the signal that ended the program."""
    output: str


def run(command: Sequence[str], rules: Rules, seconds: float, output_bytes: int = _OUTPUT_BYTES) -> Finished:
    """Run a program, such as a compiler, inside the sandbox. The rules must let it spawn. Output beyond `output_bytes`
    is left out. Raises TimeoutError after `seconds`."""
    return _finished(EXECUTE, {"command": list(command)}, rules, seconds, output_bytes)


def layers() -> dict[str, bool]:
    """Which layers of the sandbox are in force for compilers and other programs on this machine."""
    folder = scratch.make()
    try:
        limits = Rules(folder, program_paths(), _LEAST_MEMORY, may_spawn=True)
        held: dict[str, bool] = json.loads(_finished(TELL_LAYERS, {}, limits, _END_SECONDS, _OUTPUT_BYTES).output)
        return held
    finally:
        scratch.remove(folder)


def _finished(target: str, settings: dict[str, Any], rules: Rules, seconds: float, output_bytes: int) -> Finished:
    with tempfile.TemporaryFile() as said:  # not a pipe: a program's output may fill our memory
        known = environment(rules.scratch)
        process = fork(_plain(), Task(target, rules, known, output=said.fileno(), settings=settings))
        until = time.monotonic() + seconds
        try:
            while not process.is_gone:
                if time.monotonic() > until:
                    what = settings.get("command", [target])[0]
                    raise TimeoutError(f"{what} was still running after {seconds:g} s")
                time.sleep(0.001)
        finally:
            end(process)  # with all that it has started, before its process id can be reused
            process.wait()
        said.seek(0)
        output = said.read(output_bytes).decode(errors="replace")
    return Finished(os.waitstatus_to_exitcode(process.status() or 0), output)


_zygotes: dict[str, Zygote] = {}
_lock = threading.Lock()


def zygote(name: str, imports: Sequence[str], more: dict[str, str] | None = None) -> Zygote:
    """The zygote of this name. It is started on first use, and again if it has died or belongs to another process.
    `more` is added to its environment."""
    key = f"{os.getpid()}/{name}"
    with _lock:
        found = _zygotes.get(key)
        if found is None or not found.is_alive:
            found = _zygotes[key] = Zygote(imports, environment("/") | (more or {}))
        return found


_PLAIN = "plain"


def _plain() -> Zygote:
    return zygote(_PLAIN, ("presage.sandbox.launch",))


def rest(name: str = _PLAIN) -> None:
    """End the zygote of this name, by default the one that programs are forked from. The next use starts a new one."""
    with _lock:
        found = _zygotes.pop(f"{os.getpid()}/{name}", None)
    if found is not None:
        found.close()
