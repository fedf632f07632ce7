"""Reads a GPU MODE task.yml: the part of YAML that such files use, and an error with its line for anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from presage.core.errors import PresageError
from presage.core.text import lone_surrogate

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w .-]*+")
_QUOTED_KEY = re.compile(r""""(?:[^"\\]|\\.)*+"|'[^']*+'""")
_BLOCK = re.compile(r"(?P<style>[|>])(?P<chomp>[+-]?)\s*+(?:#.*)?")
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'""")
_PLAIN = re.compile(r"[^,{}\[\]:#\"']*+")
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST = 1 << 20
_DEEPEST = 32
_LONGEST_NUMBER = 400
_WORDS = {"": None, "~": None, "null": None, "true": True, "True": True, "false": False, "False": False}


def parse(text: str, name: str) -> dict[str, Any]:
    """The document, which must be a mapping.

    >>> parse('tests:\\n  - {"size": 64, "seed": 1}\\nlang: "py"  # a comment', "task.yml")
    {'tests': [{'size': 64, 'seed': 1}], 'lang': 'py'}
    """
    if len(text) > _LONGEST:
        raise PresageError(f"{name} has {len(text)} characters; a task has at most {_LONGEST}")
    reader = _Reader(text, name)
    line = reader.peek()
    if line is None:
        return {}
    document = reader.block(line[0])
    if reader.peek() is not None:
        reader.fail("this is indented less than what it follows")
    if not isinstance(document, dict):
        reader.fail("a list, where a mapping of names to values is expected", 1)
    return document


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._lines, self._name, self._at = text.splitlines(), name, 0
        self._depth = 0

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise PresageError(f"{self._name}:{line or min(self._at, len(self._lines) - 1) + 1}: {message}")

    def peek(self) -> tuple[int, str] | None:
        """The indentation and the text of the next line that says anything."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            text = line.lstrip(" ")
            if text.startswith("\t"):
                self.fail("a tab in the indentation; YAML wants spaces")
            if text and not text.startswith("#"):
                return len(line) - len(text), text
            self._at += 1
        return None

    def block(self, indent: int) -> Any:
        line = self.peek()
        assert line is not None
        with self._deeper():
            return self._sequence(indent) if _is_item(line[1]) else self._mapping(indent)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} lists and mappings within each other")
        yield
        self._depth -= 1

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self.peek()) is not None and line[0] >= indent and not (line[0] == indent and _is_item(line[1])):
            if line[0] > indent:
                self.fail("this is indented more than what it follows")
            parts = _key_and_rest(line[1])
            if parts is None:
                self.fail(f"'{line[1][:40]}' is no 'name: value'")
            key = str(self._scalar(parts[0]))
            if key in found:
                self.fail(f"'{key}' is there twice")
            found[key] = self._value(parts[1], indent, items_at=indent)
        return found

    def _sequence(self, indent: int) -> list[Any]:
        found: list[Any] = []
        while (line := self.peek()) is not None and line[0] == indent and _is_item(line[1]):
            rest = line[1][1:].lstrip()
            if _key_and_rest(rest):  # a mapping whose first name stands beside the dash
                inner = indent + len(line[1]) - len(rest)
                self._lines[self._at] = " " * inner + rest
                with self._deeper():
                    found.append(self._mapping(inner))
            else:
                found.append(self._value(rest, indent, items_at=indent + 1))
        return found

    def _value(self, rest: str, indent: int, items_at: int) -> Any:
        """What stands after a colon or a dash: a value on the same line, or a block below. A list may stand as far
        left as the name it belongs to, but not as far left as the item it belongs to."""
        if match := _BLOCK.fullmatch(rest):
            return self._text(indent, match["style"], match["chomp"])
        if rest and not rest.startswith("#"):
            value = self._inline(rest)
            self._at += 1
            return value
        self._at += 1
        line = self.peek()
        if line is not None and line[0] >= (items_at if _is_item(line[1]) else indent + 1):
            return self.block(line[0])
        return None

    def _text(self, indent: int, style: str, chomp: str) -> str:
        """A block of text, which ends where the indentation does."""
        lines: list[str] = []
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self._at += 1
        while lines and not lines[-1].strip():
            lines.pop()
        margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
        text = (" " if style == ">" else "\n").join(line[margin:].rstrip() for line in lines)
        return text if chomp == "-" or not text else text + "\n"

    # -- values on one line -------------------------------------------------------------------------------------------

    def _inline(self, text: str) -> Any:
        if text[0] in "{[\"'":
            value, at = self._flow(text, 0)
            if text[at:].strip() and not re.match(r"\s+#", text[at:]):
                self.fail(f"'{text[at:].strip()[:40]}' after the end of the value")
            return value
        if text[0] in "&*!%@`|>?" or _is_item(text):
            self.fail(f"'{text[:40]}': this part of YAML is not understood here")
        return self._scalar(re.split(r"\s#", text, maxsplit=1)[0].rstrip())

    def _flow(self, text: str, at: int) -> tuple[Any, int]:
        """A value inside brackets, or the bracket itself; says where it ends."""
        at = _skip(text, at)
        opening = text[at : at + 1]
        if opening in ("{", "["):
            with self._deeper():
                return self._items(text, at + 1, "}" if opening == "{" else "]", {} if opening == "{" else [])
        if match := _QUOTED.match(text, at):
            return self._scalar(match[0]), match.end()
        match = _PLAIN.match(text, at)
        assert match is not None
        return self._scalar(match[0].strip()), match.end()

    def _items(self, text: str, at: int, closing: str, found: Any) -> tuple[Any, int]:
        while True:
            at = _skip(text, at)
            if text[at : at + 1] == closing:
                return found, at + 1
            value, at = self._flow(text, at)
            at = _skip(text, at)
            if isinstance(found, dict):
                if text[at : at + 1] != ":" or isinstance(value, dict | list):
                    self.fail(f"'{value}' has no ':' after it")
                if value in found:
                    self.fail(f"'{value}' is there twice")
                found[value], at = self._flow(text, at + 1)
                at = _skip(text, at)
            else:
                found.append(value)
            if text[at : at + 1] == ",":
                at += 1
            elif text[at : at + 1] != closing:
                self.fail(f"no '{closing}' on the line of its '{'{' if closing == '}' else '['}'")

    def _scalar(self, text: str) -> Any:
        if text.startswith('"'):
            try:
                value = json.loads(text)
            except ValueError:
                self.fail(f"{text[:40]} is no string")
            if lone_surrogate(value) is not None:
                self.fail(f"{text[:40]} holds half of a surrogate pair")
            return value
        if text.startswith("'"):
            return text[1:-1].replace("''", "'")
        if text in _WORDS:
            return _WORDS[text]
        if len(text) > _LONGEST_NUMBER and _NUMBER.fullmatch(text):
            self.fail(f"{text[:40]} is too long for a number")
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text


def _key_and_rest(text: str) -> tuple[str, str] | None:
    """The name and the value of a `name: value`, if it is one."""
    if quoted := _QUOTED_KEY.match(text):
        key, rest = quoted[0], text[quoted.end() :].lstrip()
        colon, rest = rest[:1], rest[1:]
    else:
        key, colon, rest = text.partition(":")
        key = key.rstrip()
        if not _PLAIN_KEY.fullmatch(key):
            return None
    return (key, rest.lstrip()) if colon == ":" and (not rest or rest[0].isspace()) else None


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at
