"""Describe what a module does, step by step, for a language model.

A trace is foreign: the process that wrote it ran the author's code. So only numbers and words of our own lists are
shown: names of kernels, notes and names of operators that torch does not have are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from presage.llm import vocabulary
from presage.static import roofline
from presage.static.hardware import Hardware
from presage.static.operator_features import LAUNCH_NS
from presage.static.trace import (
    COMPILED,
    COPY,
    FILL,
    FREE,
    GRAPHED,
    LAUNCHES,
    SCRIPTED,
    Step,
    TensorSpec,
    Trace,
    tensors_in,
)

_MODES = {COMPILED: "compiled", SCRIPTED: "scripted", GRAPHED: "graph"}
_SHORT = {
    **{"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"},
    **{"float8_e4m3fn": "fp8", "float8_e5m2": "fp8"},
}
_MEMORY = {COPY: "copy", FILL: "fill"}
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp64")
_MOST_TENSORS, _MOST_ARRAYS, _MOST_AXES = 3, 6, 6
_DENSE = 4.0
"""The operations of a step are shown if there are at least as many to a byte."""
_LEAST_NS = 100.0
"""The shortest roofline that is shown."""
_WAIT_NS = 10_000.0
"""What a wait for the GPU is assumed to cost, to decide which lines to keep."""


@dataclass(frozen=True)
class Total:
    """What all steps of a trace that work on the GPU come to."""

    steps: int
    bytes: int
    least_ns: float
    """The sum of their rooflines; 0 if the GPU's peaks are not known."""

    @property
    def launched_ns(self) -> float:
        """The same with LAUNCH_NS for each step.

        >>> Total(3, 0, 4_000.0).launched_ns
        10000.0
        """
        return self.least_ns + LAUNCH_NS * self.steps


def total(trace: Trace, hardware: Hardware | None) -> Total:
    steps = [step for step in trace.steps if step.kind not in FREE]
    least = sum(_least(trace, hardware).values())
    return Total(len(steps), sum(roofline.moved_bytes(trace, step) for step in steps), least)


def describe(trace: Trace, hardware: Hardware | None, most: int) -> list[str]:
    """A line on the whole trace, then one for each distinct step in the order of execution. If there are more than
    `most`, only the costliest have a line."""
    whole, least = total(trace, hardware), _least(trace, hardware)
    modes = [word for note, word in _MODES.items() if note in trace.notes]
    steps = f"{whole.steps} step{'s' * (whole.steps != 1)}"
    head = f"{', '.join([steps, *modes])}: {_bytes(whole.bytes)}{_time(whole.least_ns)}"
    costs: dict[str, list[float]] = {}
    for number, step in enumerate(trace.steps):
        if step.kind == "sync":
            costs.setdefault("waits for the GPU", []).append(_WAIT_NS)
        elif step.kind not in FREE:
            text = _step(trace, step, least.get(number))
            costs.setdefault(text, []).append(_cost(trace, step, least.get(number)))
    kept = set(sorted(costs, key=lambda text: -sum(costs[text]))[:most])
    lines = [_line(text, ns, whole) for text, ns in costs.items() if text in kept]
    left = [ns for text, each in costs.items() if text not in kept for ns in each]
    return [head, *lines, *([f"… {len(left)} more{_share(sum(left), whole)}"] if left else [])]


def arrays(trace: Trace) -> str:
    """Shapes and dtypes of a trace's inputs and outputs, and the bytes of its weights."""
    outputs = dict.fromkeys(tensors_in([trace.outputs]))
    inputs, made = (_tensors([trace.tensors[n] for n in some], _MOST_ARRAYS) for some in (trace.inputs, outputs))
    weights = sum(trace.tensors[number].bytes for number in trace.constants)
    return f"{inputs or 'nothing'} -> {made or 'nothing'}" + (f"; weights {_bytes(weights)}" if weights else "")


def rules(
    anchor: Sequence[Trace], ours: Sequence[Trace], measured_ns: Sequence[float | None], hardware: Hardware | None
) -> dict[str, float]:
    """Simple estimates of log2 S by name, each the mean over the cases for which it can be computed.

    roofline: by the sum of the steps' rooflines, with LAUNCH_NS for each; measured: the same of the candidate beside
    the anchor's measured time; launches: by the number of steps; bytes: by the bytes that they move."""
    logs: dict[str, list[float]] = {}
    for before, after, time_ns in zip(anchor, ours, measured_ns, strict=True):
        one, other = total(before, hardware), total(after, hardware)
        pairs = {
            "roofline": (one.launched_ns if other.least_ns else 0.0, other.launched_ns if one.least_ns else 0.0),
            "measured": (time_ns or 0.0, other.launched_ns if other.least_ns else 0.0),
            "launches": (float(one.steps), float(other.steps)),
            "bytes": (float(one.bytes), float(other.bytes)),
        }
        for name, (above, below) in pairs.items():
            if above > 0 and below > 0:
                logs.setdefault(name, []).append(math.log2(above / below))
    return {name: sum(each) / len(each) for name, each in logs.items()}


def _least(trace: Trace, hardware: Hardware | None) -> Mapping[int, float]:
    return roofline.step_ns(trace, hardware) if hardware else {}


def _cost(trace: Trace, step: Step, least_ns: float | None) -> float:
    return LAUNCH_NS + (roofline.moved_bytes(trace, step) / 1e3 if least_ns is None else least_ns)


def _line(text: str, costs: Sequence[float], whole: Total) -> str:
    times = f"{len(costs)}x " if len(costs) > 1 else ""
    return f"{times}{text}" + ("" if text.startswith("waits") else _share(sum(costs), whole))


def _share(ns: float, whole: Total) -> str:
    return f", {min(1.0, ns / whole.launched_ns):.0%}" if whole.least_ns else ""


def _step(trace: Trace, step: Step, least_ns: float | None) -> str:
    size = roofline.moved_bytes(trace, step)
    told = _bytes(size)
    if step.flops >= _DENSE * max(1, size):
        precision = f" {step.precision}" if step.precision in _PRECISIONS else ""
        told += f", {_scaled(step.flops, (('Tflop', 1e12), ('Gflop', 1e9), ('Mflop', 1e6)))}{precision}"
    return f"{_called(trace, step)}: {told}{_time(least_ns or 0.0)}"


def _called(trace: Trace, step: Step) -> str:
    if step.kind in LAUNCHES and step.launch is not None:
        return f"{step.kind} grid {'x'.join(map(str, step.launch.grid))} block {'x'.join(map(str, step.launch.block))}"
    tensors = [trace.tensors[number] for number in (dict.fromkeys(step.reads) or dict.fromkeys(step.makes))]
    if step.kind == "copy":
        to_host = any(trace.tensors[number].device == "cpu" for number in step.makes)
        name = f"copy to the {'host' if to_host else 'GPU'}"
    elif step.name in _MEMORY:
        name = _MEMORY[step.name]
    else:
        is_torch = step.name.startswith("aten::") and step.base_name.rstrip("_") in vocabulary.OPERATORS
        name = step.base_name if is_torch else "own operator"
    host = " on the host" if trace.is_on_host(step) else ""
    return " ".join(filter(None, (name + host, _tensors(tensors, _MOST_TENSORS))))


def _tensors(tensors: Sequence[TensorSpec], most: int) -> str:
    """Tensors as text; a dtype is named where it changes."""
    told, dtype = [], ""
    for tensor in tensors[:most]:
        if tensor.dtype != dtype:
            told.append(_SHORT.get(tensor.dtype, tensor.dtype))
        dtype = tensor.dtype
        told.append(_shape(tensor.shape))
    return " ".join([*told, *(["…"] if len(tensors) > most else [])])


def _shape(shape: Iterable[int]) -> str:
    sizes = [str(size) for size in shape]
    return f"[{'x'.join(sizes[:_MOST_AXES])}{'x…' * (len(sizes) > _MOST_AXES)}]"


def _bytes(size: float) -> str:
    return _scaled(size, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def _time(ns: float) -> str:
    return f", least {_scaled(ns, (('ms', 1e6), ('us', 1e3)))}" if ns >= _LEAST_NS else ""


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    """A number with at most three significant digits, in the largest unit in which it is at least 1.

    >>> _scaled(134_217_728, (("GB", 1e9), ("MB", 1e6))), _scaled(1.0, (("us", 1e3),))
    ('134 MB', '0.001 us')
    """
    unit, size = next((each for each in units if value >= each[1]), units[-1])
    number = value / size
    return f"{number:.0f} {unit}" if number >= 99.5 else f"{number:.2g} {unit}"
