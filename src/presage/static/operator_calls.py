"""Operator calls: the operators of a trace, each as a trace of its own with one step, so that it can be run alone.

In a table, each call is a row: `to_row` and `from_row` convert between the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from presage.static.trace import Step, Trace, TraceError, tensors_in

IN_PLACE_VIEWS = ("as_strided_", "squeeze_", "unsqueeze_", "transpose_", "t_", "detach_", "swapaxes_", "swapdims_")
"""Operators that change a tensor's metadata and not its content. torch does not declare them as views."""


def of_trace(trace: Trace) -> Iterator[Trace]:
    """Yield a call for each step that is a torch operator and works on the GPU. Every tensor that the step reads is an
    input of the call. Views, allocations and copies between host and GPU are left out."""
    for step in trace.steps:
        if (call := of_step(step, trace)) is not None:
            yield call


def of_step(step: Step, trace: Trace) -> Trace | None:
    """The call of one step; None if the step is not a torch operator, or does nothing on the GPU."""
    if step.kind != "operator" or not step.name.startswith("aten::") or not step.bytes:
        return None
    call = _alone(step, trace)
    works = base_name(call) not in IN_PLACE_VIEWS and any(x.device == "cuda" for x in call.tensors)
    return call if works else None


def base_name(call: Trace) -> str:
    """The name of the call's operator, without its overload."""
    return call.steps[0].base_name


def _alone(step: Step, trace: Trace) -> Trace:
    reads = tuple(dict.fromkeys(step.reads))
    order = {number: at for at, number in enumerate(dict.fromkeys([*reads, *step.makes]))}
    results = _renumbered(step.results, order)
    alone = replace(
        step,
        arguments=tuple(_renumbered(value, order) for value in step.arguments),
        named={name: _renumbered(value, order) for name, value in step.named.items()},
        results=results,
    )
    return _call(tuple(trace.tensors[number] for number in order), len(reads), alone)


def _call(tensors: tuple[Any, ...], inputs: int, step: Step) -> Trace:
    outputs = {"list": [{"tensor": number} for number in tensors_in([step.results])]}
    return Trace(tensors, tuple(range(inputs)), (), (step,), outputs)


def _renumbered(value: Any, order: Mapping[int, int]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return {"tensor": order[value["tensor"]]}
    return {"list": [_renumbered(each, order) for each in value["list"]]} if "list" in value else value


def to_row(call: Trace) -> dict[str, Any]:
    """The call as a row, by column name. Nested values are JSON strings."""
    document = call.to_document()
    (step,) = document["steps"]
    return {
        "hash": call.hash,
        "operator": step["name"],
        "tensors": _json(document["tensors"]),
        "inputs": len(call.inputs),
        "arguments": _json({name: step[name] for name in ("arguments", "named", "results")}),
        "flags": _json(step["flags"]),
        "bytes": step["bytes"],
        "flops": step["flops"],
        "precision": step["precision"],
    }


def from_row(row: Mapping[str, Any]) -> Trace:
    """Read the call in a row. Raises TraceError if the row is not valid."""
    try:
        step = {
            "kind": "operator",
            "name": row["operator"],
            **json.loads(row["arguments"]),
            "flags": json.loads(row["flags"]),
            **{name: row[name] for name in ("bytes", "flops", "precision")},
        }
        document = {
            "version": 1,
            "tensors": json.loads(row["tensors"]),
            "inputs": list(range(row["inputs"])),
            "steps": [step],
            "outputs": None,
        }
    except (LookupError, TypeError, ValueError) as error:
        raise TraceError(f"not an operator's call: {type(error).__name__}: {str(error)[:200]}") from error
    read = Trace.from_document(document)
    return _call(read.tensors, len(read.inputs), read.steps[0])


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
