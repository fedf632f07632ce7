"""Text of others, made safe to show: compilers, kernels, models and files say things that a terminal would obey."""

from __future__ import annotations


class _Shown(dict[int, str]):
    """How each sign is shown, filled as signs are met."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        shown = sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        if len(self) < _REMEMBERED:
            self[code] = shown
        return shown


_REMEMBERED = 4096
_SHOWN = _Shown()


def printable(text: str) -> str:
    """The text with every sign that commands instead of showing written out: escape sequences, control characters,
    overrides of the writing direction, halves of surrogate pairs. Line ends and tabs stay.

    >>> printable("warning: \\x1b[31mred\\x1b[0m")
    'warning: \\\\x1b[31mred\\\\x1b[0m'
    """
    if text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SHOWN)


def one_line(text: str, most: int) -> str:
    """The text as one short line, without the signs that `printable` would write out.

    >>> one_line("a\\x1b[2J\\n  b", 80)
    'a [2J b'
    """
    if len(text) <= most and text.isprintable() and "  " not in text and not text.startswith(" ") and text[-1:] != " ":
        return text  # nearly every text
    few = text[: 4 * most]
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in few).split())
    return line if len(line) <= most and len(few) == len(text) else f"{line[:most]}…"


def excerpt(text: str, most: int = 80) -> str:
    """The beginning of a text, for a message that quotes it."""
    return text if len(text) <= most else f"{text[:most]}…"


def lone_surrogate(text: str) -> int | None:
    """Where the first half of a surrogate pair stands that no encoding can write; None where there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None
