"""An OpenAI-compatible server for open weights on this machine, so that a trained model can be asked like any other:
chat completions, with the log-probabilities of the likeliest tokens.

Requests for one token (read-outs) are batched: all that are waiting are answered together, and before others. Other
requests are answered one after the other. A request whose client has disconnected is dropped. By default the server
listens on localhost only.
"""

from __future__ import annotations

import json
import queue
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from presage.core.errors import PresageError
from presage.llm.prompts import prompt_ids
from presage.llm.readout import BATCH_TOKENS, by_length, last_logits
from presage.llm.weights import Weights, import_libraries

_LARGEST = 8 << 20
_MOST_LIKELIEST = 20
_MOST_ANSWERS = 64
_MOST_STOPS = 4
_DEFAULT_TOKENS = 512
_MOST_TOGETHER = 512
_LOOK_SECONDS = 0.2
"""How often the server looks whether a client that waits is still there."""
_CLOSING = "the server is closing"
_COLDEST = 0.001
"""Temperatures below are taken for 0: logits that are divided by them overflow."""
_UNSUPPORTED: Mapping[str, Sequence[Any]] = {
    "stream": (False,),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "functions": ([],),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
}
"""Settings that would change the answer, with the values, besides null, that change nothing."""


class _RefusedError(Exception):
    """The request cannot be answered. The message says why."""


class _GoneError(Exception):
    """The client has disconnected."""


@dataclass(frozen=True)
class _Asked:
    """One validated request."""

    prompt: list[int]
    max_tokens: int
    temperature: float
    top_p: float
    stop: tuple[str, ...]
    likeliest: int
    answers: int
    seed: int | None
    tells: bool
    """Whether log-probabilities are asked for."""

    @property
    def is_short(self) -> bool:
        return self.max_tokens == 1 and self.answers == 1


_Waiting = tuple[_Asked, "Future[dict[str, Any]]"]


class WeightsServer:
    """Serves until it is closed."""

    def __init__(self, weights: Weights, host: str = "127.0.0.1", port: int = 0, context: int = 8192) -> None:
        self._weights, self._context = weights, int(min(context, weights.context))
        self.model = weights.name
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue()
        self._closing = threading.Event()
        try:
            self._server = _Server((host, port), _handler(self))
        except OSError as error:
            raise PresageError(f"cannot serve at {host}:{port}: {error.strerror or error}") from error
        self.base_url = f"http://{host}:{self._server.server_port}/v1"
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._work, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> WeightsServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End at once: an answer that is being written is cut, and its client is told so."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._waiting.put(None)
        self._threads[1].join()

    def wait(self) -> None:
        """Serve until the user stops it."""
        self._threads[0].join()

    # -- asking -------------------------------------------------------------------------------------------------------

    def answer(self, body: Mapping[str, Any], is_gone: Callable[[], bool]) -> dict[str, Any]:
        """The response to a request. Raises _RefusedError, and _GoneError as soon as is_gone() is true."""
        asked = self._check(body)
        waiting: Future[dict[str, Any]] = Future()
        self._waiting.put((asked, waiting))
        while True:
            try:
                return waiting.result(_LOOK_SECONDS)
            except TimeoutError:
                if not waiting.done() and is_gone():
                    waiting.cancel()
                    raise _GoneError from None

    def _check(self, body: Mapping[str, Any]) -> _Asked:
        for name, neutral in _UNSUPPORTED.items():
            if body.get(name) is not None and body[name] not in neutral:
                raise _RefusedError(f"{name} is not supported")
        prompt = prompt_ids(self._weights.tokenizer, _messages(body.get("messages")))
        tells = bool(body.get("logprobs"))
        longest = body.get("max_completion_tokens")
        if longest is None:
            longest = body.get("max_tokens")
        asked = _Asked(
            prompt=prompt,
            max_tokens=_whole(longest, "max_tokens", 1, self._context, min(_DEFAULT_TOKENS, self._context)),
            temperature=_number(body.get("temperature"), "temperature", 0, 2, 1.0),
            top_p=_number(body.get("top_p"), "top_p", 0, 1, 1.0),
            stop=_stops(body.get("stop")),
            likeliest=_whole(body.get("top_logprobs"), "top_logprobs", 0, _MOST_LIKELIEST, 0),
            answers=_whole(body.get("n"), "n", 1, _MOST_ANSWERS, 1),
            seed=None if body.get("seed") is None else _whole(body["seed"], "seed", 0, 2**63 - 1, 0),
            tells=tells,
        )
        if len(prompt) + asked.max_tokens > self._context:
            raise _RefusedError(f"{len(prompt)} tokens and {asked.max_tokens} more exceed the context, {self._context}")
        return asked

    def _work(self) -> None:
        """Answer the requests in the queue: those for one token together, then one of the others, and so on."""
        others: deque[_Waiting] = deque()
        while (arrived := self._arrived(is_patient=not others)) is not None:
            short = [each for each in arrived if each[0].is_short]
            for rows in by_length([len(asked.prompt) for asked, _ in short], BATCH_TOKENS):
                self._settle([short[i] for i in rows], lambda batch: self._one_token([asked for asked, _ in batch]))
            others.extend(each for each in arrived if not each[0].is_short)
            if others:
                self._settle([others.popleft()], lambda batch: [self._generate(*each) for each in batch])
        for _, waiting in others:
            with suppress(InvalidStateError):
                waiting.set_exception(_RefusedError(_CLOSING))

    def _arrived(self, is_patient: bool) -> list[_Waiting] | None:
        """The requests in the queue; None when the server closes. is_patient: wait for one."""
        found: list[_Waiting] = []
        with suppress(queue.Empty):
            while len(found) < _MOST_TOGETHER:
                if (one := self._waiting.get(block=is_patient and not found)) is None:
                    self._waiting.put(None)
                    return found or None
                found.append(one)
        return found

    def _settle(self, batch: Sequence[_Waiting], work: Callable[[Sequence[_Waiting]], list[dict[str, Any]]]) -> None:
        left = [each for each in batch if not each[1].cancelled()]
        try:
            for (_, waiting), found in zip(left, work(left) if left else (), strict=True):
                with suppress(InvalidStateError):  # its client has gone meanwhile
                    waiting.set_result(found)
        except Exception as error:  # one bad request must not end the server
            for _, waiting in left:
                with suppress(InvalidStateError):
                    waiting.set_exception(error)

    def _one_token(self, batch: Sequence[_Asked]) -> list[dict[str, Any]]:
        torch, _ = import_libraries()
        with torch.inference_mode():
            logits = last_logits(self._weights.model, [asked.prompt for asked in batch])[:, 0].float()
        return [
            self._response(asked, [[self._pick(row, asked)]], [[row]] if asked.tells else None)
            for asked, row in zip(batch, logits, strict=True)
        ]

    def _pick(self, logits: Any, asked: _Asked) -> int:
        torch, _ = import_libraries()
        if asked.temperature < _COLDEST:
            return int(logits.argmax())
        generator = torch.Generator(device=logits.device)
        generator.manual_seed(asked.seed) if asked.seed is not None else generator.seed()
        p, order = torch.softmax(logits / asked.temperature, -1).sort(descending=True)
        p[1:][p.cumsum(-1)[:-1] >= asked.top_p] = 0
        return int(order[torch.multinomial(p, 1, generator=generator)])

    def _generate(self, asked: _Asked, waiting: Future[dict[str, Any]]) -> dict[str, Any]:
        torch, transformers = import_libraries()
        tokenizer, model = self._weights.tokenizer, self._weights.model
        if asked.seed is not None:
            torch.manual_seed(asked.seed)
        ids = torch.tensor([asked.prompt], device=self._weights.device)
        chosen: dict[str, Any] = {"do_sample": asked.temperature >= _COLDEST, "num_return_sequences": asked.answers}
        if asked.temperature >= _COLDEST:
            chosen |= {"temperature": asked.temperature, "top_k": 0, "top_p": asked.top_p}
        elif asked.answers > 1:
            ids, chosen["num_return_sequences"] = ids.repeat(asked.answers, 1), 1
        if asked.stop:
            chosen |= {"stop_strings": list(asked.stop), "tokenizer": tokenizer}
        end = tokenizer.eos_token_id

        def is_gone(ids: Any, scores: Any) -> Any:
            return torch.full((len(ids),), waiting.cancelled() or self._closing.is_set(), device=ids.device)

        with torch.inference_mode():
            out = model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked.max_tokens,
                pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end, eos_token_id=end,
                return_dict_in_generate=True, output_logits=asked.tells,
                stopping_criteria=transformers.StoppingCriteriaList([is_gone]), **chosen,
            )  # fmt: skip
        if self._closing.is_set():
            raise _RefusedError(_CLOSING)
        told = [row[len(asked.prompt) :].tolist() for row in out.sequences]
        ended = [
            self._until_stop(tokens[: tokens.index(end) + 1] if end in tokens else tokens, asked) for tokens in told
        ]
        logits = [[step[i].float() for step in out.logits] for i in range(len(ended))] if asked.tells else None
        return self._response(asked, ended, logits)

    def _until_stop(self, tokens: list[int], asked: _Asked) -> list[int]:
        """The tokens up to the one that completes a stop string."""
        if asked.stop:
            for count in range(1, len(tokens)):
                if self._said(tokens[:count], asked)[1]:
                    return tokens[:count]
        return tokens

    def _said(self, tokens: Sequence[int], asked: _Asked) -> tuple[str, bool]:
        """The text of an answer up to a stop string, and whether there is one."""
        text = self._weights.tokenizer.decode(list(tokens), skip_special_tokens=True)
        found = [text.index(stop) for stop in asked.stop if stop in text]
        return text[: min(found)] if found else text, bool(found)

    # -- answering ----------------------------------------------------------------------------------------------------

    def _response(self, asked: _Asked, answers: Sequence[Sequence[int]], logits: Any) -> dict[str, Any]:
        choices = []
        for index, tokens in enumerate(answers):
            said, is_stopped = self._said(tokens, asked)
            is_ended = is_stopped or (bool(tokens) and tokens[-1] == self._weights.tokenizer.eos_token_id)
            choice: dict[str, Any] = {
                "index": index,
                "finish_reason": "stop" if is_ended else "length",
                "message": {"role": "assistant", "content": said},
            }
            if logits is not None:
                pairs = zip(tokens, logits[index], strict=False)
                choice["logprobs"] = {"content": [self._token(token, row, asked.likeliest) for token, row in pairs]}
            choices.append(choice)
        count = sum(map(len, answers))
        usage = {"prompt_tokens": len(asked.prompt), "completion_tokens": count}
        usage["total_tokens"] = sum(usage.values())
        return {"object": "chat.completion", "model": self.model, "choices": choices, "usage": usage}

    def _token(self, token: int, logits: Any, likeliest: int) -> dict[str, Any]:
        torch, _ = import_libraries()
        logs = torch.log_softmax(logits, -1)
        values, ids = logs.topk(min(likeliest, logs.numel())) if likeliest else ((), ())
        top = [self._named(int(each), float(value)) for value, each in zip(values, ids, strict=True)]
        return self._named(token, float(logs[token])) | {"top_logprobs": top}

    def _named(self, token: int, value: float) -> dict[str, Any]:
        return {"token": self._weights.tokenizer.decode([token]), "logprob": max(value, -1e4)}


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(f"a request is a JSON object, and this is not JSON: {error}") from error


def _messages(given: Any) -> list[dict[str, str]]:
    if not isinstance(given, list) or not given:
        raise _RefusedError("messages must be a list of messages")
    found = []
    for each in given:
        role, content = (each.get("role"), each.get("content")) if isinstance(each, dict) else (None, None)
        if role not in ("system", "user", "assistant") or not isinstance(content, str):
            raise _RefusedError("a message has a role, system, user or assistant, and a content, which is text")
        found.append({"role": str(role), "content": content})
    return found


def _stops(given: Any) -> tuple[str, ...]:
    found = [given] if isinstance(given, str) else given or []
    if not isinstance(found, list) or len(found) > _MOST_STOPS or not all(isinstance(e, str) and e for e in found):
        raise _RefusedError(f"stop must be a string or a list of at most {_MOST_STOPS} strings, none of them empty")
    return tuple(found)


def _number(value: Any, name: str, least: float, most: float, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _RefusedError(f"{name} must be a number from {least:g} to {most:g}")
    return float(value)


def _whole(value: Any, name: str, least: int, most: int, default: int) -> int:
    found = _number(value, name, least, most, default)
    if value is not None and value != int(found):
        raise _RefusedError(f"{name} must be a whole number, not {value}")
    return default if value is None else int(value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections, such as clients that have disconnected."""


def _handler(server: WeightsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def log_message(self, format: str, *arguments: Any) -> None:
            return

        def do_GET(self) -> None:
            if self.path.rstrip("/") == "/v1/models":
                self._send(200, {"object": "list", "data": [{"id": server.model, "object": "model"}]})
            else:
                self._fail(404, f"there is no {self.path[:80]}; ask /v1/models or /v1/chat/completions")

        def do_POST(self) -> None:
            if "Content-Length" not in self.headers:
                self.close_connection = True
                self._fail(411, "a request says with Content-Length how many bytes it has; chunked ones are not read")
                return
            try:
                size = int(self.headers["Content-Length"])
            except ValueError:
                size = -1
            if not 0 <= size <= _LARGEST:
                self.close_connection = True
                self._fail(413, f"a request has at most {_LARGEST} bytes, and says how many")
                return
            text = self.rfile.read(size)
            if self.path.rstrip("/") != "/v1/chat/completions":
                self._fail(404, f"there is no {self.path[:80]}; ask /v1/chat/completions")
                return
            try:
                body = _parsed(text)
                if not isinstance(body, dict):
                    raise _RefusedError("a request is a JSON object")
                self._send(200, server.answer(body, self._is_gone))
            except _GoneError:
                self.close_connection = True
            except (_RefusedError, PresageError, ValueError, RecursionError) as error:
                self._fail(400, str(error))
            except Exception as error:
                self._fail(500, f"{type(error).__name__}: {error}")

        def _is_gone(self) -> bool:
            try:
                ready, _, _ = select.select([self.connection], [], [], 0)
                return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)
            except (OSError, ValueError):
                return True

        def _fail(self, status: int, message: str) -> None:
            self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

        def _send(self, status: int, body: Mapping[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
