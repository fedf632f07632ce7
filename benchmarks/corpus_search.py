"""Count the measurements that recorded searches need to come within 5 % of the pool's best kernel.

Searches with forecasts are compared with searches without.

    python benchmarks/corpus_search.py --device recorded:h200 --splits test_op,test_family --seeds 5 [--jobs 2]
    python benchmarks/corpus_search.py --methods risk/learned,risk/learned+stop --splits test_op --budget 64
    python benchmarks/corpus_search.py --methods risk/learned --method risk/blend:learned,llm:model=FOLDER --budget 64
    python benchmarks/corpus_search.py --methods risk/learned --method risk/blend:learned,answers --splits test_op \
        --budget 64 --answers A_data16000 --data DATA --folder FOLDER

A method is POLICY or POLICY/FORECASTER. `+stop` lets the search stop early; `+stop=0.1` sets alpha. Every search runs
`presage.search` in a temporary folder, with --budget measurements or as many as the pool has kernels. Kernels are
compared by their recorded speeds, which do not depend on the noise that a search sees. With `--batch` a search sees
only so many kernels of the pool at a time. A search stopped too early if its result is more than 5 % slower than the
result of the first method with the same seed. The forecaster `answers` returns stored answers of a language model to
the questions of `presage evaluate` (benchmarks/train_claims.py): each kernel against the seed, without neighbours.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import train_claims

from presage import Forecaster, search
from presage.cli.terminal import table
from presage.devices import registry as devices
from presage.devices.recorded import RecordedDevice
from presage.forecasters import registry as forecasters
from presage.forecasters.blend import BlendForecaster
from presage.store.store import Store

NEAR = 1.05
METHODS = "always,always/learned,topk/learned,risk/learned"


@dataclass(frozen=True)
class Answers:
    """The location of a language model's answers, as the arguments of `train_claims.py score`."""

    name: str
    split: str
    data: Path
    answers: Path
    advised: bool = False


@dataclass(frozen=True)
class Job:
    """One search."""

    problem: str
    device: str
    method: str
    seed: int
    budget: int
    near: frozenset[str]
    """The hashes of all kernels within 5 % of the best."""
    speedups: Mapping[str, float]
    """The recorded speedups of all kernels that work, by hash."""
    batch: int | None = None
    answers: Answers | None = None

    def run(self) -> dict[str, Any]:
        method, _, stop = self.method.partition("+")
        policy, _, forecaster = method.partition("/")
        alpha = float(stop.partition("=")[2]) if "=" in stop else None
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run = search(
                self.problem, device=self.device, policy=policy, forecaster=self.forecaster(forecaster), seed=self.seed,
                budget=self.budget, until=NEAR - 1 if stop else None, alpha=alpha, batch=self.batch, run=folder,
            )  # fmt: skip
            with Store(Path(folder), writes=False) as store:
                measured = [event.payload["kernel"] for event in store.events("measured")]
            needed = next((n for n, hash in enumerate(measured, 1) if hash in self.near), None)
            return {
                "problem": self.problem, "method": self.method, "seed": self.seed, "budget": self.budget,
                "found": self.speedups[run.best.kernel.hash], "spent": run.measurements,
                "needed": needed, "measured": len(measured), "decisions": run.summary()["decisions"],
                "missed": run.summary()["missed"], "early_stop": run.summary()["early_stop"],
                "seconds": time.perf_counter() - start,
            }  # fmt: skip

    def forecaster(self, spec: str) -> str | Forecaster:
        kind, _, members = spec.rpartition(":")
        if not self.answers or "answers" not in members.split(","):
            return spec or "none"
        named = {
            name: _told(self.answers) if name == "answers" else forecasters.get(name) for name in members.split(",")
        }
        return BlendForecaster(named) if kind == "blend" else named["answers"]


@lru_cache(maxsize=1)
def _told(answers: Answers) -> Forecaster:
    """Return the forecaster `answers`. The answers are read once in each process."""
    return train_claims.answered(answers, answers.name, answers.split, is_warmed=True)


def jobs(device: RecordedDevice, splits: set[str], methods: list[str], arguments: argparse.Namespace) -> Iterator[Job]:
    for problem in device.recording.counts:
        if arguments.problems and problem not in arguments.problems.split(","):
            continue
        rows = list(device.rows(problem).values())
        if rows[0].split not in splits:
            continue
        speedups = {row.hash: row.speedup.value for row in rows if row.speedup and row.language != "torch"}
        near = frozenset(hash for hash, speedup in speedups.items() if speedup >= max(speedups.values()) / NEAR)
        if rows[0].anchor in near:
            continue  # the seed is already within 5 % of the best
        told = (
            Answers(arguments.answers, rows[0].split, arguments.data, arguments.folder) if arguments.answers else None
        )
        budget, speedups = arguments.budget or len(rows), {**speedups, rows[0].anchor: 1.0}
        for method in methods:
            for seed in range(arguments.seeds):
                yield Job(problem, arguments.device, method, seed, budget, near, speedups, arguments.batch, told)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="recorded:h200")
    parser.add_argument("--splits", default="test_op,test_family")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--method", action="append", default=[], help="one more, whose name may have commas")
    parser.add_argument("--problems", help="only these operations of the splits, with commas between them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, help="measurements of each search (default: as many as the pool has)")
    parser.add_argument("--batch", type=int, help="candidates of a step (default: the pool)")
    parser.add_argument("--answers", metavar="NAME", help="the piece of train_claims.py whose answers to use")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where its questions are")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="where its answers are")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print every search as a line")
    arguments = parser.parse_args()
    device = devices.get(arguments.device)
    assert isinstance(device, RecordedDevice)
    methods = [*arguments.methods.split(","), *arguments.method]
    todo = list(jobs(device, set(arguments.splits.split(",")), methods, arguments))
    results: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    with multiprocessing.Pool(arguments.jobs) as pool:
        for found in pool.imap_unordered(Job.run, todo):
            if arguments.json:
                print(json.dumps(found), flush=True)
            results[found["method"]].append(found)
    print(summary(results))
    return 0


def summary(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the table of all methods. Measurements are the median over operations of the median over seeds; the same
    is shown as a share of the first method's."""
    typical = {method: _typical(found) for method, found in results.items()}
    first = next(iter(results))
    full = {(each["problem"], each["seed"]): each["found"] for each in results[first]}
    rows = []
    for method, found in results.items():
        counts = typical[method]
        # Equal counts are handled first, because both may be inf (never found).
        relative = [1.0 if n == typical[first][p] else n / typical[first][p] for p, n in counts.items()]
        stopped = [each for each in found if each["early_stop"]["stopped"]]
        early = [each for each in stopped if full[each["problem"], each["seed"]] > NEAR * each["found"]]
        rows.append(
            [
                *(method, f"{median(counts.values()):.1f}", f"{median(relative):.2f}"),
                f"{mean(each['measured'] / each['budget'] for each in found):.2f}",
                str(sum(each["needed"] is None for each in found)),
                *(
                    f"{len(stopped)} of {len(found)}",
                    f"{mean(1 - each['spent'] / each['budget'] for each in found):.2f}",
                ),
                f"{len(early)} ({', '.join(sorted({each['problem'] for each in early})) or '-'})",
            ]
        )
    header = [
        "method",
        "measurements to within 5 %, median",
        f"as a share of {first}'s",
        "measured, of the budget",
        "searches that never did",
        "stopped early",
        "saved, of the budget",
        "stopped too early",
    ]
    return table(rows, header)


def _typical(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return, for each operation, the median over seeds of the measurements needed to come within 5 %."""
    counts: dict[str, list[float]] = defaultdict(list)
    for each in found:
        counts[each["problem"]].append(each["needed"] or math.inf)
    return {problem: median(each) for problem, each in counts.items()}


if __name__ == "__main__":
    raise SystemExit(main())
