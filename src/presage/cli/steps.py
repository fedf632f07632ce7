"""The steps of a trace for `presage inspect`: the bytes and flops of each step, and its roofline time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from presage.cli import terminal
from presage.core.text import plain_name
from presage.static import operations, roofline
from presage.static.hardware import Hardware
from presage.static.trace import FREE, LAUNCHES, Step, TensorSpec, Trace, tensors_in

_MOST_ROWS = 40
_HEADER = ("step", "kind", "times", "shapes", "bytes", "flops", "roofline", "share")


def document(trace: Trace, hardware: Hardware) -> dict[str, Any]:
    """Return the trace as JSON. Each step has its roofline time and its share of the total."""
    times = _step_ns(trace, hardware)
    every = sum(times.values())
    found = trace.to_document()
    for number, step in enumerate(found["steps"]):
        step["bytes"] = roofline.moved_bytes(trace, trace.steps[number])
        step["flops"], step["precision"] = operations.of_step(trace, trace.steps[number])
        step["roofline_ns"] = times.get(number)
        step["share"] = times[number] / every if every and number in times else None
    return found | {"hash": trace.hash, "own_share": trace.own_share(times), "roofline_ns": every if times else None}


def table(trace: Trace, hardware: Hardware) -> str:
    """Return a table of the steps except views and allocations. Equal steps share a line, placed at their first."""
    times = _step_ns(trace, hardware)
    every = sum(times.values())
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, step in enumerate(trace.steps):
        if step.kind not in ("view", "allocation"):
            kind = "host" if trace.is_on_host(step) else step.kind
            groups.setdefault((kind, _name(step), _shapes(trace, step)), []).append(number)
    weights = {key: sum(times.get(number, 0.0) for number in numbers) for key, numbers in groups.items()}
    kept = sorted(sorted(groups, key=lambda key: -weights[key])[:_MOST_ROWS], key=lambda key: groups[key][0])
    rows = [_row(trace, key, groups[key], weights[key], every) for key in kept]
    text = terminal.table(rows, _HEADER)
    if rest := [key for key in groups if key not in kept]:
        share = sum(weights[key] for key in rest) / every if every else 0.0
        text += f"\nand {sum(len(groups[key]) for key in rest)} more steps, {share:.1%} of the time"
    return text


def remarks(trace: Trace, hardware: Hardware) -> Iterator[str]:
    times = _step_ns(trace, hardware)
    if times:
        total = sum(times.values())
        share = trace.own_share(times)
        own = f", {share:.0%} of it in kernels of its own" if share is not None else ""
        yield f"its steps need at least {terminal.duration(total)}{own}"
    if on_host := sum(map(trace.is_on_host, trace.steps)):
        yield f"the host computes {on_host} of its steps, on tensors in its own memory; their time is not known"
    if trace.lacks:
        yield f"it cannot be run again from its trace: {trace.lacks}"


def _step_ns(trace: Trace, hardware: Hardware) -> dict[int, float]:
    """The roofline times of the steps that the GPU does, by number."""
    times = roofline.step_ns(trace, hardware)
    return {number: ns for number, ns in times.items() if not trace.is_on_host(trace.steps[number])}


def _row(trace: Trace, key: tuple[Any, ...], numbers: Sequence[int], weight: float, every: float) -> list[str]:
    kind, name, shapes = key
    if kind in FREE:
        return [name, kind, str(len(numbers)), shapes, "", "", "", ""]
    count = len(numbers)
    each = [trace.steps[number] for number in numbers]
    size = _amount(sum(roofline.moved_bytes(trace, step) for step in each), "B")
    flops = _amount(sum(operations.of_step(trace, step)[0] for step in each), "")
    if kind == "host":
        return [name, kind, str(count), shapes, size, flops, "", ""]
    return [
        name,
        kind,
        str(count),
        shapes,
        size,
        flops,
        terminal.duration(weight) if every else "?",
        f"{weight / every:.1%}" if every else "?",
    ]


def _name(step: Step) -> str:
    return plain_name(step.name) if step.kind in LAUNCHES else step.base_name


def _shapes(trace: Trace, step: Step) -> str:
    """Return the shapes of the first three input tensors; for a launch, its grid and block."""
    if step.launch is not None:
        return f"{_sizes(step.launch.grid)} blocks of {_sizes(step.launch.block)}"
    taken = [trace.tensors[number] for number in tensors_in([*step.arguments, *step.named.values()])]
    return ", ".join(map(_spec, taken[:3])) + (", …" if len(taken) > 3 else "")


def _spec(tensor: TensorSpec) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = sizes[:3] if sizes[2] > 1 else sizes[:2] if sizes[1] > 1 else sizes[:1]
    return " x ".join(map(str, used))


def _amount(count: float, unit: str) -> str:
    """Format a count with a metric prefix.

    >>> _amount(4.2e6, "B"), _amount(0, ""), _amount(12, "B")
    ('4.2 MB', '0', '12 B')
    """
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if count >= size), (1, ""))
    return f"{count / size:.4g} {prefix}{unit}".rstrip()


_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
