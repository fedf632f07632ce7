"""Finding: the result of one rule of a check."""

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
    """Suspicious, but possibly intended."""
    SKIPPED = "not checked"
    """Something that the rule needs is not available on this machine."""


@dataclass(frozen=True)
class Finding:
    """The result of a rule. `said` is a text for the author of the part."""

    rule: str
    verdict: Verdict
    said: str

    def to_json(self) -> dict[str, str]:
        return {"rule": self.rule, "verdict": str(self.verdict), "said": self.said}


class BrokenRuleError(Exception):
    """A rule is broken. The message says what to do."""


Rule = Callable[[], Iterable[Finding] | str]
"""Checks one thing. Returns findings, or the text of an OK finding. Raises BrokenRuleError if the rule is broken."""


def apply(name: str, rule: Rule, part: object) -> Iterator[Finding]:
    """Apply a rule to a part and yield its findings. Any exception that the part's code raises is a failure."""
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
    """The line in the part's own file where the error was raised; empty if it was raised elsewhere."""
    owner = part if isinstance(part, type) else type(part)
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({Path(str(file)).name}, line {lines[-1]})" if lines else ""


def failed(findings: Iterable[Finding]) -> list[str]:
    """The failures among the findings, one line each."""
    return [f"{each.rule}: {each.said}" for each in findings if each.verdict is Verdict.FAILED]
