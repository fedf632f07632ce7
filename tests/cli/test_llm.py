"""`presage llm`, as a user calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import presage as package
from presage.cli import main

pytest.importorskip("openai", reason="needs the llm extra")
sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
import fake_endpoint as fake


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in ("BASE_URL", "MODEL", "API_KEY", "CONFIG"):
        monkeypatch.delenv(f"PRESAGE_LLM_{name}", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("PRESAGE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def endpoint(monkeypatch):
    endpoint = fake.Endpoint()
    monkeypatch.setenv("PRESAGE_LLM_BASE_URL", endpoint.base_url)
    yield endpoint
    endpoint.close()


@pytest.fixture
def llm(capsys):
    """llm(*arguments): exit status, standard output, standard error."""

    def run(*arguments):
        status = main.main(["llm", *arguments])
        return status, *capsys.readouterr()

    return run


def capable(handler, asked):
    """An endpoint that can do everything."""
    if asked["messages"][0]["role"] == "system":
        texts = [fake.forecast_text()] * asked.get("n", 1)
    else:
        texts = ['{"number": 7}'] * asked.get("n", 1)
    tokens = [{"token": str(digit), "logprob": -3.0} for digit in range(asked.get("top_logprobs", 0))]
    more = {"logprobs": {"content": [{"top_logprobs": tokens}]}} if asked.get("logprobs") else {}
    fake.says(*texts, **more)(handler, asked)


def test_a_capable_endpoint(llm, endpoint):
    endpoint.otherwise = capable
    status, output, errors = llm("check", "--json")
    document = json.loads(output)
    assert (status, errors) == (0, "")
    assert (document["reachable"], document["models"], document["model"]) == (True, ["small"], "small")
    assert all(ability["works"] for ability in document["abilities"].values())
    assert document["forecast"]["p_fail"] == pytest.approx(0.1)
    assert sum(each["probability"] for each in document["forecast"]["bins"]) == pytest.approx(1)
    assert document["spent"]["attempts"] == len(endpoint.requests)
    assert document["latency_s"] > 0


def test_a_table_for_people(llm, endpoint):
    endpoint.otherwise = capable
    status, output, _ = llm("check")
    assert status == 0
    for line in ("reachable   yes", "json_schema yes", "logprobs    yes", "1 < S <= 1.41        0.50 ####", "spent  "):
        assert line in output


def test_a_simple_endpoint(llm, endpoint):
    def simple(handler, asked):
        if "response_format" in asked:
            fake.fails(400, "response_format is unknown")(handler, asked)
        elif asked["messages"][0]["role"] == "system":
            fake.says(f"Sure! ```json\n{fake.forecast_text()}\n```")(handler, asked)
        else:
            fake.says(f"the number {len(endpoint.requests)}")(handler, asked)

    endpoint.otherwise = simple
    status, output, _ = llm("check", "--json")
    document = json.loads(output)
    assert status == 0
    assert [a["works"] for a in document["abilities"].values()] == [False] * 6
    assert document["forecast"] is not None


def test_json_that_is_no_object_is_no_structured_answer(llm, endpoint):
    endpoint.otherwise = fake.says("4")
    _, output, _ = llm("check", "--no-forecast", "--json")
    abilities = json.loads(output)["abilities"]
    assert not abilities["json_object"]["works"]
    assert not abilities["json_schema"]["works"]
    assert "no JSON object" in abilities["json_object"]["note"]


def test_an_endpoint_that_calls_max_tokens_otherwise_and_thinks_long(llm, endpoint):
    def thinks(handler, asked):
        if "max_tokens" in asked:
            fake.fails(400, "use max_completion_tokens instead")(handler, asked)
        else:
            fake.says("", finish="length")(handler, asked)

    endpoint.otherwise = thinks
    status, output, _ = llm("check", "--no-forecast")
    assert status == 0
    assert "json_schema ? (no answer within" in output


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [(fake.fails(500, "out of order"), "out of order"), (fake.body("<html>"), "not a JSON")],
)
def test_an_endpoint_that_cannot_answer_exits_with_1(llm, endpoint, behaviour, words):
    endpoint.otherwise = behaviour
    status, output, _ = llm("check")
    assert status == 1
    assert words in output


def test_nobody_there_exits_with_1(llm, endpoint):
    endpoint.close()
    status, output, _ = llm("check")
    assert status == 1
    assert "reachable   no" in output
    status, output, _ = llm("check", "--json")
    assert (status, json.loads(output)["reachable"]) == (1, False)


def test_no_forecast_exits_with_1(llm, endpoint):
    endpoint.otherwise = fake.says("no idea")
    status, output, _ = llm("check")
    assert status == 1
    assert "forecast    none" in output
    assert llm("check", "--no-forecast")[0] == 0


def test_missing_settings_exit_with_2(llm):
    status, output, errors = llm("check")
    assert (status, output) == (2, "")
    assert "PRESAGE_LLM_BASE_URL" in errors


def test_a_wrong_key_exits_with_2_and_is_not_shown(llm, endpoint, monkeypatch):
    monkeypatch.setenv("PRESAGE_LLM_API_KEY", "sk-secret-0123456789")
    endpoint.otherwise = fake.fails(401, "bad key sk-secret-0123456789")
    status, output, errors = llm("check")
    assert (status, output) == (2, "")
    assert "refuses the key" in errors
    assert "sk-secret" not in errors


def test_serving_without_weights_exits_with_2(llm, tmp_path):
    status, _, errors = llm("serve", "--weights", str(tmp_path / "none.gguf"))
    assert status == 2
    assert "local-llm" in errors or "no file" in errors


def test_without_an_action_the_usage_is_shown(llm):
    status, _, errors = llm()
    assert status == 2
    assert "ACTION" in errors


def test_without_the_extra_it_says_what_to_install(llm, endpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    status, _, errors = llm("check")
    assert status == 2
    assert "presage-kernels[llm]" in errors


def test_the_client_library_is_loaded_only_when_it_is_needed():
    code = "import sys, presage.cli.llm, presage.forecasters.llm; sys.exit('openai' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(str(package.__file__)).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], timeout=60, env=environment).returncode == 0
