"""A real HTTP server that answers as an OpenAI-compatible endpoint, or misbehaves as it is told."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from presage.core import scale

Handler = BaseHTTPRequestHandler
Behaviour = Callable[[Handler, dict[str, Any]], None]


def forecast_text(bins: list[float] | None = None, p_fail: float = 0.1, **changes: Any) -> str:
    """What a good model would write."""
    values = bins or [0, 0, 0, 0.25, 0.5, 0.25, 0, 0]
    answer = {"reason": "bound by memory", **dict(zip(scale.KEYS, values, strict=True)), "p_fail": p_fail}
    return json.dumps({key: value for key, value in (answer | changes).items() if value is not None})


def send(handler: Handler, status: int, body: bytes | str, headers: dict[str, str] | None = None) -> None:
    data = body.encode() if isinstance(body, str) else body
    handler.send_response(status)
    for name, value in (
        {"Content-Type": "application/json", "Content-Length": str(len(data))} | (headers or {})
    ).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


def completion(*texts: str, finish: str = "stop", refusal: str | None = None, usage: bool = True, **more: Any) -> str:
    choices = [
        {"index": i, "finish_reason": finish, "message": {"role": "assistant", "content": text, "refusal": refusal}}
        | more
        for i, text in enumerate(texts)
    ]
    body: dict[str, Any] = {"object": "chat.completion", "choices": choices}
    if usage:
        body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100}
    return json.dumps(body)


def says(*texts: str, **options: Any) -> Behaviour:
    """Answers with these texts, one choice each."""
    return lambda handler, _: send(handler, 200, completion(*texts, **options))


def fails(status: int, message: str = "no", headers: dict[str, str] | None = None, **more: Any) -> Behaviour:
    body = json.dumps({"error": {"message": message} | more.pop("error", {})} | more)
    return lambda handler, _: send(handler, status, body, headers)


def body(text: str | bytes) -> Behaviour:
    """Status 200 and whatever body."""
    return lambda handler, _: send(handler, 200, text)


def cuts(handler: Handler, _: dict[str, Any]) -> None:
    """Promises much, sends little, and resets the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def drips(handler: Handler, _: dict[str, Any]) -> None:
    """A byte now and then, so that no read ever times out; for a hundred seconds."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        for _ in range(5000):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        return


def floods(handler: Handler, _: dict[str, Any]) -> None:
    """A body without end."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(1000):
            handler.wfile.write(b" " * 65536)
    except OSError:
        return


class Endpoint:
    """Behaves as each of `script` says in turn, then forever like `otherwise`; keeps the requests."""

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.otherwise: Behaviour = says(forecast_text())
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._lock = threading.Lock()
        endpoint = self

        class Answers(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: Any) -> None:
                return

            def do_GET(self) -> None:
                send(self, 200, json.dumps({"object": "list", "data": [{"id": "small"}]}))

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with endpoint._lock:
                    endpoint.requests.append(asked)
                    endpoint.keys.append(self.headers.get("Authorization"))
                    behave = endpoint.script.pop(0) if endpoint.script else endpoint.otherwise
                behave(self, asked)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                return

        self._server = Server(("127.0.0.1", 0), Answers)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
