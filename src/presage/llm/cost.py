"""The cost of questions in attempts, tokens and dollars, and budgets for it."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from presage.core.errors import PresageError


@dataclass(frozen=True)
class Usage:
    """The cost of attempts, including failed ones. Sums with +.

    >>> (Usage(attempts=1, input_tokens=10) + Usage(attempts=2, failed=1, unmetered=1)).attempts
    3
    """

    attempts: int = 0
    """Requests sent."""
    failed: int = 0
    """Requests without an answer."""
    unmetered: int = 0
    """Requests whose tokens the endpoint did not report, so that their cost is not known."""
    input_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the endpoint had cached. They may have a lower price."""
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))

    @classmethod
    def of_attempt(cls, body: Any, failed: bool) -> Usage:
        """The cost of one attempt, from the `usage` in the response body if there is one."""
        usage = body.get("usage") if isinstance(body, dict) else None
        if not isinstance(usage, dict):
            return cls(attempts=1, failed=int(failed), unmetered=1)
        details = usage.get("prompt_tokens_details")
        return cls(
            attempts=1,
            failed=int(failed),
            input_tokens=_count(usage.get("prompt_tokens")),
            cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
            output_tokens=_count(usage.get("completion_tokens")),
        )


@dataclass(frozen=True)
class Cost:
    """The cost of an answer, over all its requests. Sums with +.

    >>> Cost(10, 0.5) + Cost(tokens=5)
    Cost(tokens=15, dollars=0.5)
    """

    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.tokens + other.tokens, self.dollars + other.dollars)


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """The price of cached input tokens; None: the same as `input`."""

    def dollars(self, spent: Usage) -> float:
        """The cost in dollars, without unmetered attempts.

        >>> Price(input=1.0, output=10.0).dollars(Usage(input_tokens=2000, output_tokens=100))
        0.003
        """
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, spent.input_tokens - spent.cached_tokens)
        return (fresh * self.input + spent.cached_tokens * cached + spent.output_tokens * self.output) / 1e6

    def most(self, input_tokens: float, output_tokens: float) -> float:
        """The most that this many tokens can cost, whether or not they are cached."""
        return (input_tokens * max(self.input, self.cached_input or 0.0) + output_tokens * self.output) / 1e6

    @classmethod
    def read(cls, table: Any, where: str) -> Price:
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(table, Mapping) or not {"input", "output"} <= table.keys() <= set(names):
            raise PresageError(f"{where}: price must be a table with input, output and perhaps cached_input")
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise PresageError(f"{where}: the price of {name} must be dollars per million tokens, 0 or more")
        return cls(**table)


class NotCoveredError(Exception):
    """The rest of a budget does not cover a question. The message has the rest and the possible cost."""


@dataclass(frozen=True)
class Bound:
    """The most that a request can cost: tokens of the prompt and of the answer, for each sample. Some endpoints turn
    each sample into a request and charge for the prompt each time."""

    prompt: int
    answer: int
    """The longest answer to ask for. It is reduced if less of the budget is left."""
    least: int
    """The shortest useful answer."""
    samples: int = 1
    price: Price | None = None
    overrun: float = 1.0
    """The largest ratio of reported to possible tokens so far; at least 1."""

    @property
    def tokens(self) -> int:
        return math.ceil(self.overrun * self.samples * (self.prompt + self.answer))

    @property
    def dollars(self) -> float:
        most = self.price.most(self.samples * self.prompt, self.samples * self.answer) if self.price else 0.0
        return self.overrun * most

    def within(self, tokens: float, dollars: float) -> Bound | None:
        """This request with as many samples as the budget covers, or else with one sample and a shorter answer. None if
        the answer would be shorter than `least`."""
        for samples in range(self.samples, 0, -1):
            fewer = replace(self, samples=samples)
            if fewer.tokens <= tokens and fewer.dollars <= dollars:
                return fewer
        if self.overrun > 1:  # the endpoint may not respect a shorter limit
            return None
        answer = min(tokens - self.prompt, self.answer)
        if self.price and self.price.output and dollars < math.inf:
            answer = min(answer, (dollars - self.price.most(self.prompt, 0)) * 1e6 / self.price.output)
        for shorter in (answer, answer - 1):  # rounding may put the cost just above the budget
            cut = replace(self, samples=1, answer=int(max(shorter, 0.0)))
            if cut.answer >= self.least and cut.tokens <= tokens and cut.dollars <= dollars:
                return cut
        return None


class Allowance:
    """A budget for questions, shared by threads. A request is made only if the rest of the budget covers the most that
    it can cost. This amount is reserved until the real cost is known."""

    def __init__(
        self,
        tokens: float = math.inf,
        dollars: float = math.inf,
        tell: Callable[[int, float], None] = lambda tokens, dollars: None,
    ) -> None:
        """tell: if there is a limit, called before each request with the most that all requests so far may cost."""
        self._tokens, self._dollars, self._tell = tokens, dollars, tell
        self._changed = threading.Condition()
        self._under_way = 0
        self._set_aside = (0, 0.0)
        self.tokens_spent, self.dollars_spent = 0, 0.0
        self.short = ""
        """Why a question was not asked, if the rest of the budget did not cover it."""

    @property
    def in_dollars(self) -> bool:
        return self._dollars < math.inf

    @property
    def is_limited(self) -> bool:
        return self._tokens < math.inf or self._dollars < math.inf

    def reserve(self, bound: Bound, seconds: float = math.inf) -> Claim:
        """Reserve the cost of a request, or of a smaller one. If the budget is short, wait until other requests settle,
        which may turn out cheaper, for at most this many seconds. Raises NotCoveredError."""
        with self._changed:
            self._changed.wait_for(lambda: self._fitting(bound) == bound or not self._under_way, _timeout(seconds))
            fitting = self._fitting(bound)
            if fitting is None:
                told = self._describe_shortage(bound)
                if not self._under_way:
                    self.short = told
                raise NotCoveredError(told)
            tokens, dollars = self._set_aside
            tokens, dollars = tokens + fitting.tokens, dollars + fitting.dollars
            if self.is_limited:
                self._tell(self.tokens_spent + tokens, self.dollars_spent + dollars)
            self._set_aside = tokens, dollars
            self._under_way += 1
            return Claim(self, fitting, fitting.answer < bound.answer)

    def _settle(self, bound: Bound, tokens: int, dollars: float) -> None:
        with self._changed:
            set_aside = self._set_aside
            self._set_aside = set_aside[0] - bound.tokens, max(0.0, set_aside[1] - bound.dollars)
            left_tokens, left_dollars = self._left()
            # A cost above the rest of the budget cannot be refused any more. It is clamped, and ends all questions.
            self.tokens_spent += int(min(tokens, left_tokens))
            self.dollars_spent = min(self._dollars, self.dollars_spent + min(dollars, left_dollars))
            self._under_way -= 1
            self._changed.notify_all()

    def _left(self) -> tuple[float, float]:
        tokens, dollars = self._set_aside
        return (
            max(0.0, self._tokens - self.tokens_spent - tokens),
            max(0.0, self._dollars - self.dollars_spent - dollars),
        )

    def _fitting(self, bound: Bound) -> Bound | None:
        return bound.within(*self._left())

    def _describe_shortage(self, bound: Bound) -> str:
        least = replace(bound, samples=1, answer=bound.least if bound.overrun == 1 else bound.answer)
        tokens, dollars = self._left()
        if least.tokens > tokens:
            return f"{tokens:,.0f} tokens are left, and another question may take {least.tokens:,}"
        return f"${dollars:.4f} are left, and another question may cost ${least.dollars:.4f}"


class Claim:
    """The reservation for one request. It must be settled exactly once."""

    def __init__(self, allowance: Allowance, bound: Bound, is_cut: bool) -> None:
        self._allowance, self.bound, self.is_cut = allowance, bound, is_cut
        """is_cut: the answer may be shorter than the caller wanted."""

    def settle(self, told: Usage, is_used: bool) -> str:
        """Charge the cost that the endpoint reported. Costs that it did not report count with their upper bound, unless
        the request was certainly not processed. Returns a complaint about the report; empty if there is none."""
        bound = self.bound
        if not is_used and not told.input_tokens and not told.output_tokens:
            self._allowance._settle(bound, 0, 0.0)
            return ""
        paid = replace(
            told,
            input_tokens=told.input_tokens or math.ceil(bound.overrun * bound.samples * bound.prompt),
            output_tokens=told.output_tokens or math.ceil(bound.overrun * bound.samples * bound.answer),
        )
        tokens = paid.input_tokens + paid.output_tokens
        self._allowance._settle(bound, tokens, bound.price.dollars(paid) if bound.price else 0.0)
        if tokens <= bound.tokens + 1:
            return ""
        return f"reports {tokens:,} tokens for a request that can take {bound.tokens:,} at most"


def _timeout(seconds: float) -> float | None:
    return None if seconds == math.inf else max(0.0, min(seconds, threading.TIMEOUT_MAX))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
