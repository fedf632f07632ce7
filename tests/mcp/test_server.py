"""Who may talk to the server, and what it makes of requests that are wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from presage import PresageError
from presage.cli import main
from presage.mcp.allowance import Allowance, Amounts
from presage.mcp.server import build
from presage.mcp.session import Settings
from presage.mcp.toolbox import TOOLS
from presage.mcp.transports import serve_http
from presage.mcp.workers import Pool

httpx2 = pytest.importorskip("httpx2")
TOKEN = "0123456789abcdef"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_only_who_knows_the_token_and_comes_from_here_is_let_in(by_web: Callable[..., Any], agent: Any) -> None:
    server = by_web(token=TOKEN)
    known = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}

    def status(**more: Any) -> int:
        headers = known | more.pop("headers", {})
        return int(httpx2.post(server.url, headers=headers, json=more.pop("json", PING), **more).status_code)

    assert status(headers={"Authorization": ""}) == 401
    assert status(headers={"Authorization": f"Bearer {TOKEN}x"}) == 401
    assert status(headers={"Host": "evil.example"}) == 421
    assert status(headers={"Host": "localhost.evil.example:80"}) == 421
    assert status(headers={"Origin": "https://evil.example"}) == 403
    assert status(headers={"Origin": "null"}) == 403
    assert status(json="x" * (5 << 20)) == 413

    async def talk() -> None:
        async with httpx2.AsyncClient(headers=known) as web, server.client(http_client=web) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
            assert "there is no tool 'rm'" in await agent(client).refused("rm")

    anyio.run(talk)
    assert TOKEN not in server.log.read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gpu7"])
def test_others_need_a_token(host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRESAGE_MCP_TOKEN", raising=False)
    assert main.main(["mcp", "--no-config", "--http", "--host", host, "--port", "0"]) == 2
    assert "set a token in the variable PRESAGE_MCP_TOKEN" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PresageError, match="choose another --port"):
        serve_http(Settings(), "127.0.0.1", taken.getsockname()[1], None)


def test_a_short_token_is_an_error() -> None:
    with pytest.raises(PresageError, match="too short"):
        serve_http(Settings(), "127.0.0.1", 0, "secret")


def test_a_folder_s_presage_toml_cannot_say_what_agents_may_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    Path("presage.toml").write_text("[mcp]\nmax-measurements = 100000\n")
    assert main.main(["mcp"]) == 2
    assert "only in your own file" in capsys.readouterr().err


SOURCE = {"name": "a.cu", "source": ""}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("forecast", {}, "'problem' is a required property"),
        ("forecast", {"problem": "softmax", "kernels": []}, "kernels"),
        ("forecast", {"problem": "softmax", "kernels": ["a.cu"] * 65}, "kernels"),
        ("forecast", {"problem": "softmax", "kernels": [3]}, "kernels.0"),
        ("forecast", {"problem": "softmax", "kernels": [SOURCE | {"path": "/etc/passwd"}]}, "kernels.0"),
        ("forecast", {"problem": "softmax", "kernels": [SOURCE | {"values": {"A=1,B": 2}}]}, "kernels.0"),
        ("forecast", {"problem": "softmax", "kernels": ["../a.cu"]}, "is not in a folder that may be read"),
        ("forecast", {"problem": "softmax", "kernels": ["/etc/passwd"]}, "hand over the text itself"),
        ("forecast", {"problem": "/etc/passwd", "kernels": ["a.cu"]}, "is not in a folder that may be read"),
        ("forecast", {"problem": "a b", "kernels": ["a.cu"]}, "list_problems lists them"),
        ("forecast", {"problem": "softmax", "kernels": ["a.cu"], "target": "recorded:/etc/x.parquet"}, "target"),
        ("forecast", {"problem": "softmax", "kernels": ["a.cu"], "forecaster": "llm"}, "a language model"),
        ("forecast", {"problem": "softmax", "kernels": ["a.cu"], "forecaster": "llm:base_url=http://x"}, "forecaster"),
        ("measure", {"problem": "softmax", "kernels": ["a.cu"], "device": "../cpu"}, "device"),
        ("measure", {"problem": "softmax", "kernels": ["a.cu"], "precision": 0}, "precision"),
        ("measure", {"problem": "softmax", "kernels": ["a.cu"], "device": "cuda"}, "may not be used here"),
        ("start_search", {}, "A new one needs a problem"),
        ("start_search", {"problem": "softmax", "run": "../out"}, "run"),
        ("start_search", {"problem": "softmax", "run": "a/b"}, "run"),
        ("start_search", {"problem": "softmax", "budget": 1}, "budget"),
        ("start_search", {"problem": "softmax", "budget": 500}, "500 measurements are wanted, and 200 of 200"),
        ("follow_search", {"run": "x", "wait_seconds": 1e9}, "wait_seconds"),
        ("read_run", {"run": ".."}, "run"),
        ("read_run", {"run": "a\0"}, "run"),
        ("no_tool", {}, "there is no tool"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong_before_anything_is_started(
    agent: Any, tool: str, arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    from mcp import Client

    async def ask() -> str:
        async with Client(build(Settings(runs=tmp_path, devices=("cpu",)))) as client:
            why: str = await agent(client).refused(tool, **arguments)
            return why

    assert said in anyio.run(ask)
    assert not list(tmp_path.iterdir())


def test_seconds_of_the_device_end_a_measurement(agent: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which then is over, whatever it does, and nothing is left."""
    from mcp import Client

    async def never(*_: Any) -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(Pool, "ask", never)

    async def ask() -> tuple[str, str]:
        async with Client(build(Settings(runs=tmp_path, limits=Amounts(10, 2.0, 1)))) as client:
            asked = {"problem": "softmax", "kernels": ["naive.c"]}
            return await agent(client).refused("measure", **asked), await agent(client).refused("measure", **asked)

    first, second = anyio.run(ask)
    assert "were spent before the measurement was done" in first
    assert "2 seconds of the device are wanted, and 0 of 2 are left" in second


def test_tools_say_exactly_what_they_take_and_give() -> None:
    for tool in TOOLS.values():
        for schema in (tool.input_schema, tool.gives):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert "#/$defs/" not in json.dumps(tool.gives) or "$defs" in tool.gives
        assert len(tool.description) < 450


def test_an_allowance_is_never_exceeded() -> None:
    allowance = Allowance(Amounts(10, 5.0, 1))
    allowance.take(Amounts(8, 1.0))
    with pytest.raises(PresageError, match="3 measurements are wanted, and 2 of 10 are left"):
        allowance.take(Amounts(3, 1.0, 1))
    assert allowance.to_json() == {"measurements": 2.0, "device_seconds": 4.0, "searches": 1.0}
    allowance.give_back(Amounts(6))
    allowance.take(Amounts(8, 4.0, 1))
    with pytest.raises(PresageError, match="searches"):
        allowance.take(Amounts(searches=1))
