"""The tokens of CUDA C++, in enough detail to find where functions begin and end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Token(NamedTuple):
    """A piece of the text. All tokens joined in order are the text."""

    kind: str
    """`space` (comments too), `directive`, `string`, `number`, `word` or `mark`."""
    text: str


_TOKENS = re.compile(
    r"""(?P<space>\s+|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<mark><<<|>>>|::|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(
    r"""\#(?:\\\r?\n|/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*|"(?:\\.|[^"\\\n])*"|[^\n])*""", re.VERBOSE | re.DOTALL
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def tokens(text: str) -> list[Token]:
    """
    >>> [token.text for token in tokens('f<1>(a, "}") // }')]
    ['f', '<', '1', '>', '(', 'a', ',', ' ', '"}"', ')', ' ', '// }']
    """
    found: list[Token] = []
    position, at_line_start = 0, True
    while position < len(text):
        match = (_DIRECTIVE if at_line_start and text[position] == "#" else _TOKENS).match(text, position)
        assert match is not None, "any character is a mark at least"
        kind = "directive" if match.re is _DIRECTIVE else str(match.lastgroup)
        kind = "string" if kind == "delimiter" else kind
        found.append(Token(kind, match.group()))
        position = match.end()
        if "\n" in match.group():
            at_line_start = kind == "space"
        elif kind != "space":
            at_line_start = False
    return found


def text_of(found: Sequence[Token]) -> str:
    return "".join(token.text for token in found)


def blank(found: Sequence[Token]) -> str:
    """As many empty lines as the tokens have, so that the text that follows keeps its line numbers."""
    return "\n" * text_of(found).count("\n")


def close_of(found: Sequence[Token], opening: int) -> int:
    """The index of the token that closes the bracket at `opening`; the last index if nothing closes it."""
    waiting: list[str] = []
    for index in range(opening, len(found)):
        text = found[index].text
        if found[index].kind != "mark":
            continue
        if text in _CLOSING:
            waiting.append(_CLOSING[text])
        elif waiting and text == waiting[-1]:
            waiting.pop()
            if not waiting:
                return index
    return len(found) - 1


def angle_close_of(found: Sequence[Token], opening: int) -> int | None:
    """The index of the token that closes the `<` of template arguments; None if the `<` is a comparison."""
    depth, index = 0, opening
    while index < len(found):
        text = found[index].text if found[index].kind == "mark" else ""
        if text in _CLOSING:
            index = close_of(found, index)
        elif text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return index
        elif text in (";", "}", ")"):
            return None
        index += 1
    return None


def split_at_commas(found: Sequence[Token]) -> list[list[Token]]:
    """Split at the commas that are in no bracket, whether round or angular.

    >>> [text_of(part) for part in split_at_commas(tokens("int a, pair<int, f(b, c)> d"))]
    ['int a', ' pair<int, f(b, c)> d']
    """
    parts: list[list[Token]] = [[]]
    index = 0
    while index < len(found):
        token, end = found[index], index
        if token.kind == "mark" and token.text in _CLOSING:
            end = close_of(found, index)
        elif token.text == "<":
            end = angle_close_of(found, index) or index
        if token.kind == "mark" and token.text == ",":
            parts.append([])
        else:
            parts[-1] += found[index : end + 1]
        index = end + 1
    return [part for part in parts if text_of(part).strip()]
