"""Compare our searches of recorded tuning spaces with other tuners at equal numbers of measurements.

The figure of merit is the time of the best kernel found after 25, 50, 100 and 200 measurements over the optimum's.

    python benchmarks/replay.py SPACES [--methods presage,random,lfc,forest] [--seeds 30] [--jobs 2] [--to FOLDER]

`presage` is the surrogate in a plain loop that sees the whole space, and `search` is `presage search` as a user runs
it. With +gpus, both also use the kernel's measurements on other GPUs.
SPACES is a folder with tuning spaces (autotune_spaces). A configuration that fails counts as a measurement. Optuna's
and Kernel Tuner's strategies take part if they are installed:
pip install optuna kernel_tuner scikit-learn scikit-optimize
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import replay_peers
from replay_figure import figure

from presage import Candidate, Kernel, search
from presage.corpus.importing import import_space
from presage.devices.recording import open_recording
from presage.forecasters.gaussian_process import Surface
from presage.forecasters.surrogate import OPENING, Encoding, opening
from presage.store.store import Store

OURS = ("presage", "presage+gpus", "search", "search+gpus")
BUDGETS = (25, 50, 100, 200)
_FINALS = 4
"""Measurements that a search reserves for its finals: three finalists and the anchor."""
AIM = (
    "convolution_milo__A100",
    "convolution_milo__A6000",
    "convolution_milo__MI250X",
    "convolution_milo__W6600",
    "dedispersion_milo__MI250X",
    "dedispersion_milo__W7800",
    "kt_convolution__RTX_2080_Ti",
    "kt_pnpoly__RTX_3090",
)
"""The eight spaces of the table. The other spaces are flat, so that any method finds their optimum."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """The tuning space of one kernel on one GPU. Every configuration is measured."""

    name: str
    kernels: list[Kernel]
    log2_times: Floats
    """log2 of each configuration's time in ns; infinite for those that fail."""

    @property
    def problem(self) -> str:
        return self.name.partition("__")[0]

    def off(self, order: list[int], budget: int) -> float:
        """Return the best time among the first `budget` measurements over the optimum's."""
        return float(2 ** (self.log2_times[order[:budget]].min() - self.log2_times.min()))


@cache
def load(name: str, spaces: Path, kept: Path) -> Space:
    """Load a space through a recording, which is cached in `kept`."""
    file = kept / f"{name}.parquet"
    recording = open_recording(file) if file.exists() else import_space(spaces / f"{name}.parquet", file)
    rows = recording.rows(reports=False)
    times = np.array([math.log2(row.total_ns) if row.cases else math.inf for row in rows])
    return Space(name, [row.kernel for row in rows], times)


@cache
def points(name: str, spaces: Path, kept: Path) -> Floats:
    pool = [Candidate(kernel) for kernel in load(name, spaces, kept).kernels]
    return Encoding.of(pool).points(pool)


@cache
def conditions(problem: str, spaces: Path) -> list[str]:
    """Return the constraints on combinations of tunables from the kernel's description."""
    with pyarrow.input_stream(spaces / "sources.jsonl.zst", compression="zstd") as stream:
        sources = [json.loads(line) for line in stream.read().splitlines()]
    described = next(each for each in sources if each["kernel"] == problem and each["path"].endswith(".json"))
    return [each["Expression"] for each in json.loads(described["text"])["ConfigurationSpace"]["Conditions"]]


@cache
def as_table(name: str, spaces: Path, kept: Path) -> replay_peers.Table:
    space = load(name, spaces, kept)
    values = [dict(kernel.values) for kernel in space.kernels]
    return replay_peers.Table(name, values, space.log2_times, conditions(space.problem, spaces), kept)


def presage(space: Space, at: Floats, seed: int, budget: int, elsewhere: Floats | None = None) -> list[int]:
    """Search with the product's own surrogate: after the opening, measure the largest expected improvement."""
    order = opening(space.kernels, OPENING, random.Random(seed), elsewhere)[:budget]
    surface = Surface(at, elsewhere)
    for index in order:
        surface.tell(index, space.log2_times[index])
    while len(order) < budget:
        gain = surface.beliefs().expected_improvement()
        gain[order] = -1.0
        order.append(int(np.argmax(gain)))
        surface.tell(order[-1], space.log2_times[order[-1]])
    return order


def searched(space: Space, seed: int, budget: int, device: Path, elsewhere: list[Path]) -> list[int]:
    """Search with `presage search` and return the order of measurements. The anchor is first; the finals add none."""
    places = {kernel.hash: index for index, kernel in enumerate(space.kernels)}
    forecaster = ":".join(filter(None, ["surrogate", ",".join(map(str, elsewhere))]))
    with tempfile.TemporaryDirectory() as folder:
        search(
            space.problem, device=f"recorded:{device}", forecaster=forecaster, seed=seed, budget=budget + _FINALS,
            run=folder,
        )  # fmt: skip
        with Store(Path(folder), writes=False) as store:
            return [places[event.payload["kernel"]] for event in store.events("measured")]


@dataclass(frozen=True)
class Job:
    """One method in one space with one seed. A method that plans for its budget runs once for each budget."""

    method: str
    space: str
    seed: int
    spaces: Path
    kept: Path

    def run(self) -> list[float]:
        space = load(self.space, self.spaces, self.kept)
        if self.method in ("presage", "presage+gpus"):
            others = self._elsewhere(space) if self.method == "presage+gpus" else None
            order = presage(space, points(self.space, self.spaces, self.kept), self.seed, BUDGETS[-1], others)
            return [space.off(order, budget) for budget in BUDGETS]
        if self.method in ("search", "search+gpus"):
            files = [self.kept / f"{name}.parquet" for name in self._others(space)] if "+" in self.method else []
            order = searched(space, self.seed, BUDGETS[-1], self.kept / f"{self.space}.parquet", files)
            return [space.off(order, budget) for budget in BUDGETS]
        peer = replay_peers.find(self.method)
        table = as_table(self.space, self.spaces, self.kept)
        if not peer.plans:
            order = peer.search(table, self.seed, BUDGETS[-1])
            return [space.off(order, budget) for budget in BUDGETS]
        return [space.off(peer.search(table, self.seed, budget), budget) for budget in BUDGETS]

    def _others(self, space: Space) -> list[str]:
        """Return the names of the same kernel's spaces on other GPUs."""
        names = sorted(file.stem for file in self.spaces.glob(f"{space.problem}__*.parquet"))
        return [name for name in names if name != space.name]

    def _elsewhere(self, space: Space) -> Floats | None:
        """Return log2 times of the same configurations on the other GPUs; NaN if not measured there."""
        others = [load(name, self.spaces, self.kept) for name in self._others(space)]
        if not others:
            return None
        known = [{str(dict(k.values)): t for k, t in zip(o.kernels, o.log2_times, strict=True)} for o in others]
        return np.array([[times.get(str(dict(k.values)), math.nan) for times in known] for k in space.kernels])


def _run(job: Job) -> tuple[Job, list[float], float]:
    started = time.perf_counter()
    return job, job.run(), time.perf_counter() - started


def replay(jobs: list[Job], processes: int) -> Iterator[tuple[Job, list[float], float]]:
    if processes == 1:
        yield from map(_run, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_run, jobs, chunksize=4)


def summary(found: dict[str, Floats]) -> dict[str, Any]:
    """Return the geometric mean over spaces of the median over seeds, with an interval from resampling the seeds.

    `found` has an array of shape (seeds, budgets) for each space.
    """
    rng = np.random.default_rng(0)

    def mean(pick: Callable[[Floats], Floats]) -> Floats:
        return np.exp(np.mean([np.log(np.median(pick(off), axis=0)) for off in found.values()], axis=0))

    draws = [mean(lambda off: off[rng.integers(0, len(off), len(off))]) for _ in range(1000)]
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    return {
        "off": mean(lambda off: off).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "spaces": {name: np.median(off, axis=0).tolist() for name, off in found.items()},
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    heads = " | ".join(map(str, BUDGETS))
    lines = [f"| method | {heads} | seconds per search |", "|---" * (len(BUDGETS) + 2) + "|"]
    for method, result in results.items():
        cells = zip(result["off"], result["low"], result["high"], strict=True)
        shown = " | ".join(f"{off:.3f} ({low:.3f}–{high:.3f})" for off, low, high in cells)
        lines.append(f"| {method} | {shown} | {result['seconds']:.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("spaces", type=Path)
    parser.add_argument("--only", help="these spaces instead of the eight, separated by commas")
    parser.add_argument("--methods", default=",".join((*OURS, *replay_peers.NAMES)))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--to", type=Path, default=Path("build/replay"), help="for recordings, JSON and figure")
    arguments = parser.parse_args()
    known = (*OURS, *replay_peers.NAMES)
    if unknown := set(arguments.methods.split(",")) - set(known):
        parser.error(f"there is no method {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    arguments.to.mkdir(parents=True, exist_ok=True)
    names = arguments.only.split(",") if arguments.only else AIM
    for file in sorted(arguments.spaces.glob("*__*.parquet")):
        load(file.stem, arguments.spaces, arguments.to)
    file, of = arguments.to / "replay.json", {"budgets": list(BUDGETS), "spaces": list(names), "seeds": arguments.seeds}
    kept = json.loads(file.read_text()) if file.exists() else {}
    # Methods that were run before, in the same spaces with the same seeds, are not run again.
    results: dict[str, dict[str, Any]] = kept["methods"] if of == {name: kept.get(name) for name in of} else {}
    for method in arguments.methods.split(","):
        if method in results:
            continue
        if missing := replay_peers.missing(method):
            print(f"{method}: left out, since {missing} is not installed (pip install {missing})", file=sys.stderr)
            continue
        jobs = [Job(method, n, s, arguments.spaces, arguments.to) for n in names for s in range(arguments.seeds)]
        found: dict[str, list[tuple[int, list[float]]]] = {name: [] for name in names}
        seconds = 0.0
        for job, off, took in replay(jobs, arguments.jobs):
            found[job.space].append((job.seed, off))
            seconds += took
        ordered = {name: np.array([off for _, off in sorted(each)]) for name, each in found.items()}
        results[method] = {**summary(ordered), "seconds": seconds / len(jobs)}
        file.write_text(json.dumps({**of, "methods": results}, indent=1))
        print(table({method: results[method]}).splitlines()[-1], file=sys.stderr, flush=True)
    (arguments.to / "replay.svg").write_text(figure(BUDGETS, {m: r["off"] for m, r in results.items()}))
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
