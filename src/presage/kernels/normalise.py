"""Normalised source: what a kernel does, without what it says about itself. Comments are not evidence."""

from __future__ import annotations

import ast
import hashlib
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
    lines: list[list[str]] = [[]]
    for match in _C_TOKENS.finditer(_CONTINUED_LINE.sub("", source)):
        text = match[0]
        if match.lastgroup == "directive":
            lines += [[_normalise_c_directive(text)], []]
        elif match.lastgroup not in ("comment", "space"):
            line = lines[-1]
            if line and _would_merge(line[-1], text):
                line.append(" ")
            line.append(text)
    return "\n".join("".join(line) for line in lines if line)


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
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())
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
