"""Serve the check service over HTTP (POST /check) and over MCP on standard input and output (tool `check_action`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

import presage
from presage import PresageError
from presage_gui.service import REQUEST, Service

LARGEST = 64 * 2**20
PROTOCOL = "2025-06-18"
"""The supported version of the Model Context Protocol."""
_TOOL = {
    "name": "check_action",
    "description": "Say, before a computer-use action is carried out, how likely it is right, and what is wrong.",
    "inputSchema": REQUEST,
}


class Server(ThreadingHTTPServer):
    """The HTTP server. By default it listens on this machine only."""

    daemon_threads = True

    def __init__(self, service: Service, host: str = "127.0.0.1", port: int = 8765) -> None:
        self.service = service
        super().__init__((host, port), _Handler)

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 60

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(200, {"status": "ok", "version": presage.__version__})
        else:
            self._answer(404, {"error": "there is POST /check and GET /health"})

    def do_POST(self) -> None:
        if self.path != "/check":
            self._answer(404, {"error": "there is POST /check and GET /health"})
        elif self.headers.get_content_type() != "application/json":
            # A web page cannot send application/json to another origin without a CORS preflight request.
            self._answer(415, {"error": "send application/json"})
        else:
            self._check()

    def _check(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._answer(411, {"error": "say how long the request is, in Content-Length"})
            return
        if not 0 <= length <= LARGEST:
            self.close_connection = True
            self._answer(413, {"error": f"a request has at most {LARGEST} bytes"})
            return
        try:
            self._answer(200, self.server.service.check(json.loads(self.rfile.read(length))))
        except (ValueError, RecursionError) as error:
            self._answer(400, {"error": f"this is not JSON: {error}"})
        except PresageError as error:
            self._answer(400, {"error": str(error)})

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing. The caller sees the answer."""


def speak_mcp(service: Service, asked: TextIO, answers: TextIO) -> None:
    """Answer Model Context Protocol requests, one per line, until the input ends."""
    for line in asked:
        if line.strip() and (answer := _mcp(service, line)) is not None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _mcp(service: Service, line: str) -> dict[str, Any] | None:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return _failed(None, -32700, "this is not JSON")
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return _failed(None, -32600, "this is not a request")
    if "id" not in request:
        return None  # a notification
    number, parameters = request["id"], request.get("params") or {}
    match request["method"]:
        case "initialize":
            about = {"name": "presage-gui", "version": presage.__version__}
            return _done(number, {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": about})
        case "ping":
            return _done(number, {})
        case "tools/list":
            return _done(number, {"tools": [_TOOL]})
        case "tools/call" if isinstance(parameters, dict) and parameters.get("name") == _TOOL["name"]:
            return _done(number, _called(service, parameters.get("arguments")))
        case "tools/call":
            return _failed(number, -32602, f"there is one tool: {_TOOL['name']}")
    return _failed(number, -32601, f"there is no method {request['method'][:40]!r}")


def _called(service: Service, arguments: Any) -> dict[str, Any]:
    try:
        verdict = service.check(arguments)
    except PresageError as error:
        return {"isError": True, "content": [{"type": "text", "text": str(error)}]}
    return {"structuredContent": verdict, "content": [{"type": "text", "text": json.dumps(verdict)}]}


def _done(number: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": dict(result)}


def _failed(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
