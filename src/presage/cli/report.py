"""`presage report RUN`."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage.cli import terminal
from presage.report import run_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", type=Path, help="a run's folder; 'presage runs' lists them")


def run(arguments: argparse.Namespace) -> int:
    path = run_page.write(arguments.folder)
    if arguments.json:
        terminal.print_json({"run": str(arguments.folder), "report": str(path)})
    else:
        print(path)
    return 0
