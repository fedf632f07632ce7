"""Budgets of tokens and dollars: whatever an endpoint does, it is never asked for more than is left."""

from __future__ import annotations

import json
import math
import threading
import time as real_time
from concurrent.futures import ThreadPoolExecutor

import fake_endpoint as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import PresageError
from presage.llm.client import NoAnswerError
from presage.llm.cost import Allowance, Bound, NotCoveredError, Price, Usage

QUESTION = [{"role": "user", "content": "How fast is this? " * 20}]
LIMIT = 200
PRICE = Price(input=1.0, output=10.0, cached_input=0.5)


def most(asked):
    """What a request costs where a token is a byte and every answer is as long as it may be."""
    prompt = len(json.dumps(asked["messages"], ensure_ascii=False).encode()) + 50
    return asked.get("n", 1) * prompt, asked.get("n", 1) * asked.get("max_tokens", asked.get("max_completion_tokens"))


class Meter:
    """Behaves as it is told, and adds up what an endpoint would have spent on it."""

    def __init__(self, behave, free=False):
        self._behave, self._free, self._lock = behave, free, threading.Lock()
        self.tokens, self.dollars = 0, 0.0

    def __call__(self, handler, asked):
        prompt, answer = most(asked)
        with self._lock:
            if not (self._free and self._free(asked)):
                self.tokens += prompt + answer
                self.dollars += PRICE.most(prompt, answer)
        self._behave(handler, asked)


def reporting(prompt, answer):
    def behave(handler, asked):
        body = json.loads(fake.completion(*["word"] * asked.get("n", 1)))
        body["usage"] = {"prompt_tokens": prompt(asked), "completion_tokens": answer(asked)}
        fake.send(handler, 200, json.dumps(body))

    return behave


def slowly(handler, asked):
    real_time.sleep(0.05)
    reporting(lambda asked: most(asked)[0], lambda asked: most(asked)[1])(handler, asked)


def refuses_several(handler, asked):
    (fake.fails(400, "n must be 1") if "n" in asked else honest)(handler, asked)


honest = reporting(lambda asked: most(asked)[0], lambda asked: most(asked)[1])
ENDPOINTS = {
    "reports all it used": honest,
    "reports no usage": fake.says("word", usage=False),
    "reports no usage of several": lambda h, a: fake.says(*["word"] * a.get("n", 1), usage=False)(h, a),
    "reports nonsense": lambda h, a: fake.body(fake.completion("a").replace("1000", '"many"').replace("100", "-5"))(
        h, a
    ),
    "ignores n": fake.says("word", usage=False),
    "refuses n": refuses_several,
    "is slow": slowly,
    "fails after it worked": fake.fails(500),
    "is behind a gateway that gives up": fake.fails(504),
    "cuts the connection": fake.cuts,
    "sends no JSON": fake.body("<html>"),
    "sends no choices": fake.body("{}"),
}


def ask_all(client, allowance, questions=12, samples=3):
    def ask(i):
        try:
            return client.ask([*QUESTION, {"role": "user", "content": str(i)}], {}, samples, 2.0, allowance)
        except NoAnswerError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(ask, range(questions)))


@pytest.mark.parametrize("name", ENDPOINTS)
@pytest.mark.parametrize("tokens", [100, 1_500, 4_000, 30_000])
def test_what_an_endpoint_can_have_spent_is_within_the_budget(endpoint, make_client, name, tokens):
    endpoint.otherwise = meter = Meter(ENDPOINTS[name], free=lambda asked: name == "refuses n" and "n" in asked)
    allowance = Allowance(tokens)
    found = ask_all(make_client(max_tokens=LIMIT, cache=None, timeout=10.0, patience=2.0), allowance)
    assert meter.tokens <= tokens
    assert meter.tokens <= allowance.tokens_spent <= tokens
    if tokens < 1_000:
        assert endpoint.requests == []
    if tokens == 30_000 and name.startswith("re"):
        assert sum(isinstance(each, list) for each in found) >= 3
    assert allowance.short or not any("are left" in each for each in found if isinstance(each, str))


@pytest.mark.parametrize("name", ENDPOINTS)
def test_dollars_are_kept_in_the_same_way(endpoint, make_client, name):
    endpoint.otherwise = meter = Meter(ENDPOINTS[name], free=lambda asked: name == "refuses n" and "n" in asked)
    allowance = Allowance(dollars=0.02)
    ask_all(make_client(max_tokens=LIMIT, cache=None, timeout=10.0, patience=2.0, price=PRICE), allowance)
    assert meter.dollars <= allowance.dollars_spent <= 0.02
    assert endpoint.requests


def test_a_budget_in_dollars_needs_prices(endpoint, make_client):
    with pytest.raises(PresageError, match=r"set input and output under \[llm.price\]"):
        make_client().ask(QUESTION, {}, 1, 2.0, Allowance(dollars=1.0))
    assert endpoint.requests == []


def test_one_is_asked_before_many(endpoint, make_client):
    endpoint.otherwise = honest
    client = make_client(max_tokens=LIMIT, cache=None)
    client.ask(QUESTION, {}, 4, 2.0, Allowance(1e6))
    client.ask(QUESTION, {}, 4, 2.0, Allowance(1e6))
    assert [asked.get("n", 1) for asked in endpoint.requests] == [1, 3, 4]


def test_who_reports_more_than_there_can_be_is_believed_and_held_to_it(endpoint, make_client):
    endpoint.otherwise = reporting(lambda asked: 5_000, lambda asked: 5_000)
    client, allowance = make_client(max_tokens=LIMIT, cache=None), Allowance(29_000)
    found = ask_all(client, allowance)
    assert allowance.tokens_spent == 20_000
    assert len(endpoint.requests) == 2
    assert "reports 10,000 tokens for a request that can take" in client.complaint
    assert any("another question may take" in each for each in found)
    small = Allowance(3_000)
    endpoint.requests.clear()
    make_client(max_tokens=LIMIT, cache=None).ask(QUESTION, {}, 1, 2.0, small)
    assert small.tokens_spent == 3_000, "all that there was; what cannot be refused any more ends the asking"


def test_an_answer_is_cut_to_what_is_left_and_then_not_kept(endpoint, make_client):
    endpoint.otherwise = fake.says("long", finish="length")
    client = make_client(max_tokens=8_000)
    prompt = client._bound({"model": "small", "messages": QUESTION}, 1, 1).prompt
    for allowance in (Allowance(prompt + 4_000), Allowance(prompt + 20_000)):
        (answer,) = client.ask(QUESTION, {}, 1, 2.0, allowance)
        assert answer.text == "long"
    assert [asked["max_tokens"] for asked in endpoint.requests] == [pytest.approx(4_000, abs=400), 8_000]
    client.ask(QUESTION, {}, 1, 2.0, Allowance(0))
    assert len(endpoint.requests) == 2, "the whole one was kept"


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 503])
def test_a_request_that_was_turned_away_costs_nothing(endpoint, make_client, status):
    endpoint.otherwise = fake.fails(status)
    allowance = Allowance(100_000)
    with pytest.raises((NoAnswerError, PresageError)):
        make_client(patience=0.3).ask(QUESTION, {}, 1, 2.0, allowance)
    assert allowance.tokens_spent == 0


def test_nobody_there_costs_nothing(endpoint, make_client):
    client, allowance = make_client(), Allowance(100_000)
    endpoint.close()
    with pytest.raises(NoAnswerError):
        client.ask(QUESTION, {}, 1, 2.0, allowance)
    assert allowance.tokens_spent == 0


def test_what_may_have_been_spent_is_told_before_each_request(endpoint, make_client):
    told = []
    endpoint.otherwise = honest
    allowance = Allowance(20_000, tell=lambda tokens, dollars: told.append((len(endpoint.requests), tokens)))
    ask_all(make_client(max_tokens=LIMIT, cache=None), allowance, questions=3, samples=1)
    assert told[0][0] == 0
    assert len(told) == len(endpoint.requests) == 3
    assert max(tokens for _, tokens in told) >= allowance.tokens_spent


def test_whoever_waits_gets_what_others_leave():
    """Three have all of it set aside; two of them turn out to be cheap."""
    allowance, bound = Allowance(300), Bound(50, 50, 10)
    claims = [allowance.reserve(bound) for _ in range(3)]
    with pytest.raises(NotCoveredError, match="0 tokens are left, and another question may take 60"):
        allowance.reserve(bound, 0.01)
    assert allowance.short == "", "more may be left when they are done"
    for claim in claims[:2]:
        claim.settle(Usage(1, input_tokens=5, output_tokens=5), True)
    assert allowance.reserve(bound, 5.0).bound == bound


@given(
    st.integers(1, 10_000), st.integers(1, 5_000), st.integers(1, 8), st.floats(1, 9), st.floats(0, 1e5),
    st.floats(0, 10), st.one_of(st.none(), st.builds(Price, st.floats(0, 100), st.floats(0, 100))),
)  # fmt: skip
def test_what_fits_never_costs_more_than_there_is(prompt, answer, samples, overrun, tokens, dollars, price):
    bound = Bound(prompt, answer, max(1, answer // 8), samples, price, overrun)
    fitting = bound.within(tokens, dollars)
    if fitting:
        assert fitting.tokens <= tokens
        assert fitting.dollars <= dollars
        assert bound.least <= fitting.answer <= answer
    assert bound.within(math.inf, math.inf) == bound
