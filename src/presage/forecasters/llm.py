"""The `llm` forecaster: asks a language model, which answers spoken or is read out.

A spoken answer is a JSON object with probabilities; the model is asked several times, and its answers are averaged. A
model that is read out would answer with a digit, and its probabilities of the digits are the forecast. That takes one
short request; a model on this machine answers hundreds of questions per second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from presage.core import scale
from presage.core.forecast import Forecast
from presage.core.text import one_line, printable
from presage.forecasters import llm_question
from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.llm_prompt import messages
from presage.forecasters.llm_readout import INVALID, NOT_A_DIGIT, LocalReadOut
from presage.llm.anonymise import Unreadable
from presage.llm.answers import Answer
from presage.llm.client import Client, Message, NoAnswerError
from presage.llm.cost import Allowance, Cost
from presage.llm.probe import LEAST_LIKELIEST, LIKELIEST
from presage.llm.settings import Settings, read
from presage.llm.structured import MalformedError, find_object
from presage.problems import registry
from presage.static import hardware

_LONGEST_REASON = 300
_LONGEST_QUOTE = 2000


@dataclass(frozen=True)
class ParsedAnswer:
    """One usable answer."""

    forecast: Forecast
    reason: str


class LlmForecaster(Forecaster):
    """Asks a language model, at an endpoint or on this machine. `client.spent` has the cost; see `presage.llm`."""

    is_paid = True
    client: Client

    def __init__(self, client: Client | Settings | None = None, model: str = "") -> None:
        """client: the endpoint; by default that of the environment. model: use the model in this folder instead, which
        `presage train llm` trained to be read out; it is loaded at the first question."""
        self._local = LocalReadOut(model) if model else None
        self.is_paid = not model
        if not model:
            self.client = client if isinstance(client, Client) else Client(client or read())
        self._cost = Cost()
        self._until = math.inf
        self._open = Allowance()

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        if self._local:
            return self._local.forecast(task, candidates)
        self._until = time.monotonic() + self.seconds
        self._open = self.allowance or Allowance()
        before = self._open.tokens_spent, self._open.dollars_spent
        said = llm_question.advice(self._adviser, task, candidates)
        with ThreadPoolExecutor(self.client.settings.concurrency) as pool:
            asked = zip(candidates, said, strict=True)
            waiting = [pool.submit(self._forecast_one, task, candidate, each) for candidate, each in asked]
            try:
                return [one.result() for one in waiting]
            finally:
                pool.shutdown(cancel_futures=True)  # waits for running requests, because they cost, too
                self._cost = Cost(self._open.tokens_spent - before[0], self._open.dollars_spent - before[1])

    @cached_property
    def _adviser(self) -> LearnedForecaster | None:
        settings = self.client.settings
        return LearnedForecaster() if settings.advised and settings.asks_compact else None

    def spent(self) -> Cost:
        return self._cost

    def check_priced(self) -> None:
        if not self._local:
            self.client.settings.check_priced()

    def close(self) -> None:
        if not self._local:
            self.client.close()

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _forecast_one(self, task: Task, candidate: Candidate, said: Forecast | None) -> Prediction:
        settings = self.client.settings
        try:
            if settings.asks_compact:
                question = llm_question.messages(task, candidate, settings.mode, said)
            else:
                question = messages(task, candidate)
            if settings.mode == "readout":
                return self._read_out(question, said)
        except Unreadable as problem:
            return Prediction(INVALID, (f"{problem}, so the model was not asked",))
        except NoAnswerError as error:
            return Prediction(None, (f"no forecast: {error}",))
        try:
            wanted = self.client.settings.samples
            answers = self.client.ask(question, scale.answer_schema(), wanted, self._left(), self._open)
        except NoAnswerError as error:
            return Prediction(None, (f"no forecast: {error}",))
        samples: list[ParsedAnswer] = []
        notes = [self.client.complaint] if self.client.complaint else []
        for answer in answers:
            try:
                samples.append(self._usable(question, answer))
            except MalformedError as error:
                notes.append(f"an answer could not be used: {error}")
        if not samples:
            return Prediction(None, ("no forecast", *dict.fromkeys(notes)))
        told = [f"from {len(samples)} of {self.client.settings.samples} samples"]
        return Prediction(average([s.forecast for s in samples]), (*told, *dict.fromkeys(notes), *_reasons(samples)))

    def _read_out(self, question: Sequence[Message], said: Forecast | None) -> Prediction:
        (answer,) = self.client.ask(question, None, 1, self._left(), self._open, LIKELIEST)
        notes = [self.client.complaint] if self.client.complaint else []
        if not answer.likeliest:
            told = "the endpoint tells no log-probabilities, so that nothing can be read out; see 'presage llm check'"
            return Prediction(None, (f"no forecast: {told}", *notes))
        forecast = llm_question.from_likeliest(answer.likeliest, self.client.settings.readout_temperature, said)
        few = len(answer.likeliest) < LEAST_LIKELIEST
        how = f"read out of {len(answer.likeliest)} tokens alone, which tells little" if few else "read out"
        return Prediction(forecast, (NOT_A_DIGIT if forecast is None else how, *notes))

    def _usable(self, question: Sequence[Message], answer: Answer) -> ParsedAnswer:
        """The parsed answer. If it cannot be parsed, the model is told why and asked once more."""
        try:
            return parse(answer)
        except MalformedError as error:
            again = [*question, *_correction(answer, str(error))]
        try:
            (second,) = self.client.ask(again, scale.answer_schema(), 1, self._left(), self._open)
        except NoAnswerError as error:
            raise MalformedError(f"asking again brought nothing: {error}") from error
        return parse(second)


def parse(answer: Answer) -> ParsedAnswer:
    """One answer as a forecast, renormalised. Raises a MalformedError that tells the model the mistake.

    >>> text = '{"reason": "", "p1": 0, "p2": 0, "p3": 0, "p4": 1, "p5": 1, "p6": 0, "p7": 0, "p8": 0, "p_fail": 0.1}'
    >>> parse(Answer(text)).forecast.raw_sum
    2.0
    """
    if answer.refusal or answer.finish == "content_filter":
        raise MalformedError("the model refused to answer; this is a harmless question about program speed")
    keys = (*scale.KEYS, "p_fail")
    try:
        found = find_object(answer.text, keys)
    except MalformedError as error:
        if answer.finish == "length":
            raise MalformedError("the answer was cut off before its end; be brief") from error
        raise
    numbers = [_number(key, found[key]) for key in keys]
    if not 0 < (total := sum(numbers[:-1])) < math.inf:
        raise MalformedError(f"the probabilities of the ranges sum to {total:g}; they must sum to 1")
    if numbers[-1] > 1:
        raise MalformedError(f"p_fail is {numbers[-1]:g}; it must lie from 0 to 1")
    return ParsedAnswer(Forecast.from_bins(numbers[:-1], numbers[-1]), _plain(found.get("reason")))


def average(forecasts: Sequence[Forecast]) -> Forecast:
    """The mean of the bins, of p_fail and of the raw sums. Each sample counts the same, whatever its raw sum."""
    bins = np.mean([forecast.bin_probabilities() for forecast in forecasts], axis=0)
    p_fail = float(np.clip(np.mean([forecast.p_fail for forecast in forecasts]), 0, 1))
    raw_sum = float(np.mean([forecast.raw_sum for forecast in forecasts]))
    return replace(Forecast.from_bins(np.clip(bins, 0, None), p_fail), raw_sum=raw_sum)


def sample_question() -> tuple[Task, Candidate]:
    """A small question for a test of an endpoint: the candidate is a copy of the anchor, so S is about 1."""
    problem = registry.get("vector_add")
    gpu = hardware.find("h200")
    kernel = next(kernel for kernel in registry.seed_kernels(problem, "cuda")).render()
    floor = {case.name: problem.bytes(case) / (gpu.bandwidth or 1e12) * 1e9 for case in problem.timed["gpu"]}
    anchor = Measured(kernel, times_ns={name: 1.2 * time for name, time in floor.items()})
    return Task(problem, anchor, gpu), Candidate(kernel)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(f"{key} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise MalformedError(f"{key} is {number:g}; a probability lies from 0 to 1")
    return number


def _correction(answer: Answer, wrong: str) -> list[dict[str, str]]:
    said = printable(answer.text[:_LONGEST_QUOTE] or answer.refusal[:_LONGEST_QUOTE] or "(nothing)")
    mend = f"This could not be used: {wrong}. Answer again, with only the JSON object and all its fields."
    return [{"role": "assistant", "content": said}, {"role": "user", "content": mend}]


def _plain(reason: Any) -> str:
    """The reason as one short line without control characters, which is safe to print on a terminal."""
    text = reason if isinstance(reason, str) else ""
    return one_line(text, _LONGEST_REASON)


def _reasons(samples: Sequence[ParsedAnswer]) -> list[str]:
    return [f"reason: {reason}" for reason in dict.fromkeys(s.reason for s in samples) if reason]
