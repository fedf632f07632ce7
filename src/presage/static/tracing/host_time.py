"""Limits the processor time of a module's host code while it is traced. A compiler's time does not count."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_TICK = 0.1
_COMPILERS = (
    *("/triton/compiler/", "/triton/backends/", "/presage/static/nvrtc.py", "/subprocess.py"),
    *(f"/presage/static/inline_cuda/{name}.py" for name in ("device_code", "host_code", "lexer", "splitting")),
)
"""Files whose functions compile, or wait for a compiler."""


class HostCodeTimeoutError(BaseException):
    """The host code has used its processor time. Not an Exception, since a module may catch those."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise HostCodeTimeoutError in the code inside once it has used so many seconds of processor time. Works in the
    main thread, and not while native code runs."""
    spent, before = 0.0, time.process_time()

    def look(_: int, frame: FrameType | None) -> None:
        nonlocal spent, before
        now = time.process_time()
        spent, before = spent + (0.0 if _compiles(frame) else now - before), now
        if spent > seconds:
            raise HostCodeTimeoutError(
                f"the host code was still running after {seconds:g} s of processor time;"
                " PRESAGE_TRACE_SECONDS sets another limit"
            )

    handler = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


def _compiles(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _COMPILERS):
            return True
        frame = frame.f_back
    return False
