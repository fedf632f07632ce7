"""Compare the forecasts of `learned` for recorded modules with their measurements, in the figures that have targets.

    python benchmarks/module_forecasts.py [--recording h200_modules] [--split validation] [--folder MODULES]
        [--rehearsed FILE.jsonl]

The anchor is each problem's measured reference. With --folder, the folder of the modules, the share of traced modules
is also printed for those with inline CUDA. With --rehearsed, a file of `rehearsed_modules.py`, p_fail takes rehearsals
into account. `presage evaluate learned --recording h200_modules` has the other figures.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from presage import Candidate, Prediction, Status, load_recording
from presage.core import scoring
from presage.corpus.collect import modules
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.devices.rehearsal import Rehearsal
from presage.forecasters import faults
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.learned_training import task_of
from presage.forecasters.module_model import ModuleModel
from presage.forecasters.modules import Times
from presage.static import inline_cuda
from presage.static.trace import COMPILED, LAUNCHES


@dataclass(frozen=True)
class Outcome:
    """A module, or a reference."""

    row: Row
    prediction: Prediction | None
    """None for a reference."""
    off: float | None
    """log2 of the measured time over the sum of the forecast times of the steps; None if either is not known."""

    @property
    def is_traced(self) -> bool:
        return all(report.trace is not None and not report.trace.lacks for report in self.row.reports)

    @property
    def is_torch_only(self) -> bool:
        traces = [report.trace for report in self.row.reports if report.trace]
        return bool(traces) and not any(
            COMPILED in trace.notes or any(step.kind in LAUNCHES for step in trace.steps) for trace in traces
        )

    @property
    def log2_speedup(self) -> float | None:
        return math.log2(self.row.speedup.value) if self.row.speedup else None

    @property
    def p_fail(self) -> float:
        if faults.why_broken(self.row.reports):
            return 1.0
        known = self.prediction.forecast if self.prediction else None
        return known.p_fail if known else 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", default="h200_modules")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rehearsed", type=Path)
    arguments = parser.parse_args()
    every = outcomes(arguments.recording, arguments.split, rehearsals(arguments.rehearsed))
    found = [each for each in every if each.prediction is not None]
    inline = inline_hashes(arguments.folder) if arguments.folder else frozenset()
    print(f"{len(found)} modules of {len({each.row.problem for each in found})} problems, split {arguments.split}")
    print(f"traced whole: {fmean(each.is_traced for each in found):.3f}", end="")
    some = [each.is_traced for each in found if each.row.hash in inline]
    print(f"; with inline CUDA {fmean(some):.3f} of {len(some)}" if some else "")
    say_ranks(found)
    say_times(every)
    failed = np.array([each.row.status is not Status.OK for each in found])
    area = scoring.auroc(np.array([each.p_fail for each in found]), failed)
    print(f"failure AUROC {area:.3f}; {failed.sum()} fail")


def rehearsals(path: Path | None) -> dict[tuple[str, str], Rehearsal]:
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path else []
    return {(row[0], row[1]): Rehearsal(row[4], row[5]) for row in rows}


def outcomes(recording: str, split: str, rehearsed: dict[tuple[str, str], Rehearsal]) -> list[Outcome]:
    found: list[Outcome] = []
    device, forecaster = RecordedDevice(load_recording(recording)), LearnedForecaster()
    correction = ModuleModel.load().launches
    for problem in device.recording.counts:
        rows = [row for row in device.rows(problem).values() if row.split == split]
        reference = next((row for row in rows if row.hash == row.anchor), None)
        if reference is None:
            continue
        task = task_of(device, problem, reference)
        times = Times(task, lambda: forecaster.model("compiled"), lambda: forecaster.operators, correction)
        others = [row for row in rows if row.hash != reference.hash]
        candidates = [
            Candidate(row.kernel, row.reports, rehearsal=rehearsed.get((problem, row.hash))) for row in others
        ]
        for row, candidate, said in zip(others, candidates, forecaster.forecast(task, candidates), strict=True):
            found.append(Outcome(row, faults.warned(task, candidate, said), off(times, row)))
        found.append(Outcome(reference, None, off(times, reference)))
    return found


def off(times: Times, row: Row) -> float | None:
    said = times.of(Candidate(row.kernel, row.reports))
    if said is None or not row.cases:
        return None
    measured = fmean(math.log2(case.median.value) for case in row.cases)
    return measured - fmean(time.log2_ns for time in said)


def inline_hashes(folder: Path) -> frozenset[str]:
    every = modules(folder, ("torch", "triton"))
    return frozenset(each.hash for each in every if inline_cuda.is_mentioned(each.kernel.source))


def say_ranks(found: list[Outcome]) -> None:
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in found:
        known = each.prediction.forecast if each.prediction else None
        if known and each.log2_speedup is not None:
            pairs[each.row.problem].append((known.mean(), each.log2_speedup))
    said, true = (np.array([pair[i] for some in pairs.values() for pair in some]) for i in (0, 1))
    together = scoring.spearman(said, true, np.zeros(said.size, dtype=np.intp))[0]
    several = [(number, some) for number, some in enumerate(pairs.values()) if len(some) >= 5]
    rows = [(*pair, number) for number, some in several for pair in some]
    within = scoring.spearman(*(np.array(column) for column in zip(*rows, strict=True)))
    print(f"Spearman: of all {said.size} that work {together:.3f};", end=" ")
    print(f"within {len(several)} problems with five or more {within.mean():.3f}")
    print(f"median error of log2 S: {np.median(np.abs(said - true)):.3f}")


def say_times(every: list[Outcome]) -> None:
    """Print the errors of the forecast times. A forecast is a sum of steps without torch's host code, so only modules
    that were replayed count."""
    replayed = [each for each in every if each.off is not None and each.row.believed == "replay"]
    for name, some in (
        ("torch alone, references among them", [each for each in replayed if each.is_torch_only]),
        ("with kernels of their own", [each for each in replayed if not each.is_torch_only]),
    ):
        if some:
            errors = [2 ** abs(each.off or 0.0) - 1 for each in some]
            print(f"median error of the forecast time, {len(some)} modules {name}: {np.median(errors):.1%}")


if __name__ == "__main__":
    main()
