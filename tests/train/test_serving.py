"""What was trained, served and asked over HTTP as any other model, spoken and read out."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("openai", reason="needs the llm extra")

from presage.cli.main import main
from presage.forecasters import llm_question
from presage.forecasters.llm import LlmForecaster, sample_question
from presage.llm import probe, server
from presage.llm.client import Client
from presage.llm.readout import ReadOut
from presage.llm.server import WeightsServer
from presage.llm.settings import Settings
from presage.llm.weights import load


@pytest.fixture(scope="module")
def served(tiny):
    with WeightsServer(load(str(tiny))) as server:
        yield server


def post(server: WeightsServer, body: object) -> tuple[int, dict]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", data)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def question(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}], "model": "tiny"}


def test_an_endpoint_and_the_model_itself_read_out_the_same(served, tiny) -> None:
    task, candidate = sample_question()
    settings = Settings(served.base_url, served.model, mode="readout")
    (over_http,) = LlmForecaster(settings).forecast(task, [candidate])
    if over_http.forecast is not None:
        (here,) = LlmForecaster(model=str(tiny)).forecast(task, [candidate])
        assert here.forecast.p_fail == pytest.approx(over_http.forecast.p_fail, abs=0.05)
    reader = ReadOut(load(str(tiny)), llm_question.ANSWERS)
    asked = llm_question.messages(task, candidate, "readout")
    (answer,) = Client(settings).ask(asked, None, likeliest=20)
    told = reader.log_probabilities([asked])[0]
    for digit, value in zip(llm_question.ANSWERS, told, strict=True):
        if digit in answer.likeliest:
            assert answer.likeliest[digit] == pytest.approx(value, abs=1e-4)


def test_many_at_once_are_each_answered_as_alone(served) -> None:
    texts = [f"how fast is {'x' * n}" for n in range(12)]
    ask = {"max_tokens": 1, "logprobs": True, "top_logprobs": 3, "temperature": 0}
    alone = [post(served, question(text) | ask)[1]["choices"][0] for text in texts]
    with ThreadPoolExecutor(12) as pool:
        together = [
            found["choices"][0] for _, found in pool.map(lambda text: post(served, question(text) | ask), texts)
        ]
    for one, other in zip(alone, together, strict=True):
        assert one["message"] == other["message"]
        tops = [choice["logprobs"]["content"][0]["top_logprobs"] for choice in (one, other)]
        assert [each["logprob"] for each in tops[0]] == pytest.approx([each["logprob"] for each in tops[1]], abs=1e-4)


LONG = {"max_tokens": 3000, "n": 4, "temperature": 1.0}


def test_a_request_whose_client_has_gone_is_dropped(served) -> None:
    with pytest.raises(server._GoneError):
        served.answer(question("go on") | LONG, lambda: True)
    body = json.dumps(question("go on") | LONG).encode()
    with socket.create_connection(served._server.server_address) as gone:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        gone.sendall(head.encode() + body)
    assert post(served, question("and on") | {"max_tokens": 2})[0] == 200


def test_short_requests_do_not_wait_for_all_long_ones(served, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def slowly(asked, waiting) -> dict:
        time.sleep(0.3)
        return served._one_token([asked])[0]

    monkeypatch.setattr(served, "_generate", slowly)

    def ask(name: str, more: dict) -> None:
        assert post(served, question(name) | more)[0] == 200
        order.append(name)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, name, LONG | {"n": 1}) for name in ("first", "second", "third")]
        for each in (pool.submit(ask, "short", {"max_tokens": 1}), *asked):
            each.result()
    assert order[-1] != "short"


def test_longer_answers_seeds_and_several(served) -> None:
    ask = question("go on") | {"max_tokens": 6, "n": 3, "seed": 5, "logprobs": True, "top_logprobs": 2}
    (status, first), (_, again) = post(served, ask), post(served, ask)
    assert status == 200
    assert [c["message"] for c in first["choices"]] == [c["message"] for c in again["choices"]]
    assert len(first["choices"]) == 3
    assert all(len(choice["logprobs"]["content"]) <= 6 for choice in first["choices"])
    assert first["usage"]["total_tokens"] == first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"no json", "this is not JSON: Expecting value"),
        ([], "a JSON object"),
        ({}, "messages must be a list"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        (question("x") | {"max_tokens": 0.5}, "max_tokens must be"),
        (question("x") | {"max_tokens": 0}, "max_tokens must be"),
        (question("x") | {"n": 1.5}, "n must be a whole number, not 1.5"),
        (question("x") | {"top_p": 1.5}, "top_p must be a number from 0 to 1"),
        (question("x") | {"stop": [""]}, "stop must be"),
        (question("x") | {"stop": ["a", "b", "c", "d", "e"]}, "at most 4"),
        (question("x") | {"presence_penalty": 1.0}, "presence_penalty is not supported"),
        (question("x") | {"tools": [{"type": "function"}]}, "tools is not supported"),
        (question("x") | {"top_logprobs": 100}, "top_logprobs must be"),
        (question("x") | {"temperature": True}, "temperature must be"),
        (question("x") | {"max_tokens": 4096}, "exceed the context"),
        (question("x") | {"response_format": {"type": "json_object"}}, "response_format is not supported"),
        (question("x") | {"stream": True}, "stream is not supported"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(served, body, told: str) -> None:
    status, answer = post(served, body)
    assert status == 400
    assert told in answer["error"]["message"]
    assert post(served, question("still there?") | {"max_tokens": 1})[0] == 200


def test_an_answer_ends_before_a_stop_string(served) -> None:
    ask = question("go on") | {"max_tokens": 12, "temperature": 0, "logprobs": True}
    whole = post(served, ask)[1]["choices"][0]
    text = whole["message"]["content"]
    stop = text[len(text) // 2 :][:3]
    status, answer = post(served, ask | {"stop": stop})
    (choice,) = answer["choices"]
    assert status == 200
    assert choice["message"]["content"] == text[: text.index(stop)]
    assert choice["finish_reason"] == "stop"
    assert len(choice["logprobs"]["content"]) < len(whole["logprobs"]["content"])
    assert answer["usage"]["completion_tokens"] == len(choice["logprobs"]["content"])
    neutral = {"stop": None, "top_p": 1, "presence_penalty": 0, "tools": [], "stream": False}
    assert post(served, ask | neutral)[1]["choices"][0] == whole


@pytest.mark.parametrize("tokens", [1, 3])
def test_numbers_and_texts_at_the_edge_are_answered(served, tokens: int) -> None:
    body = {"messages": [{"role": "user", "content": "half of a pair: \ud800"}], "max_tokens": tokens}
    assert post(served, body | {"temperature": 1e-300})[0] == 200


def test_a_server_that_is_closed_cuts_the_answer_that_it_writes(tiny) -> None:
    with WeightsServer(load(str(tiny))) as server, ThreadPoolExecutor(1) as pool:
        begun = threading.Event()
        generate = server._generate
        server._generate = lambda *request: begun.set() or generate(*request)
        waiting = pool.submit(post, server, question("go on") | {"max_tokens": 4000})
        assert begun.wait(60)
        server.close()
        status, answer = waiting.result(60)
    assert (status, answer["error"]["message"]) == (400, "the server is closing")


@pytest.mark.parametrize("tokens", [1, 4])
def test_the_least_top_p_leaves_the_likeliest_token(served, tokens: int) -> None:
    ask = question("go on") | {"max_tokens": tokens}
    likeliest = post(served, ask | {"temperature": 0})[1]["choices"][0]["message"]
    for seed in range(3):
        status, found = post(served, ask | {"temperature": 2, "top_p": 0, "seed": seed})
        assert status == 200, found
        assert found["choices"][0]["message"] == likeliest


def test_a_request_that_does_not_say_its_length_is_refused(served) -> None:
    with socket.create_connection(served._server.server_address) as connection:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        said = answer.read().decode()
    assert answer.status == 411
    assert "chunked ones are not read" in said


def test_check_says_that_it_can_be_read_out(
    served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_TOKENS", 8)
    assert main(["llm", "check", "--base-url", served.base_url, "--no-forecast", "--json"]) == 0
    abilities = json.loads(capsys.readouterr().out)["abilities"]
    assert abilities["readout"]["works"]
    assert not abilities["json_schema"]["works"]


def test_the_same_question_has_the_same_answer_whatever_is_asked_beside_it(tiny) -> None:
    reader = ReadOut(load(str(tiny)), llm_question.ANSWERS)
    one, other = ([{"role": "user", "content": text}] for text in ("a", "a longer question"))
    first = reader.log_probabilities([one, other])
    assert np.array_equal(reader.log_probabilities([other, one, one]), first[[1, 0, 0]])
    assert np.all(np.exp(first).sum(axis=1) < 1)


def test_threads_that_read_out_at_once_do_not_disturb_each_other(tiny) -> None:
    weights = load(str(tiny))
    questions = [llm_question.conversation("speed " * length, "readout") for length in range(1, 25)]

    def asked(question: list[dict[str, str]]) -> np.ndarray:
        return ReadOut(weights, llm_question.ANSWERS).log_probabilities([question])

    alone = [asked(question) for question in questions]
    with ThreadPoolExecutor(6) as pool:
        assert np.allclose(alone, list(pool.map(asked, questions)), atol=1e-5)
