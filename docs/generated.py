"""The parts of the reference that come from the code: a hook of mkdocs, which puts them in place of a page's markers.

A page writes `<!-- generated: commands -->`. Nothing generated is kept in the repository, so none of it can be old.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import presage
from presage.cli import main
from presage.static import hardware


def on_page_markdown(markdown: str, **_: Any) -> str:
    for name, make in GENERATED.items():
        markdown = markdown.replace(f"<!-- generated: {name} -->", make())
    return markdown


def commands() -> str:
    """Each command with its arguments and options, as its parser declares them."""
    return "\n\n".join(section for name in main.COMMANDS for section in _command(_parser(name)))


def _parser(name: str) -> argparse.ArgumentParser:
    return _choices(main.build(name))[name]


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    choices = _choices(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    declared = [action for action in shown if not isinstance(action, _NOT_SHOWN)]
    positional = [action for action in declared if not action.option_strings]
    optional = [action for action in declared if action.option_strings]
    words = [parser.prog, *(_usage(action) for action in positional), *(["COMMAND"] if choices else [])]
    level = "##" if parser.prog.count(" ") == 1 else "###"
    yield f"{level} {parser.prog}\n\n{parser.description or ''}\n\n```text\n{' '.join(words)} [OPTION]…\n```"
    if positional:
        yield _table("argument", [(_metavar(action), _help(parser, action)) for action in positional])
    if optional and not choices:
        yield _table("option", [(_option(action), _help(parser, action)) for action in optional])
    for child in choices.values():
        yield from _command(child)


_NOT_SHOWN = argparse._HelpAction, argparse._SubParsersAction


def _metavar(action: argparse.Action) -> str:
    if action.metavar is None and action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest).upper()


def _usage(action: argparse.Action) -> str:
    name = _metavar(action)
    return {"?": f"[{name}]", "*": f"[{name}]…", "+": f"{name}…"}.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {_metavar(action)}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def verbs() -> str:
    """The functions of the public API, for mkdocstrings."""
    return _objects([name for name in presage.__all__ if name.islower()])


def nouns() -> str:
    """The classes of the public API, for mkdocstrings."""
    return _objects([name for name in presage.__all__ if not name.islower()])


def _objects(names: Sequence[str]) -> str:
    return "\n\n".join(f"::: presage.{name}" for name in names)


def targets() -> str:
    """The GPUs that `--target` knows."""
    rows = []
    for name, gpu in hardware.catalogue().items():
        bandwidth = f"{(gpu.bandwidth or 0) / 1e9:,.0f}"
        rows.append((name, gpu.product, gpu.arch, str(gpu.multiprocessors), bandwidth))
    return _table("name", rows, ("product", "architecture", "multiprocessors", "GB/s"))


def _table(first: str, rows: Sequence[Sequence[str]], others: Sequence[str] = ("",)) -> str:
    lines = [f"| {' | '.join((first, *others))} |", "|---" * (1 + len(others)) + "|"]
    for name, *cells in rows:
        lines.append(f"| `{name}` | {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


GENERATED = {"commands": commands, "nouns": nouns, "targets": targets, "verbs": verbs}
