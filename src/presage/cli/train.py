"""`presage train learned` and `presage train operators`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from presage.cli import documents
from presage.core.errors import PresageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "forecaster",
        choices=["learned", "operators"],
        help="what to train: the forecaster `learned`, or its model of operators",
    )
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
        metavar="FOLDER",
        help="where to write the model (default: models/NAME)",
    )


def run(arguments: argparse.Namespace) -> int:
    lines: list[str] = []
    say = lines.append if arguments.json else print
    into = arguments.into or Path("models", arguments.forecaster)
    start = time.monotonic()
    (_train_operators if arguments.forecaster == "operators" else _train_learned)(arguments.recording, into, say)
    files = {file.name: file.stat().st_size for file in sorted(into.iterdir())}
    if arguments.json:
        seconds = time.monotonic() - start
        documents.write("train", {"into": str(into), "files": files, "seconds": seconds})
    else:
        total = sum(files.values())
        print(f"{into}: {len(files)} files, {total / 1e6:.1f} MB, in {time.monotonic() - start:.0f} s")
    return 0


def _train_learned(names: Sequence[str], into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import recorded
    from presage.forecasters import learned_training

    names = names or recorded.packaged()
    if not names:
        raise PresageError("no recording is installed; name one with --recording FILE.parquet")
    learned_training.train([recorded.find(name) for name in names], into, say)


def _train_operators(names: Sequence[str], into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import operator_recording
    from presage.forecasters import operator_training
    from presage.plugins.group import OPERATOR_RECORDINGS

    names = names or OPERATOR_RECORDINGS.names()
    if not names:
        raise PresageError("no recording of operators is installed; name one with --recording FILE.parquet")
    timed = [each for name in names for each in operator_recording.read(operator_recording.find(name))]
    operator_training.train(timed, into, say)
