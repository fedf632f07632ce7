"""Child: the parent's handle on one disposable worker process. It stops, resumes, reads and kills it."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from presage.core import machine
from presage.core.errors import PresageError
from presage.devices.arena import ARENA_BYTES, Arena
from presage.devices.status import Status
from presage.devices.worker import sandbox, wire

MEMORY_BYTES = min(6 << 30, machine.memory())
FILE_BYTES = 32 << 20
START_SECONDS = 60.0
STOP_SECONDS = 10.0
_OUTPUT_TAIL = 2000
_SOURCE = str(Path(__file__).parents[2])


class VerdictError(Exception):
    """The kernel's trial is over: this is its status, and why."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class ChildLostError(VerdictError):
    """The child was killed by something that is neither us nor the kernel, so the trial deserves another try."""

    def __init__(self) -> None:
        super().__init__(Status.DEVICE_FAULT, "its worker was killed from outside, perhaps because memory ran out")


class TimingError(VerdictError):
    """Times that cannot be believed. That is a lie if it happens again; once, it may be the machine's doing."""

    def __init__(self, reason: str) -> None:
        super().__init__(Status.CHEATING, reason)


@dataclass(frozen=True)
class Window:
    """One uninterrupted run of calls, as both clocks saw it."""

    child_ns: int
    parent_ns: int
    cpu_ns: int
    calls: int
    answer: dict[str, Any]
    threads: int = 0
    """How many threads the child had when it was stopped."""
    main_ns: int | None = None
    """The processor time of its first thread, which reads its clock; None where the system does not tell."""
    waited_ns: int = 0
    """How long that thread, and ours, waited for a processor that others had."""

    @property
    def unseen_ns(self) -> int:
        """What passed on the parent's clock and not on the child's."""
        return self.parent_ns - self.child_ns


class Process(Protocol):
    """A worker process as its parent sees it."""

    pid: int

    def news(self) -> int | None:
        """A wait status that has not been told yet: it stopped, went on, or ended."""

    def resumed(self) -> None:
        """Take note that we have told it to go on, so that its going on is no news."""

    def wait(self) -> None:
        """Wait until it has ended, and let go of it."""


Spawn = Callable[[dict[str, Any], tuple[int, int, int]], Process]
"""Starts a worker with these settings; the descriptors are its commands, its answers and its log."""


class Child:
    """A worker process, started ahead of need; after `load` it belongs to one kernel and dies with it."""

    trusted = False
    """Whether only kernels of our own run in it: then it need not be stopped while it waits for the next command."""

    def __init__(
        self, imports: Sequence[str] = ("numpy",), threads: int = 1, spawn: Spawn | None = None, **more: Any
    ) -> None:
        try:
            self.scratch = tempfile.mkdtemp(prefix="presage-")
        except OSError as error:
            place = tempfile.gettempdir() if tempfile.tempdir else "a temporary folder"
            raise PresageError(f"cannot write to {place}: {error.strerror}; set TMPDIR to a place with room") from error
        _left_behind.add(self.scratch)
        self.arena: Any = None if spawn else Arena()
        self.sandbox: dict[str, bool] = {}
        self.arena_address = 0
        self._frozen = False
        self._given = self._left = 0.0
        commands_in, self._commands = os.pipe()
        self._answers, answers_out = os.pipe()
        for ours in (self._commands, self._answers):
            os.set_blocking(ours, False)  # a child may fill or drain its end; that must not hold us up
        # Kept open: by the time it is read, its name may stand for any other file.
        self._log = open(os.path.join(self.scratch, "output"), "w+b", buffering=0)  # noqa: SIM115
        settings = {
            "scratch": self.scratch,
            "memory_bytes": MEMORY_BYTES + ARENA_BYTES,
            "file_bytes": FILE_BYTES,
            "readable": [*sandbox.system_paths(), _SOURCE],
            "imports": list(imports),
            "environment": environment(self.scratch, threads),
            **more,
        }
        if self.arena is not None:
            settings |= {"arena": self.arena.fd, "arena_bytes": ARENA_BYTES}
        with contextlib.suppress(OSError):  # a kernel's source and many shapes fit
            fcntl.fcntl(self._commands, fcntl.F_SETPIPE_SZ, wire.MAX_BYTES)
        self._file_bytes: int = settings["file_bytes"]
        self._process = (spawn or _start_python)(settings, (commands_in, answers_out, self._log.fileno()))
        self._deadline = time.monotonic() + START_SECONDS
        os.close(commands_in)
        os.close(answers_out)

    # -- life ---------------------------------------------------------------------------------------------------------

    def wait_ready(self) -> None:
        """Wait until the worker has started; that it does not is never a kernel's fault."""
        try:
            ready = wire.receive(self._answers, self._deadline)
            self.sandbox, self.arena_address = ready["sandbox"], ready["arena"]
        except (wire.SilenceError, wire.ClosedError, wire.WireError, KeyError) as error:
            raise VerdictError(
                Status.DEVICE_FAULT, f"a worker process did not start: {self.output() or error}"
            ) from error

    def give(self, seconds: float) -> None:
        """Set how long it may run in all from now on; while it is stopped, no time passes."""
        self._given = self._left = seconds

    def end(self) -> None:
        """End the whole process group at once. Whoever waits for an answer, in another thread, finds it gone."""
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """End the whole process group and take back everything it held."""
        self.end()
        self._process.wait()
        for fd in (self._commands, self._answers):
            with contextlib.suppress(OSError):
                os.close(fd)
        if self.arena is not None:
            self.arena.close()
        self._log.close()
        _remove(self.scratch)
        _left_behind.discard(self.scratch)

    def output(self) -> str:
        """The last of what it wrote to stdout and stderr."""
        log = self._log.fileno()
        start = max(0, os.fstat(log).st_size - _OUTPUT_TAIL)
        return os.pread(log, _OUTPUT_TAIL, start).decode(errors="replace").strip()

    # -- talk ---------------------------------------------------------------------------------------------------------

    def command(self, do: str, **details: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; the child runs only in between."""
        return self._exchange(do, details)[0]

    def window(self, calls: int, **details: Any) -> Window:
        """Run so many of the calls laid out. The clocks start with the child stopped, and end with it stopped again."""
        before = self._scheduled()
        answer, parent_ns, cpu_ns = self._exchange("run", {"calls": calls, **details})
        after = self._scheduled()
        child_ns = answer.get("ns")
        if type(child_ns) is not int or not 0 <= child_ns <= parent_ns:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: it names no time that can have passed")
        main_ns, waited_ns = (after[0] - before[0], after[1] - before[1]) if before and after else (None, 0)
        return Window(child_ns, parent_ns, cpu_ns, calls, answer, self._threads(), main_ns, waited_ns)

    def _exchange(self, do: str, details: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
        token = secrets.token_hex(8)
        start = time.perf_counter_ns()
        self._deadline = time.monotonic() + self._left
        if wire.pending(self._answers):
            if wire.closed(self._answers):
                self._raise_death()
            raise VerdictError(Status.CHEATING, "wrote to the harness's channel when nothing had been asked")
        try:
            wire.send(self._commands, {"do": do, "token": token, **details})
        except BlockingIOError as error:
            raise VerdictError(Status.CHEATING, "stuffed the harness's channel, so that no command fits") from error
        except BrokenPipeError:
            self._raise_death()
        self._refuse_motion()
        cpu = self._cpu_ns()
        if self._frozen:
            start = time.perf_counter_ns()
            self.resume()
        try:
            answer = wire.receive(self._answers, self._deadline)
        except wire.SilenceError as error:
            raise VerdictError(Status.TIMEOUT, f"was still running after {self._given:g} s and was killed") from error
        except wire.WireError as error:
            raise VerdictError(Status.CHEATING, f"sent {error} on the harness's channel") from error
        except wire.ClosedError:
            self._raise_death()
        elapsed = time.perf_counter_ns() - start
        self._left -= elapsed / 1e9
        if not self.trusted:
            self.freeze()
        cpu = self._cpu_ns() - cpu
        if answer.get("token") != token:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: it carries the wrong token")
        if "error" in answer:
            status = Status.COMPILE_ERROR if answer.get("stage") == "compile" else Status.RUNTIME_ERROR
            raise VerdictError(status, str(answer["error"])[:2000] or "raised an exception")
        return answer, elapsed, cpu

    # -- stop and look ------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Stop every thread; returns when they have stopped."""
        if self._frozen:
            return
        self._signal(signal.SIGSTOP)
        patience = time.monotonic() + STOP_SECONDS
        while time.monotonic() < patience:
            status = self._process.news()
            if status is None:
                time.sleep(0)  # it stops within microseconds; a real sleep takes many times as long
            elif os.WIFSTOPPED(status):
                self._frozen = True
                return
            elif not os.WIFCONTINUED(status):
                self._died(status)
        raise VerdictError(Status.CHEATING, f"was told to stop, and had not after {STOP_SECONDS:g} s")

    def resume(self) -> None:
        self._frozen = False
        self._process.resumed()
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """Signal the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _refuse_motion(self) -> None:
        """A process that is stopped does not wake up by itself; Linux remembers whether it did."""
        if not self._frozen:
            return
        status = self._process.news()
        if status is not None and os.WIFCONTINUED(status):
            raise VerdictError(Status.CHEATING, "resumed itself while it had been stopped")
        if status is not None:
            self._died(status)

    def read_memory(self, address: int, size: int) -> np.ndarray:
        """The child's bytes at an address, read from outside while it is stopped."""
        try:
            with open(f"/proc/{self._process.pid}/mem", "rb", buffering=0) as memory:
                memory.seek(address)
                data = bytearray(size)
                got = memory.readinto(data)
        except PermissionError as error:
            raise VerdictError(
                Status.DEVICE_FAULT,
                "this system forbids reading a worker's memory (kernel.yama.ptrace_scope above 1?)",
            ) from error
        except (OSError, ValueError, OverflowError):
            got = 0
        if got != size:
            raise VerdictError(Status.CHEATING, "returned an array whose memory does not exist")
        return np.frombuffer(data, dtype=np.uint8)

    def _cpu_ns(self) -> int:
        """CPU time of all its threads, dead ones included: Linux names a process's clock by its id."""
        try:
            return time.clock_gettime_ns((~self._process.pid) << 3 | 2)
        except OSError:
            return 0

    def _scheduled(self) -> tuple[int, int] | None:
        """How long its first thread has run, and how long it and ours have waited to run."""
        try:
            with open(f"/proc/{self._process.pid}/schedstat") as theirs, open("/proc/thread-self/schedstat") as ours:
                ran, waited, _ = map(int, theirs.read().split())
                return ran, waited + int(ours.read().split()[1])
        except (OSError, ValueError):
            return None

    def _threads(self) -> int:
        try:
            return len(os.listdir(f"/proc/{self._process.pid}/task"))
        except OSError:
            return 0

    def _raise_death(self) -> None:
        self._signal(signal.SIGCONT)
        left = max(0.1, self._deadline - time.monotonic())
        while left > 0:
            status = self._process.news()
            if status is not None and not os.WIFCONTINUED(status) and not os.WIFSTOPPED(status):
                self._died(status)
            time.sleep(0.002)
            left -= 0.002
        raise VerdictError(Status.TIMEOUT, "closed the harness's channel and went on running; it was killed")

    def _died(self, status: int) -> None:
        if not os.WIFSIGNALED(status):
            raise VerdictError(Status.RUNTIME_ERROR, f"ended the process with exit status {os.WEXITSTATUS(status)}")
        number = os.WTERMSIG(status)
        if number == signal.SIGSYS:
            raise VerdictError(
                Status.CHEATING,
                "made a system call that no kernel needs (starting a process, opening a socket, signalling or tracing"
                " another process) and was killed",
            )
        if number == signal.SIGKILL:
            raise ChildLostError()
        if number == signal.SIGXFSZ:
            size = f"{self._file_bytes >> 20} MiB"
            raise VerdictError(Status.RUNTIME_ERROR, f"wrote a file or output of more than {size}")
        raise VerdictError(Status.RUNTIME_ERROR, f"was killed by {signal.Signals(number).name}")


class _PythonProcess:
    """A worker started from nothing, our own child."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen, self.pid = popen, popen.pid

    def news(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return None
        if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            self._popen.returncode = os.waitstatus_to_exitcode(status)
        return status if pid else None

    def resumed(self) -> None:
        return  # the kernel forgets that a process went on once it has stopped again

    def wait(self) -> None:
        self._popen.wait()


def _start_python(settings: dict[str, Any], descriptors: tuple[int, int, int]) -> Process:
    commands, answers, log = descriptors
    settings |= {"commands": commands, "answers": answers}
    start = f"import sys; sys.path.insert(0, {_SOURCE!r}); from presage.devices.worker.main import main; main()"
    return _PythonProcess(
        subprocess.Popen(
            [sys.executable, "-I", "-c", start, json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(commands, answers, settings["arena"]),
            start_new_session=True,
            cwd=settings["scratch"],
            env=settings["environment"],
        )
    )


_left_behind: set[str] = set()
"""Folders of workers that nobody has ended, as when the user had enough."""


@atexit.register
def _clear_up() -> None:
    for folder in tuple(_left_behind):
        _remove(folder)


def _remove(folder: str) -> None:
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder):  # nested too deep for Python, or locked
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, folder], stderr=subprocess.DEVNULL, check=False)


def environment(scratch: str, threads: int) -> dict[str, str]:
    """All the child may know: nothing of the caller's environment, so no key can leak."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": "20000",  # idle threads that spin for long would keep the parent from its clock
    }
