"""`presage runs`: list the runs in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from presage.cli import documents, terminal
from presage.core.errors import PresageError
from presage.searches.configuration import RUNS
from presage.searches.run import Run, folders
from presage.searches.words import in_short

_ASKED = ("problem", "device", "forecaster", "policy", "strategy", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=RUNS, help="the folder that holds runs (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    found = [describe(folder) for folder in folders(arguments.folder)]
    if arguments.json:
        documents.write("runs", {"runs": found})
    elif not found:
        print(f"there is no run in {arguments.folder}; 'presage search PROBLEM' makes one")
    else:
        columns = ["run", "problem", "device", "strategy", "measured", "broken", "best", "state"]
        rows = [[_cell(name, each) for name in columns] for each in found]
        print(terminal.table(rows, columns))
    return 0


def describe(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"run": str(folder), **dict.fromkeys((*_ASKED, "measured", "broken", "best", "believed"))}
    try:
        found = Run(folder)
        about |= {name: found.configuration[name] for name in _ASKED}
        about |= {"measured": found.measurements, "broken": found.broken}
        state = "finished" if found.result else f"worked on by {found.owner}" if found.owner else "can be continued"
        best = found.best.speedup.value if found.measurements else None
        believed = found.result["best"].get("believed") if found.result else None
    except PresageError as error:
        return about | {"state": str(error)}
    return about | {"best": best, "believed": believed, "state": state}


def _cell(name: str, about: dict[str, Any]) -> str:
    value = about[name]
    if name == "best" and value is not None:
        return f"{value:.3g}x{in_short(about['believed'])}"
    return "–" if value is None else str(value)
