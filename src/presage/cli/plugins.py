"""`presage plugins [KIND]`: list the plugins of installed packages, and the errors of broken ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace

from presage.cli import documents, terminal
from presage.plugins.group import GROUPS
from presage.plugins.installed import Declared, declared

KINDS = {group.plural: group for group in GROUPS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=list(KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.epilog = "A setting follows the name on the command line: --policy topk:k=4."


def run(arguments: argparse.Namespace) -> int:
    from presage.problems import registry as problems

    found = list(declared([KINDS[arguments.kind]] if arguments.kind else GROUPS))
    broken = problems.broken() if arguments.kind in (None, "problems") else {}
    found = [replace(each, error=each.error or _late(each, broken)) for each in found]
    errors = list(dict.fromkeys([*(each.error for each in found if each.error), *broken.values()]))
    if arguments.json:
        documents.write("plugins", {"plugins": [asdict(each) for each in found], "errors": errors})
        return 0
    print(table(found))
    for error in errors:
        print(f"\nbroken: {error}")
    return 0


def _late(declared: Declared, broken: dict[str, str]) -> str | None:
    """Return the error that occurred when the problems of this plugin were made, or None."""
    return broken.get(declared.name) if declared.kind == "problem" else None


def table(found: Sequence[Declared]) -> str:
    """Return a table with a row for each plugin: its kind, name, package, summary and settings."""
    rows = [[each.kind, each.name, f"{each.package} {each.version}", _about(each)] for each in found]
    return terminal.table(rows, ["kind", "name", "package", "what it does [settings]"])


def _about(declared: Declared) -> str:
    if declared.error:
        return "broken"
    settings = ", ".join(name if value is None else f"{name}={value}" for name, value in declared.settings.items())
    return declared.summary + (f" [{settings}]" if settings else "")
