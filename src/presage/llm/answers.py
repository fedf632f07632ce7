"""Answers of an endpoint: read them from its responses, and convert them to and from cache entries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_ROUNDING = 0.02
"""How far probabilities that an endpoint has rounded may sum to more than 1."""


@dataclass(frozen=True)
class Answer:
    """One sample of a model's answer."""

    text: str
    finish: str = "stop"
    """Why the answer ended: `stop`, `length` if it was cut off, or `content_filter`."""
    refusal: str = ""
    """The text of the model's refusal, if the endpoint reports it."""
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The choice as the endpoint sent it; empty for an answer from the cache."""
    likeliest: Mapping[str, float] = field(default_factory=dict)
    """The likeliest first tokens with their log-probabilities, if they were asked for."""
    is_cut: bool = field(default=False, compare=False)
    """Whether the answer was cut short because little of a budget was left. Such an answer is not cached."""


def read_answers(body: Mapping[str, Any]) -> list[Answer]:
    """The samples in a response. Fields that are missing or of the wrong type become empty; the caller handles that."""
    choices = body.get("choices")
    found = []
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            text, refusal, finish = message.get("content"), message.get("refusal"), choice.get("finish_reason")
            told = _text(text), _text(finish) or "stop", _text(refusal), choice
            found.append(Answer(*told, likeliest=_likeliest(choice.get("logprobs"))))
    return found


def to_keep(answer: Answer) -> dict[str, Any]:
    kept: dict[str, Any] = {"text": answer.text, "finish": answer.finish, "refusal": answer.refusal}
    return kept | ({"likeliest": dict(answer.likeliest)} if answer.likeliest else {})


def kept_answer(item: Mapping[str, Any]) -> Answer:
    said = _text(item.get("text")), _text(item.get("finish")), _text(item.get("refusal"))
    likeliest = item.get("likeliest")
    return Answer(*said, likeliest=_logarithms(likeliest.items()) if isinstance(likeliest, dict) else {})


def _likeliest(logprobs: Any) -> dict[str, float]:
    """The likeliest tokens at the first position; none if their numbers cannot be log-probabilities. Tokens with the
    same text are merged: their probabilities add up."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else {}
    listed = first.get("top_logprobs")
    tokens = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    found = _logarithms((each.get("token"), each.get("logprob")) for each in tokens)
    return found if sum(map(math.exp, found.values())) <= 1 + _ROUNDING else {}


def _logarithms(pairs: Any) -> dict[str, float]:
    p: dict[str, float] = {}
    for token, value in pairs:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(token, str) and is_number and value == value:  # not NaN
            p[token] = p.get(token, 0.0) + math.exp(max(-700.0, min(value, 1.0)))
    return {token: math.log(each) for token, each in p.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
