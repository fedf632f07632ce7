"""The loop of a zygote: imports modules, then forks a confined child for each message, until its parent is gone.

It runs no foreign code, and does not use the GPU, whose state would not survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

from presage.sandbox import launch, scratch


def serve(control: socket.socket) -> None:
    """Fork children on demand until the parent has closed its end or is gone. Then do what the parent can no longer do:
    kill the children and remove their folders."""
    folders: dict[int, str] = {}
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 18, 8)
        if not data:
            break
        message = json.loads(data)
        if "reap" in message:
            answer: Any = _wait(message["reap"], 0, folders)
        elif "news" in message:
            answer = _wait(message["news"], os.WUNTRACED | os.WCONTINUED, folders)
        else:
            answer = _fork(message, descriptors, control)
            folders[answer] = message["rules"]["scratch"]
        control.send(json.dumps(answer).encode())
    for pid, folder in folders.items():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        scratch.remove(folder)


def _wait(pid: int, options: int, folders: dict[int, str]) -> int | None:
    """A child's wait status, or None if nothing has happened. The parent removes the folder of a child that has
    ended."""
    try:
        found, status = os.waitpid(pid, options | os.WNOHANG)
    except ChildProcessError:
        return 0
    if found and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
        folders.pop(pid, None)
    return status if found else None


def _fork(settings: dict[str, Any], descriptors: list[int], control: socket.socket) -> int:
    pid = os.fork()
    if pid:
        for fd in descriptors:
            os.close(fd)
        return pid
    try:
        _become_child(settings, descriptors, control)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _become_child(settings: dict[str, Any], descriptors: list[int], control: socket.socket) -> None:
    control.close()
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    output = descriptors.pop(0) if settings.pop("has_output") else os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    if settings.pop("has_listener"):
        settings["listener"] = descriptors.pop()
    settings["descriptors"] = descriptors
    os.chdir(settings["rules"]["scratch"])
    os.environ.update(settings["environment"])
    tempfile.tempdir = None
    launch.start(settings)


def main() -> None:
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=settings["control"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process itself
    gc.disable()  # what is imported stays: looking through it takes a sixth of the time, here and in each child
    for name in settings["imports"]:
        module, _, function = name.partition(":")
        with contextlib.suppress(ImportError):
            found = importlib.import_module(module)
            if function:
                getattr(found, function)()
    gc.freeze()
    gc.enable()
    control.send(b"ready")
    serve(control)
