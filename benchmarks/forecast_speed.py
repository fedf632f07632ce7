"""Count the forecasts per second of `learned`, from recorded static reports and with compiling the kernels first.

    python benchmarks/forecast_speed.py [--recording h200] [--kernels 1000] [--compiled 64]

Nothing is cached: each kernel is compiled and parsed, its features are computed, and the trees are evaluated.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time

from presage import Candidate
from presage.devices import recorded
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.learned_training import task_of
from presage.problems import static


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", default="h200")
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--compiled", type=int, default=64)
    arguments = parser.parse_args()
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
