"""The compact question and its read-out: what trained models are asked, here and at an endpoint."""

from __future__ import annotations

import math
import random
import re
from collections import Counter

import fake_endpoint as fake
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Candidate, Forecast, PresageError, Task, load_recording
from presage.core import scale
from presage.evaluations import outcomes
from presage.evaluations.injection import variants
from presage.forecasters import llm_question
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.llm import LlmForecaster, sample_question
from presage.kernels.kernel import from_source

TOP = {"1": 0.1, "4": 0.3, " 5": 0.25, "0": 0.2, "the": 0.05}


@pytest.fixture(scope="module")
def compiled() -> tuple[Task, Candidate]:
    """A question about a kernel that was compiled, as its anchor was."""
    (pool,) = outcomes.pools(load_recording("h200"), "validation", "gelu")
    question = next(iter(outcomes.questions(pool, 0)))
    return question.task, next(each for each in question.candidates if each.reports)


def told(top: dict[str, float]) -> dict:
    listed = [{"token": token, "logprob": math.log(p)} for token, p in top.items()]
    return {"logprobs": {"content": [{"token": "4", "logprob": -1.0, "top_logprobs": listed}]}}


def read_out(endpoint, make_client, behaviour, **changes):
    endpoint.otherwise = behaviour
    task, copy = sample_question()
    (prediction,) = LlmForecaster(make_client(mode="readout", **changes)).forecast(task, [copy])
    return prediction


def test_an_endpoint_is_read_out_with_one_token(endpoint, make_client) -> None:
    forecast = read_out(endpoint, make_client, fake.says("4", **told(TOP))).forecast
    (asked,) = endpoint.requests
    assert (asked["max_tokens"], asked["logprobs"], asked["top_logprobs"]) == (1, True, 20)
    assert "response_format" not in asked
    assert "digit" in asked["messages"][0]["content"]
    assert forecast.p_fail == pytest.approx(0.2 / 0.85, abs=0.05)
    assert int(np.argmax(forecast.bin_probabilities())) == 3
    again = read_out(endpoint, make_client, fake.fails(500))
    assert again.forecast == forecast, "it comes from the cache, with its log-probabilities"


def test_what_is_read_out_of_few_tokens_says_so(endpoint, make_client) -> None:
    prediction = read_out(endpoint, make_client, fake.says("4", **told({"4": 0.9})))
    assert prediction.notes == ("read out of 1 tokens alone, which tells little",)


def test_a_temperature_makes_it_less_sure(endpoint, make_client, tmp_path) -> None:
    sure = read_out(endpoint, make_client, fake.says("4", **told(TOP))).forecast
    less = read_out(endpoint, make_client, fake.says("4", **told(TOP)), readout_temperature=3.0).forecast
    assert max(less.bin_probabilities()) < max(sure.bin_probabilities())


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, "tells no log-probabilities"),
        ({"logprobs": None}, "tells no log-probabilities"),
        ({"logprobs": {"content": [{"top_logprobs": [{"token": 4, "logprob": "x"}]}]}}, "tells no log-probabilities"),
        (told({"the": 0.9, "a": 0.09}), "would not answer with a digit"),
        (told({"4": math.exp(0.5), "5": math.exp(0.3)}), "tells no log-probabilities"),
        (told(dict.fromkeys("012345678", 1.0)), "tells no log-probabilities"),
        ({"logprobs": {"content": [{"top_logprobs": [{"token": "4", "logprob": 10**400}]}]}}, "no log-probabilities"),
    ],
)
def test_what_cannot_be_read_out_is_no_forecast(endpoint, make_client, more, note: str) -> None:
    prediction = read_out(endpoint, make_client, fake.says("4", **more))
    assert prediction.forecast is None
    assert note in prediction.notes[0]


@given(st.floats(-8, 8))
def test_digits_are_the_bins_of_the_scale(log2_S: float) -> None:
    digit = llm_question.digit_of(log2_S)
    assert digit == 1 + int(scale.bin_of(2.0**log2_S))
    assert f"{llm_question.ANSWERS[digit]}: {scale.labels()[digit - 1]}" in llm_question.system("readout")


@given(st.lists(st.floats(-30, 0), min_size=9, max_size=9), st.floats(0.05, 20))
def test_a_read_out_is_always_a_distribution(logs: list[float], temperature: float) -> None:
    forecast = llm_question.from_logarithms(logs, temperature)
    if forecast is None:
        assert sum(map(math.exp, logs)) < 0.011
    else:
        assert sum(forecast.bin_probabilities()) == pytest.approx(1)
        assert 0 <= forecast.p_fail <= 1


def test_words_of_an_author_change_no_question() -> None:
    task, copy = sample_question()
    for kind, without, with_words in variants(copy.kernel, random.Random(0), task.problem.scalars):
        one, other = (llm_question.text(task, Candidate(kernel)) for kernel in (without, with_words))
        assert one == other, kind


@pytest.mark.sweep
@pytest.mark.parametrize("split", ["test_op", "test_family"])
def test_nor_of_those_about_recorded_kernels(split: str) -> None:
    rng, tried = random.Random(0), Counter()
    for pool in outcomes.pools(load_recording("h200"), split):
        question = next(outcomes.questions(pool, 0))
        for candidate in rng.sample([each for each in question.candidates if each.kernel.source], 2):
            for kind, *both in variants(candidate.kernel, rng, pool.problem.scalars):
                one, other = (llm_question.text(question.task, Candidate(k, candidate.reports)) for k in both)
                assert one == other, (candidate.kernel.name, kind)
                tried[kind] += 1
    assert min(tried[kind] for kind in ("comments", "instructions", "docstrings", "names")) >= 30, tried


def test_the_last_line_tells_what_simple_rules_predict(compiled: tuple[Task, Candidate]) -> None:
    task, candidate = compiled
    *_, last = llm_question.text(task, candidate).splitlines()
    rows = re.findall(r"([a-z ]+) ([+-]\d+\.\d) (\d)", last.removeprefix("# log2 S and its bin by:"))
    assert [word.strip() for word, _, _ in rows][-2:] == ["peak", "together"]
    for _, log2_S, digit in rows:
        near = {llm_question.digit_of(float(log2_S) + off) for off in (-0.05, 0, 0.05)}
        assert int(digit) in near


def test_or_what_trees_forecast(compiled: tuple[Task, Candidate]) -> None:
    said = Forecast.from_bins([0, 0, 0, 0.25, 0.7, 0.044, 0.006, 0], 0.0123)
    *plain, _ = llm_question.text(*compiled).splitlines()
    *before, last = llm_question.text(*compiled, said=said).splitlines()
    assert last == f"# Trees: fails 1.2, {said.mean():+.1f}, 5 70, 4 25, 6 4"
    assert before == plain


def test_an_endpoint_is_told_that_where_its_settings_say_so(
    endpoint, make_client, compiled: tuple[Task, Candidate]
) -> None:
    task, candidate = compiled
    endpoint.otherwise = fake.says("4", **told(TOP))
    for advised in (True, False):
        LlmForecaster(make_client(mode="readout", advised=advised)).forecast(task, [candidate])
        assert ("\n# Trees: fails " in endpoint.requests[-1]["messages"][1]["content"]) == advised


def test_of_modules_trees_say_nothing() -> None:
    modules = load_recording("h200_modules")
    (pool,) = outcomes.pools(modules, "all", next(iter(modules.counts)))
    question = next(iter(outcomes.questions(pool, 0)))
    assert question.task.problem.is_foreign
    adviser = LearnedForecaster()
    assert llm_question.advice(adviser, question.task, question.candidates[:1]) == [None]


def test_a_kernel_beside_itself_is_as_fast_by_every_rule(compiled: tuple[Task, Candidate]) -> None:
    task, _ = compiled
    *_, last = llm_question.text(task, Candidate(task.anchor.kernel, task.anchor.reports)).splitlines()
    assert "busiest unit +0.0 4, all units +0.0 4, memory +0.0 4, issue +0.0 4" in last


def test_a_question_is_short_however_long_the_source() -> None:
    task, _ = sample_question()
    long = "// presage: entry k\nvoid k(float *x) {" + "\n".join(f"x[{i}] = {i};" for i in range(5000)) + "}\n"
    text = llm_question.text(task, Candidate(from_source(long, ".c", "k.c")))
    assert len(text) < 4000
    assert "characters left out" in text


def test_source_that_is_not_valid_is_not_asked_about(endpoint, make_client) -> None:
    task, _ = sample_question()
    broken = Candidate(from_source("def custom_kernel(data:\n", ".py", "k_triton.py"))
    (prediction,) = LlmForecaster(make_client(mode="readout")).forecast(task, [broken])
    assert (prediction.forecast.p_fail, endpoint.requests) == (0.99, [])


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(PresageError, match="there is no model"):
        LlmForecaster(model="models/none")
