"""Summarises each part of a kind by the first sentence of its docstring, read without importing the part."""

from __future__ import annotations

import ast
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from pathlib import Path

from presage.plugins.entry_points import entry_points
from presage.plugins.group import Group


def summaries(of: Group) -> dict[str, str]:
    """The first sentence of each part's docstring, by name; empty if the docstring cannot be read."""
    return {point.name: _summary(point) for point in sorted(entry_points(f"presage.{of.plural}"))}


def first_sentence(docstring: str | None) -> str:
    """
    >>> first_sentence("Measures the best k\\n    of a batch. Needs nothing.")
    'Measures the best k of a batch'
    """
    text = " ".join((docstring or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def _summary(point: EntryPoint) -> str:
    file = _source(point.module)
    try:
        tree = ast.parse(file.read_text(encoding="utf-8")) if file else ast.Module([], [])
    except (OSError, SyntaxError, ValueError):  # a third-party file may be broken
        return ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == point.attr:
            return first_sentence(ast.get_docstring(node))
    return ""


def _source(module: str) -> Path | None:
    """The source file of a module, or None. Unlike `importlib.util.find_spec`, this imports no parent package."""
    path, name, spec = None, "", None
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
