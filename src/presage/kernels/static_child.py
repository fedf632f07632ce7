"""The compiling process: reads a document of requests a line, answers each from a process of its own, a JSON line per
answer and an empty one at the end.

Whatever foreign code or a compiler does to its process, the other requests are answered.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Running:
    index: int
    process: int
    started: float
    cases: int
    is_module: bool
    received: list[bytes] = field(default_factory=list)


def main() -> None:
    os.nice(_NICE)  # what is being measured beside us comes first
    for line in sys.stdin:
        answer(json.loads(line))
        print("{}", flush=True)
    shutil.rmtree(os.getcwd(), ignore_errors=True)  # the process that asked has ended, however it did


def answer(document: Mapping[str, Any]) -> None:
    """Answer all requests of a document, so many at a time as it says."""
    requests, timeout = document["requests"], document["timeout"]
    _warm_up(requests)
    waiting, running = list(enumerate(requests)), 0
    selector = selectors.DefaultSelector()
    while waiting or running:
        while waiting and running < document["processes"]:
            start(*waiting.pop(0), selector)
            running += 1
        for key, _ in selector.select(timeout=0.2):
            chunk = os.read(key.fd, 1 << 20)
            key.data.received.append(chunk)
            if not chunk:
                finish(key, selector, None)
                running -= 1
        for key in list(selector.get_map().values()):
            limit = timeout * key.data.cases
            if has_ended(key.data.process):  # though what it has started may hold the pipe open
                key.data.received += drain(key.fd)
                finish(key, selector, None)
                running -= 1
            elif time.monotonic() - key.data.started > limit:
                finish(key, selector, f"compiling took longer than {limit:g} s")
                running -= 1


def start(index: int, request: Mapping[str, Any], selector: selectors.BaseSelector) -> None:
    """Answer one request in a forked process, which writes into a pipe."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.setpgid(0, 0)
        os.close(reader)
        _answer_and_exit(request, writer)
    os.close(writer)
    selector.register(
        reader,
        selectors.EVENT_READ,
        _Running(index, process, time.monotonic(), len(request["cases"]) or 1, request["compiler"] == "triton"),
    )


def has_ended(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def drain(reader: int) -> list[bytes]:
    """What has been written, and no waiting for more."""
    os.set_blocking(reader, False)
    chunks: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(reader, 1 << 20):
            chunks.append(chunk)
    return chunks


def finish(key: selectors.SelectorKey, selector: selectors.BaseSelector, late: str | None) -> None:
    """Take the answer, or make one from how the process ended; nothing of its process group lives on."""
    running: _Running = key.data
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process, signal.SIGKILL)
    _, status = os.waitpid(running.process, 0)
    shutil.rmtree(scratch(running.process), ignore_errors=True)
    selector.unregister(key.fd)
    os.close(key.fd)
    if late:
        found = {"status": "timeout", "error": late}
    else:
        try:
            found = json.loads(b"".join(running.received))
        except ValueError:
            ending = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status >> 8}"
            who = "the module or its compiler" if running.is_module else "the compiler"
            found = {"status": "compile_error", "error": f"{who} ended its process early, with {ending}"}
    print(json.dumps({"index": running.index, **found}), flush=True)


def scratch(process: int) -> str:
    """The folder of a process, for what a compiler keeps while it answers."""
    return os.path.join(os.getcwd(), f"scratch-{process}")


def _answer_and_exit(request: Mapping[str, Any], writer: int) -> None:
    itself = os.getpid()
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    try:
        folder = scratch(os.getpid())
        os.mkdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        answered = _COMPILERS[request["compiler"]](request)
    except BaseException:
        answered = {"status": "unknown", "error": traceback.format_exc(limit=-3)}
    if os.getpid() != itself:  # a copy that the module has made of itself
        os._exit(0)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(json.dumps(answered).encode())
    os._exit(0)


def _cuda(request: Mapping[str, Any]) -> dict[str, Any]:
    from presage.kernels import nvrtc

    try:
        done = nvrtc.compile(request["source"], request["arch"], request["library"], request["includes"])
    except nvrtc.CompileError as error:
        return {"status": "compile_error", "error": str(error)}
    walks = [[each, _walk(done.ptx, each)] for each in request["cases"]]
    return {"status": "ok", "cubins": [base64.b64encode(done.cubin).decode()], "log": done.log, "walks": walks}


def _walk(text: str, launch: Mapping[str, Any]) -> Any:
    from presage.kernels import walk

    return walk.of_launch(text, launch["name"], launch["integers"], launch["grid"], launch["block"])


def _triton(request: Mapping[str, Any]) -> dict[str, Any]:
    from presage.kernels.recorder import launches

    return launches.run(request)


_NICE = 10
_NOTHING = 'extern "C" __global__ void nothing() {}'
_COMPILERS = {"cuda": _cuda, "triton": _triton}


def _warm_up(requests: Sequence[Mapping[str, Any]]) -> None:
    """Import and load once, before forking, what takes longer than many a kernel."""
    from presage.kernels import nvrtc, walk  # noqa: F401  NumPy comes with walking

    compilers = {request["compiler"]: request for request in requests}
    if request := compilers.get("cuda"):
        with contextlib.suppress(nvrtc.CompileError, OSError):  # each request will say so for itself
            nvrtc.compile(_NOTHING, request["arch"], request["library"], request["includes"])
    if "triton" in compilers:
        from presage.kernels.recorder import launches

        launches.warm_up()


if __name__ == "__main__":
    main()
