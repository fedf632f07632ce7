"""Child: the parent's handle on one disposable worker process. It stops, resumes, inspects and kills the process."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

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
WALL_SHARE, _LOOK_SECONDS = 4.0, 0.05
"""If processor time is limited, wall-clock time is limited to WALL_SHARE times as much. Processor time is read every
_LOOK_SECONDS."""
STOP_SECONDS = 10.0
SLOW_STOP_SECONDS = 1.0
"""A stop that takes longer is a TimingError. Normally it takes microseconds, on the busiest machine milliseconds."""
WORKER = "presage.devices.worker.main:start"
Message = TypeVar("Message")
_OUTPUT_TAIL = 2000


class VerdictError(Exception):
    """Ends a kernel's trial, with its status and the reason."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class ChildLostError(VerdictError):
    """The child was killed, but neither by us nor by the kernel, so the trial is retried."""

    def __init__(self) -> None:
        super().__init__(Status.DEVICE_FAULT, "its worker was killed from outside, perhaps because memory ran out")


class TimingError(VerdictError):
    """Times that cannot be believed. The first time, the machine may be the cause, so the trial is retried. The second
    time, it is a lie."""

    def __init__(self, reason: str) -> None:
        super().__init__(Status.CHEATING, reason)


@dataclass(frozen=True)
class Window:
    """One uninterrupted series of calls, timed by the child's clock and by the parent's, in nanoseconds."""

    child_ns: int
    parent_ns: int
    cpu_ns: int
    calls: int
    answer: dict[str, Any]
    threads: int = 0
    """The number of threads of the child when it was stopped."""
    main_ns: int | None = None
    """The processor time of the child's first thread, which reads its clock. None if the system does not report it."""
    waited_ns: int = 0
    """Nanoseconds that the child's first thread and ours waited for a processor that was busy with other threads."""

    @property
    def unseen_ns(self) -> int:
        """Nanoseconds that passed on the parent's clock but not on the child's."""
        return self.parent_ns - self.child_ns


@dataclass(frozen=True)
class Handover:
    """What the parent does itself in a window whose calls wait for a signal. The child has been resumed and has read
    its command by then, so that little time lies between the inputs and the first call, and between the last call and
    the outputs."""

    give: Callable[[], None]
    """Called when the child waits. As soon as it returns, the child gets the signal."""
    take: Callable[[], None]
    """Called when the child says that its calls are done. It need not be true, and the child is not stopped yet, since
    stopping it takes long enough to finish some work."""


class Child:
    """A worker process, started before it is needed. From `load` on it belongs to one kernel, and usually ends with
    it."""

    laid_out: Any = None
    """The layout that an idle worker was last given."""
    trusted = False
    """Whether only our own host code runs in this process. A trusted process is not stopped between commands."""
    served = 0
    """How many kernels this worker served before the current one."""

    stop_ns: ClassVar[int] = 0
    """Nanoseconds that stopping the child takes. They are subtracted from the kernel's time."""
    counts_processor_time = False
    """Whether the time that it may run is processor time, which does not depend on other work on this machine. Programs
    that it starts, such as compilers, do not count."""
    lenient = False
    """Whether system calls that no kernel needs are only refused and do not end the trial."""

    _zygote: Zygote | None = None
    """The zygote that the child is forked from. Without one, the child is a new Python process."""

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
        """Initialise the fields that every kind of child needs."""
        self.scratch = scratch.make()
        self.arena, self._listener = arena, listener
        self.sandbox: dict[str, bool] = {}
        self.arena_address = 0
        self._frozen = False
        self._stopped_at = 0
        self._given = self._left = self._wall_left = 0.0
        self._processor_limit = math.inf
        self._filters: set[str] = set()

    def _start(
        self, limits: Rules, environment: dict[str, str], settings: dict[str, Any], more: tuple[int, ...] = ()
    ) -> None:
        commands_in, self._commands = os.pipe()
        self._answers, answers_out = os.pipe()
        for ours in (self._commands, self._answers):
            os.set_blocking(ours, False)  # a child may fill or drain its end, which must not block the parent
        # Kept open, because the name may belong to another file by the time the log is read.
        self._log = open(os.path.join(self.scratch, "output"), "w+b", buffering=0)  # noqa: SIM115
        with contextlib.suppress(OSError):  # room for a kernel's source and many shapes
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
        """Wait until the worker has started. Raises VerdictError with DEVICE_FAULT if it does not, since that is never
        the kernel's fault."""
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
        """Set how many seconds the child may run in total from now on. Time while it is stopped does not count."""
        self._given = self._left = seconds
        self._wall_left = WALL_SHARE * seconds if self.counts_processor_time else seconds

    @property
    def spent(self) -> float:
        """How many of the given seconds the child has run."""
        return self._given - self._left

    def end(self) -> None:
        """Kill the whole process group at once. A thread that waits for an answer gets an error."""
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """Kill the whole process group and release all its resources."""
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
        """The end of the child's output to stdout and stderr."""
        log = self._log.fileno()
        start = max(0, os.fstat(log).st_size - _OUTPUT_TAIL)
        return os.pread(log, _OUTPUT_TAIL, start).decode(errors="replace").strip()

    # -- talk ---------------------------------------------------------------------------------------------------------

    def command(self, do: str, **details: Any) -> dict[str, Any]:
        """Send a command and return its answer. The child runs only in between, unless it is trusted."""
        return self._exchange(do, details)[0]

    def window(self, calls: int, handover: Handover | None = None, **details: Any) -> Window:
        """Run `calls` of the calls that are laid out. The clocks start while the child is stopped, and end when it has
        stopped again. With a handover, the calls wait for the parent's signal, and time in which the child only waits
        does not count."""
        before = self._scheduled()
        answer, parent_ns, cpu_ns = self._exchange("run", {"calls": calls, **details}, handover)
        after = self._scheduled()
        child_ns = answer.get("ns")
        if type(child_ns) is not int or not 0 <= child_ns <= parent_ns:
            raise VerdictError(Status.CHEATING, "the worker's answer was forged: it names no time that can have passed")
        main_ns, waited_ns = (after[0] - before[0], after[1] - before[1]) if before and after else (None, 0)
        return Window(child_ns, parent_ns, cpu_ns, calls, answer, self._threads(), main_ns, waited_ns)

    def _exchange(
        self, do: str, details: dict[str, Any], handover: Handover | None = None
    ) -> tuple[dict[str, Any], int, int]:
        token = wire.token()
        message = {"do": do, "token": token, **({"awaits": True} if handover else {}), **details}
        start = time.perf_counter_ns()
        self._deadline = time.monotonic() + self._wall_left
        if wire.pending(self._answers):
            if wire.closed(self._answers):
                self._raise_death()
            raise VerdictError(Status.CHEATING, "wrote to the harness's channel when nothing had been asked")
        self._send(wire.send, message)
        self._refuse_motion()
        cpu = self._cpu_ns()
        if self.counts_processor_time:
            self._processor_limit = cpu + self._left * 1e9
        if self._frozen:
            start = time.perf_counter_ns()
            self.resume()
        if handover:
            token, waited_ns = self._hand_over(handover, do, token)
            start += waited_ns
        answer = self._receive(wire.receive, do)
        answered = time.perf_counter_ns()
        if not self.trusted:
            self.freeze()
        # Work done before the process has stopped counts as the kernel's time.
        elapsed = max(answered, self._stopped_at - self.stop_ns) - start
        cpu = self._cpu_ns() - cpu
        self._left -= (cpu if self.counts_processor_time else elapsed) / 1e9
        self._wall_left -= elapsed / 1e9
        if do == "load":
            self._refuse_filters()
        _refuse_forged(answer.get("token"), token)
        if "error" in answer:
            status = Status.COMPILE_ERROR if answer.get("stage") == "compile" else Status.RUNTIME_ERROR
            said = answer["error"] if type(answer["error"]) is str else ""
            raise VerdictError(status, said[:2000] or "raised an exception")
        return answer, elapsed, cpu

    def _hand_over(self, handover: Handover, do: str, token: str) -> tuple[str, int]:
        """Give the inputs to the child once it waits for them, and take the outputs once it says that they are done.
        Returns the token of its answer, which is the signal, so that nothing that it has sent before counts, and the
        nanoseconds for which it waited."""
        signalled = wire.token()
        try:
            _refuse_forged(self._receive(wire.receive_token, do), token)
            waits = time.perf_counter_ns()
            handover.give()
            self._send(wire.send_token, signalled)
            waited_ns = time.perf_counter_ns() - waits
            self._deadline += waited_ns / 1e9
            if self._listener is None:  # whose questions would have to be answered meanwhile
                wire.watch(self._answers, self._deadline)
            _refuse_forged(self._receive(wire.receive_token, do), signalled)
            handover.take()
        except BaseException:
            self.end()  # it would take the next command for the signal
            raise
        return signalled, waited_ns

    def _send(self, send: Callable[[int, Message], None], message: Message) -> None:
        try:
            send(self._commands, message)
        except BlockingIOError as error:
            raise VerdictError(Status.CHEATING, "stuffed the harness's channel, so that no command fits") from error
        except BrokenPipeError:
            self._raise_death()

    def _receive(self, receive: Callable[[int, float], Message], do: str) -> Message:
        """The next message of the child, which is to arrive before the deadline."""
        try:
            self._await_answer(do)
            return receive(self._answers, self._deadline)
        except wire.SilenceError as error:
            self._left = 0.0
            after = f"{WALL_SHARE * self._given:.2g}" if self.counts_processor_time else f"{self._given:g}"
            raise VerdictError(Status.TIMEOUT, f"was still running after {after} s and was killed") from error
        except wire.WireError as error:
            raise VerdictError(Status.CHEATING, f"sent {error} on the harness's channel") from error
        except wire.ClosedError:
            self._raise_death()

    def _await_answer(self, do: str) -> None:
        """Wait for an answer or the deadline. Meanwhile refuse the system calls that the sandbox asks the parent about.
        While a kernel is loaded, a refused call has no consequences, since its imports may try such calls. Later there
        is no honest reason for one, so it ends the trial."""
        listener = self._listener
        while True:
            ears = [listener.fileno()] if listener is not None and listener.hears else []
            if not ears and self._processor_limit == math.inf:
                return
            ready = self._wait_for([self._answers, *ears])
            if not ready or self._answers in ready:
                return
            assert listener is not None
            called = listener.refuse()
            if called and not (self.lenient or do == "load"):
                raise VerdictError(
                    Status.CHEATING,
                    f"made a system call that no kernel needs, {called} (such calls start processes, open sockets,"
                    " signal or trace others, or change the sandbox), and was killed",
                )

    def _wait_for(self, files: Sequence[int]) -> list[int]:
        """Return which of these files can be read, or none after the deadline. Raises VerdictError when the child has
        used its processor time."""
        while (left := self._deadline - time.monotonic()) > 0:
            limited = self._processor_limit < math.inf
            ready, _, _ = select.select(files, [], [], min(left, _LOOK_SECONDS) if limited else left)
            if limited and self._answers not in ready and self._cpu_ns() > self._processor_limit:
                self._left = 0.0
                raise VerdictError(
                    Status.TIMEOUT, f"was still running after {self._given:.2g} s of processor time and was killed"
                )
            if ready:
                return ready
        return []

    # -- stop and look ------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Stop every thread, and return when all have stopped. Raises VerdictError if they do not stop."""
        if self._frozen:
            return
        self._signal(signal.SIGSTOP)
        told = time.monotonic()
        while time.monotonic() < told + STOP_SECONDS:
            looked = time.perf_counter_ns()  # before `news`, which takes a while to look at every thread
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
        """Send a signal to the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _refuse_motion(self) -> None:
        """Raise VerdictError if the child has run since it was stopped. A stopped process does not resume by itself,
        and Linux reports whether it resumed or stopped again."""
        if not self._frozen:
            return
        status = self._process.news()
        if status is not None and (os.WIFCONTINUED(status) or os.WIFSTOPPED(status)):
            raise VerdictError(Status.CHEATING, "resumed itself while it had been stopped")
        if status is not None:
            self._died(status)

    def _seen_filters(self) -> set[str]:
        """The seccomp status of all threads as Linux reports it, one line for each distinct status."""
        found = set()
        tasks = f"/proc/{self._process.pid}/task"
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):
                with contextlib.suppress(OSError), open(f"{tasks}/{thread}/status") as status:
                    lines = status.read().splitlines()
                    found.add(" ".join(line for line in lines if line.startswith(("Seccomp", "NoNewPrivs"))))
        return found

    def _refuse_filters(self) -> None:
        """Raise VerdictError if any thread has another seccomp filter than ours. Such a filter could forge the results
        of system calls."""
        if not self.trusted and not self._seen_filters() <= self._filters:
            raise VerdictError(Status.CHEATING, "changed the filter of system calls that confines it")

    def read_memory(self, address: int, size: int) -> np.ndarray:
        """Read bytes of the child's memory at an address, from outside, while the child is stopped."""
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
        """Nanoseconds of CPU time of all threads, including ended ones. Linux derives a process's clock id from its
        process id."""
        try:
            return time.clock_gettime_ns((~self._process.pid) << 3 | 2)
        except OSError:
            return 0

    def _scheduled(self) -> tuple[int, int] | None:
        """Nanoseconds that the child's first thread has run, and that it and ours have waited for a processor; None if
        unknown."""
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

    def _raise_death(self) -> NoReturn:
        self._signal(signal.SIGCONT)
        left = max(0.1, self._deadline - time.monotonic())
        while left > 0:
            status = self._process.news()
            if status is not None and not os.WIFCONTINUED(status) and not os.WIFSTOPPED(status):
                self._died(status)
            time.sleep(0.002)
            left -= 0.002
        raise VerdictError(Status.TIMEOUT, "closed the harness's channel and went on running; it was killed")

    def _died(self, status: int) -> NoReturn:
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


def _refuse_forged(found: object, token: str) -> None:
    if found != token:
        raise VerdictError(Status.CHEATING, "the worker's answer was forged: it carries the wrong token")
