"""`presage-gui export`: questions for fine-tuning a vision model."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage_gui.data.dataset import SHIPPED
from presage_gui.data.export import export
from presage_gui.data.splits import SPLITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("split", choices=SPLITS)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="for questions.jsonl and images/")
    parser.add_argument("--data", type=Path, default=SHIPPED, help="a recorded set (default: the one that is shipped)")
    parser.add_argument("--bare", action="store_true", help="leave out what the agent says that it intends")
    parser.add_argument("--most", type=int, default=None, help="at most so many questions")


def run(arguments: argparse.Namespace) -> int:
    count = export(arguments.split, arguments.out, arguments.data, not arguments.bare, arguments.most)
    print(f"{count} questions in {arguments.out / 'questions.jsonl'}")
    return 0
