"""Text of others: what a terminal would obey is written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.core.text import excerpt, lone_surrogate, one_line, printable

COMMANDS = [
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00",
    "\x7f",
    "\x08",
    "\r",
    "\u202e",
    "\u2066",
    "\ud800",
    "\u2028",
]


@pytest.mark.parametrize("command", COMMANDS, ids=ascii)
def test_what_commands_is_written_out(command: str) -> None:
    shown = printable(f"a{command}b\n\tc")
    assert shown.startswith("a\\")
    assert shown.endswith("b\n\tc")
    assert shown.isascii()


@given(st.text(st.characters(exclude_categories=[]), max_size=200))
def test_nothing_of_any_text_commands(text: str) -> None:
    shown = printable(text)
    assert all(sign.isprintable() or sign in "\n\t" for sign in shown)
    assert printable(shown) == shown
    shown.encode()


@pytest.mark.parametrize("text", ["", "é – 漢字 😀", "a\nb\tc", "x" * 1000])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\n\n b", "a b"), ("a\x1b[0mb", "a [0mb"), ("x" * 99, f"{'x' * 10}…"), (" " * 99, "…"), ("", "")],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text, 10) == line


def test_an_excerpt_says_that_it_is_one() -> None:
    assert (excerpt("abc", 3), excerpt("abcd", 3)) == ("abc", "abc…")


def test_half_of_a_surrogate_pair_is_found() -> None:
    assert (lone_surrogate("ab\ud800"), lone_surrogate("a😀")) == (2, None)
