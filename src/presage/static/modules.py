"""Static reports of modules: the host code runs on tensors without values, and what it does is traced."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from presage.static import toolkit
from presage.static.launch_request import Job
from presage.static.report import Launched

IMPORTED_LATE = ("numpy.ma", "triton.compiler.code_generator", "triton.experimental.gluon.nvidia.hopper")
"""Modules that Triton imports at its first compilation. A process that forks to compile imports them before."""


def request(job: Job) -> dict[str, Any]:
    """The request to the child that runs the module."""
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            raise toolkit.ToolkitError(f"{package} is not installed; {toolkit.INSTALL}")
    target = job.target
    return {
        "compiler": "triton",
        "source": job.kernel.source,
        "files": dict(job.files),
        "tuned": job.tuned,
        "cases": [
            {
                "inputs": [[list(tensor.shape), tensor.dtype] for tensor in job.inputs],
                "parameters": list(job.parameters),
                "arguments": dict(job.dims) if job.files else {},
            }
        ],
        "capability": list(target.capability),
        "arch": target.compile_arch,
        "device": {
            "name": target.product,
            "multiprocessors": target.multiprocessors,
            "shared_per_block": target.shared_per_block,
            "shared_per_sm": target.shared_per_sm,
            "threads_per_sm": target.threads_per_sm,
            "memory": target.memory_bytes or 1 << 34,
            "l2": target.l2_bytes or 1 << 22,
        },
    }


def answered(job: Job, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an answer that is about this job."""
    (asked,) = request(job)["cases"]
    return next((found for case, found in answer.get("cases", ()) if case == asked), answer)


def launches(job: Job, answer: Mapping[str, Any]) -> Iterator[Launched]:
    """Yield every distinct launch of the trace. A value of the wrong type raises an exception, since foreign code may
    write the answer."""
    trace = answer["trace"]
    counts: Counter[int] = Counter()
    distinct: dict[str, int] = {}
    for number, step in enumerate(trace.steps):
        if step.launch is not None:
            about = [step.name, step.launch.grid, step.launch.block, step.launch.shared, step.launch.cubin]
            key = json.dumps([*about, step.launch.options, answer["executed"][number]])
            counts[distinct.setdefault(key, number)] += 1
    for number, count in counts.items():
        step, executed = trace.steps[number], answer["executed"][number]
        yield Launched(
            name=step.name,
            grid=step.launch.grid,
            block=step.launch.block,
            dynamic_shared=step.launch.shared,
            cubin=trace.cubins[step.launch.cubin],
            count=count,
            options=step.launch.options,
            executed=None if executed is None else {str(kind): float(count) for kind, count in executed.items()},
        )


@cache
def compiler() -> str:
    return f"torch {importlib.metadata.version('torch')} and Triton {importlib.metadata.version('triton')}"
