"""Normalised source: what a kernel does, without what it says about itself. Comments are not evidence."""

from __future__ import annotations

import ast
import hashlib
import itertools
import re
from functools import lru_cache

_STRING = r"""(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_C_TOKENS = re.compile(
    rf"""(?P<comment>{_COMMENT})
      | (?P<literal>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{{0,16}})\(.*?\)(?P=tag)"|{_STRING})
      | (?P<directive>^[ \t]*\#(?:{_STRING}|{_COMMENT}|[^\n])*)
      | (?P<space>\n|[^\S\n]+)
      | (?P<code>\d(?:'?\w)*|\w+|[<>]{{2}}=|\.\.\.|->|::|\+\+|--|<<|>>|&&|\|\||\#\#|[-+*/%&|^<>=!]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_CONTINUED_LINE = re.compile(r"\\[ \t]*\r?\n")
_SETTING = re.compile(r"^([A-Za-z_]\w*)[ \t]*=[ \t]*(0|[1-9][0-9]*)[ \t]*$", re.MULTILINE | re.ASCII)
_BLANK_SETTING = re.compile(r"^([A-Za-z_]\w*) = 0$", re.MULTILINE | re.ASCII)
_LAUNCH = re.compile(r"^\s*(?://|#)\s*presage:\s*(entry|grid|block|shared|scratch)\b(.*)$", re.MULTILINE)


def normalise(source: str, language: str) -> str:
    """The source with comments, docstrings and layout removed; launch declarations are kept, being code.

    >>> normalise("int  f(){ return 1; } // 2x faster", "c")
    'int f(){return 1;}'
    """
    if language in ("c", "cuda"):
        launch = [f"// presage: {keyword} {' '.join(rest.split())}" for keyword, rest in _LAUNCH.findall(source)]
        return "\n".join([*launch, _normalise_c(source)])
    return _normalise_python(source)


def digest(source: str, language: str) -> str:
    """A kernel's identity: the hash of its normalised source and language."""
    text = f"{language}\n{normalise(source, language)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _normalise_c(source: str) -> str:
    """Line by line, since variants of a kernel share nearly all of theirs; as a whole where a comment or a literal may
    go on in the next line."""
    source = _CONTINUED_LINE.sub("", source)
    goes_on = any(mark in source for mark in ("/*", 'R"', "\\\n"))
    parts = [source] if goes_on else source.split("\n")
    lines: list[list[str]] = [[]]
    last = ""  # the token before, if it stands in the same line
    for text, first, end in itertools.chain.from_iterable(map(_normalise_c_part, parts)):
        if not first:
            lines += [[text], []]
        elif last and _would_merge(last, first):
            lines[-1] += [" ", text]
        else:
            lines[-1].append(text)
        last = end
    return "\n".join("".join(line) for line in lines if line)


@lru_cache(maxsize=1 << 14)
def _normalise_c_part(part: str) -> tuple[tuple[str, str, str], ...]:
    """Directives, and what stands between them with its first and its last token."""
    lines: list[list[str]] = [[]]
    directives: set[int] = set()
    for match in _C_TOKENS.finditer(part):
        text = match[0]
        if match.lastgroup == "directive":
            directives.add(len(lines))
            lines += [[_normalise_c_directive(text)], []]
        elif match.lastgroup not in ("comment", "space"):
            line = lines[-1]
            if line and _would_merge(line[-1], text):
                line.append(" ")
            line.append(text)
    return tuple(
        ("".join(line), "" if at in directives else line[0], "" if at in directives else line[-1])
        for at, line in enumerate(lines)
        if line
    )


@lru_cache(maxsize=1 << 16)
def _would_merge(left: str, right: str) -> bool:
    """Whether two tokens written without a space would be read as others: `int x`, `a + +b`, `a / *b`."""
    if (_is_word(left[-1]) and _is_word(right[0])) or (left == "/" and right[0] in "/*"):
        return True
    joined = _C_TOKENS.match(left + right)
    return joined is not None and joined.end() != len(left)


def _normalise_c_directive(text: str) -> str:
    """A preprocessor line without comments; its spacing can carry meaning, so it is only collapsed."""
    kept: list[str] = []
    for match in _C_TOKENS.finditer(text.lstrip().removeprefix("#").strip()):
        blank = match.lastgroup in ("comment", "space")
        if not (blank and (not kept or kept[-1] == " ")):
            kept.append(" " if blank else match[0])
    return "#" + "".join(kept).rstrip()


def _is_word(character: str) -> bool:
    return character.isalnum() or character in "_\"'"


def _normalise_python(source: str) -> str:
    """Variants of a module differ in the numbers that it sets at its top, so those are put in afterwards."""
    numbers = _SETTING.findall(source)
    blank = _normalise_module(_SETTING.sub(r"\1 = 0", source))
    if blank is not None and _BLANK_SETTING.findall(blank) == [name for name, _ in numbers]:
        values = iter(numbers)
        return _BLANK_SETTING.sub(lambda _: "{} = {}".format(*next(values)), blank)
    normal = _normalise_module(source)
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip()) if normal is None else normal


@lru_cache(maxsize=1 << 10)
def _normalise_module(source: str) -> str | None:
    """None where it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    waiting: list[ast.AST] = [tree]
    while waiting:  # what holds statements; no expression does
        node = waiting.pop()
        for block in ("body", "orelse", "finalbody"):
            if statements := getattr(node, block, None):
                kept = [statement for statement in statements if not _is_remark(statement)]
                setattr(node, block, kept or ([] if node is tree else [ast.Pass()]))
                waiting += kept
        for block in ("handlers", "cases"):
            waiting += getattr(node, block, ())
    return ast.unparse(tree)


def _is_remark(statement: ast.stmt) -> bool:
    """A string or number that stands alone: a docstring, or a comment in all but name."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
