"""Compiles kernels for static reports, each in its own sandboxed child. Children are forked from zygotes that have
already loaded a compiler, since loading it can take longer than compiling a kernel."""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError
from presage.core.text import most_values
from presage.sandbox import processes, rules, scratch
from presage.sandbox.processes import Task
from presage.sandbox.rules import Rules
from presage.sandbox.zygote import Zygote
from presage.static import inline_cuda, toolkit

Answer = dict[str, Any]

_CHILD = "presage.static.child"
_MEMORY = min(8 << 30, machine.memory())
_ANSWER_BYTES = 64 << 20
_HOST_SECONDS = 20.0
"""The default limit of the processor time of a module's host code: of its import, and of each call."""
_ANSWER_VALUES = 3_000_000
"""The most values in an answer. The step of a trace has about 40."""
_NICE = 10
"""Niceness of the children, so that measurements on the same machine have priority."""


@dataclass
class _Running:
    """A request that a child is answering."""

    index: int
    request: Mapping[str, Any]
    process: processes.ForkedProcess
    scratch: str
    started: float
    limit: float
    """Seconds after which the child is killed."""
    received: bytearray = field(default_factory=bytearray)


def answers(
    requests: Sequence[Mapping[str, Any]],
    timeout: float,
    at_once: int | None = None,
    host_seconds: float = _HOST_SECONDS,
) -> list[Answer]:
    """Return an answer to each request, in order. At most `at_once` children run in parallel, by default one per core.
    `timeout` is in seconds per case. host_seconds: the limit of a module's host code, see `_limit_of_host_code`."""
    waiting, found = list(enumerate(requests)), [Answer() for _ in requests]
    at_once = at_once or machine.cores()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or selector.get_map():
                while waiting and len(selector.get_map()) < at_once:
                    _start(*waiting.pop(0), timeout, host_seconds, selector)
                for key, _ in selector.select(timeout=0.05):
                    if _is_whole(key.data, key.fd):
                        found[key.data.index] = _finish(key, selector)
                for key in list(selector.get_map().values()):
                    if key.data.process.is_gone:  # its descendants may still hold the pipe open
                        os.set_blocking(key.fd, False)
                        _is_whole(key.data, key.fd)
                        found[key.data.index] = _finish(key, selector)
                    elif time.monotonic() - key.data.started > key.data.limit:
                        found[key.data.index] = _finish(key, selector, late=True)
        finally:
            for key in list(selector.get_map().values()):
                _finish(key, selector)
    return found


def _start(
    index: int, request: Mapping[str, Any], timeout: float, host_seconds: float, selector: selectors.BaseSelector
) -> None:
    host_seconds = _limit_of_host_code(host_seconds)
    folder = scratch.make("presage-static-")
    try:
        Path(folder, "request.json").write_text(json.dumps({**request, "host_seconds": host_seconds}))
    except OSError as error:
        scratch.remove(folder)
        raise PresageError(f"cannot write to {folder}: {error.strerror}; set TMPDIR to a place with room") from error
    reader, writer = os.pipe()
    try:
        kind = request["compiler"]
        environment = rules.environment(folder) | {
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
            "CUDA_VISIBLE_DEVICES": "",
            **_for_inline_cuda(request),
        }
        task = Task(f"{_CHILD}:answer", _rules(kind, folder, request), environment, (writer,))
        process = processes.fork(_zygote(kind), task)
    except BaseException:
        os.close(reader)
        scratch.remove(folder)
        raise
    finally:
        os.close(writer)
    limit = (timeout + max(0.0, host_seconds - _HOST_SECONDS)) * max(1, len(request["cases"]))
    running = _Running(index, request, process, folder, time.monotonic(), limit)
    selector.register(reader, selectors.EVENT_READ, running)


def _limit_of_host_code(default: float) -> float:
    """The limit of the processor time of host code. PRESAGE_TRACE_SECONDS replaces the default."""
    text = os.environ.get("PRESAGE_TRACE_SECONDS", "")
    try:
        seconds = float(text or default)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise PresageError(f"PRESAGE_TRACE_SECONDS is '{text}', not a positive number of seconds")
    return seconds


def _for_inline_cuda(request: Mapping[str, Any]) -> dict[str, str]:
    """The environment variables for a child that may build an extension."""
    is_module = request["compiler"] != "cuda"
    return inline_cuda.environment() if is_module and inline_cuda.is_mentioned(request["source"]) else {}


def _rules(kind: str, folder: str, request: Mapping[str, Any]) -> Rules:
    """The child's sandbox rules. A CUDA source may only include the toolkit's headers. A module may run Python,
    Triton's assembler and, if it builds an extension, the C++ compiler."""
    if kind == "cuda":
        library = os.path.dirname(request["library"])
        readable = (*request["includes"], library)
        return Rules(folder, readable, _MEMORY, reserves=True, sees_itself=False, nice=_NICE)
    programs = (*(str(place) for place in toolkit.assemblers()), *rules.loader_paths())
    readable = (*rules.system_paths(), *programs)
    if inline_cuda.is_ready() and inline_cuda.is_mentioned(request["source"]):
        programs, readable = (*programs, *inline_cuda.programs()), (*readable, *inline_cuda.readable())
    return Rules(folder, readable, _MEMORY, may_spawn=True, programs=programs, reserves=True, nice=_NICE)


def _zygote(kind: str) -> Zygote:
    """The zygote that has loaded this compiler, found by the same paths as in this process."""
    homes = {name: os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ}
    name = f"{kind}/{os.pathsep.join(sys.path)}"
    return processes.zygote(name, (f"{_CHILD}:warm_up_{kind}",), {"CUDA_VISIBLE_DEVICES": "", **homes})


def _is_whole(running: _Running, reader: int) -> bool:
    """Read the data that has arrived. Return whether the answer is complete, or too long."""
    try:
        while chunk := os.read(reader, 1 << 20):
            running.received += chunk
            if len(running.received) > _ANSWER_BYTES:
                return True
            if os.get_blocking(reader):
                return False
    except BlockingIOError:
        return False
    return True


def _finish(key: selectors.SelectorKey, selector: selectors.BaseSelector, late: bool = False) -> Answer:
    """End the child with its process group. Return its answer, or an error that says how it ended."""
    running: _Running = key.data
    processes.end(running.process)
    running.process.wait()
    scratch.remove(running.scratch)
    selector.unregister(key.fd)
    os.close(key.fd)
    if late:
        what = "compiling and calling it" if running.request["compiler"] == "triton" else "compiling"
        return {"status": "timeout", "error": f"{what} took longer than {running.limit:g} s"}
    return _read(running.received) or {"status": "compile_error", "error": _ending(running)}


def _read(received: bytearray) -> Answer | None:
    """Parse a child's answer, which foreign code may have written. None if it is no JSON object."""
    if len(received) > _ANSWER_BYTES or most_values(received) > _ANSWER_VALUES:
        return {"status": "unknown", "error": "the trace is too long to be read"}
    try:
        found = json.loads(bytes(received))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _ending(running: _Running) -> str:
    status = running.process.status() or 0
    ending = (
        f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.waitstatus_to_exitcode(status)}"
    )
    who = "the module or its compiler" if running.request["compiler"] == "triton" else "the compiler"
    return f"{who} ended its process early, with {ending}"
