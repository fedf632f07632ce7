"""Reads a GPU MODE task.yml with PyYAML: mappings, lists, numbers and strings, within size limits."""

from __future__ import annotations

from functools import cache
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import lone_surrogate

_LONGEST = 1 << 20
_DEEPEST = 32
_LONGEST_NUMBER = 400
"""Characters. Python takes more than linear time to parse longer numbers."""
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")


def parse(text: str, name: str) -> dict[str, Any]:
    """Parse the document, which must be a mapping. Raises PresageError with the line number if it cannot be read.

    >>> parse('tests:\\n  - {"size": 64, "seed": 1}\\nlang: "py"  # a comment', "task.yml")
    {'tests': [{'size': 64, 'seed': 1}], 'lang': 'py'}
    """
    if len(text) > _LONGEST:
        raise PresageError(f"{name} has {len(text)} characters; a task has at most {_LONGEST}")
    try:
        import yaml
    except ImportError as error:
        raise PresageError(f"{name}: reading it needs PyYAML, which is not installed; pip install PyYAML") from error
    try:
        _refuse_events(yaml, text, name)
        loader = _loader(yaml)(text)
        node = loader.get_single_node()
        found = {} if node is None else _value(node, loader, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "no YAML"
        raise PresageError(f"{name}:{mark.line + 1 if mark else 1}: {said}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise PresageError(f"{name}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise PresageError(f"{name}:1: this must be a mapping of names to values")
    return found


def _refuse_events(yaml: Any, text: str, name: str) -> None:
    """Refuse text that takes more memory or time than its length suggests, before any object is built from it."""
    depth = 0
    for event in yaml.parse(text, Loader=_loader(yaml)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _fault(f"more than {_DEEPEST} lists and mappings within each other", event, name)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise _fault("anchors, aliases and tags cannot be used here", event, name)


def _value(node: Any, loader: Any, name: str) -> Any:
    if isinstance(node.value, str):
        return _scalar(node, loader, name)
    if node.id == "sequence":
        return [_value(item, loader, name) for item in node.value]
    found: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key.value, str) or lone_surrogate(key.value) is not None:
            raise _fault("a list, a mapping or half of a surrogate pair cannot be a name", key, name)
        if key.value in found:
            raise _fault(f"'{key.value[:40]}' is there twice", key, name)
        found[key.value] = _value(value, loader, name)
    return found


def _scalar(node: Any, loader: Any, name: str) -> Any:
    if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
        raise _fault(f"{node.value[:40]} is too long for a number", node, name)
    if lone_surrogate(node.value) is not None:
        raise _fault("half of a surrogate pair", node, name)
    try:
        return loader.construct_object(node)
    except (ValueError, OverflowError) as error:
        raise _fault(f"'{node.value[:40]}' is no number", node, name) from error


def _fault(message: str, place: Any, name: str) -> PresageError:
    return PresageError(f"{name}:{place.start_mark.line + 1}: {message}")


@cache
def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader, in C if available, which knows only the types in `_KINDS` (no dates, for example)."""
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    kinds = {f"tag:yaml.org,2002:{kind}" for kind in _KINDS}
    resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag in kinds]
        for first, found in safe.yaml_implicit_resolvers.items()
    }
    return type("TaskLoader", (safe,), {"yaml_implicit_resolvers": resolvers})
