"""Code that `presage problems`, `policies` and `forecasters` share: list plugins, start a new one, and check one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from presage.authoring import template
from presage.authoring.finding import Finding, Verdict
from presage.cli import documents, plugins
from presage.core.errors import PresageError
from presage.plugins.group import Group
from presage.plugins.installed import declared


def add_arguments(parser: argparse.ArgumentParser, group: Group, shows: str) -> None:
    """Add the arguments after the command: a name, `new NAME` or `check NAME`."""
    parser.add_argument(
        "words", nargs="*", metavar="[new|check] NAME",
        help=f"NAME: {shows}. new NAME: write a package with a {group.noun} of your own, which works as written, to"
        f" start from. check NAME: check an installed {group.noun}, without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--into", type=Path, default=Path(), metavar="FOLDER", help="where 'new' puts its folder (default: here)"
    )


def asked(arguments: argparse.Namespace, group: Group) -> tuple[str, str]:
    """Return the verb and the name that were typed; an absent one is an empty string."""
    words: list[str] = arguments.words
    verb = words[0] if words and words[0] in template.VERBS else ""
    names = words[1:] if verb else words
    if len(names) > 1 or (verb and not names):
        usual = f"presage {group.plural}"
        raise PresageError(f"write '{usual}', '{usual} NAME', '{usual} new NAME' or '{usual} check NAME'")
    return verb, names[0] if names else ""


def new(arguments: argparse.Namespace, group: Group, name: str) -> int:
    """Write a new plugin package and print the commands to run next. Return the exit status."""
    written = template.write(group, name, arguments.into)
    then = [f"pip install -e {written.folder}", f"presage {group.plural} check {name}"]
    if arguments.json:
        files = [str(file) for file in written.files]
        document = {"name": name, "folder": str(written.folder), "files": files, "then": then}
        documents.write(f"{group.plural}.new", document)
        return 0
    for file in written.files:
        print(file)
    print("\nIt works as written. Install it, check it, then replace the example:")
    for command in then:
        print(f"  {command}")
    return 0


def report(arguments: argparse.Namespace, group: Group, name: str, findings: Iterable[Finding]) -> int:
    """Print findings as they come. Return the exit status: 1 if a rule failed."""
    found = []
    for finding in findings:
        found.append(finding)
        if not arguments.json:
            said = finding.said.replace("\n", f"\n{'':13}")
            print(f"{finding.verdict:12} {finding.rule}: {said}", flush=True)
    wrong = sum(finding.verdict is Verdict.FAILED for finding in found)
    if arguments.json:
        document = {"name": name, "ok": not wrong, "findings": [finding.to_json() for finding in found]}
        documents.write(f"{group.plural}.check", document)
    else:
        print(f"\n{name}: {f'{wrong} of {len(found)} failed' if wrong else 'nothing failed'}")
    return 1 if wrong else 0


def show(arguments: argparse.Namespace, group: Group, name: str) -> int:
    """Print all plugins of a group, or only the one of this name."""
    if name:
        group.load(name)  # raises an error that says what is wrong with the plugin
    found = [each for each in declared([group]) if name in ("", each.name)]
    if arguments.json:
        documents.write(group.plural, {group.plural: [asdict(each) for each in found]})
        return 0
    print(plugins.table(found))
    for each in found:
        if each.error:
            print(f"\nbroken: {each.error}")
    return 0
