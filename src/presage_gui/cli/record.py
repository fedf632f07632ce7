"""`presage-gui record`: record a set of states."""

from __future__ import annotations

import argparse
from pathlib import Path

from presage_gui.data.recording import Recorder
from presage_gui.data.splits import SPLITS, tasks, where


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", metavar="TASK", help="tasks of MiniWoB++, or train, validation or test")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where the states go; tasks that are there already are left out",
    )
    parser.add_argument(
        "--seeds", type=int, default=8, help="episodes of each task; every second one has mistakes (default: 8)"
    )


def run(arguments: argparse.Namespace) -> int:
    wanted = [task for what in arguments.what for task in (tasks(what) if what in SPLITS else (what,))]
    open_tasks = [task for task in wanted if not (arguments.out / where(task)[0] / f"{task}.jsonl").exists()]
    if not open_tasks:
        return 0
    from presage_gui.environments.miniwob import MiniWob

    environment = MiniWob(open_tasks[0])
    with environment:
        recorder = Recorder(arguments.out, environment)
        for task in open_tasks:
            if not recorder.knows(task):
                print(f"{task}: there is no oracle for it")
                continue
            episodes, successes, states = recorder.record(task, range(arguments.seeds))
            print(f"{task}: {states} states of {episodes} episodes, {successes} successes", flush=True)
    return 0
