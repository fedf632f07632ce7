"""Normalises a kernel's source: removes comments and layout, which say nothing about what the kernel does.

A kernel's identity is the hash of its normalised source. If a program can read its own text, or if compilers may
disagree on what is a comment, the raw text is hashed, too, so that two files that do different things never share an
identity.
"""

from __future__ import annotations

import ast
import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

from presage.kernels import header as headers
from presage.kernels.self_reading import reads_itself

_BLOCK_COMMENT = r"/\*.*?(?:\*/|\Z)"
_COMMENT = rf"//[^\n]*+|{_BLOCK_COMMENT}"
_STRING = r"""(?:u8|[uUL])?(?:"(?:\\[^\n]|[^"\\\n])*+"?|'(?:\\[^\n]|[^'\\\n])*+'?)"""
_RAW = r"""(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\((?:.*?\)(?P=tag)"|.*)"""
_LED_IN = rf"(?:[ \t\f\v]|{_BLOCK_COMMENT})*+(?:\#|%:)"
# No alternative fails after it has begun: an unclosed literal or comment extends to the end of its line or of the text.
# So the regex looks at each character only a few times, and takes linear time on any text.
_C_TOKENS = re.compile(
    rf"""(?P<directive>^{_LED_IN}(?:{_STRING}|{_COMMENT}|[^\n])*+)
      | (?P<comment>{_COMMENT})
      | (?P<literal>(?:{_RAW}|{_STRING})(?:(?<=["'])[^\W\d]\w*+)?)
      | (?P<space>\n|[ \t\r\f\v]++)
      | (?P<code>\.?\d(?:[eEpP][+-]|'?\w|\.)*+|\w++
                |<=>|[<>]{{2}}=|\.\.\.|->|::|\+\+|--|<<|>>|&&|\|\||\#\#|[-+*/%&|^<>=!]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_LED = re.compile(_LED_IN, re.DOTALL)
_CLOSED = re.compile(
    rf"""(?:{_RAW.removesuffix("|.*)")})|{_STRING.replace('"?', '"').replace("'?", "'")})(?:[^\W\d]\w*+)?""", re.DOTALL
)
_ODD_IN_A_HEADER = ("//", "/*", "\\", "'", '"')
_CONTINUED_LINE = re.compile(r"\\[ \t\f\v]*+\r?\n")
_PLAINLY_CONTINUED = ("\\\n", "\\\r\n")
_SETTING = re.compile(r"^([A-Za-z_]\w*)[ \t]*=[ \t]*(0|[1-9][0-9]*)[ \t]*$", re.MULTILINE | re.ASCII)
_BLANK_SETTING = re.compile(r"^([A-Za-z_]\w*) = 0$", re.MULTILINE | re.ASCII)
_LAUNCH = ("entry", "grid", "block", "shared", "scratch")
_READ_IN_SEVERAL_WAYS = re.compile(r"\?\?[=/'()!<>-]|\r(?!\n)")
"""Trigraphs and lone carriage returns, which compilers read in different ways: only some see a new line there."""
_TELLS_LAYOUT = (
    "__LINE__", "__FILE", "__BASE_FILE__", "__INCLUDE_LEVEL__", "__builtin_LINE", "__builtin_COLUMN", "__builtin_FILE",
    "source_location", "incbin",
)  # fmt: skip
_REMEMBERED = 2000
"""Characters. Lines longer than this, and modules longer than `_REMEMBERED_MODULE`, are not cached between kernels."""
_REMEMBERED_MODULE = 50_000


def normalise(source: str, language: str) -> str:
    """The source with comments, docstrings and layout removed. Launch declarations are code, so they are kept.

    >>> normalise("int  f(){ return 1; } // 2x faster", "c")
    'int f(){return 1;}'
    """
    return _normalised(source, language)[0]


def digest(source: str, language: str) -> str:
    """A kernel's identity: the hash of its language and normalised source, and of its raw text if that can matter."""
    normal, is_all = _normalised(source, language)
    text = f"{language}\n{normal}" if is_all else f"{language}\n{normal}\n{source}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _normalised(source: str, language: str) -> tuple[str, bool]:
    """The normalised source, and whether it holds everything in the text that a compiler or the program can see."""
    if language not in ("c", "cuda"):
        return _normalise_python(source)
    found = [line for line in headers.directives(source) if line.keyword in _LAUNCH]
    launch = [f"// presage: {line.keyword} {' '.join(line.rest.split())}" for line in found]
    normal, is_all = _normalise_c(source)
    is_all &= not any(quote in line for line in launch for quote in "'\"")
    return "\n".join([*launch, normal]), is_all and not (language == "c" and "asm" in source)


# -- C and CUDA -------------------------------------------------------------------------------------------------------


def _normalise_c(source: str) -> tuple[str, bool]:
    """Normalise line by line, so that variants of a kernel, which share nearly all lines, share cache entries. A source
    with comments or literals that may span lines is normalised as a whole."""
    is_all = not any(word in source for word in _TELLS_LAYOUT)
    if "??" in source or "\r" in source:
        is_all &= not _READ_IN_SEVERAL_WAYS.search(source)
    if "\\" in source:
        continued = set(_CONTINUED_LINE.findall(source))
        is_all &= continued <= {*_PLAINLY_CONTINUED} and not (continued and 'R"' in source)
        source = _CONTINUED_LINE.sub("", source)
    goes_on = any(mark in source for mark in ("/*", 'R"'))
    parts = [source] if goes_on else source.split("\n")
    lines: list[list[str]] = [[]]
    last = ""  # the previous token, if it is on the same line of the result
    for found, is_plain in map(_normalise_c_part, parts):
        is_all &= is_plain
        for text, first, end in found:
            if not first:
                lines += [[text], []]
            elif last and _would_merge(last, first):
                lines[-1] += [" ", text]
            else:
                lines[-1].append(text)
            last = end
    return "\n".join("".join(line) for line in lines if line), is_all


_Parts = tuple[tuple[tuple[str, str, str], ...], bool]


def _normalise_c_part(part: str) -> _Parts:
    return _remembered_c_part(part) if len(part) <= _REMEMBERED else _read_c_part(part)


@lru_cache(maxsize=1 << 14)
def _remembered_c_part(part: str) -> _Parts:
    return _read_c_part(part)


def _read_c_part(part: str) -> _Parts:
    """Return the directives and the code between them, each with its first and last token, and whether all is plain."""
    lines: list[list[str]] = [[]]
    directives: set[int] = set()
    is_plain = True
    for match in _C_TOKENS.finditer(part):
        text, kind = match[0], match.lastgroup
        if kind == "directive":
            directives.add(len(lines))
            shown, directive_is_plain = _normalise_c_directive(text)
            is_plain &= directive_is_plain
            lines += [[shown], []]
            continue
        is_plain &= _is_plain(kind, text)
        if kind not in ("comment", "space"):
            line = lines[-1]
            if line and _would_merge(line[-1], text):
                line.append(" ")
            line.append(text)
    found = tuple(
        ("".join(line), "" if at in directives else line[0], "" if at in directives else line[-1])
        for at, line in enumerate(lines)
        if line
    )
    return found, is_plain


def _is_plain(kind: str | None, token: str) -> bool:
    """Whether all compilers read this token alike, whatever the space around it."""
    if kind == "literal":
        return _CLOSED.fullmatch(token) is not None
    if kind == "comment":
        return token.startswith("//") or (token.endswith("*/") and len(token) >= 4)
    return kind == "space" or (kind == "code" and token.isascii() and token not in "\\$@`")


def _would_merge(left: str, right: str) -> bool:
    """Whether two tokens written without a space would be read as different tokens: `int x`, `a + +b`, `a / *b`."""
    if (_is_word(left[-1]) and _is_word(right[0])) or (left == "/" and right[0] in "/*"):
        return True
    if len(left) + len(right) <= _REMEMBERED:
        return _remembered_merge(left, right)
    return _read_as_others(left, right)


@lru_cache(maxsize=1 << 16)
def _remembered_merge(left: str, right: str) -> bool:
    return _read_as_others(left, right)


def _read_as_others(left: str, right: str) -> bool:
    joined = _C_TOKENS.match(left + right)
    return joined is not None and joined.end() != len(left)


def _normalise_c_directive(text: str) -> tuple[str, bool]:
    """A preprocessor line without comments, and whether it is plain. Its spacing can carry meaning, so it is only
    collapsed. A line that turns code into text (#) or joins two names (##) is not plain, since its effect is not
    visible here."""
    led = _LED.match(text)
    assert led is not None
    text = text[led.end() :].strip()
    kept: list[str] = []
    names_header = text.startswith(("include", "import")) or "__has_" in text
    is_plain = not text.startswith("embed") and (not names_header or _header_is_plain(text))
    for match in _C_TOKENS.finditer(text):
        blank = match.lastgroup in ("comment", "space")
        is_plain &= _is_plain(match.lastgroup, match[0]) and match[0] not in ("#", "##")
        if not (blank and (not kept or kept[-1] == " ")):
            kept.append(" " if blank else match[0])
    shown = "#" + "".join(kept).rstrip()
    return shown, is_plain and "%:" not in shown


def _header_is_plain(text: str) -> bool:
    """Whether nothing in an included header's name looks like a comment or a literal to this module's regex."""
    before, opened, name = text.partition("<")
    if not opened:
        return "\\" not in text and "/*" not in text
    return not any(odd in before or odd in name.partition(">")[0] for odd in _ODD_IN_A_HEADER)


def _is_word(character: str) -> bool:
    return character.isalnum() or character in "_\"'"


# -- Python -----------------------------------------------------------------------------------------------------------


def _normalise_python(source: str) -> tuple[str, bool]:
    """Normalise a module with its top-level numbers replaced by 0, and insert the numbers afterwards, so that variants
    of a module that differ only in these numbers share a cache entry."""
    numbers = [(match[1], match[2]) for match in _SETTING.finditer(source)]
    blank = _normalise_module(_SETTING.sub(r"\1 = 0", source))
    if blank is not None and blank.settings == len(numbers):
        values = iter(numbers)
        return _BLANK_SETTING.sub(lambda _: "{} = {}".format(*next(values)), blank.text), blank.is_all
    normal = _normalise_module(source)
    if normal is None:
        return "\n".join(line.rstrip() for line in source.splitlines() if line.strip()), False
    return normal.text, normal.is_all


class _Module(NamedTuple):
    text: str
    settings: int | None
    """How many numbers are set at its top; None if something else looks like such a line."""
    is_all: bool


def _normalise_module(source: str) -> _Module | None:
    """The normalised module; None if it cannot be parsed."""
    return _remembered_module(source) if len(source) <= _REMEMBERED_MODULE else _read_module(source)


@lru_cache(maxsize=1 << 10)
def _remembered_module(source: str) -> _Module | None:
    return _read_module(source)


def _read_module(source: str) -> _Module | None:
    try:
        tree = ast.parse(source)
        settings = {(node.lineno, name) for node in tree.body if (name := _set_name(node))}
        is_all = not reads_itself(tree)
        _remove_remarks(tree)
        text = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    looks = _settings(source)
    is_sure = settings.issuperset(looks) and [name for _, name in looks] == _BLANK_SETTING.findall(text)
    return _Module(text, len(looks) if is_sure else None, is_all)


def _settings(source: str) -> list[tuple[int, str]]:
    """The line number and the name in each line that looks like a setting to 0."""
    found, line, at = [], 1, 0
    for match in _BLANK_SETTING.finditer(source):
        line, at = line + source.count("\n", at, match.start()), match.start()
        found.append((line, match[1]))
    return found


def _set_name(node: ast.stmt) -> str | None:
    """The name to which a statement assigns a value, if it is a plain assignment to one name."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _remove_remarks(tree: ast.Module) -> None:
    waiting: list[ast.AST] = [tree]
    while waiting:  # only nodes that can hold statements, so no expressions
        node = waiting.pop()
        for block in ("body", "orelse", "finalbody"):
            if statements := getattr(node, block, None):
                kept = [statement for statement in statements if not _is_remark(statement)]
                setattr(node, block, kept or ([] if node is tree else [ast.Pass()]))
                waiting += kept
        for block in ("handlers", "cases"):
            waiting += getattr(node, block, ())


def _is_remark(statement: ast.stmt) -> bool:
    """A constant that stands alone: a docstring, or a string used as a comment."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
