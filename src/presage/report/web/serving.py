"""Serve the web view until the user stops it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import uvicorn

from presage.core.errors import PresageError
from presage.report.web.app import app
from presage.report.web.guard import own_names

_NICE = 10
"""The niceness of the server, so that a search on the same machine has priority."""


def serve(folder: Path, host: str, port: int, started: Callable[[str], None]) -> NoReturn:
    """Serve a folder's runs until the user stops the server, then raise KeyboardInterrupt. `started` is called with the
    address when it is known. Port 0 takes any free port. Raises PresageError if the port is not available."""
    listener = _listener(host, port)
    with suppress(OSError):
        os.nice(_NICE)
    view = app(folder, own_names(host), lambda: server.should_exit)
    config = uvicorn.Config(
        view,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
    with listener:
        shown = "localhost" if host in ("127.0.0.1", "::1") else f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listener.getsockname()[1]}/")
        server.run(sockets=[listener])
    raise KeyboardInterrupt  # only a signal ends the server, and uvicorn does not always re-raise it


def _listener(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a port in use is detected before the address is printed."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        told = os.strerror(number) if number > 0 else str(error)
        raise PresageError(
            f"cannot listen on {host}, port {port}: {told}; name another with --host and --port"
        ) from error
