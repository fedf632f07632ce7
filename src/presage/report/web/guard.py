"""Access rules of the web view: the host names that it answers to, and what its pages may load.

A foreign web page in the user's browser can let its own host name resolve to this machine (DNS rebinding), and then
read what is served here. So the Host of a request must be an IP address, localhost, or the name that the server was
started with. IP addresses are safe, because DNS cannot redirect them.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def is_ours(host: str, names: frozenset[str]) -> bool:
    """Whether the Host of a request is a name of this machine.

    >>> [is_ours(host, frozenset()) for host in ("localhost:80", "127.0.0.1:1", "[::1]:1", "evil.example", "")]
    [True, True, True, False, False]
    """
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.rpartition(":")[0] or host
    name = name.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def own_names(host: str) -> frozenset[str]:
    """Return `host` and, unless it is a loopback address, the machine's own host names."""
    others = set() if host in ("127.0.0.1", "::1", "localhost") else {socket.gethostname(), socket.getfqdn()}
    return frozenset(name.lower() for name in {host, *others})


def guarded(app: App, names: frozenset[str]) -> App:
    """Wrap the app: check the Host, allow only GET and HEAD, and add headers that forbid foreign content."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not is_ours(hosts[0], names):
            await _refuse(send, 421, "This server does not answer to that name.")
        elif scope["method"] not in ("GET", "HEAD"):
            await _refuse(send, 405, "Nothing can be changed here.")
        else:
            await app(scope, receive, _with_headers(send))

    return serve


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            fixed = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in given]
            message["headers"] = [*message["headers"], *fixed]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *((n.encode(), v.encode()) for n, v in HEADERS.items())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
