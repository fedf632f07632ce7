"""Settings: where they come from, and what is said when they are wrong."""

from __future__ import annotations

import pytest

from presage import PresageError
from presage.llm.cost import Price
from presage.llm.settings import Settings, read

URL = "http://localhost:8000/v1"
ENVIRONMENT = {"PRESAGE_LLM_BASE_URL": URL, "PRESAGE_LLM_MODEL": "m"}


@pytest.fixture
def write(tmp_path):
    def write(text):
        file = tmp_path / "llm.toml"
        file.write_text(text)
        return file

    return write


def test_from_the_environment():
    settings = read(environment=ENVIRONMENT | {"PRESAGE_LLM_API_KEY": "k1", "OPENAI_API_KEY": "k2"})
    assert (settings.base_url, settings.model, settings.api_key) == (URL, "m", "k1")


def test_from_a_file_with_the_environment_above_it(write):
    file = write(
        'llm.base_url = "http://elsewhere/v1"\nllm.model = "theirs"\nllm.samples = 5\nllm.timeout = 9\n'
        'llm.api_key_env = "OURS"\nllm.price = {input = 1, output = 2.5}\n'
    )
    found = read(environment={"PRESAGE_LLM_CONFIG": str(file), "PRESAGE_LLM_MODEL": "mine", "OURS": "k3"})
    assert (found.base_url, found.model, found.samples, found.timeout) == ("http://elsewhere/v1", "mine", 5, 9)
    assert (found.api_key, found.price) == ("k3", Price(1, 2.5))
    assert read(file, ENVIRONMENT, model="flag").model == "flag"


def test_the_cache_s_place():
    assert str(read(environment=ENVIRONMENT | {"PRESAGE_CACHE_DIR": "/a"}).cache) == "/a/llm"
    assert str(read(environment=ENVIRONMENT | {"XDG_CACHE_HOME": "/b"}).cache) == "/b/presage/llm"


@pytest.mark.parametrize(
    ("environment", "words"),
    [({}, "PRESAGE_LLM_BASE_URL"), ({"PRESAGE_LLM_BASE_URL": URL}, "PRESAGE_LLM_MODEL")],
)
def test_what_is_missing_is_named(environment, words):
    with pytest.raises(PresageError, match=words):
        read(environment=environment)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[llm", "not valid TOML"),
        ("llm = 3", "must be a table"),
        ('[llm]\napi_key = "sk-in-a-file"', "keys belong in the environment"),
        ("[llm]\nsample = 3", "did you mean samples"),
        ("[llm]\nnonsense = 3", "known are"),
        ("[llm]\nsamples = 2.5", "a whole number"),
        ("[llm]\nsamples = true", "a whole number"),
        ("[llm]\ntimeout = 'long'", "a number"),
        ("[llm]\nsamples = 0", "1 or more"),
        ("[llm]\ntimeout = nan", "positive number of seconds"),
        ("[llm]\npatience = inf", "positive number of seconds"),
        ("[llm]\ntemperature = 3", "0 to 2"),
        ("[llm]\ncache = 3", "a folder"),
        ("[llm]\nprice = 3", "a table"),
        ("[llm.price]\ninput = 1", "a table with input, output"),
        ("[llm.price]\ninput = -1\noutput = 1", "0 or more"),
    ],
)
def test_a_wrong_file(write, text, words):
    with pytest.raises(PresageError, match=words) as caught:
        read(write(text), ENVIRONMENT)
    assert "sk-in-a-file" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(PresageError, match="cannot read"):
        read(tmp_path / "none.toml", ENVIRONMENT)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://h/v1", "http://", "https://u:secret@h/v1", "http://h/v1?k=secret"]
)
def test_a_wrong_address(url):
    with pytest.raises(PresageError) as caught:
        Settings(base_url=url)
    assert "secret" not in str(caught.value)
