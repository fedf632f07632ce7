"""Score the best kernel among those that `learned` would measure, where kernels that are wrong on the CPU are left out.

    python benchmarks/rehearsed_picks.py --split validation --into validation.jsonl [--recording h200]

The kernels of each operation are picked by expected speedup, as `presage evaluate` does, and rehearsed, until a share
of the pool is found that no rehearsal calls wrong: a tenth, or what --share says. The results are kept in the file, and
the same command resumes where it stopped. Then it prints how far the best pick is behind the pool's best, and what
rehearsals said of the picks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rehearsals import rehearse

from presage import load_recording
from presage.core import scoring
from presage.evaluations import outcomes
from presage.evaluations.outcomes import Question
from presage.evaluations.suites import chosen
from presage.forecasters.learned import LearnedForecaster

SHARES = (0.02, 0.05, 0.10)
Told = Mapping[tuple[str, str], str]
"""The results of rehearsals by problem and hash."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--recording", default="h200")
    parser.add_argument("--share", type=float, choices=SHARES, default=SHARES[-1])
    arguments = parser.parse_args()
    forecaster = LearnedForecaster()
    pools = outcomes.pools(load_recording(arguments.recording), arguments.split)
    asked = [next(each for each in outcomes.questions(pool, 0) if each.seeded) for pool in pools]
    orders = [ranking(forecaster, question) for question in asked]
    told = read(arguments.into)
    while left := to_rehearse(asked, orders, told, arguments.share):
        rehearse(arguments.recording, left, arguments.into)
        told = read(arguments.into)
    print("| measured | without rehearsals | with |\n|---|---|---|")
    for share in SHARES[: SHARES.index(arguments.share) + 1]:
        every = [
            interval(
                [
                    loss(picks(question, order, known, share), question)
                    for question, order in zip(asked, orders, strict=True)
                ]
            )
            for known in ({}, told)
        ]
        print(f"| top {share:.0%} | {' | '.join(every)} |")
    counts = Counter(
        ("works" if each.status == "ok" else "fails", told[question.pool.problem.name, each.kernel.hash])
        for question, order in zip(asked, orders, strict=True)
        for each in (question.pool.kernels[question.asked[place]] for place in order)
        if (question.pool.problem.name, each.kernel.hash) in told
    )
    for (recorded, said), count in sorted(counts.items()):
        print(f"{recorded}, rehearsed {said}: {count}")
    return 0


def read(file: Path) -> Told:
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {(row[0], row[1]): row[4] for row in rows}


def ranking(forecaster: LearnedForecaster, question: Question) -> list[int]:
    """The places of the candidates, from the highest expected speedup to the lowest."""
    said = outcomes.ask(forecaster, question.task, question.candidates)
    scores = [(1 - each.p_fail) * 2 ** each.mean() if each else -1.0 for each in said]
    return sorted(range(len(scores)), key=lambda place: scores[place], reverse=True)


def picks(question: Question, order: list[int], told: Told, share: float) -> list[int]:
    """The first of the candidates that no rehearsal calls wrong."""
    name, candidates = question.pool.problem.name, question.candidates
    left = [place for place in order if told.get((name, candidates[place].kernel.hash)) != "wrong"]
    return left[: chosen(share, len(order))]


def to_rehearse(asked: list[Question], orders: list[list[int]], told: Told, share: float) -> dict[str, list[str]]:
    """The hashes of the picks that have not been rehearsed, by problem."""
    found = {}
    for question, order in zip(asked, orders, strict=True):
        name = question.pool.problem.name
        hashes = [question.candidates[place].kernel.hash for place in picks(question, order, told, share)]
        if some := [hash for hash in hashes if (name, hash) not in told]:
            found[name] = some
    return found


def loss(picked: list[int], question: Question) -> float:
    """How much slower the best pick is than the pool's best. A kernel that fails counts as the slowest."""
    truth = np.where(np.isnan(question.truth), np.nanmin(question.truth), question.truth)
    return float(2 ** (truth.max() - truth[picked].max()) - 1)


def interval(values: list[float]) -> str:
    every = np.array(values)
    found = scoring.bootstrap(lambda drawn: float(every[drawn].mean()), np.arange(every.size))
    return f"{found.value:.3f} ({found.low:.3f}–{found.high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
