"""The client against a real server that misbehaves on request."""

from __future__ import annotations

import json
import logging
import threading
import time as real_time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import fake_endpoint as fake
import pytest

from presage.llm.cache import Entry
from presage.llm.client import NoAnswerError, RefusedError
from presage.llm.cost import Price, Usage

KEY = "sk-secret-0123456789"
QUESTION = [{"role": "user", "content": "How fast?"}]
SCHEMA = {"type": "object", "properties": {"p": {"type": "number"}}}


def texts(answers):
    return [answer.text for answer in answers]


# -- asking -----------------------------------------------------------------------------------------------------------


def test_a_good_answer(endpoint, make_client):
    endpoint.otherwise = fake.says("hello")
    client = make_client()
    assert texts(client.ask(QUESTION, SCHEMA)) == ["hello"]
    (asked,) = endpoint.requests
    assert asked["messages"] == QUESTION
    assert asked["model"] == "small"
    assert asked["response_format"]["json_schema"]["schema"] == SCHEMA
    assert endpoint.keys == [f"Bearer {KEY}"]


def test_several_samples_in_one_request(endpoint, make_client):
    endpoint.otherwise = fake.says("a", "b", "c")
    assert texts(make_client().ask(QUESTION, SCHEMA, 3)) == ["a", "b", "c"]
    assert [asked["n"] for asked in endpoint.requests] == [3]


def test_an_endpoint_that_ignores_n_is_asked_again(endpoint, make_client):
    endpoint.script = [fake.says("a"), fake.says("b"), fake.says("c")]
    assert texts(make_client().ask(QUESTION, SCHEMA, 3)) == ["a", "b", "c"]
    assert [asked.get("n") for asked in endpoint.requests] == [3, 2, None]


def test_fewer_samples_are_better_than_none(endpoint, make_client):
    endpoint.script = [fake.says("a")]
    endpoint.otherwise = fake.fails(500)
    assert texts(make_client(patience=2.0).ask(QUESTION, SCHEMA, 3)) == ["a"]


@pytest.mark.parametrize(
    ("refusals", "format"),
    [
        ([], "json_schema"),
        (["response_format json_schema is not supported"], "json_object"),
        (["response_format: unknown", "'response_format.type' must be text"], None),
    ],
)
def test_the_strictest_format_that_the_endpoint_knows(endpoint, make_client, refusals, format):
    endpoint.script = [fake.fails(400, refusal) for refusal in refusals]
    client = make_client(cache=None)
    client.ask(QUESTION, SCHEMA)
    client.ask(QUESTION, SCHEMA)  # it is remembered
    formats = [asked.get("response_format", {}).get("type") for asked in endpoint.requests[len(refusals) :]]
    assert formats == [format, format]


def test_other_parameters_that_an_endpoint_refuses(endpoint, make_client):
    endpoint.script = [
        fake.fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        fake.fails(400, "'temperature' does not support 1.0 with this model."),
        fake.fails(422, "n must be 1"),
    ]
    client = make_client(max_tokens=77)
    client.ask(QUESTION, SCHEMA, 2)
    asked = endpoint.requests[-1]
    assert (asked["max_completion_tokens"], asked["response_format"]["type"]) == (77, "json_schema")
    assert not {"temperature", "max_tokens", "n"} & set(asked)


def test_a_question_that_is_too_long_teaches_no_bad_manners(endpoint, make_client):
    endpoint.script = [fake.fails(400, "maximum context length is 8192 tokens")]
    client = make_client()
    with pytest.raises(NoAnswerError, match="context length"):
        client.ask(QUESTION, SCHEMA, 2)
    assert len(endpoint.requests) == 1
    assert client.manner.format == "json_schema"


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        fake.fails(429),
        fake.fails(500),
        fake.fails(503, "loading"),
        fake.cuts,
        fake.body("<html>nonsense"),
        fake.body("[1, 2]"),
        fake.body('{"choices": ['),
        fake.body('{"choices": []}'),
        fake.body('{"choices": [{"message": null}]}'),
        fake.body("{}"),
        fake.body(b"\xff\xfe\x00"),
        fake.body("[" * 20_000),
        fake.floods,
    ],
    ids=lambda fault: getattr(fault, "__name__", ""),
)
def test_a_passing_fault_is_overcome(endpoint, make_client, time, fault):
    endpoint.script = [fault, fault]
    endpoint.otherwise = fake.says("at last")
    client = make_client()
    assert texts(client.ask(QUESTION, SCHEMA)) == ["at last"]
    assert (client.spent.attempts, client.spent.failed) == (3, 2)
    assert len(time.slept) == 2
    assert 0.3 < time.slept[0] < 0.7 < time.slept[1] < 1.3


@pytest.mark.parametrize("fault", [fake.fails(500), fake.cuts], ids=["500", "cut"])
def test_patience_ends(endpoint, make_client, time, fault):
    endpoint.otherwise = fault
    with pytest.raises(NoAnswerError, match=r"500|cut"):
        make_client(patience=10.0).ask(QUESTION, SCHEMA)
    assert time.now <= 10
    assert 3 <= len(endpoint.requests) <= 6


def test_a_slow_drip_ends_at_the_timeout(endpoint, make_client):
    endpoint.otherwise = fake.drips
    start = real_time.monotonic()
    with pytest.raises(NoAnswerError, match=r"no complete answer in 0\.15 s"):
        make_client(timeout=0.15, patience=0.3).ask(QUESTION, SCHEMA)
    assert real_time.monotonic() - start < 50, "half of what the answer takes"


def test_after_a_failed_question_the_next_one_fails_at_once(endpoint, make_client):
    endpoint.otherwise = fake.fails(500)
    client = make_client(patience=5.0)
    for _ in range(2):
        before = len(endpoint.requests)
        with pytest.raises(NoAnswerError):
            client.ask(QUESTION, SCHEMA)
    assert len(endpoint.requests) == before + 1
    endpoint.script = [fake.says("well again"), fake.fails(500)]
    client.ask([{"role": "user", "content": "first"}], SCHEMA)
    endpoint.otherwise = fake.says("fine")
    assert texts(client.ask([{"role": "user", "content": "second"}], SCHEMA)) == ["fine"]


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After-Ms": "2500", "Retry-After": "9"}, 2.5),
        ({"Retry-After": "in a minute"}, 30.0),
        ({"Retry-After": "soon"}, 0.3),
        ({"Retry-After": "-3"}, 0.3),
        ({"Retry-After": "nan"}, 0.3),
    ],
)
def test_retry_after_is_honoured(endpoint, make_client, time, headers, least):
    if headers.get("Retry-After") == "in a minute":
        headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)}
    endpoint.script = [fake.fails(429, headers=headers)]
    make_client().ask(QUESTION, SCHEMA)
    assert least <= time.slept[0] <= max(least * 2, 1)


def test_a_wait_beyond_the_patience_is_not_begun(endpoint, make_client, time):
    endpoint.otherwise = fake.fails(429, headers={"Retry-After": "86400"})
    with pytest.raises(NoAnswerError, match="asks to wait 86400 s"):
        make_client().ask(QUESTION, SCHEMA)
    assert (time.slept, len(endpoint.requests)) == ([], 1)


def test_nobody_there(endpoint, make_client, time):
    """It is likely misspelt, so it is said at once."""
    client = make_client()
    endpoint.close()
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        client.ask(QUESTION, SCHEMA)
    assert time.slept == []


def test_nobody_there_any_more(endpoint, make_client, time):
    """It has been there, so it may come back."""
    client = make_client(patience=20.0)
    client.ask(QUESTION, SCHEMA)
    endpoint.close()
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        client.ask([{"role": "user", "content": "another"}], SCHEMA)
    assert 10 < sum(time.slept) < 20


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 3.0])
def test_an_asker_may_have_less_patience(endpoint, make_client, time, seconds):
    endpoint.otherwise = fake.fails(500)
    with pytest.raises(NoAnswerError):
        make_client().ask(QUESTION, SCHEMA, seconds=seconds)
    assert time.now <= max(0.0, seconds)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (fake.fails(401, f"Incorrect API key provided: {KEY}"), "PRESAGE_LLM_API_KEY"),
        (fake.fails(403), "refuses the key"),
        (fake.fails(404, "model small does not exist"), "no such model"),
        (fake.fails(429, "pay", error={"code": "insufficient_quota"}), "used up"),
    ],
)
def test_what_the_caller_must_mend_is_not_tried_again(endpoint, make_client, fault, words):
    endpoint.otherwise = fault
    with pytest.raises(RefusedError, match=words):
        make_client().ask(QUESTION, SCHEMA)
    assert len(endpoint.requests) == 1


# -- cost -------------------------------------------------------------------------------------------------------------


def test_every_attempt_is_counted(endpoint, make_client):
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
    endpoint.script = [fake.fails(500, usage=usage), fake.cuts, fake.says("a"), fake.says("b", usage=False)]
    client = make_client(price=Price(input=1.0, output=10.0, cached_input=0.5))
    client.ask(QUESTION, SCHEMA, 2)
    assert client.spent == Usage(4, 2, unmetered=2, input_tokens=1007, cached_tokens=5, output_tokens=103)
    assert client.dollars == pytest.approx((1002 * 1.0 + 5 * 0.5 + 103 * 10.0) / 1e6)


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": "many"}, {"prompt_tokens": -5}, {"prompt_tokens": True}])
def test_a_strange_usage_counts_nothing(endpoint, make_client, usage):
    body = json.loads(fake.completion("a")) | {"usage": usage}
    endpoint.otherwise = fake.body(json.dumps(body))
    client = make_client()
    client.ask(QUESTION, SCHEMA)
    assert (client.spent.attempts, client.spent.input_tokens, client.dollars) == (1, 0, None)


# -- the cache --------------------------------------------------------------------------------------------------------


def test_the_same_question_is_never_paid_twice(endpoint, make_client):
    first = make_client().ask(QUESTION, SCHEMA, 2)
    paid = len(endpoint.requests)
    again = make_client()
    assert again.ask(QUESTION, SCHEMA, 2) == first
    assert (len(endpoint.requests), again.spent, again.kept_answers) == (paid, Usage(), 2)


def test_more_samples_pay_only_for_the_rest(endpoint, make_client):
    endpoint.script = [fake.says("a"), fake.says("b", "c")]
    client = make_client()
    client.ask(QUESTION, SCHEMA)
    assert texts(client.ask(QUESTION, SCHEMA, 3)) == ["a", "b", "c"]
    assert [asked.get("n") for asked in endpoint.requests] == [None, 2]
    assert texts(client.ask(QUESTION, SCHEMA, 2)) == ["a", "b"]


@pytest.mark.parametrize("change", [{"model": "large"}, {"temperature": 0.0}, {"max_tokens": 9}])
def test_another_model_is_another_question(endpoint, make_client, change):
    make_client().ask(QUESTION, SCHEMA)
    make_client(**change).ask(QUESTION, SCHEMA)
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"[]", b"\xff\x00", b'{"answers": 3}', b"[" * 10_000])
def test_a_damaged_entry_is_a_miss_and_is_mended(endpoint, make_client, tmp_path, damage):
    make_client().ask(QUESTION, SCHEMA)
    (file,) = (tmp_path / "answers").glob("*/*.json")
    file.write_bytes(damage)
    for _ in range(2):
        make_client().ask(QUESTION, SCHEMA)
    assert len(endpoint.requests) == 2


def test_an_altered_entry_is_a_miss(endpoint, make_client, tmp_path):
    make_client().ask(QUESTION, SCHEMA)
    (file,) = (tmp_path / "answers").glob("*/*.json")
    file.write_text(file.read_text().replace("bound by memory", "bound by lies"))
    make_client().ask(QUESTION, SCHEMA)
    assert len(endpoint.requests) == 2


def test_an_answer_that_cannot_be_kept_is_an_answer():
    with open("/dev/full", "r+b", buffering=0) as full:
        Entry(full, "question").write([{"text": "paid for"}])  # raises nothing


def test_two_who_ask_at_once_pay_once(endpoint, make_client):
    def slowly(handler, asked):
        real_time.sleep(0.1)
        fake.says("a")(handler, asked)

    endpoint.otherwise = slowly
    clients = [make_client() for _ in range(4)]
    for client in clients:
        client._sleep = real_time.sleep
    threads = [threading.Thread(target=client.ask, args=(QUESTION, SCHEMA)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(endpoint.requests) == 1


# -- the key ----------------------------------------------------------------------------------------------------------


def test_the_key_is_never_shown_or_kept(endpoint, make_client, tmp_path, caplog, capfd, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_LOG", "debug")
    endpoint.script = [
        fake.fails(500, f"your key {KEY} broke it"),
        fake.says(f"the key is {KEY}"),
        fake.fails(401, f"bad key {KEY}"),
        fake.fails(400, f"context {KEY}"),
    ]
    client = make_client()
    shown = [repr(client.settings), str(client.settings), repr(client.ask(QUESTION, SCHEMA))]
    for question in ("second", "third"):
        with pytest.raises((RefusedError, NoAnswerError)) as caught:
            client.ask([{"role": "user", "content": question}], SCHEMA)
        error: BaseException | None = caught.value
        while error is not None:
            shown += [str(error), repr(error)]
            error = error.__cause__
    shown += [caplog.text, *capfd.readouterr()]
    shown += [file.read_text() for file in (tmp_path / "answers").glob("*/*.json")]
    assert KEY not in "\n".join(shown)
    assert "the key is [key]" in shown[2]
