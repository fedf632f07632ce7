"""Make untrusted text safe to show. Output of compilers, kernels and models may contain control sequences that a
terminal would execute."""

from __future__ import annotations

import re

_NAME = re.compile(r"L?(\d{1,4})")


class _Shown(dict[int, str]):
    """A cache of how each character is shown, filled on first use."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        shown = sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        if len(self) < _REMEMBERED:
            self[code] = shown
        return shown


_REMEMBERED = 4096
_SHOWN = _Shown()


def printable(text: str) -> str:
    """Return the text with every unprintable character escaped: escape sequences, control characters, overrides of the
    writing direction, lone surrogates. Line ends and tabs stay.

    >>> printable("warning: \\x1b[31mred\\x1b[0m")
    'warning: \\\\x1b[31mred\\\\x1b[0m'
    """
    if text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SHOWN)


def one_line(text: str, most: int) -> str:
    """Return the text as one line of at most `most` characters, without those that `printable` would escape. An
    ellipsis marks a shortened text.

    >>> one_line("a\\x1b[2J\\n  b", 80)
    'a [2J b'
    """
    if len(text) <= most and text.isprintable() and "  " not in text and not text.startswith(" ") and text[-1:] != " ":
        return text  # the fast path, for nearly every text
    few = text[: 4 * most]
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in few).split())
    return line if len(line) <= most and len(few) == len(text) else f"{line[:most]}…"


def excerpt(text: str, most: int = 80) -> str:
    """Return the first `most` characters of a text, for a message that quotes it."""
    return text if len(text) <= most else f"{text[:most]}…"


def most_values(text: bytes | bytearray) -> int:
    """An upper bound of the number of values in a JSON text. Parsed, values can take many times the text's bytes, so
    foreign text is counted before it is parsed.

    >>> most_values(b'[{}, {"a": 1}]')
    5
    """
    return 1 + sum(text.count(sign) for sign in (b"[", b"{", b","))


def lone_surrogate(text: str) -> int | None:
    """Return the index of the first lone surrogate, which no encoding can write; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def plain_name(name: str) -> str:
    """Return a C++ function's name as its source has it, without the types of its arguments. A compiler lengthens it to
    tell functions of one name apart. Other names are returned unchanged.

    >>> plain_name("_Z2gnILi512ELb1EEvPK6float4S2_iiif"), plain_name("_ZN2at6native4fillIfEEvPf"), plain_name("gn")
    ('gn', 'at::native::fill', 'gn')
    """
    if not name.startswith("_Z"):
        return name
    is_nested, parts = name[2:3] == "N", list[str]()
    at = 2 + is_nested
    while (found := _NAME.match(name, at)) and (is_nested or not parts):
        at = found.end() + int(found[1])
        parts.append(name[found.end() : at])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_")) or name
