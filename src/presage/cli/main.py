"""`presage COMMAND …`: import the command's module, parse its arguments, run it, and report errors.

An error that the user can fix prints one line on stderr and exits with status 2; with `--json` it also prints a
document on stdout. Ctrl-C and SIGTERM both raise an exception, so that a command always cleans up.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from presage.cli import defaults, documents, terminal
from presage.core.errors import PresageError

COMMANDS = {
    "search": "find a faster kernel with few measurements",
    "runs": "list searches, finished or not",
    "ui": "show the runs of a folder in a browser, live",
    "report": "write the report of a run again",
    "forecast": "forecast the speedup of a kernel, and say whether to measure it",
    "measure": "compile, check and time kernels",
    "inspect": "compile a CUDA or Triton kernel, without a GPU, and show what that tells",
    "evaluate": "score forecasters on recorded measurements",
    "train": "train a forecaster on recorded measurements",
    "corpus": "collect, check and read recorded measurements",
    "problems": "list the problems, or show one; start or check one of your own",
    "policies": "list policies; start or check one of your own",
    "forecasters": "list forecasters; start or check one of your own",
    "devices": "list the devices that kernels can be measured on",
    "plugins": "list what is installed: forecasters, policies, strategies and more; what is broken, and why",
    "llm": "check the endpoint of a language model, or serve a small model",
    "mcp": "serve coding agents, by the Model Context Protocol",
    "config": "show the defaults that configuration files set",
    "completion": "print a completion script for bash, zsh or fish",
}
"""Each name is a module of presage.cli. A module is imported only when its command runs, so that --help is fast."""


_FIXABLE = (
    errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.ELOOP,
)  # fmt: skip
"""File system errors that the user can fix. Any other OSError is a bug and shows a traceback."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM was received."""


class UsageError(PresageError):
    """The arguments are wrong. `usage` is the text to print before the message."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Raises a UsageError where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"{self.format_usage()}{self.prog}: error: ")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    with terminal.shown():
        return _main(list(sys.argv[1:] if argv is None else argv))


def _main(arguments: list[str]) -> int:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        with _ended_by_sigterm():
            status = _run(arguments, "--no-config" not in options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as stopped:
        print("presage: stopped", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(stopped, TerminatedError) else signal.SIGINT)
    except BrokenPipeError:  # the reader of our output, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (PresageError, OSError) as error:
        if isinstance(error, OSError) and (error.errno not in _FIXABLE or error.filename is None):
            raise
        return _report(error, "--json" in options)


def _run(arguments: list[str], with_config: bool) -> int:
    name = next((word for word in arguments if not word.startswith("-")), None)
    parser = build(name if name in COMMANDS else None)
    given = defaults.apply(parser, name) if with_config and name in COMMANDS else {}
    parsed, surplus = parser.parse_known_args(arguments)
    if surplus:  # the error comes from the command's own parser, so that it shows the command's usage
        getattr(parsed, "complain", parser.error)(f"unrecognized arguments: {' '.join(surplus)}")
    if not parsed.command:
        parser.print_help()
        return 0
    defaults.fill(parsed, given)
    status: int = parsed.run(parsed)
    return status


def _report(error: PresageError | OSError, as_json: bool) -> int:
    """Print an error that the user can fix, and return the exit status."""
    kind, before, message = "input", "presage: ", str(error)
    if isinstance(error, UsageError):
        kind, before = "usage", error.usage
    elif isinstance(error, OSError):
        kind, message = "file", f"{_file_name(error.filename)}: {error.strerror}"
    print(f"{before}{message}", file=sys.stderr)
    if as_json:
        documents.write_error(message, kind)
        sys.stdout.flush()
    return 2


def _file_name(name: Any) -> str:
    text = os.fsdecode(name) if isinstance(name, str | bytes) else str(name)
    return text if len(text) <= 120 else f"{text[:120]}…"


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Raise an exception on SIGTERM, so that workers are stopped and scratch folders are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Version(argparse.Action):
    """Print the versions. They are looked up only if --version is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from presage.cli import version  # imports importlib.metadata, which --help does not need

        sys.stdout.write(version.text())
        parser.exit()


def build(command: str | None) -> Parser:
    """Return the parser of the command line. Only `command` gets its arguments, so that no other module is imported."""
    parser = Parser(
        prog="presage",
        description="Forecast and measure the speed of GPU and CPU kernels.",
        epilog="'presage COMMAND --help' shows a command's arguments.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the versions of presage and its parts")
    _add_no_config(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == command:
            module = importlib.import_module(f"presage.cli.{name}")
            module.add_arguments(sub)
            if name not in ("completion", "mcp"):
                sub.add_argument("--json", action="store_true", help="print one JSON document on stdout")
            for each in (sub, *(nested for _, nested in defaults.commands(sub))):
                _add_no_config(each)
            sub.set_defaults(run=module.run, complain=sub.error)
    return parser


def _add_no_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-config", action="store_true", default=argparse.SUPPRESS, help="do not read configuration files"
    )
