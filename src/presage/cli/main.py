"""`presage COMMAND …`: finds the command's file, parses its arguments, and turns what a person must mend into exit
status 2. Ctrl-C and SIGTERM end a command in the same way, so that nothing is left behind."""

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
    "problems": "list the catalogue, or show one problem; start or check one of your own",
    "policies": "list policies; start or check one of your own",
    "forecasters": "list forecasters; start or check one of your own",
    "devices": "list the places where kernels can be measured",
    "plugins": "list what installed packages add, and what is broken",
    "llm": "check an endpoint of a language model, or serve a small one",
}
"""Each name is a module of presage.cli, imported only when it is asked for, so that --help stays quick."""


_OF_THE_PLACE = (
    errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.ELOOP,
)  # fmt: skip
"""What a file system refuses for reasons that are the person's to mend, and not a mistake of ours."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM has come."""


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
        with _ended_by_sigterm():
            status: int = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except PresageError as error:
        print(f"presage: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        print("presage: stopped", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(stopped, TerminatedError) else signal.SIGINT)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in _OF_THE_PLACE or error.filename is None:
            raise
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
        print(f"presage: {name if len(name) <= 120 else f'{name[:120]}…'}: {error.strerror}", file=sys.stderr)
        return 2


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM is raised as an exception, so that workers are ended and scratch folders removed on the way out."""
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
