"""The header of a kernel file: comment lines that declare its entry, its launch and its tunables.

    // presage: entry softmax_rows
    // presage: tune BLOCK = 64, 128, 256
    // presage: where BLOCK % 64 == 0
    // presage: grid rows
    // presage: block BLOCK

Rendering a family replaces each `tune` line by a definition with one value, so line numbers do not change.

A family for several operations has placeholders such as `$apply$`, which `fill` replaces by an operation's code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from presage.core.errors import PresageError
from presage.core.text import excerpt
from presage.kernels import expression

Value = int | float | str
_PLACE = re.compile(r"\$(\w+)\$")
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEYWORDS = ("problem", "entry", "tune", "where", "grid", "block", "shared", "scratch", "input", "output", "case")
_ARRAY = re.compile(r"(\w+)[ ]?\[([^\[\]]+)\](?:[ ]below[ ]([^\[\]]+))?")
_ADDRESS = "presage:"
_LONGEST = 2000
_MOST = 256
"""Limits: characters of a header line, and lines of one keyword. They are more than any kernel needs."""


class HeaderError(PresageError):
    """A header line that cannot be read. The message names the file, the line and the remedy."""


@dataclass(frozen=True)
class Directive:
    """One line of the header, marked by `presage:`."""

    number: int
    comment: str
    """The comment marker: `//` or `#`."""
    keyword: str
    rest: str


@dataclass(frozen=True)
class Launch:
    """One launch of one entry point; the expressions are over dimensions, parameters and tunables."""

    entry: str
    grid: tuple[str, ...] = ("1",)
    block: tuple[str, ...] = ("1",)
    shared: str = "0"


@dataclass(frozen=True)
class ArrayLine:
    """An array whose pointer the entry gets. Its shape has an expression per dimension, over the case's sizes."""

    dtype: str
    shape: str
    below: str = ""
    """Expression for the exclusive upper limit of an input's integers, which start at 0."""


@dataclass(frozen=True)
class Header:
    """The declarations in a kernel file's header."""

    problem: str | None = None
    launches: tuple[Launch, ...] = ()
    tunables: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    scratch: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, ArrayLine] = field(default_factory=dict)
    """Set, like `outputs` and `cases`, if the file states its own problem: arrays read, arrays written, and sizes."""
    outputs: Mapping[str, ArrayLine] = field(default_factory=dict)
    cases: tuple[Mapping[str, int], ...] = ()

    def admits(self, values: Mapping[str, Value]) -> bool:
        """Whether these values satisfy every constraint."""
        return all(expression.evaluate(constraint, values) for constraint in self.constraints)

    def constraints_at(self, names: Sequence[str]) -> list[str]:
        """The constraints that can be evaluated once the last of these tunables has a value, and not before."""
        needed = {constraint: expression.names(constraint) for constraint in self.constraints}
        return [each for each in self.constraints if names[-1] in needed[each] and needed[each] <= set(names)]


def excluded(constraints: Sequence[str], values: Mapping[str, Value]) -> bool:
    """Whether these values violate one of the constraints. A constraint that fails to evaluate excludes nothing here:
    an earlier constraint of the header may exclude the same values."""
    for constraint in constraints:
        try:
            if not expression.evaluate(constraint, values):
                return True
        except expression.ExpressionError:
            continue
    return False


def parse(source: str, where: str) -> Header:
    """Read the header of a kernel's source; `where` names the file in errors."""
    reader = _Reader(where)
    for directive in directives(source):
        reader.line = directive.number
        reader.directive(directive.keyword, directive.rest)
    return reader.header()


def directives(source: str) -> Iterator[Directive]:
    """Yield every line of the header, wherever in the source it is. Only newlines end a line.

    >>> list(directives("int a;\\n//presage:  grid  n "))
    [Directive(number=2, comment='//', keyword='grid', rest='n')]
    """
    if _ADDRESS not in source:
        return
    for number, line in enumerate(source.split("\n"), start=1):
        if _ADDRESS in line and (found := _directive(line, number)):
            yield found


def _directive(line: str, number: int = 0) -> Directive | None:
    """Parse one line. A regular expression would take quadratic time on a run of spaces."""
    if _ADDRESS not in line:
        return None
    text = line.lstrip()
    comment = "//" if text.startswith("//") else "#"
    said = text.removeprefix(comment).lstrip()
    if not text.startswith(comment) or not said.startswith(_ADDRESS):
        return None
    keyword, *rest = said.removeprefix(_ADDRESS).split(None, 1) or [""]
    return Directive(number, comment, keyword, rest[0].rstrip() if rest else "")


def places(source: str) -> frozenset[str]:
    """The names of the placeholders that a shared family leaves to the operation.

    >>> sorted(places("y[i] = $apply$;  // for $type$"))
    ['apply', 'type']
    """
    return frozenset(_PLACE.findall(source))


def fill(source: str, given: Mapping[str, str], problem: str) -> str:
    """The source with an operation's code for every placeholder, and a header line that names the problem. Code of
    several lines is indented like the placeholder's line.

    >>> print(fill("// presage: entry f\\n    $apply$", {"apply": "a = 1;\\nb = 2;"}, "gelu"))
    // presage: problem gelu
    // presage: entry f
        a = 1;
        b = 2;
    """
    comment = "//" if any(directive.comment == "//" for directive in directives(source)) else "#"
    return f"{comment} presage: problem {problem}\n{insert(source, given)}"


def insert(source: str, given: Mapping[str, str]) -> str:
    """The source with the code for each of its placeholders.

    >>> insert("a = $x$ + $x$;", {"x": "1"})
    'a = 1 + 1;'
    """
    filled = []
    for line in source.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        for name in _PLACE.findall(line):
            line = line.replace(f"${name}$", given[name].replace("\n", f"\n{indent}"))
        filled.append(line)
    return "\n".join(filled)


def render(source: str, values: Mapping[str, Value]) -> str:
    """The source with every `tune` line replaced by a definition of its value, in the file's own language. `where`
    lines become empty."""

    def define(line: str) -> str:
        found = _directive(line)
        if not found or found.keyword not in ("tune", "where"):
            return line
        if found.keyword == "where":
            return ""
        name = found.rest.split("=")[0].strip()
        value = values[name]
        if found.comment == "//":
            return f"#define {name} {value}"
        indent = line[: len(line) - len(line.lstrip())]
        return f"{indent}{name} = {value!r}"

    return "\n".join(define(line) for line in source.split("\n"))


class _Reader:
    """Collects directives. Every error names the line that it is about."""

    def __init__(self, where: str) -> None:
        self.where, self.line = where, 1
        self.problem: str | None = None
        self.launches: list[Launch] = []
        self.tunables: dict[str, tuple[Value, ...]] = {}
        self.constraints: list[tuple[int, str]] = []
        self.scratch: dict[str, str] = {}
        self.arrays: dict[str, dict[str, ArrayLine]] = {"input": {}, "output": {}}
        self.cases: list[dict[str, int]] = []

    def fail(self, what: str, mend: str) -> HeaderError:
        return HeaderError(f"{self.where}:{self.line}: {what}; {mend}")

    def directive(self, keyword: str, rest: str) -> None:
        if keyword not in _KEYWORDS:
            raise self.fail(f"unknown directive '{excerpt(keyword)}'", f"use one of: {', '.join(_KEYWORDS)}")
        if len(rest) > _LONGEST:
            raise self.fail(f"'{keyword}' has {len(rest)} characters", f"write at most {_LONGEST}")
        if not rest:
            raise self.fail(f"'{keyword}' says nothing", f"write '// presage: {_EXAMPLES[keyword]}'")
        handler: Callable[[str], None] = getattr(self, f"_{keyword}")
        handler(rest)

    def _problem(self, rest: str) -> None:
        self.problem = self._name(rest, "problem")

    def _entry(self, rest: str) -> None:
        self._one_more("entry", len(self.launches))
        self.launches.append(Launch(self._name(rest, "entry")))

    def _tune(self, rest: str) -> None:
        name, equals, values = rest.partition("=")
        name = self._name(name.strip(), "tune")
        if name in self.tunables:
            raise self.fail(f"tunable '{name}' is declared twice", "keep one of the two lines")
        self._one_more("tune", len(self.tunables))
        parsed = tuple(parse_value(text) for text in values.split(",") if text.strip())
        if not equals or not parsed:
            raise self.fail(f"tunable '{name}' has no values", f"write '// presage: {_EXAMPLES['tune']}'")
        if len(set(parsed)) != len(parsed):
            raise self.fail(f"tunable '{name}' repeats a value", "list each value once")
        self.tunables[name] = parsed

    def _where(self, rest: str) -> None:
        self._one_more("where", len(self.constraints))
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
        self._one_more("scratch", len(self.scratch))
        self.scratch[self._name(name.strip(), "scratch")] = self._expression(size.strip())

    def _input(self, rest: str) -> None:
        self._array("input", rest)

    def _output(self, rest: str) -> None:
        self._array("output", rest)

    def _array(self, keyword: str, rest: str) -> None:
        name, equals, said = rest.partition("=")
        name, found = self._name(name.strip(), keyword), _ARRAY.fullmatch(" ".join(said.split()))
        if not equals or not found:
            raise self.fail(
                f"'{keyword} {excerpt(name)}' has no type and shape", f"write '// presage: {_EXAMPLES[keyword]}'"
            )
        if any(name in arrays for arrays in self.arrays.values()):
            raise self.fail(f"array '{name}' is declared twice", "keep one of the two lines")
        self._one_more(keyword, len(self.arrays[keyword]))
        shape = ", ".join(self._expression(part) for part in _split(found[2]))
        self.arrays[keyword][name] = ArrayLine(found[1], shape, self._expression(found[3]) if found[3] else "")

    def _case(self, rest: str) -> None:
        self._one_more("case", len(self.cases))
        sizes: dict[str, int] = {}
        for part in rest.split(","):
            name, equals, size = (text.strip() for text in part.partition("="))
            if not equals or not (size.isascii() and size.isdigit()):
                raise self.fail(f"'{excerpt(part.strip())}' is no size", f"write '// presage: {_EXAMPLES['case']}'")
            sizes[self._name(name, "case")] = int(size)
        if self.cases and list(self.cases[0]) != list(sizes):
            raise self.fail(
                "this case names other sizes than the first", f"name {', '.join(self.cases[0])}, in this order"
            )
        self.cases.append(sizes)

    def _one_more(self, keyword: str, so_far: int) -> None:
        if so_far >= _MOST:
            raise self.fail(f"more than {_MOST} lines '{keyword}'", "leave some out")

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
        if not _NAME.fullmatch(text):
            raise self.fail(f"'{excerpt(text)}' is not a name", f"write '// presage: {_EXAMPLES[keyword]}'")
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
            self.arrays["input"],
            self.arrays["output"],
            tuple(self.cases),
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
    "input": "input x = float32[rows, cols]",
    "output": "output y = float32[rows, cols]",
    "case": "case rows = 4096, cols = 1024",
}


def parse_value(text: str) -> Value:
    """A number, or else the text itself. Infinities and NaN stay text, since languages have no literal for them."""
    text = text.strip()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


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
