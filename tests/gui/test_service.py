"""The middleware, over real HTTP and over MCP: right requests, wrong ones, and many at a time."""

from __future__ import annotations

import base64
import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import PresageError
from presage_gui import Screen
from presage_gui.baselines import Unchanged
from presage_gui.deciding import Threshold
from presage_gui.service import Service
from presage_gui.serving import Server, speak_mcp

pytest.importorskip("PIL")

WHITE = Screen(np.full((40, 60, 3), 255, dtype=np.uint8))
PNG = base64.b64encode(WHITE.png).decode()
ASKED = {"goal": "Click OK", "screen": PNG, "action": "click(10, 10)", "intent": "Click OK"}
DONE = {"action": "click(10, 10)", "intent": "Click OK", "before": PNG, "after": PNG}


@pytest.fixture
def service() -> Service:
    return Service(Unchanged(), Threshold())


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    server = Server(service, port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.address
    server.shutdown()
    server.server_close()
    thread.join()


def post(address: str, body: bytes, kind: str = "application/json") -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{address}/check", body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_step_passes_and_its_repeat_does_not(address: str) -> None:
    status, verdict = post(address, json.dumps(ASKED).encode())
    assert (status, verdict["choice"]) == (200, "trust")
    again = ASKED | {"screen": verdict["screen"], "history": [DONE]}  # the screen is known by its digest now
    status, verdict = post(address, json.dumps(again).encode())
    assert (verdict["choice"], verdict["error"]) == ("revise", "neglected_observation")
    assert "nothing changed" in verdict["history"]


def test_a_malformed_action_is_a_verdict(service: Service) -> None:
    verdict = service.check(ASKED | {"action": "click(100, 10)"})
    assert (verdict["probability"], verdict["error"]) == (0.0, "malformed_action")
    assert "60 × 40" in verdict["explanation"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"goal": ""}, "'goal' is a text"),
        ({"screen": "%%%"}, "is not base64"),
        ({"screen": base64.b64encode(b"no image").decode()}, "not an image"),
        ({"screen": "0" * 32}, "is not known any more"),
        ({"action": 3}, "'action' is an object"),
        ({"intent": 3}, "'intent' is a text"),
        ({"history": "all"}, "'history' is a list"),
        ({"history": [{"action": "click(1, 2)"}]}, "'before' is a PNG"),
    ],
)
def test_wrong_requests_get_words(service: Service, address: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(PresageError, match=words):
        service.check(ASKED | change)
    status, answer = post(address, json.dumps(ASKED | change).encode())
    assert status == 400
    assert words.split("'")[-1] in answer["error"]


def test_http_refuses_what_is_no_request(address: str) -> None:
    assert post(address, b"{")[0] == 400
    assert post(address, b"[" * 100_000)[0] == 400
    assert post(address, json.dumps(ASKED).encode(), "text/plain")[0] == 415  # what a foreign page could send
    with urllib.request.urlopen(f"{address}/health") as answer:
        assert json.load(answer)["status"] == "ok"


def test_many_callers_get_their_own_answers(address: str) -> None:
    def ask(x: int) -> bool:
        return post(address, json.dumps(ASKED | {"action": f"click({x}, 10)"}).encode())[1]["error"] is None

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(ask, range(50, 70))) == [x < 60 for x in range(50, 70)]


def speak(service: Service, *lines: object) -> list[dict[str, Any]]:
    asked = io.StringIO("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    answers = io.StringIO()
    speak_mcp(service, asked, answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_mcp(service: Service) -> None:
    def call(number: int, method: str, **parameters: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}

    answers = speak(
        service,
        call(1, "initialize", protocolVersion="2025-06-18"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "tools/list"),
        call(3, "tools/call", name="check_action", arguments=ASKED),
        call(4, "tools/call", name="check_action", arguments={"goal": ""}),
        call(5, "tools/call", name="other"),
        call(6, "resources/list"),
        "not JSON",
    )
    assert [answer.get("id") for answer in answers] == [1, 2, 3, 4, 5, 6, None]
    assert answers[0]["result"]["capabilities"] == {"tools": {}}
    assert answers[1]["result"]["tools"][0]["inputSchema"]["required"] == ["goal", "screen", "action"]
    assert answers[2]["result"]["structuredContent"]["choice"] == "trust"
    assert answers[3]["result"]["isError"] is True
    assert [answer["error"]["code"] for answer in answers[4:]] == [-32602, -32601, -32700]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5))
def test_no_line_breaks_the_speaker(line: object) -> None:
    answers = speak(Service(Unchanged(), Threshold()), line)
    assert all(answer["error"]["code"] in (-32600, -32700) for answer in answers)
