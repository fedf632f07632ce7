"""`presage-gui export`: write questions for fine-tuning a vision model."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage_gui.data.dataset import SHIPPED
from presage_gui.data.export import export
from presage_gui.data.splits import SPLITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("split", choices=SPLITS)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="for SPLIT.jsonl and images/")
    parser.add_argument("--mode", choices=["readout", "spoken"], default="readout", help="how the model is to answer")
    parser.add_argument("--data", type=Path, default=SHIPPED, help="a recorded set (default: the one that is shipped)")
    parser.add_argument("--bare", action="store_true", help="leave out what the agent says that it intends")
    parser.add_argument("--most", type=int, default=None, help="at most so many questions")


def run(arguments: argparse.Namespace) -> int:
    chosen = arguments
    file = export(chosen.split, chosen.out, chosen.data, chosen.mode, not chosen.bare, chosen.most)
    with file.open(encoding="utf-8") as lines:
        print(f"{sum(1 for _ in lines)} questions in {file}")
    return 0
