"""What each step of a trace needs at least: the time for its bytes or for its operations, whichever is longer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from presage.static.hardware import WARP, Hardware
from presage.static.report import StaticReport
from presage.static.trace import FREE, LAUNCHES, Step, Trace
from presage.static.warp import UNBOUNDED

HOST_BANDWIDTH = 64e9
"""Bytes a second between host and GPU: sixteen lanes of PCIe 5. That of the GPUs' tables is of their own memory."""
_SECTOR = 32
_HALF_RATE = {"fp64": 0.5}
"""Of single precision's, where a table has no peak of its own."""


def step_ns(trace: Trace, hardware: Hardware) -> dict[int, float]:
    """Nanoseconds by the number of the step, for steps that do work; empty where the GPU's peaks are not known."""
    if not hardware.bandwidth:
        return {}
    return {
        number: _least_ns(step, hardware, hardware.bandwidth)
        for number, step in enumerate(trace.steps)
        if step.kind not in FREE
    }


def _least_ns(step: Step, hardware: Hardware, bandwidth: float) -> float:
    if step.kind == "copy":
        return 1e9 * step.bytes / HOST_BANDWIDTH
    peaks = hardware.peak_flops
    peak = peaks.get(step.precision) or _HALF_RATE.get(step.precision, 1.0) * peaks["fp32"]
    return 1e9 * max(step.bytes / bandwidth, step.flops / peak)


def launch_flops(report: StaticReport) -> float:
    """The operations of a bare kernel's launches, as walking their code counts them; 0 where that is not known."""
    return sum(
        launch.count * _flops(launch.executed or {}, _warps(launch.grid, launch.block)) for launch in report.launches
    )


def _warps(grid: Sequence[int], block: Sequence[int]) -> int:
    return math.prod(grid) * -(-math.prod(block) // WARP)


def _flops(executed: Mapping[str, float], warps: int) -> float:
    """Those of tensor cores where there are any, or else of all lanes."""
    scalar = WARP * sum(executed.get(kind, 0.0) for kind in ("fp32", "fp16", "fp64", "special"))
    return warps * (executed.get("tensor_flops", 0.0) or scalar)


def priced(step: Step, executed: Mapping[str, float] | None) -> Step:
    """A launch with its bytes and operations as walking its code counts them. It moves no more than the tensors that it
    is given hold, if each is read or written once; a walk counts what is moved again, and not what memory decides."""
    if step.kind not in LAUNCHES or step.launch is None or executed is None:
        return step
    if any(name.startswith(UNBOUNDED) for name in executed):
        return step  # what a loop moves that memory ends is not known, so it is all
    warps = _warps(step.launch.grid, step.launch.block)
    sectors = sum(executed.get(f"{what}_sectors", 0.0) for what in ("load", "store", "atomic"))
    moved = int(min(_SECTOR * sectors * warps, 1 << 60))
    size = min(step.bytes, moved) if moved and step.bytes else max(step.bytes, moved)
    return replace(
        step, bytes=size, flops=_flops(executed, warps), precision="fp16" if executed.get("tensor_flops") else "fp32"
    )
