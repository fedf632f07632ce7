"""Limits the time of a module's host code while it is traced. A compiler's time does not count."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_TICK = 0.1
_COMPILERS = (
    *("/triton/compiler/", "/triton/backends/", "/presage/static/nvrtc.py", "/subprocess.py"),
    *(f"/presage/static/inline_cuda/{name}.py" for name in ("device_code", "host_code", "lexer", "splitting")),
)
"""Files whose functions compile, or wait for a compiler."""


class HostCodeTimeoutError(BaseException):
    """The host code has used its time. Not an Exception, since a module may catch those."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise HostCodeTimeoutError in the code inside once it has used so many seconds of processor time. Works in the
    main thread, and not while native code runs."""
    with _limited(seconds, time.process_time, signal.ITIMER_PROF, signal.SIGPROF, " of processor time"):
        yield


@contextmanager
def awaited(seconds: float) -> Iterator[None]:
    """The same for time that passes, so that code which sleeps or waits is stopped, too."""
    with _limited(seconds, time.monotonic, signal.ITIMER_REAL, signal.SIGALRM, ""):
        yield


@contextmanager
def _limited(seconds: float, clock: Callable[[], float], timer: int, number: int, what: str) -> Iterator[None]:
    spent, before = 0.0, clock()

    def look(_: int, frame: FrameType | None) -> None:
        nonlocal spent, before
        now = clock()
        spent, before = spent + (0.0 if _compiles(frame) else now - before), now
        if spent > seconds:
            raise HostCodeTimeoutError(
                f"the host code was still running after {seconds:g} s{what}; PRESAGE_TRACE_SECONDS sets another limit"
            )

    handler = signal.signal(number, look)
    signal.setitimer(timer, _TICK, _TICK)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, handler)


def _compiles(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _COMPILERS):
            return True
        frame = frame.f_back
    return False
