"""Times of a module's own kernels from the trees of `learned`. The trees know kernels of whole problems, so a launch is
described as one: its tensors give the least cost of the problem, and there are no source features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from presage.forecasters import features
from presage.forecasters.features import Row
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.report import LaunchReport, StaticReport
from presage.static.trace import LAUNCHES, Step

_MISSED = 1.15
"""Factor on the deviation without source features, from kernels of the validation split."""
UNKNOWN_DEVIATION = 1.2
"""The deviation, in octaves, of the time of a launch of which only the roofline is known."""
_SKIPPED_OCTAVES = 1.0
"""How much shorter a launch is taken to be, in octaves, if values in memory decide whether any of it runs. A guess:
with the deviation above, the interval goes from all of it to a sixteenth."""


_PEAK, _BANDWIDTH = 1e13, 1e12
"""Flops and bytes per second of a mid-range GPU, used where the data sheet's are not known."""
_LAUNCH_NS, _INSTRUCTION_NS, _BLOCK_NS = 2_500.0, 3.0, 60.0
"""Nanoseconds of a launch, of an instruction of a warp, and of starting a block. Fitted to 55 launches that take most
of the time of a measured module of the train and validation splits."""


MARKS = ("heavy", "long", "small", "thin")
"""The inputs of a correction: octaves by which a launch's arithmetic takes longer than half of its memory time; octaves
of its time above 2^18 ns; octaves below 2^14 ns; and by how much its occupancy is below 0.5."""
_LONG, _SMALL, _THIN = 18.0, 14.0, 0.5
_MOST_OCTAVES = 1.5


@dataclass(frozen=True)
class Correction:
    """Corrects the trees' times for launches of modules, because the trees were trained on kernels of the catalogue."""

    bias: float
    weights: Mapping[str, float]
    """The weight of each of MARKS."""

    def octaves(self, marks: Mapping[str, float]) -> float:
        """The octaves to add to log2 of the time, clamped to ±`_MOST_OCTAVES`."""
        found = self.bias + sum(weight * marks[mark] for mark, weight in self.weights.items())
        return max(-_MOST_OCTAVES, min(_MOST_OCTAVES, found))


NO_CORRECTION = Correction(0.0, dict.fromkeys(MARKS, 0.0))


@dataclass(frozen=True)
class LaunchTime:
    """The time of one launch according to the trees, and the inputs of its correction."""

    log2_ns: float
    deviation: float
    marks: Mapping[str, float]

    def by(self, correction: Correction) -> tuple[float, float]:
        return self.log2_ns + correction.octaves(self.marks), self.deviation


class Trees(Protocol):
    """The part of `learned.Model` that is used here."""

    noise: Any

    def answer(self, rows: Sequence[Sequence[Row]]) -> Any: ...


def launch_times(report: StaticReport, hardware: Hardware, model: Trees) -> dict[int, LaunchTime]:
    """The times, by step number, of the launches in a report's trace that the compiler and the walk describe well
    enough. model: that of compiled kernels."""
    if report.trace is None or not hardware.bandwidth:
        return {}
    known = {(each.name, each.grid, each.block): each for each in report.launches}
    found: dict[int, tuple[Row, float]] = {}
    launches: dict[int, LaunchReport] = {}
    for number, step in enumerate(report.trace.steps):
        if step.kind in LAUNCHES and step.launch is not None:
            launch = known.get((step.name, step.launch.grid, step.launch.block))
            if launch is not None and _is_known(launch) and step.bytes:
                found[number] = described(step, launch, report, hardware)
                launches[number] = launch
    if not found:
        return {}
    answers = model.answer([[row] for row, _ in found.values()])
    prior = math.sqrt(model.noise.operation + model.noise.alike + model.noise.own)
    times = {}
    for (number, (row, floor)), mean, spread in zip(found.items(), answers.mean, answers.spread, strict=True):
        launch = launches[number]
        skipped = _SKIPPED_OCTAVES * launch.skippable
        log2_ns = math.log2(math.hypot(1e9 * floor * 2 ** (float(mean) - skipped), latency_ns(launch, hardware)))
        deviation = math.hypot(_MISSED * prior * float(spread), UNKNOWN_DEVIATION * launch.skippable)
        times[number] = LaunchTime(log2_ns, deviation, _marks(row, hardware, launch, log2_ns))
    return times


def _marks(row: Row, hardware: Hardware, launch: LaunchReport, log2_ns: float) -> dict[str, float]:
    compute = row["must_flops"] - math.log2(hardware.peak_flops.get("fp32", _PEAK))
    memory = row["must_bytes"] - math.log2(hardware.bandwidth or _BANDWIDTH)
    return {
        "heavy": max(0.0, compute - memory + 1),
        "long": max(0.0, log2_ns - _LONG),
        "small": max(0.0, _SMALL - log2_ns),
        "thin": max(0.0, _THIN - (launch.occupancy or 0.0)),
    }


def latency_ns(launch: LaunchReport, hardware: Hardware) -> float:
    """The least time of a launch with little data and arithmetic, which the trees have hardly seen: the longer of
    starting all blocks and of running one warp's instructions in each wave, plus the launch itself."""
    instructions = (launch.executed or {}).get("instructions", 0.0)
    waves, blocks = math.ceil(launch.waves or 1.0), math.prod(launch.grid) / (hardware.multiprocessors or 1)
    return _LAUNCH_NS + max(_INSTRUCTION_NS * instructions * waves, _BLOCK_NS * blocks)


def _is_known(launch: LaunchReport) -> bool:
    """Whether the launch was walked, and has no loop whose end depends on values in memory."""
    return launch.executed is not None and not launch.unbounded


def described(step: Step, launch: LaunchReport, report: StaticReport, hardware: Hardware) -> tuple[Row, float]:
    """The features of a launch as if it were the kernel of a problem, and its roofline in seconds."""
    moved, flops = float(step.bytes), max(1.0, step.flops)
    written = max(1.0, moved * _written(launch.executed or {}))
    peak = hardware.peak_flops.get("fp16" if roofline.uses_tensor_cores(step) else "fp32", _PEAK)  # as trained
    floor = max(moved / (hardware.bandwidth or _BANDWIDTH), flops / peak)
    must = {
        "must_bytes": math.log2(moved),
        "must_flops": math.log2(flops),
        "must_intensity": math.log2(flops / moved),
        "must_arrays": float(len(set(step.reads)) or 2),
        "must_written": written / moved,
        "must_output": math.log2(written),
        "must_seconds": math.log2(floor),
        "must_in_cache": math.log2(moved / (hardware.l2_bytes or 1)),
    }
    alone = replace(report, launches=(replace(launch, count=1),), operators={})
    return must | features.report_features(alone, hardware, must), floor


def _written(executed: Mapping[str, float]) -> float:
    """The share of the bytes moved by a kernel that it writes."""
    stored = executed.get("store_sectors", 0.0) + executed.get("atomic_sectors", 0.0)
    return stored / max(1e-9, stored + executed.get("load_sectors", 0.0))
