"""Servers as agents start them, and the SDK's own client to talk to them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'mcp'")

import jsonschema
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from presage.mcp.toolbox import TOOLS

SCALE = """\
// presage: entry scale
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 4096
// presage: tune STEP = 1, 2, 4, 8, 16, 32, 64
// presage: tune BACK = 0, 1, 2
void scale(const float *x, float *y, int n) {
    for (int first = 0; first < STEP; first++)
        for (int i = first; i < n; i += STEP) y[BACK == 1 ? n - 1 - i : i] = 2 * x[BACK == 1 ? n - 1 - i : i];
}
"""
"""A problem of one's own: its first configuration is right. Small, so that measuring it takes little."""
NEVER = SCALE.replace("{\n", "{\n    volatile int on = 1;\n    while (on);\n", 1)
"""Never comes back."""


@pytest.fixture
def scale() -> str:
    return SCALE


@pytest.fixture
def never() -> str:
    return NEVER


class Agent:
    """A client that fails a test where a tool should have answered, and hands over what it said."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self._call(tool, arguments)
        assert not result.is_error, result.content[0].text
        document: dict[str, Any] = result.structured_content
        jsonschema.validate(document, dict(TOOLS[tool].gives))
        return document

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Why a tool refuses."""
        result = await self._call(tool, arguments)
        assert result.is_error, result.content[0].text
        return str(result.content[0].text)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        self.progress.clear()
        return await self.client.call_tool(tool, arguments, progress_callback=hear)


@pytest.fixture
def agent() -> type[Agent]:
    return Agent


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "presage", "mcp", "--no-config", *map(str, arguments)]


@pytest.fixture
def by_pipes(tmp_path: Path) -> Callable[..., Client]:
    """by_pipes(*options): a client of a server that it starts itself."""

    def start(*options: str | Path, mode: str = "auto") -> Client:
        program, *rest = command("--runs", tmp_path / "runs", *options)
        return Client(StdioServerParameters(command=program, args=rest, env=dict(os.environ), cwd=tmp_path), mode=mode)

    return start


class WebServer:
    """A server over HTTP."""

    def __init__(self, folder: Path, options: tuple[str | Path, ...], token: str = "") -> None:
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command("--http", "--port", "0", "--runs", folder / "runs", *options),
                stdin=subprocess.DEVNULL, stderr=log, cwd=folder, env=os.environ | {"PRESAGE_MCP_TOKEN": token},
            )  # fmt: skip
        while "listening on " not in (said := self.log.read_text()):
            assert self.process.poll() is None, said
            time.sleep(0.05)
        self.url = said.partition("listening on ")[2].split()[0]

    def client(self, mode: str = "auto", **options: Any) -> Client:
        return Client(streamable_http_client(self.url, **options), mode=mode)

    def descendants(self) -> set[int]:
        """Every process that it has started, and those they have."""
        parents = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):  # it has ended meanwhile
                continue
        found = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.process.pid}


@pytest.fixture
def by_web(tmp_path: Path) -> Iterator[Callable[..., WebServer]]:
    """by_web(*options, token=): a server over HTTP."""
    started = []

    def start(*options: str | Path, token: str = "") -> WebServer:
        started.append(WebServer(tmp_path, options, token))
        return started[-1]

    yield start
    for server in started:
        server.process.terminate()
        server.process.wait(30)
