"""The `llm` proposer: a language model writes kernels for any problem, as whole files or as edits of the parent."""

from __future__ import annotations

import ast
import math
import os
import random
import re
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from presage.core.errors import PresageError
from presage.core.text import one_line, printable
from presage.devices.recorded import RecordedDevice
from presage.kernels.kernel import Kernel, from_source
from presage.llm.answers import Answer
from presage.llm.client import Client, Message, NoAnswerError
from presage.llm.cost import Allowance, Cost
from presage.llm.settings import Settings, read
from presage.llm.structured import MalformedError
from presage.problems.external import KERNELBENCH, ExternalProblem
from presage.proposers.base import Ground, Parent, Proposal, Proposer
from presage.proposers.llm_prompt import FENCES, languages_of, messages

_MODELS = "PRESAGE_LLM_MODELS"
_LONGEST_ANSWER = 8000
"""Tokens. A kernel needs more tokens, and more time, than a forecast."""
_TIMEOUT, _PATIENCE = 240.0, 480.0
_LONGEST_SOURCE = 200_000
_LONGEST_TEXT = 1_000_000
"""Characters of an answer, including the model's reasoning."""
_MOST_CONFIGURATIONS = 100_000
_MOST_EDITS = 200
_LONGEST_IDEA = 120
_LONGEST_QUOTE = 4000

_SEARCH = re.compile(r"<{5,}+ ?SEARCH[ \t]*+")
_DIVIDER = re.compile(r"={5,}+[ \t]*+")
_REPLACE = re.compile(r">{5,}+ ?REPLACE")
_FENCE = "```"
_TAG = re.compile(r"[ \t]*+([\w+-]*+)")
_SUFFIXES = {"cuda": ".cu", "cu": ".cu", "cpp": ".cu", "c++": ".cu", "c": ".c", "python": ".py", "py": ".py"}


class LlmProposer(Proposer):
    """Asks a language model to write kernels. With several models, picks one at random for each candidate. The kernels
    run only in a device's sandbox. An answer without a usable kernel is retried once and then dropped."""

    is_paid = True

    def __init__(
        self,
        ground: Ground,
        client: Client | Settings | None = None,
        models: Mapping[str, float] | None = None,
        stuck: int = 12,
    ) -> None:
        """client: an endpoint, which stays open if it is a Client; by default that of the environment.
        models: weights by model name. The default comes from PRESAGE_LLM_MODELS, as in `large=1,small=3`, or is the
        model of the settings. stuck: after this many candidates without an improvement, ask for a different idea."""
        super().__init__(ground)
        if isinstance(ground.device, RecordedDevice):
            raise PresageError(f"{ground.device.name} cannot measure new kernels; use the pool proposer there")
        if stuck < 1:
            raise PresageError(f"stuck is a number of candidates, 1 or more, not {stuck}")
        self._stuck = stuck
        self._weights = _checked(models) if models else _weights(os.environ.get(_MODELS, ""))
        first = client if isinstance(client, Client) else _client(client, needs_model=not self._weights)
        self._weights = self._weights or {first.settings.model: 1.0}
        self._clients = {model: first.for_model(model) for model in self._weights}
        self._own = [each for each in (first, *self._clients.values()) if each is not client]
        for each in self._clients.values():
            each.manner = replace(each.manner, format="text")  # models quote a file badly inside JSON
        self._cost = Cost()
        self._answered = False

    @classmethod
    def check(cls, in_dollars: bool = False) -> None:
        client = _client(None, needs_model=not _weights(os.environ.get(_MODELS, "")))
        client.close()
        if in_dollars:
            client.settings.check_priced()

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        until, allowance = time.monotonic() + self.seconds, self.allowance or Allowance()
        before = allowance.tokens_spent, allowance.dollars_spent
        question = messages(self.ground, parent, others, self.fruitless >= self._stuck, rng.getrandbits(32))
        drawn = Counter(rng.choices(list(self._weights), list(self._weights.values()), k=count))
        found: dict[str, Proposal] = {}
        with ThreadPoolExecutor(len(drawn) or 1) as pool:
            asked = [
                pool.submit(self._ask, each, question, parent, drawn[each], until, allowance) for each in sorted(drawn)
            ]
            try:
                answers = [answer for each in asked for answer in each.result()]
            finally:
                pool.shutdown(cancel_futures=True)
                self._cost = Cost(allowance.tokens_spent - before[0], allowance.dollars_spent - before[1])
        complaints = [client.complaint for client in self._clients.values() if client.complaint]
        self.notes = tuple(dict.fromkeys([*(answer for answer in answers if isinstance(answer, str)), *complaints]))
        if self.notes and not self._answered and not allowance.short and time.monotonic() < until:
            raise PresageError(f"{self.notes[0]}; see 'presage llm check', then run the same command to go on")
        for answer in answers:
            if isinstance(answer, Proposal) and answer.kernel.hash not in known:
                found.setdefault(answer.kernel.hash, answer)
        return list(found.values())

    def spent(self) -> Cost:
        return self._cost

    def close(self) -> None:
        for each in self._own:
            each.close()

    def _ask(
        self,
        model: str,
        question: Sequence[Message],
        parent: Parent,
        count: int,
        until: float,
        allowance: Allowance,
    ) -> list[Proposal | str]:
        """Ask one model for `count` answers. Return a proposal, or a message that says what is wrong, for each."""
        try:
            answers = self._clients[model].ask(question, {}, count, until - time.monotonic(), allowance)
        except NoAnswerError as error:
            return [str(error)]
        self._answered = True
        kernel = parent.measured.kernel
        return [self._usable(model, question, answer, kernel, until, allowance) for answer in answers]

    def _usable(
        self,
        model: str,
        question: Sequence[Message],
        answer: Answer,
        parent: Kernel,
        until: float,
        allowance: Allowance,
    ) -> Proposal | str:
        """Return the kernel in an answer. If the answer is malformed, tell the model why and retry once. If the retry
        fails, too, return a message that says why."""
        try:
            return parse(answer, parent, self.ground)
        except MalformedError as error:
            again = [*question, *_correction(answer, str(error))]
        try:
            (second,) = self._clients[model].ask(again, {}, 1, until - time.monotonic(), allowance)
            return parse(second, parent, self.ground)
        except (NoAnswerError, MalformedError) as error:
            return f"{model} wrote no kernel: {error}"


# -- answers ----------------------------------------------------------------------------------------------------------


def parse(answer: Answer, parent: Kernel, ground: Ground) -> Proposal:
    """Return the kernel in one answer. Raises MalformedError, whose message tells the model what is wrong."""
    if answer.refusal or answer.finish == "content_filter":
        raise MalformedError("the model refused to answer; this is a harmless question about program speed")
    if len(answer.text) > _LONGEST_TEXT:
        raise MalformedError(f"the answer has {len(answer.text)} characters; {_LONGEST_TEXT} are the most")
    suffix = ".py" if not parent.is_bare else {"c": ".c", "cuda": ".cu"}[parent.language]
    edits, _ = _edits(answer.text)
    blocks, _ = _fenced(answer.text)
    if edits:
        source = _edited(parent.source, edits)
    elif blocks:
        tag, source = max(blocks, key=lambda block: len(block[1]))
        suffix = _SUFFIXES.get(tag.lower(), suffix)
    elif answer.finish == "length":
        raise MalformedError("the answer was cut off before its end; be brief, or answer with edits")
    else:
        raise MalformedError("there is neither a fenced block with a file nor an edit in the answer")
    return Proposal(_kernel(source, suffix, ground), _idea(answer.text))


def _edits(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return the search and replacement texts of all edits, and the text outside them. An unclosed edit is text."""
    found: list[tuple[str, str]] = []
    outside: list[str] = []
    searched: list[str] | None = None
    given: list[str] | None = None
    for line in text.split("\n"):
        if searched is None:
            if _SEARCH.fullmatch(line):
                searched = []
            else:
                outside.append(line)
        elif given is None:
            if _DIVIDER.fullmatch(line):
                given = []
            else:
                searched.append(line)
        elif _REPLACE.match(line):
            found.append(("\n".join(searched), "\n".join(given)))
            searched = given = None
        else:
            given.append(line)
    return found, "\n".join([*outside, *(searched or []), *(given or [])])


def _fenced(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return the tag and text of each fenced block, and the text outside them. An unclosed block is text."""
    found: list[tuple[str, str]] = []
    outside: list[str] = []
    tag, inside = "", None
    for line in text.split("\n"):
        shown = line.strip(" \t")
        if inside is None and shown.startswith(_FENCE):
            opened = _TAG.match(shown.removeprefix(_FENCE))
            tag, inside = opened[1] if opened else "", list[str]()
        elif inside is None:
            outside.append(line)
        elif shown == _FENCE:
            found.append((tag, "".join(f"{each}\n" for each in inside)))
            inside = None
        else:
            inside.append(line)
    return found, "\n".join([*outside, *(inside or [])])


def _edited(source: str, edits: Sequence[tuple[str, str]]) -> str:
    if len(edits) > _MOST_EDITS:
        raise MalformedError(f"the answer has {len(edits)} edits; {_MOST_EDITS} are the most: write the whole file")
    for wanted, given in edits:
        if not wanted.strip():
            raise MalformedError("an edit searches for nothing; quote the lines that it replaces")
        if (times := source.count(wanted)) != 1:
            line = wanted.strip().splitlines()[0][:80]
            mend = "copy the lines exactly" if times == 0 else "quote more lines around it"
            raise MalformedError(f"what an edit searches for, beginning '{line}', occurs {times} times; {mend}")
        source = source.replace(wanted, given)
    return source


def _kernel(source: str, suffix: str, ground: Ground) -> Kernel:
    problem = ground.problem
    if len(source) > _LONGEST_SOURCE:
        raise MalformedError(f"the file has {len(source)} characters; {_LONGEST_SOURCE} are the most")
    try:
        kernel = from_source(source, suffix, f"llm{suffix}")
        kernel = problem.candidate(kernel) if isinstance(problem, ExternalProblem) else kernel
        if kernel.header.problem not in (None, problem.name):
            raise MalformedError(f"the file says it solves '{kernel.header.problem}', not '{problem.name}'")
        if kernel.language not in (allowed := languages_of(ground)):
            wanted = " or ".join(f"{name} (```{FENCES[name]})" for name in allowed)
            raise MalformedError(f"the file is {kernel.language}, which cannot be measured here; write {wanted}")
        _check_entry(kernel, problem.convention == KERNELBENCH if isinstance(problem, ExternalProblem) else False)
        if math.prod(map(len, kernel.header.tunables.values())) > _MOST_CONFIGURATIONS:
            raise MalformedError("the file's tunables have too many combinations; give each one value")
        return replace(kernel.render(), name=f"llm-{kernel.hash[:8]}{suffix}")
    except PresageError as error:
        raise MalformedError(str(error)) from error


def _check_entry(kernel: Kernel, is_model: bool) -> None:
    """Raise MalformedError if the kernel does not define what the harness calls."""
    if kernel.is_bare:
        for launch in kernel.header.launches:
            if not re.search(rf"\b{launch.entry}\s*\(", kernel.source):
                raise MalformedError(f"the header's entry '{launch.entry}' is not defined in the file")
        return
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise MalformedError(f"the file is not valid Python{where}") from error
    wanted = ("ModelNew",) if is_model else ("custom_kernel", "ModelNew")
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if defined.isdisjoint(wanted):
        raise MalformedError(f"the file does not define {wanted[0]}")


def _idea(text: str) -> str:
    """The first line of prose outside the file, shortened and without control characters."""
    edits, prose = _edits(text)
    prose = prose if edits else _fenced(text)[1]
    line = next((line.strip() for line in prose.splitlines() if line.strip(" `#*")), "")
    return one_line(line, _LONGEST_IDEA)


def _correction(answer: Answer, wrong: str) -> list[dict[str, str]]:
    said = printable(answer.text[:_LONGEST_QUOTE] or answer.refusal[:_LONGEST_QUOTE] or "(nothing)")
    mend = f"This could not be used: {wrong}. Answer again, with the whole file in one fenced block, or with edits."
    return [{"role": "assistant", "content": said}, {"role": "user", "content": mend}]


# -- settings ---------------------------------------------------------------------------------------------------------


def _client(settings: Settings | None, needs_model: bool) -> Client:
    """Return a client whose limits leave room for a whole file. The default settings are those of the environment."""
    settings = settings or read(needs_model=needs_model)
    return Client(
        replace(
            settings,
            max_tokens=max(settings.max_tokens, _LONGEST_ANSWER),
            timeout=max(settings.timeout, _TIMEOUT),
            patience=max(settings.patience, _PATIENCE),
        )
    )


def _weights(text: str) -> dict[str, float]:
    """Parse weights by model, as in `large=1,small=3`. A model without a weight has the weight 1.

    >>> _weights("large, small=3")
    {'large': 1.0, 'small': 3.0}
    """
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        model, _, weight = part.rpartition("=") if "=" in part else (part, "", "1")
        try:
            found[model.strip()] = float(weight)
        except ValueError:
            raise PresageError(f"{_MODELS}: '{part}' is no model with a weight; write MODEL=WEIGHT,MODEL") from None
    return _checked(found)


def _checked(weights: Mapping[str, float]) -> dict[str, float]:
    for model, weight in weights.items():
        if not model or not 0 < weight < math.inf:
            raise PresageError(f"the weight of the model '{model}' must be a positive number, not {weight}")
    return dict(weights)
