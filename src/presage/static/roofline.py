"""What each step of a trace needs at least: the time for its bytes or for its operations, whichever is longer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from presage.static.hardware import WARP, Hardware
from presage.static.trace import FREE, LAUNCHES, Step, Trace

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


def priced(step: Step, executed: Mapping[str, float] | None) -> Step:
    """A launch with its bytes and operations as walking its code counts them. It moves no more than the tensors that it
    is given hold, if each is read or written once; a walk counts what is moved again."""
    if step.kind not in LAUNCHES or step.launch is None or executed is None:
        return step
    warps = math.prod(step.launch.grid) * -(-math.prod(step.launch.block) // WARP)
    sectors = sum(executed.get(f"{what}_sectors", 0.0) for what in ("load", "store", "atomic"))
    moved = int(min(_SECTOR * sectors * warps, 1 << 60))
    tensor = executed.get("tensor_flops", 0.0) * warps
    scalar = WARP * warps * sum(executed.get(kind, 0.0) for kind in ("fp32", "fp16", "fp64", "special"))
    size = min(step.bytes, moved) if moved and step.bytes else max(step.bytes, moved)
    return replace(step, bytes=size, flops=tensor or scalar, precision="fp16" if tensor else "fp32")
