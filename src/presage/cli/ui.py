"""`presage ui [FOLDER]`: show the runs of a folder in a browser."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

from presage.cli import documents, terminal
from presage.core.errors import PresageError, install
from presage.searches.configuration import RUNS

_PORT = 8730


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=RUNS,
        help="the folder that holds runs, or the folder of one run (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; others than this machine's own let others read"
        " the runs (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--port",
        type=terminal.port,
        default=_PORT,
        metavar="PORT",
        help="0 for any that is free (default: %(default)s)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    for needed in ("starlette", "uvicorn"):
        if find_spec(needed) is None:
            raise PresageError(f"presage ui needs {needed}; {install('ui')}")
    from presage.report.web import serving

    if arguments.folder.exists() and not arguments.folder.is_dir():
        raise PresageError(f"{arguments.folder} is not a folder; name one that holds runs")

    def started(address: str) -> None:
        if arguments.json:
            documents.write("ui", {"address": address, "folder": str(arguments.folder)})
            sys.stdout.flush()
        else:
            print(f"the runs in {arguments.folder} are at {address} (Ctrl-C ends it)", flush=True)
        if arguments.host not in ("127.0.0.1", "::1", "localhost"):
            print("everyone who can reach this address can read the runs", file=sys.stderr, flush=True)
        if arguments.open:
            webbrowser.open(address)

    serving.serve(arguments.folder, arguments.host, arguments.port, started)
