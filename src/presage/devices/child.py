"""Child: the parent's handle on one disposable worker process. It stops, resumes, reads and kills it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from presage.core import machine
from presage.devices.arena import ARENA_BYTES, Arena
from presage.devices.status import Status
from presage.devices.worker import wire
from presage.sandbox import processes, rules, scratch
from presage.sandbox.listener import Listener
from presage.sandbox.processes import ChildProcess, Task
from presage.sandbox.rules import Rules
from presage.sandbox.zygote import Zygote

MEMORY_BYTES = min(6 << 30, machine.memory())
FILE_BYTES = 32 << 20
START_SECONDS = 60.0
STOP_SECONDS = 10.0
SLOW_STOP_SECONDS = 1.0
"""A stop takes microseconds, and on the busiest machine milliseconds, unless something keeps it from taking hold."""
WORKER = "presage.devices.worker.main:start"
_OUTPUT_TAIL = 2000


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


class Child:
    """A worker process, started ahead of need; after `load` it belongs to one kernel and dies with it."""

    laid_out: Any = None
    """What an idle worker has last been told to lay out."""
    trusted = False
    """Whether no host code runs in it but our own: then it need not be stopped while it waits for the next command."""
    served = 0
    """How many kernels it has had before the one that it has now."""

    stop_ns: ClassVar[int] = 0
    """How long a stop takes that is not counted as the kernel's time."""
    lenient = False
    """Whether system calls that no kernel needs are only refused, and not deadly."""

    _zygote: Zygote | None = None
    """What it is forked from; by default, it is started from nothing."""

    def __init__(self, imports: Sequence[str] = ("numpy",), threads: int = 1, zygote: Zygote | None = None) -> None:
        self._zygote = zygote
        self._take_place(Arena(), Listener())
        limits = Rules(
            self.scratch,
            rules.system_paths(),
            MEMORY_BYTES + ARENA_BYTES,
            FILE_BYTES,
            reserves="torch" in imports,
        )
        settings = {"imports": list(imports), "arena_bytes": ARENA_BYTES, "threads": threads}
        self._start(limits, rules.environment(self.scratch, threads), settings, (self.arena.fd,))

    def _take_place(self, arena: Any, listener: Listener | None) -> None:
        """What every child needs, of whatever kind it is."""
        self.scratch = scratch.make()
        self.arena, self._listener = arena, listener
        self.sandbox: dict[str, bool] = {}
        self.arena_address = 0
        self._frozen = False
        self._stopped_at = 0
        self._given = self._left = 0.0
        self._filters: set[str] = set()

    def _start(
        self, limits: Rules, environment: dict[str, str], settings: dict[str, Any], more: tuple[int, ...] = ()
    ) -> None:
        commands_in, self._commands = os.pipe()
        self._answers, answers_out = os.pipe()
        for ours in (self._commands, self._answers):
            os.set_blocking(ours, False)  # a child may fill or drain its end; that must not hold us up
        # Kept open: by the time it is read, its name may stand for any other file.
        self._log = open(os.path.join(self.scratch, "output"), "w+b", buffering=0)  # noqa: SIM115
        with contextlib.suppress(OSError):  # a kernel's source and many shapes fit
            fcntl.fcntl(self._commands, fcntl.F_SETPIPE_SZ, wire.MAX_BYTES)
        self._file_bytes = limits.file_bytes
        ear = self._listener.theirs.fileno() if self._listener else -1
        descriptors = (commands_in, answers_out, *more)
        task = Task(WORKER, limits, environment, descriptors, self._log.fileno(), ear, settings)
        self._process = self._launch(task)
        self._deadline = time.monotonic() + START_SECONDS
        os.close(commands_in)
        os.close(answers_out)

    def _launch(self, task: Task) -> ChildProcess:
        return processes.fork(self._zygote, task, watched=True) if self._zygote else processes.start(task)

    # -- life ---------------------------------------------------------------------------------------------------------

    def wait_ready(self) -> None:
        """Wait until the worker has started; that it does not is never a kernel's fault."""
        try:
            if self._listener:
                self._listener.connect(self._deadline - time.monotonic())
            self._await_answer("load")
            ready = wire.receive(self._answers, self._deadline)
            self.sandbox, self.arena_address = ready["sandbox"], ready["arena"]
            self._filters = self._seen_filters()
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
        if self._listener:
            self._listener.close()
        if self.arena is not None:
            self.arena.close()
        self._log.close()
        scratch.remove(self.scratch)

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
            self._await_answer(do)
            answer = wire.receive(self._answers, self._deadline)
        except wire.SilenceError as error:
            raise VerdictError(Status.TIMEOUT, f"was still running after {self._given:g} s and was killed") from error
        except wire.WireError as error:
            raise VerdictError(Status.CHEATING, f"sent {error} on the harness's channel") from error
        except wire.ClosedError:
            self._raise_death()
        answered = time.perf_counter_ns()
        if not self.trusted:
            self.freeze()
        # What is done until it has stopped counts.
        elapsed = max(answered, self._stopped_at - self.stop_ns) - start
        self._left -= elapsed / 1e9
        cpu = self._cpu_ns() - cpu
        if do == "load":
            self._refuse_filters()
        if answer.get("token") != token:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: it carries the wrong token")
        if "error" in answer:
            status = Status.COMPILE_ERROR if answer.get("stage") == "compile" else Status.RUNTIME_ERROR
            raise VerdictError(status, str(answer["error"])[:2000] or "raised an exception")
        return answer, elapsed, cpu

    def _await_answer(self, do: str) -> None:
        """Wait until there is an answer, or no more time; meanwhile refuse what the sandbox asks us about. While a
        kernel is loaded, what it imports may try in vain; later there is no honest reason to."""
        listener = self._listener
        while listener is not None and listener.hears:
            left = max(0.0, self._deadline - time.monotonic())
            ready, _, _ = select.select([self._answers, listener.fileno()], [], [], left)
            if not ready or self._answers in ready:
                return
            called = listener.refuse()
            if called and not (self.lenient or do == "load"):
                raise VerdictError(
                    Status.CHEATING,
                    f"made a system call that no kernel needs, {called} (such calls start processes, open sockets,"
                    " signal or trace others, or change the sandbox), and was killed",
                )

    # -- stop and look ------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Stop every thread; returns when they have stopped."""
        if self._frozen:
            return
        self._signal(signal.SIGSTOP)
        told = time.monotonic()
        while time.monotonic() < told + STOP_SECONDS:
            looked = time.perf_counter_ns()  # looking at every thread takes a while, in which nothing runs
            status = self._process.news()
            if status is None:
                time.sleep(0)  # it stops within microseconds; a real sleep takes many times as long
            elif os.WIFSTOPPED(status):
                self._frozen, self._stopped_at = True, looked
                if (took := time.monotonic() - told) > SLOW_STOP_SECONDS:
                    raise TimingError(f"went on for {took:.1f} s after it had been told to stop")
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
        """A process that is stopped does not wake up by itself; Linux remembers whether it did, or stopped again."""
        if not self._frozen:
            return
        status = self._process.news()
        if status is not None and (os.WIFCONTINUED(status) or os.WIFSTOPPED(status)):
            raise VerdictError(Status.CHEATING, "resumed itself while it had been stopped")
        if status is not None:
            self._died(status)

    def _seen_filters(self) -> set[str]:
        """What Linux says of the seccomp filters of all threads, one line for each different one."""
        found = set()
        tasks = f"/proc/{self._process.pid}/task"
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):
                with contextlib.suppress(OSError), open(f"{tasks}/{thread}/status") as status:
                    lines = status.read().splitlines()
                    found.add(" ".join(line for line in lines if line.startswith(("Seccomp", "NoNewPrivs"))))
        return found

    def _refuse_filters(self) -> None:
        """No filter but ours, in any thread: one of its own could answer for the system."""
        if not self.trusted and not self._seen_filters() <= self._filters:
            raise VerdictError(Status.CHEATING, "changed the filter of system calls that confines it")

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
