"""`presage llm check`: test with short questions what an endpoint supports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from presage.core.errors import PresageError
from presage.llm.answers import Answer
from presage.llm.client import FORMATS, Client, NoAnswerError, RefusedError

_QUESTION = [{"role": "user", "content": 'Answer with the JSON object {"number": 7} and nothing else.'}]
_SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
_TOKENS = 200
LIKELIEST = 20
"""The number of likeliest tokens to ask for in a read-out: the most that endpoints allow."""
LEAST_LIKELIEST = 9
"""The least number of returned tokens for a useful read-out."""


@dataclass(frozen=True)
class Ability:
    """Whether the endpoint supports something; None if the test could not show it."""

    works: bool | None
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """The result of the check."""

    reachable: bool
    reason: str = ""
    """Why the endpoint cannot be reached or asked; empty if it can."""
    models: tuple[str, ...] = ()
    model: str = ""
    latency_s: float | None = None
    """Seconds that the first short answer took."""
    abilities: Mapping[str, Ability] | None = None


def check(client: Client, clock: Callable[[], float] = time.monotonic) -> tuple[Findings, Client]:
    """List the models, then ask a few short questions. Also returns the client for the chosen model, which has counted
    the cost.

    Raises PresageError for a wrong key, or if no model is named and the endpoint does not list exactly one.
    """
    try:
        models = tuple(client.list_models())
    except NoAnswerError as error:
        return Findings(False, str(error)), client
    except RefusedError:
        if not client.settings.model:
            raise
        models = ()  # some endpoints list nothing and still answer
    model = _choose(client.settings.model, models)
    client = client.for_model(model)
    probe = _Probe(client, clock)
    if not probe.answers():
        return Findings(True, probe.reason, models, model), client
    abilities = {name: probe.format(name) for name in FORMATS[:2]}
    abilities |= {"n": probe.several(), "logprobs": probe.logprobs(), "readout": probe.readout(), "seed": probe.seed()}
    return Findings(True, "", models, model, probe.latency, abilities), client


def _choose(asked: str, models: tuple[str, ...]) -> str:
    if asked:
        return asked
    if len(models) == 1:
        return models[0]
    listed = ", ".join(models[:20]) or "none"
    raise PresageError(f"which model? Set PRESAGE_LLM_MODEL or give --model; the endpoint lists: {listed}")


class _Probe:
    """Short questions, each asked once."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self.latency: float | None = None
        self.reason = ""
        self._may_pass = False

    def _ask(self, tokens: int | None = None, **extra: Any) -> list[Answer] | None:
        """The answers, or None if there were none; `reason` then says why."""
        start = self._clock()
        try:
            answers = self._client.ask_once(_QUESTION, tokens or _TOKENS, **extra)
        except NoAnswerError as error:
            self.reason, self._may_pass = str(error), error.may_pass
            return None
        if self.latency is None:
            self.latency = self._clock() - start
        return answers

    def _unanswered(self) -> Ability:
        """An endpoint that was too slow or too busy may still support what it was asked for."""
        return Ability(None if self._may_pass else False, self.reason)

    def answers(self) -> bool:
        return self._ask() is not None

    def format(self, name: str) -> Ability:
        named = {"name": "answer", "strict": True, "schema": _SCHEMA}
        wanted = {"type": name} | ({"json_schema": named} if name == "json_schema" else {})
        answers = self._ask(response_format=wanted)
        if answers is None:
            return self._unanswered()
        try:
            number = json.loads(answers[0].text)
        except ValueError:
            if answers[0].finish == "length":
                return Ability(None, f"no answer within {_TOKENS} tokens")
            return Ability(False, "accepted, but the answer is not JSON")
        if not isinstance(number, dict):
            return Ability(False, "accepted, but the answer is no JSON object")
        if name == "json_schema" and not isinstance(number.get("number"), int):
            return Ability(False, "accepted, but the answer does not follow the schema")
        return Ability(True)

    def several(self) -> Ability:
        answers = self._ask(n=2)
        if answers is None:
            return self._unanswered()
        return Ability(len(answers) == 2, "" if len(answers) == 2 else "accepted, but one answer came back")

    def logprobs(self) -> Ability:
        answers = self._ask(logprobs=True)
        if answers is None:
            return self._unanswered()
        there = bool(answers[0].raw.get("logprobs"))
        return Ability(there, "" if there else "accepted, but none came back")

    def readout(self) -> Ability:
        """Whether the endpoint returns the log-probabilities of enough first tokens."""
        answers = self._ask(1, logprobs=True, top_logprobs=LIKELIEST, temperature=1.0)
        if answers is None:
            return self._unanswered()
        told = len(answers[0].likeliest)
        note = f"tells the {told} likeliest tokens" if told else "accepted, but no log-probabilities came back"
        return Ability(told >= LEAST_LIKELIEST, note)

    def seed(self) -> Ability:
        texts = []
        for _ in range(2):
            answers = self._ask(seed=1)
            if answers is None:
                return self._unanswered()
            texts.append(answers[0].text)
        if texts[0] != texts[1]:
            return Ability(False, "accepted, but two answers with one seed differ")
        return Ability(True, "two answers with one seed are equal")


def describe(findings: Findings) -> dict[str, Any]:
    """The findings as a JSON document."""
    abilities = findings.abilities
    return {
        "reachable": findings.reachable,
        "reason": findings.reason,
        "models": list(findings.models),
        "model": findings.model,
        "latency_s": findings.latency_s,
        "abilities": abilities and {name: {"works": a.works, "note": a.note} for name, a in abilities.items()},
    }
