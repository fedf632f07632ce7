"""The entry point of `presage-gui COMMAND …`: imports the command's module, parses arguments, runs it, reports errors.

An error that the user can fix is reported as one line on stderr, with exit status 2.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from presage import PresageError

COMMANDS = {
    "run": "let an agent do a task, with a critic that checks each step",
    "serve": "check steps for other agents, over HTTP or MCP",
    "page": "write the page of an episode",
    "evaluate": "say how good a critic is, on recorded states or in the loop",
    "tasks": "list the tasks of MiniWoB++, by split and family",
    "record": "play tasks, make mistakes on purpose, and record every state with its labels",
    "pack": "put a recorded set into one small file",
    "export": "write recorded states as questions for fine-tuning a vision model",
}
"""The summaries of the commands. Each command is a module of presage_gui.cli, imported only when it is used."""


class _StoppedError(KeyboardInterrupt):
    """SIGTERM was received."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        parsed = build(name if name in COMMANDS else None).parse_args(arguments)
        if not parsed.command:
            build(None).print_help()
            return 0
        status: int = parsed.run(parsed)
        return status
    except PresageError as error:
        print(f"presage-gui: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        print(f"presage-gui: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        print("presage-gui: stopped", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(stopped, _StoppedError) else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(*_: object) -> NoReturn:
    raise _StoppedError


def build(command: str | None) -> argparse.ArgumentParser:
    """Return the parser. Only `command` gets its arguments, so that no other command's module is imported."""
    parser = argparse.ArgumentParser(
        prog="presage-gui",
        description="Check what a computer-use agent is about to do, before it is done.",
        epilog="'presage-gui COMMAND --help' shows a command's arguments.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == command:
            module = importlib.import_module(f"presage_gui.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser
