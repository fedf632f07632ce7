"""The roofline of each step of a trace: the time for its bytes or for its operations, whichever is longer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from presage.static import operations
from presage.static.hardware import WARP, Hardware
from presage.static.report import StaticReport
from presage.static.trace import FREE, ITEM_SIZES, LAUNCHES, Step, Trace, tensors_in
from presage.static.warp import OF_TYPE, PRODUCTS, UNBOUNDED

HOST_BANDWIDTH = 64e9
"""Bytes per second between host and GPU: sixteen lanes of PCIe 5. GPU tables hold that of the GPU's memory."""
_SECTOR = 32
_HALF_RATE = {"fp64": 0.5}
"""Peak as a share of single precision's, for a GPU whose table has no peak of this precision."""
_WRITTEN_IN_PART = ("index_copy_", "index_put_", "_index_put_impl_", "index_add_", "index_reduce_", "scatter_",
                    "scatter_add_", "scatter_reduce_")  # fmt: skip
"""Operators that write as many bytes of their first tensor as their last one has."""
_READ_IN_PART = ("embedding", "index_select", "gather", "index")
_LOSSES = ("nll_loss_forward", "nll_loss2d_forward")
"""Operators that read one element of their first tensor for each index in their second one."""
_SHAPED_AS = re.compile(r"(?:new_(?:full|zeros|ones)|(?:full|zeros|ones|rand|randn|randint)_like)")
"""Operators that do not read their first tensor."""


def step_ns(trace: Trace, hardware: Hardware) -> dict[int, float]:
    """Nanoseconds by step number, for steps that do work; empty if the GPU's peaks are not known."""
    if not hardware.bandwidth:
        return {}
    return {
        number: _least_ns(trace, step, hardware, hardware.bandwidth)
        for number, step in enumerate(trace.steps)
        if step.kind not in FREE
    }


def trained_step_ns(trace: Trace, hardware: Hardware) -> dict[int, float]:
    """The same as the models of modules were trained on it: every launch that uses tensor cores at their peak for
    fp16."""
    steps = tuple(replace(step, precision="fp16") if uses_tensor_cores(step) else step for step in trace.steps)
    return step_ns(replace(trace, steps=steps), hardware)


def uses_tensor_cores(step: Step) -> bool:
    """Whether a launch multiplies matrices with tensor cores. `priced` gives no other one another precision."""
    return step.kind in LAUNCHES and step.precision != "fp32"


def moved_bytes(trace: Trace, step: Step) -> int:
    """The bytes that a step moves. `Step.bytes` counts the whole of a tensor that is read or written in part, and a
    tensor that is given twice as two."""
    given = list(tensors_in([*step.arguments, *step.named.values()]))
    if step.kind != "operator" or not given:
        return step.bytes
    name = step.base_name
    made = sum(trace.tensors[number].bytes for number in step.makes)
    first, *others = (trace.tensors[number].bytes for number in given)
    if name in _WRITTEN_IN_PART:
        return min(step.bytes, sum(others) + others[-1]) if others else step.bytes
    if _SHAPED_AS.fullmatch(name):
        return min(step.bytes, made)
    if name in _READ_IN_PART:
        return min(step.bytes, first + sum(others) + made)
    if name in _LOSSES and others:
        source, target = (trace.tensors[number] for number in given[:2])
        picked = math.prod(target.shape) * ITEM_SIZES[source.dtype]
        return step.bytes - max(0, first - picked) if step.bytes >= first else step.bytes
    if name == "convolution":
        return step.bytes - int(first * (1.0 - _touched(trace, step, given)))
    again = sum(
        trace.tensors[number].bytes * (count - 1)
        for number, count in Counter(given).items()
        if number not in step.makes
    )
    return max(step.bytes - again, made)


def _touched(trace: Trace, step: Step, given: Sequence[int]) -> float:
    """The share of its input that a convolution reads, whose step may be larger than its window. Of a row that it
    reads, it reads all sectors."""
    shapes = [trace.tensors[number].shape for number in (*given[:2], *list(step.makes)[:1])]
    if len(shapes) < 3 or len({len(shape) for shape in shapes}) > 1 or step.arguments[6:7] == (True,):
        return 1.0
    axes = zip(*(shape[2:-1] for shape in shapes), strict=True)
    return math.prod(min(1.0, made * window / max(1, size)) for size, window, made in axes)


def _least_ns(trace: Trace, step: Step, hardware: Hardware, bandwidth: float) -> float:
    size = moved_bytes(trace, step)
    if step.kind == "copy":
        return 1e9 * size / HOST_BANDWIDTH
    flops, precision = operations.of_step(trace, step)
    peaks = hardware.peak_flops
    if uses_tensor_cores(step) and precision == "fp64":
        peak = peaks.get("fp64_tensor") or 2.0 * hardware.results_per_second("fp64")
    else:
        peak = peaks.get(precision) or _HALF_RATE.get(precision, 1.0) * peaks["fp32"]
    return 1e9 * max(size / bandwidth, flops / peak)


def launch_flops(report: StaticReport) -> float:
    """The operations of a bare kernel's launches, counted by walking their code; 0 if not known."""
    return sum(
        launch.count * _flops(launch.executed or {}, _warps(launch.grid, launch.block)) for launch in report.launches
    )


def _warps(grid: Sequence[int], block: Sequence[int]) -> int:
    return math.prod(grid) * -(-math.prod(block) // WARP)


def _flops(executed: Mapping[str, float], warps: int) -> float:
    """The flops of tensor cores if there are any, or else those of all lanes."""
    scalar = WARP * sum(executed.get(kind, 0.0) for kind in ("fp32", "fp16", "fp64", "special"))
    return warps * (executed.get("tensor_flops", 0.0) or scalar)


def priced(step: Step, executed: Mapping[str, float] | None) -> Step:
    """A launch step with its bytes and operations, counted by walking its code. Its bytes are at most the size of its
    tensors, each read or written once, since a walk counts repeated accesses again. A walk misses accesses that depend
    on memory."""
    if step.kind not in LAUNCHES or step.launch is None or executed is None:
        return step
    if any(name.startswith(UNBOUNDED) for name in executed):
        return step  # a loop that memory ends moves an unknown amount: keep the tensors' size
    warps = _warps(step.launch.grid, step.launch.block)
    sectors = sum(executed.get(f"{what}_sectors", 0.0) for what in ("load", "store", "atomic"))
    moved = int(min(_SECTOR * sectors * warps, 1 << 60))
    size = min(step.bytes, moved) if moved and step.bytes else max(step.bytes, moved)
    precision = _of_products(executed) if executed.get("tensor_flops") else "fp32"
    return replace(step, bytes=size, flops=_flops(executed, warps), precision=precision)


def _of_products(executed: Mapping[str, float]) -> str:
    """The type of the factors of most of the tensor cores' operations. The step's other products, of another type,
    count as the same."""
    counts = {name: executed.get(OF_TYPE + name, 0.0) for name in PRODUCTS}
    return max(counts, key=lambda name: counts[name]) if any(counts.values()) else "fp16"
