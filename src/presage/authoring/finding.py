"""Finding: what one rule of a check has shown."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from presage.core.errors import PresageError


class Verdict(StrEnum):
    OK = "ok"
    FAILED = "failed"
    WARNING = "warning"
    """It may be meant so."""
    SKIPPED = "not checked"
    """Something that is needed is not installed here."""


@dataclass(frozen=True)
class Finding:
    """What a rule has shown, in words for the author."""

    rule: str
    verdict: Verdict
    said: str

    def to_json(self) -> dict[str, str]:
        return {"rule": self.rule, "verdict": str(self.verdict), "said": self.said}


class BrokenRuleError(Exception):
    """A rule does not hold; the message says what to do."""


Rule = Callable[[], Iterable[Finding] | str]
"""Looks at one thing. Returns what to say where all is well, or findings; raises BrokenRuleError where it is not."""


def apply(name: str, rule: Rule, part: object) -> Iterator[Finding]:
    """What a rule shows of a part. Whatever the part's own code raises counts against it."""
    try:
        found = rule()
        yield from [Finding(name, Verdict.OK, found)] if isinstance(found, str) else found
    except BrokenRuleError as error:
        yield Finding(name, Verdict.FAILED, str(error))
    except PresageError as error:
        yield Finding(name, Verdict.FAILED, str(error))
    except Exception as error:
        yield Finding(name, Verdict.FAILED, f"{type(error).__name__}: {error}{_place(error, part)}")


def _place(error: Exception, part: object) -> str:
    """Where in the part's own file it was raised."""
    owner = part if isinstance(part, type) else type(part)
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({Path(str(file)).name}, line {lines[-1]})" if lines else ""


def failed(findings: Iterable[Finding]) -> list[str]:
    """The failures alone, a line each."""
    return [f"{each.rule}: {each.said}" for each in findings if each.verdict is Verdict.FAILED]
