"""Messages between parent and child: a length, then one JSON object; or a bare token, which is sent and read in a few
microseconds. A reader must not trust the content."""

from __future__ import annotations

import json
import math
import os
import secrets
import select
import struct
import time
from typing import Any

MAX_BYTES = 1 << 20
_TOKEN, _MOMENT = 16, 50e-6


class WireError(Exception):
    """The received data is not a message: garbage, too long, or cut off."""


class SilenceError(Exception):
    """Nothing arrived before the deadline."""


class ClosedError(Exception):
    """The other side has closed the channel."""


def send(fd: int, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    data = struct.pack("<I", len(body)) + body
    while data:
        data = data[os.write(fd, data) :]


def receive(fd: int, deadline: float | None = None) -> dict[str, Any]:
    """Return the next message. `deadline`: a time.monotonic() instant. Raises SilenceError, ClosedError or
    WireError."""
    (size,) = struct.unpack("<I", _read(fd, 4, deadline))
    if size > MAX_BYTES:
        raise WireError(f"a message of {size} bytes was announced")
    try:
        message = json.loads(_read(fd, size, deadline))
    except (ValueError, RecursionError) as error:
        raise WireError("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("a message that is not an object")
    return message


def token() -> str:
    """A new secret by which an answer is known."""
    return secrets.token_hex(_TOKEN // 2)


def send_token(fd: int, token: str) -> None:
    os.write(fd, token.encode())


def receive_token(fd: int, deadline: float | None = None) -> str:
    """Return the next token. What comes is not checked. Raises as `receive`."""
    return _read(fd, _TOKEN, deadline).decode(errors="replace")


def pending(fd: int) -> bool:
    """Whether bytes are waiting to be read."""
    return bool(select.select([fd], [], [], 0)[0])


def watch(fd: int, deadline: float = math.inf) -> None:
    """Wait until bytes can be read, or until the deadline, and notice them in microseconds. A processor that rests for
    long is slow to wake, and a process that never sleeps loses its processor to others for milliseconds. So this sleeps
    for a moment at a time."""
    while not select.select([fd], [], [], _MOMENT)[0] and time.monotonic() < deadline:
        pass


def closed(fd: int) -> bool:
    """Whether a channel on which something is waiting has ended. If it has not, this consumes a byte."""
    return not os.read(fd, 1)


def _read(fd: int, size: int, deadline: float | None) -> bytes:
    data = b""
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise SilenceError("no answer in time")
        try:
            part = os.read(fd, size - len(data))
        except BlockingIOError:  # the other side has read the bytes itself
            continue
        if not part:
            if data:
                raise WireError("a message that was cut off")
            raise ClosedError("the channel is closed")
        data += part
    return data
