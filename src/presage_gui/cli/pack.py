"""`presage-gui pack`: pack a recorded set into one small file."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage_gui.data.packing import pack
from presage_gui.data.splits import SPLITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="a recorded set")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the file to write, such as recorded.zip"
    )
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=int, default=1000, metavar="N", help=f"episodes of each task of {split}")


def run(arguments: argparse.Namespace) -> int:
    states = pack(arguments.folder, arguments.out, {split: getattr(arguments, split) for split in SPLITS})
    print(f"{states} states in {arguments.out}, {arguments.out.stat().st_size / 1e6:.1f} MB")
    return 0
