"""What Python files import, as far as that can be read."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements under a node. An import is one, and they are few beside the nodes of expressions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported anywhere under this node, and the names that are taken from them."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read and checked"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
