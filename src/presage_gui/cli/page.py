"""`presage-gui page`: write the page of an episode again."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage_gui.page import write_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an episode's folder")


def run(arguments: argparse.Namespace) -> int:
    print(write_page(arguments.folder))
    return 0
