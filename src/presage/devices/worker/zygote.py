"""A process that has imported torch and Triton and does nothing but fork: its children start in milliseconds.

It never touches the GPU, which would not survive a fork, and runs no foreign code.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import traceback
from typing import Any


def serve(control: socket.socket) -> None:
    """Fork on demand, until the parent has closed its end or is gone."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 18, 4)
        if not data:
            return
        message = json.loads(data)
        if "reap" in message:
            answer: Any = _reap(message["reap"])
        else:
            answer = _fork(message, descriptors, control)
        control.send(json.dumps(answer).encode())


def _reap(pid: int) -> int | None:
    """A child's wait status, or None while it lives."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended else None


def _fork(settings: dict[str, Any], descriptors: list[int], control: socket.socket) -> int:
    pid = os.fork()
    if pid:
        for fd in descriptors:
            os.close(fd)
        return pid
    try:
        _become_worker(settings, descriptors, control)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _become_worker(settings: dict[str, Any], descriptors: list[int], control: socket.socket) -> None:
    from presage.devices.worker import main

    control.close()
    os.setsid()
    settings["commands"], settings["answers"], log = descriptors
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(settings["scratch"])
    os.environ.update(settings["environment"])
    main.start(settings)


def main() -> None:
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=settings["control"])
    for name in settings["imports"]:
        with contextlib.suppress(ImportError):
            __import__(name)
    if "triton" in sys.modules:  # hashes itself before it compiles, for nearly half a second: once is enough
        sys.modules["triton.runtime.cache"].triton_key()
    control.send(b"ready")
    serve(control)
