"""Searches on a live GPU, with forecasts and without, at equal numbers of measurements: whose best kernel is faster?

    python benchmarks/live_search.py PROBLEM,… [--device cuda] [--budget 64] [--seeds 3] [--jobs 4] [--runs FOLDER]

Every search is `presage.search` in a folder of its own, so that this can be stopped and run again. Searches run beside
each other: they compile and forecast on all cores, and take turns on the GPU. A speedup is over eager PyTorch, from the
finals, in which the best kernels are measured again, side by side with it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.cli.terminal import table
from presage.core.errors import PresageError
from presage.search.run import Run

ARMS = {
    "without": ("--forecaster", "none", "--policy", "always"),
    "with": ("--forecaster", "learned", "--policy", "risk"),
}


@dataclass(frozen=True)
class Job:
    """One search."""

    problem: str
    seed: int
    arm: str
    device: str
    budget: int
    runs: Path

    @property
    def folder(self) -> Path:
        return self.runs / f"{self.problem}-{self.arm}-{self.seed}"

    def run(self, until: float) -> None:
        """In a process of its own, which goes on with what is in the folder."""
        seconds = until - time.monotonic()
        if seconds < 1:
            return
        command = [sys.executable, "-m", "presage.cli.main", "search", self.problem, "--device", self.device]
        command += ["--budget", str(self.budget), "--seed", str(self.seed), "--run", str(self.folder), "--json"]
        start = time.monotonic()
        try:
            done = subprocess.run([*command, *ARMS[self.arm]], capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return
        took = time.monotonic() - start
        said = f"{self.folder.name}: {took:.0f} s"
        print(said if done.returncode == 0 else f"{said}, failed: {done.stderr.strip()[-500:]}", flush=True)

    def result(self) -> dict[str, Any] | None:
        try:
            found = Run(self.folder).summary()
        except PresageError:  # not begun, or not finished
            return None
        return {"problem": self.problem, "seed": self.seed, "arm": self.arm, **found}


def report(results: Sequence[dict[str, Any]]) -> str:
    """Per problem the geometric mean over the seeds that both arms have finished, and the ratio of the two."""
    speedups: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for each in results:
        speedups[each["problem"]][each["seed"]][each["arm"]] = math.log2(each["best"]["speedup"])
    rows, ratios = [], []
    for problem, by_seed in speedups.items():
        pairs = [both for both in by_seed.values() if len(both) == len(ARMS)]
        if not pairs:
            continue
        means = {arm: sum(both[arm] for both in pairs) / len(pairs) for arm in ARMS}
        ratios.append(means["with"] - means["without"])
        numbers = [f"{2 ** means[arm]:.2f}x" for arm in ARMS]
        rows.append([problem, str(len(pairs)), *numbers, f"{2 ** ratios[-1]:.3f}"])
    if ratios:
        rows.append(["geometric mean", "", "", "", f"{2 ** (sum(ratios) / len(ratios)):.3f}"])
    return table(rows, ["problem", "seeds", *ARMS, "with / without"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", type=lambda text: text.split(","))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this long; run again to go on")
    parser.add_argument("--runs", type=Path, default=Path("live-search"))
    arguments = parser.parse_args()
    until = time.monotonic() + min(arguments.seconds, 1e6)
    jobs = [
        Job(problem, seed, arm, arguments.device, arguments.budget, arguments.runs)
        for seed in range(arguments.seeds)
        for problem in arguments.problems
        for arm in ARMS
    ]
    todo = [job for job in jobs if job.result() is None]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda job: job.run(until), todo))
    results = [found for job in jobs if (found := job.result())]
    for found in results:
        print(json.dumps(found))
    print(f"{len(results)} of {len(jobs)} searches are finished\n{report(results)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
