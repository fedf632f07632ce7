"""`presage COMMAND …`: finds the command's file, parses its arguments, and turns a PresageError into exit status 2."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from presage import __version__
from presage.cli import terminal
from presage.core.errors import PresageError

COMMANDS = {
    "search": "find a faster kernel with few measurements",
    "runs": "list searches, finished or not",
    "report": "write a run's page again",
    "forecast": "say what speedup to expect of a kernel, and whether to measure it",
    "measure": "compile, check and time kernels of a problem",
    "inspect": "show what compiling a CUDA or Triton kernel tells of it, with no GPU",
    "evaluate": "score forecasters on recorded measurements",
    "train": "train a forecaster from recorded measurements",
    "corpus": "collect, check and look into recorded measurements",
    "problems": "list the catalogue, or show one problem",
    "devices": "list the places where kernels can be measured",
    "llm": "check an endpoint of a language model, or serve a small one",
}
"""Each name is a module of presage.cli, imported only when it is asked for, so that --help stays quick."""


def main(argv: Sequence[str] | None = None) -> int:
    with terminal.shown():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    parser = _parser(name)
    parsed, surplus = parser.parse_known_args(arguments)
    if surplus:  # said by the command's own parser, which shows what it does take
        getattr(parsed, "complain", parser.error)(f"unrecognized arguments: {' '.join(surplus)}")
    if not parsed.command:
        parser.print_help()
        return 0
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except PresageError as error:
        print(f"presage: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("presage: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(command: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="presage",
        description="Forecast and measure GPU and CPU kernels.",
        epilog="presage COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"presage {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == command:
            module = importlib.import_module(f"presage.cli.{name}")
            module.add_arguments(sub)
            sub.add_argument("--json", action="store_true", help="print one JSON document on stdout")
            sub.set_defaults(run=module.run, complain=sub.error)
    return parser
