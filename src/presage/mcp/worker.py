"""The main function of a worker: read requests from stdin, one JSON line each, and answer each on stdout.

The worker exits when stdin closes, even in the middle of a request, because the server has gone. SIGTERM stops the
current request, as it does on the command line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from presage.core.errors import PresageError

Work = Callable[[dict[str, Any], Callable[..., None]], dict[str, Any]]


class StoppedError(KeyboardInterrupt):
    """SIGTERM was received, or stdin was closed."""


def main() -> None:
    """Answer requests until stdin closes or SIGTERM is received."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # send prints to stderr, so that they are not taken for answers
    signal.signal(signal.SIGTERM, _stop)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    with contextlib.suppress(StoppedError, BrokenPipeError):
        while line := requests.get():
            _send(answers, _answer(json.loads(line), answers))


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second SIGTERM must not interrupt the cleanup
    raise StoppedError


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    waiting = b""
    while data := os.read(0, 1 << 16):  # not sys.stdin: this thread would hold its lock when the process exits
        *lines, waiting = (waiting + data).split(b"\n")
        for line in lines:
            requests.put(line)
    requests.put(b"")
    os.kill(os.getpid(), signal.SIGTERM)


def _send(answers: BinaryIO, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[answers.write(data) :]


def _short(value: Any) -> Any:
    """Cut kernel paths in the document to file names: the folder of an installed kernel tells an agent nothing."""
    if isinstance(value, list):
        return [_short(part) for part in value]
    if not isinstance(value, dict):
        return value
    is_kernel = {"name", "language"} <= value.keys() and str(value["name"]).startswith("/")
    named = {"name": os.path.basename(value["name"])} if is_kernel else {}
    return {key: _short(part) for key, part in value.items()} | named


def _answer(request: dict[str, Any], answers: BinaryIO) -> dict[str, Any]:
    def say(doing: str, share: float = 0.0, **more: Any) -> None:
        _send(answers, {"doing": doing, "share": share, **more})

    try:
        work: Work = importlib.import_module(f"presage.mcp.tools.{request['tool']}").work
        return {"document": _short(work(request, say))}
    except PresageError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{error.filename or 'the file system'}: {error.strerror or error}"}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"this is a fault of presage, not of yours: {type(error).__name__}: {error}"}
