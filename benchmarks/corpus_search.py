"""Searches of the recorded GPU's operations: how many measurements until the best kernel found comes within 5 % of the
pool's best, with forecasts and without?

    python benchmarks/corpus_search.py --device recorded:h200 --splits test_op,test_family --seeds 5 [--jobs 2]
    python benchmarks/corpus_search.py --methods risk/learned,risk/learned+stop --splits validation,test_op,test_family

A method is POLICY or POLICY/FORECASTER, and `+stop` lets the search stop early. Every search is `presage.search` on a
budget as large as the pool, in a folder that is thrown away. Which kernels come so near is what was recorded, whatever
noise a search sees.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from presage import search
from presage.cli.terminal import table
from presage.devices import registry as devices
from presage.devices.recorded import RecordedDevice
from presage.store.store import Store

NEAR = 1.05
METHODS = "always,always/learned,topk/learned,risk/learned"


@dataclass(frozen=True)
class Job:
    """One search."""

    problem: str
    device: str
    method: str
    seed: int
    budget: int
    near: frozenset[str]
    """The hashes of all kernels that are near the best."""

    def run(self) -> dict[str, Any]:
        method, _, stop = self.method.partition("+")
        policy, _, forecaster = method.partition("/")
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run = search(
                self.problem, device=self.device, policy=policy, forecaster=forecaster or "none", seed=self.seed,
                budget=self.budget, early_stop=bool(stop), run=folder,
            )  # fmt: skip
            with Store(Path(folder), writes=False) as store:
                measured = [event.payload["kernel"] for event in store.events("measured")]
            needed = next((n for n, hash in enumerate(measured, 1) if hash in self.near), None)
            return {
                "problem": self.problem, "method": self.method, "seed": self.seed, "pool": self.budget,
                "needed": needed, "measured": len(measured), "decisions": run.summary()["decisions"],
                "missed": run.summary()["missed"], "early_stop": run.summary()["early_stop"],
                "seconds": time.perf_counter() - start,
            }  # fmt: skip


def jobs(device: RecordedDevice, name: str, splits: set[str], methods: list[str], seeds: int) -> Iterator[Job]:
    for problem in device.recording.counts:
        rows = list(device.rows(problem).values())
        if rows[0].split not in splits:
            continue
        speedups = {row.hash: row.speedup.value for row in rows if row.speedup and row.language != "torch"}
        near = frozenset(hash for hash, speedup in speedups.items() if speedup >= max(speedups.values()) / NEAR)
        if rows[0].anchor in near:
            continue  # the seed itself is as good
        for method in methods:
            yield from (Job(problem, name, method, seed, len(rows), near) for seed in range(seeds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="recorded:h200")
    parser.add_argument("--splits", default="test_op,test_family")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print every search as a line")
    arguments = parser.parse_args()
    device = devices.get(arguments.device)
    assert isinstance(device, RecordedDevice)
    methods = arguments.methods.split(",")
    todo = list(jobs(device, arguments.device, set(arguments.splits.split(",")), methods, arguments.seeds))
    needed: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    shares: dict[str, list[float]] = defaultdict(list)
    stopped: Counter[str] = Counter()
    with multiprocessing.Pool(arguments.jobs) as pool:
        for found in pool.imap_unordered(Job.run, todo):
            if arguments.json:
                print(json.dumps(found), flush=True)
            needed[found["method"]][found["problem"]].append(found["needed"] or math.inf)
            shares[found["method"]].append(found["measured"] / found["pool"])
            stopped[found["method"]] += found["early_stop"]["stopped"]
    print(summary(needed, shares, stopped, methods))
    return 0


def summary(
    needed: dict[str, dict[str, list[float]]], shares: dict[str, list[float]], stopped: Counter[str], methods: list[str]
) -> str:
    """Per operation the median over seeds; then the median over operations, also as a share of the first method's."""
    first = {problem: median(counts) for problem, counts in needed[methods[0]].items()}
    rows = []
    for method in methods:
        typical = {problem: median(counts) for problem, counts in needed[method].items()}
        relative = [1.0 if n == first[problem] else n / first[problem] for problem, n in typical.items()]  # also never
        never = sum(math.isinf(count) for counts in needed[method].values() for count in counts)
        rows.append(
            [
                *(method, f"{median(typical.values()):.1f}", f"{median(relative):.2f}"),
                *(f"{mean(shares[method]):.2f}", f"{stopped[method]} of {len(shares[method])}", str(never)),
            ]
        )
    header = [
        "method",
        "measurements to within 5 %, median",
        f"as a share of {methods[0]}'s",
        "measured, of the pool",
        "stopped early",
        "searches that never did",
    ]
    return table(rows, header)


if __name__ == "__main__":
    raise SystemExit(main())
