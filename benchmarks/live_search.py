"""Compare the best kernels of searches on a live GPU, with and without forecasts, at equal numbers of measurements.

    python benchmarks/live_search.py PROBLEM,… [--device cuda] [--budget 64] [--seeds 3] [--jobs 4] [--runs FOLDER]

Every search is a `presage search` in its own folder, so that the benchmark can be stopped and resumed. Searches run in
parallel: they compile and forecast on all cores, and take turns on the GPU. Speedups are over eager PyTorch, from the
finals, which measure the best kernels again beside PyTorch. The best kernels of two searches are compared by their own
times, in the finals and after fewer measurements, because PyTorch's time differs between processes.
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
from statistics import fmean
from typing import Any

from presage import Measurement, PresageError, Run
from presage.cli.terminal import table
from presage.store.store import Store

EARLY = (16, 32)
"""The numbers of measurements after which the searches are also compared."""
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
        """Run the search in a subprocess, which resumes the run in the folder. Kill the subprocess at `until`."""
        seconds = until - time.monotonic()
        if seconds < 1:
            return
        command = [sys.executable, "-m", "presage", "search", self.problem, "--device", self.device]
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
        except PresageError:  # the run has not begun or is not finished
            return None
        times = self._log2_times(found["best"]["kernel"])
        return {"problem": self.problem, "seed": self.seed, "arm": self.arm, "log2_times": times, **found}

    def _log2_times(self, best: str) -> list[float]:
        """Return log2 ns, the mean over cases, of the best kernel after each of EARLY, and of the final result."""
        with Store(self.folder, writes=False) as store:
            told = [event.payload for event in store.events("measured")]
            results = [measured for measured in store.measurements(best) if measured.cases]
            anchor = _log2_time(store.measurements(told[0]["kernel"])[0])
        values = [each["value"] for each in told]
        early = [anchor - max(value for value in values[:count] if value is not None) for count in EARLY]
        return [*early, _log2_time(results[-1])]


def _log2_time(measurement: Measurement) -> float:
    return fmean(math.log2(case.median.value) for case in measurement.cases)


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return a table with each arm's geometric mean speedup by problem, over seeds that both finished, and ratios."""
    searches: dict[str, dict[int, dict[str, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for each in results:
        searches[each["problem"]][each["seed"]][each["arm"]] = each
    rows, ratios = [], []
    for problem, by_seed in searches.items():
        pairs = [both for both in by_seed.values() if len(both) == len(ARMS)]
        if not pairs:
            continue
        ends = {arm: fmean(math.log2(both[arm]["best"]["speedup"]) for both in pairs) for arm in ARMS}
        without, with_ = ([both[arm]["log2_times"] for both in pairs] for arm in ARMS)
        gains = [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(without, with_, strict=True)]
        ratios.append([fmean(column) for column in zip(*gains, strict=True)])
        numbers = [f"{2 ** ends[arm]:.2f}x" for arm in ARMS]
        rows.append([problem, str(len(pairs)), *numbers, *(f"{2**ratio:.3f}" for ratio in ratios[-1])])
    if ratios:
        means = [f"{2 ** fmean(column):.3f}" for column in zip(*ratios, strict=True)]
        rows.append(["geometric mean", "", "", "", *means])
    return table(rows, ["problem", "seeds", *ARMS, *(f"ratio after {count}" for count in EARLY), "in the finals"])


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
