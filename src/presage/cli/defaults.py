"""Defaults from configuration files: `presage.toml` in the current folder, then the user's own file.

A file has a table for each command, such as `[search]` or `[corpus.collect]`, with the command's options without their
dashes. The command line overrides `presage.toml`, and `presage.toml` overrides the user's file. The folder may come
from someone else, so its `presage.toml` must not set options that choose a program, an address or an output file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from presage.core.errors import PresageError, hint

LOCAL = Path("presage.toml")
_USERS_OWN = {"cc", "base-url", "config", "weights", "host", "html", "into", "output", "run"}
_WRITES = {("corpus import", "modules")}
"""Options that name a file or a folder to write, as those in `_USERS_OWN` do, but of these commands alone."""
_USERS_OWN_COMMANDS = {"mcp"}
"""Commands whose options `presage.toml` must not set. The options of `mcp` limit agents, and agents can write files."""
_NOT_DEFAULTS = {"help", "json", "no-config", "version"}


class Setting(NamedTuple):
    """One line of a configuration file."""

    command: str
    """The command, such as `search` or `corpus collect`."""
    option: str
    value: Any
    file: Path


def files() -> list[Path]:
    """Return the paths of the configuration files. A later file overrides an earlier one. They need not exist."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return [folder / "presage" / "config.toml", LOCAL]


def settings() -> list[Setting]:
    """Return what the files set. A later setting overrides an earlier one. Raises PresageError for an invalid file."""
    return [setting for file in files() if file.is_file() for setting in _read(file)]


def apply(parser: argparse.ArgumentParser, command: str | None) -> dict[str, list[Any]]:
    """Set the defaults of this command from the configuration files; of all commands if `command` is None.

    Return the defaults that are lists, by `dest`, without setting them: argparse would append typed values to them.
    `fill` sets them after parsing. Raises PresageError for an unknown option, and for a value that it does not accept.
    """
    lists: dict[str, list[Any]] = {}
    parsers = dict(commands(parser))
    for setting in settings():
        first, *rest = setting.command.split()
        if first not in parsers:
            _refuse(setting, f"there is no command '{first}'; {hint(first, parsers, 'see presage --help')}")
        if command not in (None, first):
            continue
        if setting.command not in parsers:
            _refuse(setting, f"there is no command '{first} {rest[0]}'; see presage {first} --help")
        found = parsers[setting.command]
        action = _action(found, setting)
        value = _value(found, action, setting)
        action.required = False
        if isinstance(value, list):
            lists[action.dest] = value
        else:
            found.set_defaults(**{action.dest: value})
    return lists


def fill(parsed: argparse.Namespace, lists: Mapping[str, list[Any]]) -> None:
    """Set the defaults of repeatable options that were not typed. `lists` is what `apply` returned."""
    for name, value in lists.items():
        if hasattr(parsed, name) and not getattr(parsed, name):
            setattr(parsed, name, value)


def commands(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the path and the parser of every command below this parser: `corpus`, but also `corpus ls`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield f"{path}{name}", sub
                yield from commands(sub, f"{path}{name} ")


def options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options that can have a default, by their long name without dashes."""
    names = {
        name.removeprefix("--"): action
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and action.help != argparse.SUPPRESS
    }
    return {name: action for name, action in names.items() if name not in _NOT_DEFAULTS}


def _read(file: Path) -> Iterator[Setting]:
    import tomllib

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PresageError(f"cannot read {file}: {error.strerror}; --no-config runs without it") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PresageError(f"{file} is not valid TOML: {error}; --no-config runs without it") from error
    for command, table in tables.items():
        if not isinstance(table, dict):
            raise PresageError(f"{file}: '{command}' belongs to a command; write it under a table such as [search]")
        yield from _settings(command, table, file)


def _settings(command: str, table: Mapping[str, Any], file: Path) -> Iterator[Setting]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(f"{command} {key}", value, file)
        else:
            yield Setting(command, key.replace("_", "-"), value, file)


def _action(parser: argparse.ArgumentParser, setting: Setting) -> argparse.Action:
    known = options(parser)
    if setting.option not in known:
        listed = f"it has: {', '.join(known) or 'none'}"
        _refuse(setting, f"{setting.command} has no option '{setting.option}'; {hint(setting.option, known, listed)}")
    if setting.file == LOCAL and _is_users_own(setting):
        _refuse(setting, f"'{setting.option}' can be set only in your own file, {files()[0]}, or on the command line")
    return known[setting.option]


def _is_users_own(setting: Setting) -> bool:
    """Whether a setting chooses a program, an address, a file to write, or what agents may do."""
    if setting.option in _USERS_OWN or setting.command in _USERS_OWN_COMMANDS:
        return True
    has_address = str(setting.value).startswith("ray") and "@" in str(setting.value)
    return has_address or (setting.command, setting.option) in _WRITES


def _value(parser: argparse.ArgumentParser, action: argparse.Action, setting: Setting) -> Any:
    """Return the value as the option would parse it from the command line."""
    given = setting.value
    if action.nargs == 0:
        if not isinstance(given, bool):
            _refuse(setting, f"{setting.option} must be true or false")
        return action.const if given else action.default
    if isinstance(action, argparse._AppendAction):
        return [_parsed(parser, action, setting, each) for each in (given if isinstance(given, list) else [given])]
    return _parsed(parser, action, setting, given)


def _parsed(parser: argparse.ArgumentParser, action: argparse.Action, setting: Setting, given: Any) -> Any:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        _refuse(setting, f"{setting.option} must be text or a number")
    try:
        value = parser._get_value(action, str(given))
        parser._check_value(action, value)
    except argparse.ArgumentError as error:
        _refuse(setting, f"{setting.option}: {error.message}")
    return value


def _refuse(setting: Setting, why: str) -> NoReturn:
    raise PresageError(f"{setting.file}: [{setting.command.replace(' ', '.')}] {why}")
