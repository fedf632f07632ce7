"""The header of a kernel file: comment lines that declare its entry, its launch and its tunables.

    // presage: entry softmax_rows
    // presage: tune BLOCK = 64, 128, 256
    // presage: where BLOCK % 64 == 0
    // presage: grid rows
    // presage: block BLOCK

Rendering a family replaces each `tune` line by a definition with one value, so line numbers stay what they were.

A family that serves several operations leaves places such as `$apply$`, which `fill` fills with an operation's code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from presage.core.errors import PresageError
from presage.kernels import expression

Value = int | float | str
_DIRECTIVE = re.compile(r"^\s*(//|#)\s*presage:\s*(\S*)\s*(.*?)\s*$")
_PLACE = re.compile(r"\$(\w+)\$")
_NAME = re.compile(r"^[A-Za-z_]\w*$")
_KEYWORDS = ("problem", "entry", "tune", "where", "grid", "block", "shared", "scratch")


class HeaderError(PresageError):
    """A header line that cannot be read; the message names the file, the line and the mend."""


@dataclass(frozen=True)
class Launch:
    """One launch of one entry point; the expressions are over dimensions, parameters and tunables."""

    entry: str
    grid: tuple[str, ...] = ("1",)
    block: tuple[str, ...] = ("1",)
    shared: str = "0"


@dataclass(frozen=True)
class Header:
    """What a kernel file declares of itself."""

    problem: str | None = None
    launches: tuple[Launch, ...] = ()
    tunables: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    scratch: Mapping[str, str] = field(default_factory=dict)

    def admits(self, values: Mapping[str, Value]) -> bool:
        """Whether these values satisfy every constraint."""
        return all(expression.evaluate(constraint, values) for constraint in self.constraints)


def parse(source: str, where: str) -> Header:
    """Read the header of a kernel's source; `where` names the file in errors."""
    reader = _Reader(where)
    for number, line in enumerate(source.split("\n"), start=1):
        if match := _DIRECTIVE.match(line):
            reader.line = number
            reader.directive(match[2], match[3])
    return reader.header()


def places(source: str) -> frozenset[str]:
    """The names of the places that a shared family leaves to the operation.

    >>> sorted(places("y[i] = $apply$;  // for $type$"))
    ['apply', 'type']
    """
    return frozenset(_PLACE.findall(source))


def fill(source: str, given: Mapping[str, str], problem: str) -> str:
    """The source with an operation's code in every place, and a header line that says whose it is. Code of several
    lines is indented like the line it stands in.

    >>> print(fill("// presage: entry f\\n    $apply$", {"apply": "a = 1;\\nb = 2;"}, "gelu"))
    // presage: problem gelu
    // presage: entry f
        a = 1;
        b = 2;
    """
    comment = "//" if re.search(r"^\s*//\s*presage:", source, re.MULTILINE) else "#"
    filled = [f"{comment} presage: problem {problem}"]
    for line in source.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        for name in _PLACE.findall(line):
            line = line.replace(f"${name}$", given[name].replace("\n", f"\n{indent}"))
        filled.append(line)
    return "\n".join(filled)


def render(source: str, values: Mapping[str, Value]) -> str:
    """The source with every `tune` line replaced by a definition of its value, in the file's own language."""

    def define(line: str) -> str:
        match = _DIRECTIVE.match(line)
        if not match or match[2] not in ("tune", "where"):
            return line
        if match[2] == "where":
            return ""
        name = match[3].split("=")[0].strip()
        value = values[name]
        if match[1] == "//":
            return f"#define {name} {value}"
        indent = line[: len(line) - len(line.lstrip())]
        return f"{indent}{name} = {value!r}"

    return "\n".join(define(line) for line in source.split("\n"))


class _Reader:
    """Collects directives; every complaint carries the line it is about."""

    def __init__(self, where: str) -> None:
        self.where, self.line = where, 1
        self.problem: str | None = None
        self.launches: list[Launch] = []
        self.tunables: dict[str, tuple[Value, ...]] = {}
        self.constraints: list[tuple[int, str]] = []
        self.scratch: dict[str, str] = {}

    def fail(self, what: str, mend: str) -> HeaderError:
        return HeaderError(f"{self.where}:{self.line}: {what}; {mend}")

    def directive(self, keyword: str, rest: str) -> None:
        if keyword not in _KEYWORDS:
            raise self.fail(f"unknown directive '{keyword}'", f"use one of: {', '.join(_KEYWORDS)}")
        if not rest:
            raise self.fail(f"'{keyword}' says nothing", f"write '// presage: {_EXAMPLES[keyword]}'")
        handler: Callable[[str], None] = getattr(self, f"_{keyword}")
        handler(rest)

    def _problem(self, rest: str) -> None:
        self.problem = self._name(rest, "problem")

    def _entry(self, rest: str) -> None:
        self.launches.append(Launch(self._name(rest, "entry")))

    def _tune(self, rest: str) -> None:
        name, equals, values = rest.partition("=")
        name = self._name(name.strip(), "tune")
        if name in self.tunables:
            raise self.fail(f"tunable '{name}' is declared twice", "keep one of the two lines")
        parsed = tuple(parse_value(text) for text in values.split(",") if text.strip())
        if not equals or not parsed:
            raise self.fail(f"tunable '{name}' has no values", f"write '// presage: {_EXAMPLES['tune']}'")
        if len(set(parsed)) != len(parsed):
            raise self.fail(f"tunable '{name}' repeats a value", "list each value once")
        self.tunables[name] = parsed

    def _where(self, rest: str) -> None:
        self._expression(rest)
        self.constraints.append((self.line, rest))

    def _grid(self, rest: str) -> None:
        self._amend("grid", grid=self._dimensions(rest))

    def _block(self, rest: str) -> None:
        self._amend("block", block=self._dimensions(rest))

    def _shared(self, rest: str) -> None:
        self._amend("shared", shared=self._expression(rest))

    def _scratch(self, rest: str) -> None:
        name, equals, size = rest.partition("=")
        if not equals:
            raise self.fail("'scratch' has no size", f"write '// presage: {_EXAMPLES['scratch']}'")
        self.scratch[self._name(name.strip(), "scratch")] = self._expression(size.strip())

    def _amend(self, keyword: str, **changes: object) -> None:
        if not self.launches:
            raise self.fail(f"'{keyword}' comes before any 'entry'", "put it under the entry that it launches")
        last = self.launches[-1]
        self.launches[-1] = Launch(**{**last.__dict__, **changes})

    def _dimensions(self, rest: str) -> tuple[str, ...]:
        parts = _split(rest)
        if len(parts) > 3:
            raise self.fail(f"{len(parts)} dimensions", "a launch has one to three, separated by commas")
        return tuple(self._expression(part) for part in parts)

    def _expression(self, text: str) -> str:
        try:
            expression.parse(text)
        except expression.ExpressionError as error:
            raise self.fail(str(error), "mend the expression") from error
        return text

    def _name(self, text: str, keyword: str) -> str:
        if not _NAME.match(text):
            raise self.fail(f"'{text}' is not a name", f"write '// presage: {_EXAMPLES[keyword]}'")
        return text

    def header(self) -> Header:
        for line, constraint in self.constraints:
            unknown = expression.names(constraint) - set(self.tunables)
            if unknown:
                self.line = line
                known = ", ".join(self.tunables) or "none are declared"
                raise self.fail(
                    f"constraint uses '{sorted(unknown)[0]}', which is no tunable", f"use the tunables: {known}"
                )
        return Header(
            self.problem,
            tuple(self.launches),
            self.tunables,
            tuple(constraint for _, constraint in self.constraints),
            self.scratch,
        )


_EXAMPLES = {
    "problem": "problem softmax",
    "entry": "entry softmax_rows",
    "tune": "tune BLOCK = 64, 128, 256",
    "where": "where BLOCK % UNROLL == 0",
    "grid": "grid cdiv(n, BLOCK), 1, 1",
    "block": "block BLOCK",
    "shared": "shared 4 * BLOCK",
    "scratch": "scratch partial = 4 * rows",
}


def parse_value(text: str) -> Value:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
