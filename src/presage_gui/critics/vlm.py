"""The `vlm` critic: asks an OpenAI-compatible endpoint that takes images. If a request fails, a person decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from presage.core.recalibration import Online
from presage.core.text import one_line
from presage.llm.client import Client, Message, NoAnswerError
from presage.llm.settings import Settings, read
from presage.llm.structured import MalformedError
from presage_gui.action import ActionError, Kind
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.critics.vlm_prompt import SCHEMA, Opinion, messages, parse, pooled
from presage_gui.critics.vlm_readout import VlmReadOut
from presage_gui.critics.wording import is_committing
from presage_gui.history import History
from presage_gui.screen import Screen
from presage_gui.step import Step

_NO_WORDS = "the vision model doubts this step; it was trained to give a number and no reason"


class Vlm(Critic):
    """Asks a vision model. The settings come from environment variables, as for the `llm` forecaster:
    PRESAGE_LLM_BASE_URL, PRESAGE_LLM_MODEL and so on. `model` and `samples` override them. Answers are cached, so that
    no question is paid for twice. If `model` is an output folder of `presage train llm`, that model is read out on
    this machine."""

    def __init__(self, model: str | None = None, samples: int | None = None, settings: Settings | None = None) -> None:
        self._read_out = VlmReadOut(model) if model and VlmReadOut.is_folder(model) else None
        self._client = None if self._read_out else Client(settings or read(model=model, samples=samples))
        self._online = Online()

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        try:
            action = step.action.on(screen.size)
        except ActionError as error:
            return Verdict(0.005, ErrorClass.MALFORMED, str(error))
        mode = "spoken" if self._client else "readout"
        asked = messages(goal, history, screen, Step(action, step.intent), mode)
        if self._client is None:
            return self._read(asked, step)
        try:
            answers = self._client.ask(cast(list[Message], asked), SCHEMA, self._client.settings.samples)
        except NoAnswerError as error:
            return _failed(f"the vision model gave no answer: {error}")
        opinions: list[Opinion] = []
        wrong = ""
        for answer in answers:
            try:
                opinions.append(parse(answer.text))
            except MalformedError as error:
                wrong = f"refused: {answer.refusal}" if answer.refusal else str(error)
        if not opinions:
            return _failed(f"the vision model's answer cannot be used: {wrong[:200]}")
        return self._verdict(pooled(opinions), step)

    def _read(self, asked: list[dict[str, Any]], step: Step) -> Verdict:
        """Ask the read-out model. Its answer gives neither an error class nor whether the step is irreversible.

        A step without an intent therefore counts as irreversible."""
        assert self._read_out is not None
        try:
            opinion = Opinion(self._read_out(asked), None, "", _NO_WORDS, irreversible=not step.intent)
        except RuntimeError as error:  # includes torch's out-of-memory error
            return _failed(f"the vision model failed: {one_line(str(error), 200)}")
        return replace(self._verdict(opinion, step), error=None)

    def observe(self, verdict: Verdict, good: bool) -> None:
        if "raw" in verdict.evidence:
            self._online.observe(verdict.evidence["raw"], good)

    def close(self) -> None:
        if self._client:
            self._client.close()

    def _verdict(self, opinion: Opinion, step: Step) -> Verdict:
        probability = self._online(opinion.probability)
        doubted = probability < 0.5
        return Verdict(
            probability,
            (opinion.error or ErrorClass.MEANING) if doubted else None,
            opinion.rule if doubted else "",
            opinion.expected,
            irreversible=opinion.irreversible or _says_so(step),
            evidence={"raw": opinion.probability},
        )


def _says_so(step: Step) -> bool:
    """Whether the intent itself speaks of paying, sending, deleting or submitting, independently of the model."""
    return step.action.kind in (Kind.CLICK, Kind.DOUBLE, Kind.KEY) and any(map(is_committing, step.intent.split()))


def _failed(why: str) -> Verdict:
    return Verdict(0.5, None, why, failed=True)
