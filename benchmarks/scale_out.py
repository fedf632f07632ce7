"""Measure how a search scales with the number of devices: real Ray workers, and up to 256 simulated devices.

    .venv/bin/python benchmarks/scale_out.py workers        # 1, 2, 4 and 8 workers, and workers that are killed
    .venv/bin/python benchmarks/scale_out.py simulate autotune_spaces/convolution_milo__A6000.parquet

`workers` starts Ray on this machine and declares a GPU for each worker. No GPU is used: the device sleeps for half a
second. The product's own search, including its store, is timed from the first result to the last.

`simulate` replays a tuning space with a simulated clock. A configuration occupies its device for its recorded time of
compiling, checking and timing. The search's own computation advances the clock by its processor time, and no results
arrive meanwhile.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet

from presage import Device, Effort, Kernel, Measurement, Problem, Recording, Status, search
from presage.cli.terminal import table
from presage.corpus.importing import import_space
from presage.devices.base import CaseTiming, Progress
from presage.devices.pool import Outcome, Pool
from presage.devices.ray import RayDevice
from presage.devices.recorded import RecordedDevice
from presage.searches.state import State
from presage.store.store import Event, Store

SECONDS = 0.5
NEAR = 1.05
KERNEL = """\
// presage: entry scale
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 4096
// presage: tune A = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
// presage: tune B = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
void scale(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];
}
"""


# -- real workers ------------------------------------------------------------------------------------------------------


class Sleeping(Device):
    """A device that sleeps half a second for each kernel. At every `dying`-th kernel, it kills its own process."""

    kind, languages, name = "cpu", ("c",), "sleeping"

    def __init__(self, dying: int = 0) -> None:
        self._dying, self._count = dying, 0

    def describe(self) -> dict[str, Any]:
        return {"hardware": "none"}

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        self._count += len(kernels)
        if self._dying and self._count % self._dying == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(SECONDS * len(kernels))
        return [self._measured(problem, kernel) for kernel in kernels]

    def _measured(self, problem: Problem, kernel: Kernel) -> Measurement:
        a, b = (float(kernel.values.get(name, 1)) for name in "AB")
        took = 1e6 * (1 + (a - 11) ** 2 / 50 + (b - 6) ** 2 / 80)
        cases = tuple(CaseTiming(c.name, (took,) * 8, tuple(range(8)), 1.0, 1) for c in problem.timed["cpu"])
        return Measurement(problem.name, kernel, self.name, Status.OK, cases=cases)


class Dying(Sleeping):
    """A device whose worker is killed at each worker's sixth kernel."""

    def __init__(self) -> None:
        super().__init__(dying=6)


def timed(make: type[Device], workers: int, each: int, forecaster: str) -> dict[str, Any]:
    """Run a search with `each` measurements per worker. Return the measurements per second, and their outcomes."""
    times: list[float] = []

    def watch(event: Event, state: State) -> None:
        if event.kind == "measured":
            times.append(time.monotonic())

    budget = 1 + each * workers
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "scale.c")
        file.write_text(KERNEL)
        device = RayDevice(make, workers=workers)
        try:
            run = search(
                file, device=device, forecaster=forecaster, budget=budget + 4, run=Path(scratch, "run"), watch=watch
            )
        finally:
            device.close()
        with Store(run.folder, writes=False) as store:
            measured = Counter(event.payload["kernel"] for event in store.events("measured"))
            statuses = Counter(event.payload["status"] for event in store.events("measured"))
            lost = sum(1 for _ in store.events("lost"))
    rate = (len(times) - 2) / (times[-1] - times[1])
    return {
        "workers": workers, "forecaster": forecaster, "measurements": len(times), "a_second": rate,
        "of_linear": rate / (workers / SECONDS), "lost": lost, "twice": sum(n - 1 for n in measured.values()),
        "statuses": dict(statuses),
    }  # fmt: skip


def workers(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(num_cpus=1, num_gpus=max(arguments.workers), include_dashboard=False, log_to_driver=False)
    found = []
    for make in (Sleeping, Dying):
        for count in arguments.workers if make is Sleeping else arguments.workers[-1:]:
            for forecaster in arguments.forecasters.split(","):
                one = timed(make, count, arguments.each, forecaster) | {"device": make.__name__}
                found.append(one)
                print(json.dumps(one), flush=True)
    return found


# -- simulated devices -------------------------------------------------------------------------------------------------


class Simulated(Pool, RecordedDevice):
    """A pool of `lanes` simulated devices. Its clock jumps from one result to the next."""

    def __init__(self, recording: Recording, seconds: dict[str, float], lanes: int, seed: int) -> None:
        super().__init__(recording, seed)
        self._seconds, self._lanes = seconds, lanes
        self._under_way: list[tuple[float, str, Problem, Kernel]] = []
        self.now = self.busy = 0.0
        self._heard = time.process_time()

    @property
    def lanes(self) -> int:
        return self._lanes

    def _think(self) -> None:
        self.now += time.process_time() - self._heard
        self._heard = time.process_time()

    def submit(self, problem: Problem, kernel: Kernel, effort: Effort, foreign: bool = True, losses: int = 0) -> None:
        self._think()
        heapq.heappush(self._under_way, (self.now + self._seconds[kernel.hash], kernel.hash, problem, kernel))
        self.busy += self._seconds[kernel.hash]

    def collect(self, seconds: float = math.inf) -> Outcome | None:
        self._think()
        if not self._under_way or self._under_way[0][0] > self.now + seconds:
            return None
        at, hash, problem, kernel = heapq.heappop(self._under_way)
        self.now = max(self.now, at)
        (measurement,) = self.measure(problem, [kernel], Effort(), lambda doing, share: None)
        self._heard = time.process_time()
        return Outcome(problem, kernel, measurement, self._seconds[hash])

    def cancel(self) -> list[Outcome]:
        self._under_way.clear()
        return []


class FoundError(Exception):
    """A kernel within 5 % of the best was measured."""


def found(recording: Recording, seconds: dict[str, float], lanes: int, seed: int) -> dict[str, float]:
    """Return the simulated time and the measurements until a kernel within 5 % of the optimum was measured."""
    device = Simulated(recording, seconds, lanes, seed)
    (problem,) = recording.counts
    totals = {hash: row.total_ns for hash, row in device.rows(problem).items() if row.cases}
    best, count = min(totals.values()), 0

    def watch(event: Event, state: State) -> None:
        nonlocal count
        if event.kind == "measured":
            count += 1
            if totals.get(event.payload["kernel"], math.inf) <= NEAR * best:
                raise FoundError

    start = time.process_time()
    with tempfile.TemporaryDirectory() as scratch, suppress(FoundError):
        search(
            problem, device=device, forecaster="surrogate", policy="always", budget=len(totals), seed=seed,
            run=Path(scratch, "run"), watch=watch,
        )  # fmt: skip
    thought = time.process_time() - start
    return {"lanes": lanes, "seed": seed, "seconds": device.now, "measurements": count, "thinking": thought}


def simulate(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        recording = import_space(arguments.space, Path(scratch, "space.parquet"))
        seconds = delays(arguments.space, recording)
        results: list[dict[str, Any]] = []
        for seed in range(arguments.seeds):
            for lanes in arguments.devices:
                results.append(found(recording, seconds, lanes, seed))
                print(json.dumps(results[-1]), flush=True)
    rows = []
    for lanes in arguments.devices:
        some = [each for each in results if each["lanes"] == lanes]
        values = [statistics.median(each[what] for each in some) for what in ("seconds", "measurements", "thinking")]
        rows.append([str(lanes), *(f"{value:.4g}" for value in values)])
    if arguments.figure:
        arguments.figure.write_text(curve(results))
    print(table(rows, ("devices", "seconds", "measurements", "of which thinking, s")))
    return results


def curve(results: Sequence[dict[str, Any]]) -> str:
    """Return an SVG of the median time and each seed's time against the number of devices, with logarithmic axes."""
    width, height, left, bottom = 640, 360, 60, 44
    devices = sorted({each["lanes"] for each in results})
    most, least = max(each["seconds"] for each in results), min(each["seconds"] for each in results)

    def x(lanes: float) -> float:
        return left + math.log(lanes) / math.log(devices[-1]) * (width - left - 20)

    def y(seconds: float) -> float:
        return height - bottom - math.log(seconds / least) / math.log(most / least) * (height - bottom - 20)

    medians = [statistics.median(each["seconds"] for each in results if each["lanes"] == lanes) for lanes in devices]
    line = " ".join(f"{x(lanes):.1f},{y(median):.1f}" for lanes, median in zip(devices, medians, strict=True))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"',
        f' font-size="12"><rect width="{width}" height="{height}" fill="white"/>',
    ]
    for seconds in (tick for tick in (5, 10, 20, 50, 100, 200, 500) if least <= tick <= most):
        parts.append(f'<path d="M{left} {y(seconds):.1f}H{width - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds} s</text>')
    for lanes in devices:
        parts.append(f'<text x="{x(lanes):.1f}" y="{height - bottom + 18}" text-anchor="middle">{lanes}</text>')
    for each in results:
        at = f'cx="{x(each["lanes"]):.1f}" cy="{y(each["seconds"]):.1f}"'
        parts.append(f'<circle {at} r="3" fill="#0b6e4f" fill-opacity=".4"/>')
    parts.append(f'<polyline points="{line}" fill="none" stroke="#0b6e4f" stroke-width="2"/>')
    parts.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">devices</text></svg>\n')
    return "\n".join(parts)


def delays(space: Path, recording: Recording) -> dict[str, float]:
    """Return the seconds for which each configuration occupied its GPU when it was recorded, by the kernel's hash."""
    parts = ("compile_ms", "benchmark_ms", "verification_ms", "framework_ms")
    told = pyarrow.parquet.read_table(space)
    names = [name for name in told.column_names if name not in parts and not name.endswith("_ms")]
    by_values = {}
    for row in told.to_pylist():
        key = tuple(str(row[name]) for name in names if name not in ("status", "n"))
        by_values[key] = sum(row[part] or 0.0 for part in parts) / 1000
    order = [name for name in names if name not in ("status", "n")]
    (problem,) = recording.counts
    return {row.hash: by_values[tuple(str(row.values.get(name)) for name in order)] for row in recording.rows(problem)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write every result to this file")
    commands = parser.add_subparsers(required=True)
    real = commands.add_parser("workers")
    real.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    real.add_argument("--each", type=int, default=16, help="measurements a worker")
    real.add_argument("--forecasters", default="none,surrogate")
    real.set_defaults(run=workers)
    simulated = commands.add_parser("simulate")
    simulated.add_argument("space", type=Path)
    simulated.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128, 256])
    simulated.add_argument("--seeds", type=int, default=5)
    simulated.add_argument("--figure", type=Path, help="write the curve as SVG")
    simulated.set_defaults(run=simulate)
    arguments = parser.parse_args()
    results = arguments.run(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
