"""`presage plugins [KIND]`: every part that has a name on the command line, with what it does and its settings."""

from __future__ import annotations

import argparse
import inspect
from importlib.metadata import entry_points
from typing import Any

from presage.cli import documents, terminal
from presage.core.errors import PresageError
from presage.plugins import group
from presage.plugins.group import Group
from presage.plugins.summaries import first_sentence

KINDS = {
    each.plural: each
    for each in (
        group.FORECASTERS, group.POLICIES, group.STRATEGIES, group.ACQUISITIONS, group.PROPOSERS, group.DEVICES,
        group.PROBLEMS, group.RECORDINGS, group.MODELS,
    )
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=list(KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.epilog = "A setting follows the name on the command line: --policy topk:k=4."


def run(arguments: argparse.Namespace) -> int:
    chosen = [KINDS[arguments.kind]] if arguments.kind else list(KINDS.values())
    found = [plugin for each in chosen for plugin in _describe(each)]
    if arguments.json:
        documents.write("plugins", {"plugins": found})
        return 0
    rows = [[each["kind"], each["name"], each["package"], _about(each)] for each in found]
    print(terminal.table(rows, ["kind", "name", "package", "what it does [settings]"]))
    return 0


def _describe(of: Group) -> list[dict[str, Any]]:
    """Every part of a kind. One that cannot be loaded is listed with the reason."""
    found = []
    for point in sorted(entry_points(group=f"presage.{of.plural}")):
        package = point.dist.name if point.dist else point.module
        about: dict[str, Any] = {
            "kind": of.noun,
            "name": point.name,
            "package": package,
            "summary": "",
            "settings": {},
            "error": None,
        }
        try:
            part = of.load(point.name)
        except PresageError as error:
            found.append(about | {"error": str(error)})
            continue
        if callable(part):
            about |= {"summary": first_sentence(part.__doc__), "settings": _settings(of, part)}
        found.append(about)
    return found


def _settings(of: Group, part: Any) -> dict[str, Any]:
    """The arguments of the constructor that can be written after the name, with their defaults."""
    known = group.settings_of(part, leading=1 if of is group.PROPOSERS else 0)
    return {name: each.default for name, each in known.items() if _is_plain(each)}


def _is_plain(parameter: inspect.Parameter) -> bool:
    """Whether a value can be written as text."""
    declared = str(parameter.annotation).partition(" |")[0]
    return isinstance(parameter.default, str | int | float) or declared in ("str", "int", "float", "bool")


def _about(plugin: dict[str, Any]) -> str:
    settings = ", ".join(name if value is None else f"{name}={value}" for name, value in plugin["settings"].items())
    return str(plugin["error"] or f"{plugin['summary']}{f' [{settings}]' if settings else ''}")
