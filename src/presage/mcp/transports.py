"""The transports of the server: the stdin and stdout of a process that the agent starts, or HTTP.

Over HTTP, a web page in the user's browser must not be able to call the server: the Host and Origin of every request
are checked. If a token is set, every request must carry it. An address that others can reach requires a token.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from presage.core.errors import PresageError
from presage.mcp.server import build
from presage.mcp.session import Settings
from presage.mcp.workers import TOKEN

PATH = "/mcp"
_LONGEST_REQUEST = 4 << 20
_MOST_SESSIONS = 64
_LEAST_TOKEN = 16
_Scope = MutableMapping[str, Any]
_App = Callable[[_Scope, Any, Any], Awaitable[None]]


def serve_pipes(settings: Settings) -> None:
    """Serve the agent that started this process, until the agent closes our stdin."""

    async def serve() -> None:
        server = build(settings)
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    anyio.run(serve)


def serve_http(settings: Settings, host: str, port: int, token: str | None, names: Sequence[str] = ()) -> None:
    """Serve over HTTP until the process is stopped. `names` are further host names that clients may use.

    Raises PresageError if others could reach the server without a token, or if it cannot listen on the port."""
    if token is not None and len(token) < _LEAST_TOKEN:
        raise PresageError(f"the token in {TOKEN} is too short; use {_LEAST_TOKEN} characters or more")
    if token is None and not is_local(host):
        raise PresageError(
            f"on {host} others can reach the server: set a token in the variable {TOKEN}, which clients send as"
            " 'Authorization: Bearer TOKEN'"
        )
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise PresageError(f"cannot listen on {host}, port {port}: {error}; choose another --port") from error
    with bound:
        app = build(settings).streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=_LONGEST_REQUEST,
            max_sessions=_MOST_SESSIONS,
            transport_security=_checks(host, names),
        )
        config = uvicorn.Config(
            Guard(app, token) if token else app, log_level="warning", timeout_graceful_shutdown=2, server_header=False
        )
        at = f"[{host}]" if ":" in host else host
        print(f"listening on http://{at}:{bound.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
        anyio.run(lambda: uvicorn.Server(config).serve(sockets=[bound]))


def is_local(host: str) -> bool:
    """Whether only this computer can reach this address.

    >>> [is_local(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "gpu7")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checks(host: str, names: Sequence[str]) -> TransportSecuritySettings:
    """Return the values of Host and Origin that a request may have."""
    local = ["127.0.0.1", "localhost", "[::1]"]
    known = list(dict.fromkeys([*local, f"[{host}]" if ":" in host else host, socket.gethostname(), *names]))
    allowed = [form for name in known for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in allowed]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=allowed, allowed_origins=origins
    )


class Guard:
    """An ASGI app that answers 401 to a request without the token."""

    def __init__(self, app: _App, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: _Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(sent, self._expected):
                headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a token is needed: Authorization: Bearer TOKEN\n"})
                return
        await self._app(scope, receive, send)
