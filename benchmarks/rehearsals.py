"""Score how well rehearsals on the CPU predict which recorded kernels fail, and what they add to `learned`.

    python benchmarks/rehearsals.py --split validation --sample 150 --into validation.jsonl [--recording h200]

The CUDA and Triton kernels of the split that failed (at most four times the sample) and a sample of those that worked
are rehearsed. The results are kept in the file, and the same command resumes where it stopped. Then it prints a table.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from presage import Candidate, load_problem, load_recording
from presage.core.scoring import auroc
from presage.devices.emulation.rehearser import Rehearser
from presage.devices.rehearsal import Rehearsal
from presage.forecasters import faults, registry
from presage.forecasters.from_names import ask


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--recording", default="h200")
    arguments = parser.parse_args()
    wanted = sampled(arguments.recording, arguments.split, arguments.sample)
    rehearse(arguments.recording, wanted, arguments.into)
    print(table(arguments.recording, [json.loads(line) for line in arguments.into.read_text().splitlines()]))
    return 0


def sampled(name: str, split: str, count: int) -> dict[str, list[str]]:
    """Return the hashes of the kernels to rehearse, by problem."""
    found = load_recording(name).columns("problem", "hash", "split", "status", "language")
    rows = [
        (problem, hash, status)
        for problem, hash, where, status, language in zip(*found.values(), strict=True)
        if where == split and language in ("cuda", "triton") and status != "compile_error"
    ]
    rng = random.Random(3)
    failed = [row for row in rows if row[2] != "ok"]
    worked = [row for row in rows if row[2] == "ok"]
    chosen = rng.sample(worked, min(count, len(worked))) + rng.sample(failed, min(4 * count, len(failed)))
    by_problem: dict[str, list[str]] = defaultdict(list)
    for problem, hash, _ in chosen:
        by_problem[problem].append(hash)
    return by_problem


def rehearse(name: str, wanted: dict[str, list[str]], into: Path) -> None:
    done = {tuple(json.loads(line)[:2]) for line in into.read_text().splitlines()} if into.exists() else set()
    recording = load_recording(name)
    with closing(Rehearser()) as rehearser, into.open("a") as file:
        for number, (problem, hashes) in enumerate(wanted.items(), start=1):
            left = [hash for hash in hashes if (problem, hash) not in done]
            if not left:
                continue
            rows = {row.hash: row for row in recording.rows(problem, reports=False)}
            found = rehearser.rehearse(load_problem(problem), [rows[hash].kernel for hash in left])
            for hash, each in zip(left, found, strict=True):
                row = rows[hash]
                file.write(json.dumps([problem, hash, row.status, row.language, each.status, each.cases, each.reason]))
                file.write("\n")
            file.flush()
            print(f"{number} of {len(wanted)}: {problem}", file=sys.stderr)


def table(name: str, rows: list[list[Any]]) -> str:
    counts = Counter(
        (row[3], row[2] if row[2] in ("ok", "wrong_result") else "fails otherwise", row[4]) for row in rows
    )
    lines = ["| language | recorded | right | wrong | untried |", "|---|---|---|---|---|"]
    for language, recorded in dict.fromkeys(key[:2] for key in sorted(counts)):
        numbers = [counts[language, recorded, each] for each in ("right", "wrong", "untried")]
        lines.append(f"| {language} | {recorded} | {' | '.join(map(str, numbers))} |")
    failed, before, after = [], [], []
    by_problem: dict[str, list[list[Any]]] = defaultdict(list)
    for row in rows:
        by_problem[row[0]].append(row)
    with closing(registry.get("learned", None)) as learned:
        for problem, some in by_problem.items():
            kernels = {row.hash: row.kernel for row in load_recording(name).rows(problem, reports=False)}
            asked = ask(problem, [kernels[row[1]] for row in some], None, f"recorded:{name}")
            for row, candidate, said in zip(
                some, asked.candidates, learned.forecast(asked.task, asked.candidates), strict=True
            ):
                tried = Candidate(candidate.kernel, candidate.reports, rehearsal=Rehearsal(row[4], row[6], row[5]))
                told = faults.warned(asked.task, tried, said)
                if said.forecast and told.forecast:
                    failed.append(row[2] != "ok")
                    before.append(said.forecast.p_fail)
                    after.append(told.forecast.p_fail)
    scores = [auroc(np.array(each), np.array(failed)) for each in (before, after)]
    return "\n".join([*lines, "", f"failure AUROC of learned: {scores[0]:.3f}; with rehearsals: {scores[1]:.3f}"])


if __name__ == "__main__":
    sys.exit(main())
