"""`presage-gui evaluate`: measure how good a critic is, on recorded states or in the loop."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from presage import PresageError
from presage_gui.cli.parts import add_critic, critic_of, gate_of
from presage_gui.data.dataset import SHIPPED, load
from presage_gui.data.splits import SPLITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_critic(parser)
    parser.add_argument(
        "--data", type=Path, default=SHIPPED, metavar="FOLDER", help="recorded states (default: those in the package)"
    )
    parser.add_argument("--split", choices=SPLITS, default="validation", help="which of them (default: validation)")
    parser.add_argument("--bare", action="store_true", help="without the intents that agents state")
    parser.add_argument(
        "--live", metavar="TASK,TASK", help="in the loop instead, on these tasks of MiniWoB++; needs a browser"
    )
    parser.add_argument("--episodes", type=int, default=10, help="episodes of each task, with --live (default: 10)")
    parser.add_argument(
        "--errors", type=float, default=0.3, help="share of steps that the agent spoils, with --live (default: 0.3)"
    )
    parser.add_argument(
        "--revisions", type=int, default=2, help="how often a step may be sent back, with --live (default: 2)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    found = _live(arguments) if arguments.live else _offline(arguments)
    if arguments.json:
        print(json.dumps(found))
    else:
        _print(found)
    return 0


def _offline(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage_gui.evaluation.offline import judge, report

    critic = critic_of(arguments)
    try:
        return report(judge(critic, load(arguments.split, arguments.data), not arguments.bare))
    finally:
        critic.close()


def _live(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage_gui.evaluation.live import compare

    if arguments.episodes < 1:
        raise PresageError(f"at least one episode of each task is needed, not {arguments.episodes}")
    critics = {"critic": critic_of(arguments)}
    with tempfile.TemporaryDirectory() as folder:
        return compare(
            arguments.live.split(","), arguments.episodes, arguments.errors, critics, gate_of(arguments), Path(folder),
            arguments.revisions, not arguments.no_fixes,
        )  # fmt: skip


def _print(found: dict[str, Any], indent: str = "") -> None:
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{indent}{name.replace('_', ' ')}")
            _print(value, indent + "  ")
        elif isinstance(value, list) and len(value) == 3 and not indent:
            print(f"{indent}{name.replace('_', ' ')}: {value[0]} ({value[1]} to {value[2]})")
        else:
            print(f"{indent}{name.replace('_', ' ')}: {value}")
