"""Count the forecasts per second of `learned`, from recorded static reports and with compiling the kernels first.

    python benchmarks/forecast_speed.py [--recording h200] [--kernels 1000] [--compiled 64]
    python benchmarks/forecast_speed.py --modules FOLDER [--count 40]

Nothing is cached: each kernel is compiled and parsed, its features are computed, and the trees are evaluated. FOLDER
is one as for `presage corpus collect --modules`. Its modules are forecast twice, with and without inline CUDA apart:
the first time they are traced, the second time their traces are in the cache. The reference counts as a module.
Torch's headers, which are compiled once on a machine, are ready before.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from presage import Candidate, Forecaster
from presage.corpus.collect import PlannedKernel, modules
from presage.devices import recorded
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.forecasters.from_names import ask
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.learned_training import task_of
from presage.problems import static
from presage.static import inline_cuda


def forecast(device: RecordedDevice, rows: list[Row], compile_first: bool) -> float:
    """Return the forecasts per second over these kernels, one operation at a time."""
    forecaster = LearnedForecaster()
    by_problem: dict[str, list[Row]] = {}
    for row in rows:
        by_problem.setdefault(row.problem, []).append(row)
    tasks = {name: task_of(device, name, _anchor(device, name)) for name in by_problem}
    first = next(iter(by_problem))
    forecaster.forecast(tasks[first], [Candidate(tasks[first].anchor.kernel, tasks[first].anchor.reports)])  # loads
    start = time.perf_counter()
    reports = {row.hash: row.reports for row in rows}
    if compile_first:
        assert device.hardware is not None
        wanted = [(tasks[row.problem].problem, row.kernel, tasks[row.problem].cases) for row in rows]
        made = static.of_several(wanted, device.hardware)
        reports = {row.hash: tuple(each) for row, each in zip(rows, made, strict=True)}
    for name, members in by_problem.items():
        forecaster.forecast(tasks[name], [Candidate(row.kernel, reports[row.hash]) for row in members])
    return len(rows) / (time.perf_counter() - start)


def _anchor(device: RecordedDevice, problem: str) -> Row:
    rows = device.rows(problem)
    return next((rows[row.anchor] for row in rows.values() if row.anchor in rows), next(iter(rows.values())))


def forecast_modules(forecaster: Forecaster, planned: list[PlannedKernel]) -> float:
    """Return the forecasts per second over these modules, one problem at a time."""
    by_problem: dict[str, list[PlannedKernel]] = {}
    for each in planned:
        by_problem.setdefault(each.problem.name, []).append(each)
    start = time.perf_counter()
    for members in by_problem.values():
        ask(members[0].problem, [each.kernel for each in members], None, "h200").forecast(forecaster)
    return (len(planned) + len(by_problem)) / (time.perf_counter() - start)


def modules_in(folder: Path, count: int) -> None:
    """Print the speed for modules of a folder, each sort apart."""
    every = [each for each in modules(folder, ("torch", "triton")) if each.kernel.name != "reference"]
    inline = [each for each in every if inline_cuda.is_mentioned(each.kernel.source)]
    others = [each for each in every if each not in inline]
    forecaster = LearnedForecaster()
    for label, sort in (("with Triton and torch", others), ("with inline CUDA", inline)):
        drawn = random.Random(0).sample(sort, min(count + 1, len(sort)))
        with tempfile.TemporaryDirectory() as cache:
            os.environ["PRESAGE_CACHE_DIR"] = cache
            forecast_modules(forecaster, drawn[:1])  # loads trees, starts processes, and compiles headers
            for when in ("traced anew", "traced before"):
                speed = forecast_modules(forecaster, drawn[1:])
                print(f"{speed:.2f} a second, {when} ({len(drawn) - 1} modules {label})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", default="h200")
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--compiled", type=int, default=64)
    parser.add_argument("--modules", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=40, help="modules of each sort (default: 40)")
    arguments = parser.parse_args()
    if arguments.modules:
        modules_in(arguments.modules, arguments.count)
        return 0
    device = RecordedDevice(recorded.find(arguments.recording))
    rng = random.Random(0)
    names = rng.sample(list(device.recording.counts), 24)
    every = [row for name in names for row in device.rows(name).values() if row.reports]
    some = rng.sample(every, min(arguments.kernels, len(every)))
    print(f"{forecast(device, some, False):.0f} forecasts a second from recorded reports ({len(some)} kernels)")
    cuda = [row for row in every if row.language == "cuda" and row not in some] or every
    few = rng.sample(cuda, min(arguments.compiled, len(cuda)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRESAGE_CACHE_DIR"] = folder
        speed = forecast(device, few, True)
    print(f"{speed:.1f} a second with compiling them first ({len(few)} .cu kernels)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
