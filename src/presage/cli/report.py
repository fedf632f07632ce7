"""`presage report RUN`: write the report of a run again."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage.cli import documents
from presage.report import frozen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run; 'presage runs' lists them")


def run(arguments: argparse.Namespace) -> int:
    path = frozen.write(arguments.folder)
    if arguments.json:
        documents.write("report", {"run": str(arguments.folder), "report": str(path)})
    else:
        print(path)
    return 0
