"""`presage train FORECASTER`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from presage.cli import documents
from presage.core.errors import PresageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("forecaster", choices=["learned"], help="the forecaster to train")
    parser.add_argument(
        "--recording",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="a recording to learn from; may be repeated (default: all recordings that are installed)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=Path("models/learned"),
        metavar="FOLDER",
        help="where to write the model (default: models/learned)",
    )


def run(arguments: argparse.Namespace) -> int:
    from presage.devices import recorded
    from presage.forecasters import learned_training

    names = arguments.recording or recorded.packaged()
    if not names:
        raise PresageError("no recording is installed; name one with --recording FILE.parquet")
    recordings = [recorded.find(name) for name in names]
    lines: list[str] = []
    start = time.monotonic()
    learned_training.train(recordings, arguments.into, lines.append if arguments.json else print)
    files = {file.name: file.stat().st_size for file in sorted(arguments.into.iterdir())}
    if arguments.json:
        seconds = time.monotonic() - start
        documents.write("train", {"into": str(arguments.into), "files": files, "seconds": seconds})
    else:
        total = sum(files.values())
        print(f"{arguments.into}: {len(files)} files, {total / 1e6:.1f} MB, in {time.monotonic() - start:.0f} s")
    return 0
