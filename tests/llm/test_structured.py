"""The JSON object in what a model wrote."""

from __future__ import annotations

import pytest

from presage.llm.structured import MalformedError, find_object


@pytest.mark.parametrize(
    "text",
    [
        '{"p": 1}',
        ' \n{"p": 1}\n',
        '```json\n{"p": 1}\n```',
        'Let me think {about it}. {"p": 1} is my answer.',
        '{"p": 3} was a draft; {"p": 1}',
        '{"other": {"p": 2}} {"p": 1}',
        '<think>{"p": 5,</think>{"p": 1}',
    ],
)
def test_found(text):
    assert find_object(text, ["p"]) == {"p": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no complete JSON object"),
        ("none", "no complete JSON object"),
        ('{"p": 0.', "no complete JSON object"),
        ("[1]", "no complete JSON object"),
        ('{"p": NaN}', "no complete JSON object"),
        ('{"q": 1}', "lacks p"),
        ("{" * 5000, "no complete JSON object"),
        ('{"a":' * 5000, "no complete JSON object"),
        ("x" * 300_000, "one short JSON object"),
    ],
)
def test_not_found(text, words):
    with pytest.raises(MalformedError, match=words):
        find_object(text, ["p"])
