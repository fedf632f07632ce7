"""The client of an endpoint: retries within limits, cost accounting, and a cache so that no answer is paid twice."""

from __future__ import annotations

import email.utils
import json
import math
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from presage.core.errors import PresageError, install
from presage.llm.answers import Answer, kept_answer, read_answers, to_keep
from presage.llm.cache import Cache, digest
from presage.llm.cost import Allowance, Bound, Claim, NotCoveredError, Usage
from presage.llm.settings import Settings

Message = Mapping[str, str]
FORMATS = ("json_schema", "json_object", "text")
"""The ways to ask for a structured answer, the strictest first."""

_LARGEST = 8 << 20
_LISTING = 15.0
"""Seconds that listing the models may take."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_OTHER_LIMIT = "max_completion_tokens"
"""Another name of max_tokens. Some endpoints mention it when they refuse max_tokens."""
_PASSES = (408, 409, 425, 429)
_BUSY = (501, 503, 529)
_REQUEST_TIMEOUT = 408
_TEMPLATE = 512
"""Tokens that an endpoint may add to a question: separators between messages, or its own system prompt."""
_LEAST_SHARE = 8
"""An answer limited to less than 1/8 of the length in the settings is not worth the price of its prompt."""
_T = TypeVar("_T")


class NoAnswerError(Exception):
    """This question got no answer; another question may get one. The message says what happened."""

    def __init__(self, message: str, may_pass: bool = False) -> None:
        """may_pass: whether the cause may be passing, such as an endpoint that is busy."""
        super().__init__(message)
        self.may_pass = may_pass


class RefusedError(PresageError):
    """The endpoint refuses all questions: the key, model or address is wrong, or the account is empty."""


@dataclass(frozen=True)
class Manner:
    """The request parameters that this endpoint supports, learned from the requests that it refuses."""

    format: str = FORMATS[0]
    several: bool = True
    """Whether one request may ask for n > 1 samples."""
    token_limit: str = "max_tokens"
    temperature: bool = True

    def concede(self, complaint: str, asked: Mapping[str, Any]) -> Manner | None:
        """A simpler manner after the endpoint refused a request with this message, or None if there is none."""
        words = complaint.lower()
        if "context" in words and "response_format" not in words:  # the question is too long in every manner
            return None
        if _OTHER_LIMIT in words and self.token_limit != _OTHER_LIMIT:
            return replace(self, token_limit=_OTHER_LIMIT)
        if "temperature" in words and "temperature" in asked:
            return replace(self, temperature=False)
        if "n" in asked and "response_format" not in words and "schema" not in words:
            return replace(self, several=False)
        if "response_format" in asked:
            return replace(self, format=FORMATS[FORMATS.index(self.format) + 1])
        return None


class Client:
    """Asks one endpoint. It can be shared between threads."""

    def __init__(
        self,
        settings: Settings,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._sleep, self._clock = sleep, clock
        self._cache = Cache(settings.cache)
        self._lock = threading.Lock()
        self._spent = Usage()
        self._kept = 0
        self._failing = self._reached = False
        self._first = threading.Lock()
        self._is_priced = False
        """Whether an answer has arrived, so that it is known which costs the endpoint reports."""
        self._overrun = 1.0
        self.complaint = ""
        """What is wrong with the costs that the endpoint reports; empty if nothing is."""
        self.manner = Manner()
        self._openai = _import_openai()
        self._api = self._openai.OpenAI(
            base_url=settings.base_url, api_key=settings.api_key or "none", max_retries=0, timeout=settings.timeout
        )

    @property
    def spent(self) -> Usage:
        """The cost of all questions so far."""
        return self._spent

    @property
    def dollars(self) -> float | None:
        """The same in dollars; None if the settings have no price."""
        return self.settings.price.dollars(self._spent) if self.settings.price else None

    @property
    def kept_answers(self) -> int:
        """How many answers came from the cache."""
        return self._kept

    def close(self) -> None:
        self._api.close()

    # -- asking -------------------------------------------------------------------------------------------------------

    def ask(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        samples: int = 1,
        seconds: float = math.inf,
        allowance: Allowance | None = None,
        likeliest: int = 0,
    ) -> list[Answer]:
        """Up to `samples` answers to one question, cached ones first. The timeout is the smaller of `seconds` and the
        settings' patience. likeliest: if above 0, ask for one token and the log-probabilities of this many tokens.

        Raises NoAnswerError or RefusedError. Returns fewer answers if the endpoint stops answering or the allowance
        runs out. All complete answers are cached, including unusable ones, because they were paid for.
        """
        chosen = self.settings
        question = {
            "base_url": chosen.base_url,
            "model": chosen.model,
            "temperature": chosen.temperature,
            "max_tokens": chosen.max_tokens,
            "messages": [dict(message) for message in messages],
            "schema": dict(schema) if schema else None,
        }
        if likeliest:
            question |= {"temperature": 1.0, "max_tokens": 1, "likeliest": likeliest}
        patience = max(0.0, min(chosen.patience, seconds))
        deadline = self._clock() + patience
        allowance = allowance or Allowance()
        if allowance.in_dollars:
            chosen.check_priced()
        with self._cache.holding(digest(question), patience, self._sleep) as entry:
            answers = [kept_answer(item) for item in entry.read()][:samples]
            with self._lock:
                self._kept += len(answers)
            while len(answers) < samples:
                try:
                    answers += self._request(messages, schema, samples - len(answers), deadline, allowance, likeliest)
                except NoAnswerError:
                    if not answers:
                        raise
                    break
                entry.write([to_keep(answer) for answer in answers if not answer.is_cut])
        return answers[:samples]

    def ask_once(self, messages: Sequence[Message], tokens: int, **extra: Any) -> list[Answer]:
        """One request exactly as given, without the cache and without a retry. Raises NoAnswerError or RefusedError."""
        asked = {"model": self.settings.model, "messages": list(messages), self.manner.token_limit: tokens, **extra}
        claim = Allowance().reserve(self._bound(asked, tokens, 1))
        try:
            return read_answers(self._post(asked, self.settings.timeout, claim))
        except (_TroubleError, _ComplaintError) as error:
            if _OTHER_LIMIT in str(error) and _OTHER_LIMIT not in asked:
                self.manner = replace(self.manner, token_limit=_OTHER_LIMIT)
                return self.ask_once(messages, tokens, **extra)
            raise NoAnswerError(self._say(str(error)), isinstance(error, _TroubleError)) from None

    def list_models(self) -> list[str]:
        """The models that the endpoint lists; this is free. Raises NoAnswerError or RefusedError."""
        listing = self._api.models.with_streaming_response.list
        seconds = min(self.settings.timeout, _LISTING)
        try:
            body = self._attempt(lambda: listing(timeout=seconds), seconds)
        except (_TroubleError, _ComplaintError) as error:
            raise NoAnswerError(self._say(str(error))) from None
        data = body.get("data")
        return [str(item.get("id")) for item in data if isinstance(item, dict)] if isinstance(data, list) else []

    def for_model(self, model: str) -> Client:
        """This endpoint with another model."""
        if model == self.settings.model:
            return self
        return Client(replace(self.settings, model=model), self._sleep, self._clock)

    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        wanted: int,
        deadline: float,
        allowance: Allowance,
        likeliest: int,
    ) -> list[Answer]:
        """One or more answers from one request, in the best manner that the endpoint supports."""
        if allowance.is_limited and not self._is_priced:
            with self._first:  # ask one question first: its reported cost limits the bounds of the others
                if not self._is_priced:
                    return self._politely(messages, schema, 1, deadline, allowance, likeliest)
        return self._politely(messages, schema, wanted, deadline, allowance, likeliest)

    def _politely(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        wanted: int,
        deadline: float,
        allowance: Allowance,
        likeliest: int,
    ) -> list[Answer]:
        manner = self.manner
        asked: dict[str, Any] = {}

        def attempt(seconds: float) -> list[Answer]:
            nonlocal asked
            longest = 1 if likeliest else self.settings.max_tokens
            asked = _parameters(self.settings, manner, messages, schema, wanted, longest, likeliest)
            claim = allowance.reserve(self._bound(asked, longest, asked.get("n", 1)), seconds)
            bound = claim.bound
            asked = _parameters(self.settings, manner, messages, schema, bound.samples, bound.answer, likeliest)
            found = read_answers(self._post(asked, seconds, claim))
            return [replace(each, is_cut=claim.is_cut and each.finish == "length") for each in found]

        while True:
            try:
                answers = self._persist(attempt, deadline)
            except NotCoveredError as error:
                raise NoAnswerError(str(error)) from None
            except _ComplaintError as complaint:
                humbler = manner.concede(str(complaint), asked)
                if humbler is None:
                    raise NoAnswerError(self._say(f"refused the request: {complaint}")) from None
                manner = humbler
                continue
            self.manner, self._is_priced = manner, True
            return answers

    def _bound(self, asked: Mapping[str, Any], answer: int, samples: int) -> Bound:
        """The most that a request can cost. A text never has more tokens than bytes. The serialised request contains
        all of the text; its escape characters only make the bound larger."""
        text = json.dumps(asked, ensure_ascii=False).encode(errors="surrogatepass")
        least = max(1, answer // _LEAST_SHARE)
        return Bound(len(text) + _TEMPLATE, answer, least, samples, self.settings.price, self._overrun)

    def _persist(self, attempt: Callable[[float], _T], deadline: float) -> _T:
        """Retry until the attempt succeeds or the deadline has passed, with exponential backoff, or longer waits if the
        endpoint asks for them."""
        wait = _FIRST_WAIT
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise NoAnswerError(self._say("gave no answer in time"))
            try:
                answer = attempt(min(self.settings.timeout, left))
                self._failing, self._reached = False, True
                return answer
            except _TroubleError as trouble:
                pause = max(wait * random.uniform(0.75, 1.25), trouble.retry_after)
                self._reached |= trouble.reached
                # If the endpoint failed the last question, this question gets one attempt without retries. There is
                # also no retry if it was never reached: its address is more likely misspelt than about to start.
                if self._failing or not self._reached or self._clock() + pause >= deadline:
                    self._failing = True
                    asks = f"; it asks to wait {trouble.retry_after:g} s" if trouble.retry_after > 0 else ""
                    raise NoAnswerError(self._say(f"{trouble}{asks}")) from None
                self._sleep(pause)
                wait = min(2 * wait, _LONGEST_WAIT)

    def _say(self, what: str) -> str:
        return self.settings.redact(f"{self.settings.base_url} {what}")

    # -- one request --------------------------------------------------------------------------------------------------

    def _post(self, asked: Mapping[str, Any], seconds: float, claim: Claim) -> dict[str, Any]:
        """One attempt. Raises _TroubleError if a retry may help, else _ComplaintError or RefusedError."""
        create = self._api.chat.completions.with_streaming_response.create
        return self._attempt(lambda: create(**asked, timeout=seconds), seconds, claim)

    def _attempt(self, opens: Callable[[], Any], seconds: float, claim: Claim | None = None) -> dict[str, Any]:
        """The JSON body of the response. A request with a claim is paid; its response must contain an answer."""
        body: Any = None
        failed = is_used = True
        try:
            body = _loaded(self.settings.redact(self._fetch(opens, seconds)))
            if not isinstance(body, dict):
                raise _TroubleError("answered with something that is not a JSON object")
            if claim and not read_answers(body):
                raise _TroubleError("answered without any choices")
            failed = False
            return body
        except self._openai.APIStatusError as error:
            is_used = not _turns_away(error.status_code)
            body = _loaded(error.response.text)
            text = self.settings.redact(_error_text(body, error.response.text))
            raise self._judge(error.status_code, error.code, text, _retry_after(error.response.headers)) from None
        except _TroubleError as trouble:
            is_used = trouble.is_sent
            raise
        finally:
            if claim:
                self._count(claim, Usage.of_attempt(body, failed), is_used)

    def _count(self, claim: Claim, spent: Usage, is_used: bool) -> None:
        complaint = claim.settle(spent, is_used)
        with self._lock:
            self._spent += spent
            if complaint:
                told = (spent.input_tokens + spent.output_tokens) * self._overrun / claim.bound.tokens
                self._overrun = max(self._overrun, told)
                self.complaint = self._say(f"{complaint}; it counts otherwise, or does not keep to max_tokens")

    def _fetch(self, opens: Callable[[], Any], seconds: float) -> str:
        """The body of the response. The timeout in seconds limits the whole response, even a slow stream."""
        import httpx2

        limit = time.monotonic() + seconds

        def read() -> str:
            chunks, size = [], 0
            with opens() as response:
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _LARGEST:
                        raise _TroubleError(f"sent more than {_LARGEST >> 20} MiB")
                    if time.monotonic() > limit:
                        raise _TroubleError(f"gave no complete answer in {seconds:.3g} s")
            return b"".join(chunks).decode(errors="replace")

        try:
            return _within(seconds, read)
        except (TimeoutError, self._openai.APITimeoutError, httpx2.TimeoutException):
            raise _TroubleError(f"gave no complete answer in {seconds:.3g} s") from None
        except self._openai.APIConnectionError as error:
            is_sent = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise _TroubleError(f"cannot be reached: {_cause(error)}", reached=False, is_sent=is_sent) from None
        except httpx2.HTTPError as error:
            raise _TroubleError(f"cut the connection: {type(error).__name__}") from None

    def _judge(self, status: int, code: object, text: str, retry_after: float) -> Exception:
        if code == "insufficient_quota":
            return RefusedError(self._say(f"says that the account is used up: {text}"))
        if status in _PASSES or (status >= 500 and status != 501):
            return _TroubleError(f"answered {status}: {text}", retry_after)
        if status in (401, 403):
            return RefusedError(self._say(f"refuses the key ({status}): {text}; set PRESAGE_LLM_API_KEY"))
        if status == 404:
            return RefusedError(self._say(f"has no such model or address (404): {text}; see 'presage llm check'"))
        return _ComplaintError(f"{status}: {text}")


class _TroubleError(Exception):
    """An error that a retry may fix."""

    def __init__(self, what: str, retry_after: float = 0.0, reached: bool = True, is_sent: bool = True) -> None:
        """is_sent: whether the endpoint may have processed the request, and may charge for it."""
        super().__init__(what)
        self.retry_after, self.reached, self.is_sent = retry_after, reached, is_sent


class _ComplaintError(Exception):
    """The endpoint does not accept something in the request."""


def _import_openai() -> Any:
    try:
        import openai
    except ImportError as error:
        raise PresageError(f"asking a language model needs the openai package; {install('llm')}") from error
    return openai


def _parameters(
    settings: Settings,
    manner: Manner,
    messages: Sequence[Message],
    schema: Mapping[str, Any] | None,
    wanted: int,
    max_tokens: int,
    likeliest: int,
) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": settings.model, "messages": list(messages), manner.token_limit: max_tokens}
    if manner.temperature:
        asked["temperature"] = 1.0 if likeliest else settings.temperature
    if manner.several and wanted > 1:
        asked["n"] = wanted
    if likeliest:
        asked |= {"logprobs": True, "top_logprobs": likeliest}
    if schema and manner.format == "json_schema":
        named = {"name": "answer", "strict": True, "schema": dict(schema)}
        asked["response_format"] = {"type": "json_schema", "json_schema": named}
    elif schema and manner.format == "json_object":
        asked["response_format"] = {"type": "json_object"}
    return asked


def _turns_away(status: int) -> bool:
    """Whether this status means that the request was not processed: the endpoint refused it or was too busy. After a
    failure or timeout of a gateway, a server behind it may have processed the request."""
    return status in _BUSY or (400 <= status < 500 and status != _REQUEST_TIMEOUT)


def _loaded(text: str) -> Any:
    """The JSON in a body, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error_text(body: Any, text: str) -> str:
    """The endpoint's error message, as one short line."""
    inner = body.get("error", body) if isinstance(body, dict) else text
    said = inner.get("message", text) if isinstance(inner, dict) else inner
    line = " ".join("".join(c if c.isprintable() else " " for c in str(said)[:2000]).split())
    return line if len(line) <= 300 else f"{line[:300]}…"


def _cause(error: BaseException) -> str:
    inner = error.__cause__ or error
    return str(inner) or type(inner).__name__


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds to wait from the headers, which give milliseconds, seconds or a date; 0 if they do not."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """Run `work` in a thread and return its result. Raises TimeoutError after this many seconds. The library's timeouts
    are per read, so a slow stream never reaches them. An abandoned thread ends at the next bytes that it reads."""
    done: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not done:
        raise TimeoutError
    return done[0]
