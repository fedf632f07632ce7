"""Source code for pages: syntax highlighting, and the difference between two sources. Any text can be shown: parts that
cannot be parsed stay plain."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from presage.report.html import Html, join, tag
from presage.report.page import paragraph

_LONGEST = 200_000
"""The most characters of a source that are shown."""
_LONGEST_LINE = 2_000
_LONGEST_COMPARED = 5_000
"""The most lines of a source that is compared."""
_CLASSES = {
    "comment": "comment", "string": "string", "string_literal": "string", "raw_string_literal": "string",
    "char_literal": "string", "system_lib_string": "string", "number_literal": "number", "integer": "number",
    "float": "number", "primitive_type": "keyword", "preproc_directive": "keyword", "true": "keyword",
    "false": "keyword", "none": "keyword", "null": "keyword", "type_identifier": "name",
    "sized_type_specifier": "keyword",
}  # fmt: skip
"""The CSS class for each type of syntax tree node. It applies to the whole node with its children."""
_FUNCTIONS = {"call", "call_expression", "function_definition", "function_declarator", "class_definition"}


def highlighted(source: str, language: str) -> Html:
    """Return a source with syntax highlighting."""
    shown = clipped(source)
    parts = _marked(shown, language)
    more = paragraph(f"The first {_LONGEST:,} of {len(source):,} characters.") if len(shown) < len(source) else Html()
    return join([tag("pre", tag("code", parts), tabindex=0, role="region", aria_label="Source"), more])


def clipped(source: str) -> str:
    """Cut a source to 200,000 characters, and each line to 2,000."""
    few = source[:_LONGEST]
    if all(len(line) <= _LONGEST_LINE for line in few.split("\n")):
        return few
    return "\n".join(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in few.split("\n"))


def _marked(source: str, language: str) -> list[Html]:
    data = source.encode("utf-8", "replace")
    parts, end = [], 0
    for start, stop, kind in _tokens(data, language):
        parts += [
            join(data[end:start].decode("utf-8", "replace")),
            tag("span", data[start:stop].decode("utf-8", "replace"), class_=kind),
        ]
        end = stop
    return [*parts, join(data[end:].decode("utf-8", "replace"))]


def _tokens(data: bytes, language: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start byte, end byte and CSS class of each highlighted part. The tree is walked without recursion."""
    cursor = _parser("tree_sitter_cuda" if language in ("c", "cuda") else "tree_sitter_python").parse(data).walk()
    while True:
        node = cursor.node
        kind = _kind(node)
        if kind and node.end_byte > node.start_byte:
            yield node.start_byte, node.end_byte, kind
        if not kind and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _kind(node: Any) -> str | None:
    if node.type in _CLASSES:
        return _CLASSES[node.type]
    if not node.is_named and node.type.replace("_", "").replace("#", "").isalpha():
        return "keyword"
    if node.type == "identifier" and node.parent is not None and node.parent.type in _FUNCTIONS:
        return "name" if node.parent.child(0) == node or node.prev_sibling is not None else None
    return None


@lru_cache(maxsize=2)
def _parser(grammar: str) -> Any:
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(import_module(grammar).language()))


def difference(old: str, new: str, names: tuple[str, str]) -> Html:
    """Return the unified diff of two sources. `names` are their names."""
    if old == new:
        return paragraph("The two are the same.")
    both = clipped(old).splitlines(), clipped(new).splitlines()
    if max(map(len, both)) > _LONGEST_COMPARED:
        return paragraph(f"They have more than {_LONGEST_COMPARED:,} lines, which are not compared here.")
    lines = list(difflib.unified_diff(*both, lineterm="", n=6))[2:]
    added = sum(line.startswith("+") for line in lines)
    marks = {"+": "added", "-": "removed", "@": "place"}
    shown = (tag("span", f"{line}\n", class_=marks.get(line[:1])) for line in lines)
    told = f"From {names[0]} to {names[1]}: {added} lines added, {sum(line.startswith('-') for line in lines)} removed."
    return join([paragraph(told), tag("pre", tag("code", shown), tabindex=0, role="region", aria_label="Difference")])
