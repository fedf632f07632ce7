"""Rehearse modules for external problems on the CPU. With a recording, also show how well the rehearsals predict which
modules fail on its device.

    python benchmarks/rehearsed_modules.py FOLDER --into FILE.jsonl [--language triton]
        [--recording h200_modules] [--split train]

FOLDER is as for `presage corpus collect --modules`. The results and the seconds that each rehearsal took are kept in
FILE, and the same command resumes where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from presage import load_recording
from presage.corpus.collect import PlannedKernel, modules
from presage.devices.emulation.rehearser import Rehearser


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--language", choices=["torch", "triton"])
    parser.add_argument("--recording")
    parser.add_argument("--split", help="only what the recording has in this split")
    parser.add_argument("--seconds", type=float, default=3600.0, help="when to stop")
    arguments = parser.parse_args()
    languages = [arguments.language] if arguments.language else ["torch", "triton"]
    wanted = [each for each in modules(arguments.folder, languages) if is_wanted(each)]
    if arguments.split:
        found = load_recording(arguments.recording).columns("problem", "hash", "split")
        measured = {row[:2] for row in zip(*found.values(), strict=True) if row[2] == arguments.split}
        wanted = [each for each in wanted if (each.problem.name, each.hash) in measured]
    wanted.sort(key=lambda each: hashlib.sha256((each.problem.name + each.hash).encode()).digest())
    rehearse(wanted, arguments.into, time.monotonic() + arguments.seconds)
    rows = [json.loads(line) for line in arguments.into.read_text().splitlines()]
    print(table(rows, statuses(arguments.recording) if arguments.recording else {}))
    return 0


def is_wanted(each: PlannedKernel) -> bool:
    reference = each.problem.reference_kernel()
    return reference is None or each.hash != reference.hash


def rehearse(wanted: list[PlannedKernel], into: Path, deadline: float) -> None:
    done = {tuple(json.loads(line)[:2]) for line in into.read_text().splitlines()} if into.exists() else set()
    with closing(Rehearser()) as rehearser, into.open("a") as file:
        for number, each in enumerate(wanted, start=1):
            if (each.problem.name, each.hash) in done or time.monotonic() > deadline:
                continue
            begun = time.monotonic()
            (found,) = rehearser.rehearse(each.problem, [each.kernel])
            row = [each.problem.name, each.hash, each.kernel.language, each.kernel.name, found.status, found.reason]
            file.write(json.dumps([*row, round(time.monotonic() - begun, 2)]) + "\n")
            file.flush()
            print(f"{number} of {len(wanted)}: {each.kernel.name} {found.status} {found.reason[:100]}", file=sys.stderr)


def statuses(name: str) -> dict[tuple[str, str], str]:
    found = load_recording(name).columns("problem", "hash", "status")
    return {(problem, hash): str(status) for problem, hash, status in zip(*found.values(), strict=True)}


def table(rows: list[list[Any]], measured: dict[tuple[str, str], str]) -> str:
    counts = Counter((row[2], measured.get((row[0], row[1]), "not measured"), row[4]) for row in rows)
    lines = ["| language | measured | right | wrong | untried |", "|---|---|---|---|---|"]
    for language, status in dict.fromkeys(key[:2] for key in sorted(counts)):
        numbers = [counts[language, status, each] for each in ("right", "wrong", "untried")]
        lines.append(f"| {language} | {status} | {' | '.join(map(str, numbers))} |")
    return "\n".join([*lines, "", f"seconds each, in the median: {median(row[6] for row in rows):.1f}"])


if __name__ == "__main__":
    sys.exit(main())
