"""`presage completion bash|zsh|fish`: prints a script that completes commands, options and names.

The script is generated from the parsers and contains all names, so that pressing Tab does not start Python. Print it
again after you install a plugin.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from presage.cli import defaults

_SETUP = """to use it:
  bash  presage completion bash > ~/.local/share/bash-completion/completions/presage
  zsh   presage completion zsh > ~/.zsh/completions/_presage   (a folder in $fpath)
  fish  presage completion fish > ~/.config/fish/completions/presage.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _SETUP
    parser.add_argument("shell", choices=list(_WRITERS), help="the shell that the script is for")


def run(arguments: argparse.Namespace) -> int:
    print(_WRITERS[arguments.shell](list(_nodes())), end="")
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of every command. This imports every command."""
    from presage.cli import main

    parser = main.build(None)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name in list(action.choices):
                action.choices[name] = dict(defaults.commands(main.build(name)))[name]
    return parser


# -- what can be completed --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """The values that an option or an argument takes: fixed names, files, or both."""

    names: tuple[str, ...] = ()
    files: bool = False


@dataclass(frozen=True)
class Option:
    """An option: its spellings, its help, and its value; the value is None for a flag."""

    spellings: tuple[str, ...]
    help: str
    value: Value | None


@dataclass(frozen=True)
class Node:
    """A command: its path, such as `corpus ls`, with its subcommands, options and arguments."""

    path: str
    help: str
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    arguments: Value


def _nodes() -> Iterator[Node]:
    """Yield a node for `presage` itself, then one for every command."""
    parser = whole_parser()
    yield _node("", parser)
    for path, sub in defaults.commands(parser):
        yield _node(path, sub)


def _node(path: str, parser: argparse.ArgumentParser) -> Node:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    subs = [action for action in shown if isinstance(action, argparse._SubParsersAction)]
    arguments = [_value(action) for action in shown if not action.option_strings and action not in subs]
    return Node(
        path,
        parser.description or "",
        tuple((each.dest, each.help or "") for action in subs for each in action._choices_actions),
        tuple(
            Option(tuple(action.option_strings), _plain(action, parser), None if action.nargs == 0 else _value(action))
            for action in shown
            if action.option_strings
        ),
        Value(tuple(name for each in arguments for name in each.names), any(each.files for each in arguments)),
    )


def _plain(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """Return the help of an option as one line."""
    return " ".join((action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").split())


def _value(action: argparse.Action) -> Value:
    if action.choices:
        return Value(tuple(map(str, action.choices)))
    names = _names().get(action.dest)
    if names is not None:
        return Value(tuple(names()), files=action.dest in _OR_FILES)
    return Value(files=action.type not in (int, float) and action.metavar not in _NUMBERS)


_OR_FILES = ("anchor", "first", "problem", "problems", "name", "kernel", "kernels", "recording")
_NUMBERS = ("N", "S", "D", "SHARE", "NUMBER", "URL", "PORT")


@cache
def _names() -> dict[str, Callable[[], Iterable[str]]]:
    """For each argparse `dest` that takes names: a function that returns the names."""
    from presage.devices import recorded
    from presage.devices import registry as devices
    from presage.plugins import group
    from presage.problems import registry as problems
    from presage.static import hardware

    def targets() -> list[str]:
        return [*hardware.catalogue(), "cpu", *(f"recorded:{name}" for name in recorded.packaged())]

    parts: dict[str, Callable[[], Iterable[str]]] = {
        each.noun: each.names
        for each in (group.FORECASTERS, group.POLICIES, group.PROPOSERS, group.STRATEGIES, group.ACQUISITIONS)
    }
    return parts | {
        "device": devices.names,
        "target": targets,
        "recording": recorded.packaged,
        **dict.fromkeys(("first", "problem", "problems", "name"), problems.names),
    }


# -- bash -------------------------------------------------------------------------------------------------------------

_BASH = r"""# Completion of presage for bash: written by 'presage completion bash'.
_presage() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' words=() cur='' prev='' path='' names='' files='' word
    read -ra words <<<"$line"
    if [[ $line != *[[:space:]] ]]; then
        cur=${words[${#words[@]} - 1]}
        unset "words[${#words[@]}-1]"
    fi
    for word in "${words[@]:1}"; do
        case "${path:+$path }$word" in
            @PATHS@) path="${path:+$path }$word" ;;
        esac
    done
    prev=${words[${#words[@]} - 1]}
    if [[ $cur == --*=* ]]; then prev=${cur%%=*} cur=${cur#*=}; fi
    case "$path $prev" in
@VALUES@
        *) case "$path|${cur:0:1}" in
@WORDS@
        esac ;;
    esac
    IFS=$'\n'
    COMPREPLY=($(IFS=$' \t\n' compgen -W "$names" -- "$cur"))
    if [[ $files ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then  # bash replaces only what follows the last colon
        prev=${cur%"${cur##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$prev"}")
    fi
}
complete -F _presage presage ./presage
"""


def _bash(nodes: list[Node]) -> str:
    values, words = [], []
    for node in nodes:
        for option in node.options:
            if option.value is not None:
                cases = "|".join(shlex.quote(f"{node.path} {spelling}") for spelling in option.spellings)
                values.append(f"        {cases}) {_bash_value(option.value)} ;;")
        spellings = " ".join(spelling for option in node.options for spelling in option.spellings)
        words.append(f"            {shlex.quote(f'{node.path}|-')}) names={shlex.quote(spellings)} ;;")
        given = Value((*(name for name, _ in node.commands), *node.arguments.names), node.arguments.files)
        words.append(f"            {shlex.quote(f'{node.path}|')}*) {_bash_value(given)} ;;")
    paths = "|".join(shlex.quote(node.path) for node in nodes if node.path)
    text = _BASH.replace("@PATHS@", paths).replace("@VALUES@", "\n".join(values))
    return text.replace("@WORDS@", "\n".join(words))


def _bash_value(value: Value) -> str:
    return f"names={shlex.quote(' '.join(value.names))} files={'yes' if value.files else ''}"


# -- zsh --------------------------------------------------------------------------------------------------------------


def _zsh(nodes: list[Node]) -> str:
    """Return the zsh script: a function for each command, which calls `_arguments`."""
    functions = [_zsh_function(node) for node in nodes]
    head = "#compdef presage ./presage\n# Completion of presage for zsh: written by 'presage completion zsh'.\n"
    tail = 'if [ "$funcstack[1]" = "_presage" ]; then _presage "$@"; else compdef _presage presage ./presage; fi\n'
    return f"{head}{''.join(functions)}{tail}"


def _zsh_function(node: Node) -> str:
    name = "_".join(["_presage", *node.path.split()])
    specs = [_zsh_option(option) for option in node.options]
    if node.commands:
        described = " ".join(shlex.quote(f"{each}:{help}") for each, help in node.commands)
        cases = "\n".join(f"        {each}) {name}_{each} ;;" for each, _ in node.commands)
        listed = "\n".join(f"        {spec} \\" for spec in (*specs, "'1: :->command'", "'*:: :->rest'"))
        return (
            f"{name}() {{\n    local state line commands=({described})\n    _arguments -C \\\n{listed[:-2]}\n"
            f"    case $state in\n    command) _describe command commands ;;\n    rest) case $line[1] in\n{cases}\n"
            "        esac ;;\n    esac\n}\n"
        )
    specs += [shlex.quote(f"*:argument:{_zsh_value(node.arguments)}")] if node.arguments != Value() else []
    listed = "\n".join(f"        {spec} \\" for spec in specs)
    return f"{name}() {{\n    _arguments \\\n{listed[:-2]}\n}}\n"


def _zsh_option(option: Option) -> str:
    help = re.sub(r"([\[\]:])", r"\\\1", option.help)
    tail = "" if option.value is None else f":value:{_zsh_value(option.value)}"
    return " ".join(shlex.quote(f"*{spelling}[{help}]{tail}") for spelling in option.spellings)


def _zsh_value(value: Value) -> str:
    """Return the action of `_arguments` that completes names, files, or both."""
    names = " ".join(name.replace(":", r"\:") for name in value.names)
    if names and value.files:
        return f'{{_alternative "names\\:name\\:({names})" "files\\:file\\:_files"}}'
    return f"({names})" if names else "_files" if value.files else " "


# -- fish -------------------------------------------------------------------------------------------------------------


def _fish(nodes: list[Node]) -> str:
    lines = ["# Completion of presage for fish: written by 'presage completion fish'.", "complete -c presage -f"]
    for node in nodes:
        when = _fish_condition(node)
        for name, help in node.commands:
            lines.append(f"complete -c presage {when} -a {_fish_quoted(name)} -d {_fish_quoted(help)}")
        for option in node.options:
            named = " ".join(
                f"-{'l' if each.startswith('--') else 's'} {each.lstrip('-')}" for each in option.spellings
            )
            lines.append(
                f"complete -c presage {when} {named}{_fish_value(option.value)} -d {_fish_quoted(option.help)}"
            )
        if node.arguments != Value():
            names = f" -a {_fish_quoted(' '.join(node.arguments.names))}" if node.arguments.names else ""
            lines.append(f"complete -c presage {when}{' -F' if node.arguments.files else ''}{names}")
    return "\n".join(lines) + "\n"


def _fish_condition(node: Node) -> str:
    words = node.path.split()
    seen = [f"__fish_seen_subcommand_from {word}" for word in words]
    if node.commands:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(name for name, _ in node.commands)}")
    return f"-n {_fish_quoted('; and '.join(seen))}"


def _fish_value(value: Value | None) -> str:
    if value is None:
        return ""
    names = f" -a {_fish_quoted(' '.join(value.names))}" if value.names else ""
    return f"{' -r -F' if value.files else ' -x'}{names}"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_WRITERS: dict[str, Callable[[list[Node]], Any]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
