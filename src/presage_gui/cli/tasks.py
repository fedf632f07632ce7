"""`presage-gui tasks`: list the tasks of each split and family."""

from __future__ import annotations

import argparse

from presage_gui.data.splits import SPLITS, families


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("split", nargs="?", choices=SPLITS, help="only this split")


def run(arguments: argparse.Namespace) -> int:
    for split in SPLITS if arguments.split is None else (arguments.split,):
        known = families()[split]
        print(f"{split}: {sum(map(len, known.values()))} tasks of {len(known)} families")
        for family, tasks in known.items():
            print(f"  {family}: {', '.join(tasks)}")
    return 0
