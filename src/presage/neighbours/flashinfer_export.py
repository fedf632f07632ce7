"""Write a problem of the catalogue and its recorded measurements as a FlashInfer-Bench data set."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.files import whole_folder
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.neighbours.flashinfer_bench import LANGUAGES
from presage.problems import registry as problems
from presage.problems.base import Case, Problem

_MS = 1e6
_AUTHOR = "presage"
_WORDS = {
    Status.OK: "PASSED",
    Status.COMPILE_ERROR: "COMPILE_ERROR",
    Status.WRONG_RESULT: "INCORRECT_NUMERICAL",
    Status.TIMEOUT: "TIMEOUT",
}
_SPOKEN = {"triton": "triton", "torch": "python"}
_SPACE = uuid.UUID("6f0f3c1e-5d0a-4a52-9a52-1f3a3b7d2c11")
"""The namespace of workload UUIDs, so that the same workload always gets the same UUID."""
_WITHOUT_TIME = "1970-01-01T00:00:00"


def export(recording: Recording, problem: str, folder: Path) -> dict[str, int]:
    """Write the problem as a definition, its timed cases as workloads, recorded modules as solutions, and their times
    as traces. Bare kernels are left out: they have no host code, and FlashInfer-Bench cannot call them.

    Returns the number of each. Raises PresageError for a problem that is not in the catalogue, that has cases of
    several types, or whose PyTorch version, the definition's reference, was not recorded."""
    if folder.exists() and any(folder.iterdir()):
        raise PresageError(f"{folder} is not empty; name a new folder")
    known = problems.get(problem)
    rows = recording.rows(problem, reports=False)
    eager = next((row for row in rows if row.family == "eager.py" and row.status is Status.OK), None)
    if eager is None:
        raise PresageError(f"{recording.name} has no time of {problem}'s eager.py, which would be its reference")
    cases = {case.name: case for case in known.timed["gpu"]}
    if len({case.dtype for case in cases.values()}) > 1:
        raise PresageError(f"{problem} is timed with several types; a definition has one")
    workloads = {name: _workload(known, case) for name, case in cases.items()}
    modules = [row for row in rows if row.language in _SPOKEN and row.source and row.hash != eager.hash]
    place = str(recording.facts.get("hardware") or recording.name)
    traces = [trace for row in modules for trace in _traces(known, row, eager, workloads, place)]
    room = re.sub(r"\W+", "_", known.room)
    told = [
        {"definition": problem, "workload": each, "solution": None, "evaluation": None} for each in workloads.values()
    ]
    try:
        with whole_folder(folder) as part:
            _write(part / "definitions" / room / f"{problem}.json", [_definition(known, cases, eager)])
            for row in modules:
                solutions = part / "solutions" / _AUTHOR / room / problem
                _write(solutions / f"{_name(known, row)}.json", [_solution(known, row)])
            _write(part / "workloads" / room / f"{problem}.jsonl", told)
            _write(part / "traces" / room / f"{problem}.jsonl", traces)
    except OSError as error:
        raise PresageError(f"cannot write to {folder}: {error.strerror}") from error
    left_out = sum(row.language not in _SPOKEN for row in rows)
    return {"solutions": len(modules), "workloads": len(told), "traces": len(traces), "left_out": left_out}


def _write(path: Path, documents: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    indent = 2 if path.suffix == ".json" else None
    path.write_text("".join(f"{json.dumps(each, indent=indent)}\n" for each in documents), encoding="utf-8")


def _axes(problem: Problem, case: Case) -> dict[str, int]:
    """The size of every axis. Its name is made from the problem's expression for the size."""
    found = {}
    for array in (*problem.inputs, *problem.outputs):
        for axis, size in zip(_names(array.shape), problem.shape(array, case), strict=True):
            found[axis] = int(size)
    return found


def _names(shape: str) -> list[str]:
    """
    >>> _names("rows, 2 * cols")
    ['rows', 'a_2_cols']
    """
    parts = [part.strip() for part in shape.split(",") if part.strip()]
    named = [re.sub(r"\W+", "_", part).strip("_") for part in parts]
    return [name if name.isidentifier() else f"a_{name}" for name in named]


def _definition(problem: Problem, cases: Mapping[str, Case], eager: Row) -> dict[str, Any]:
    case = next(iter(cases.values()))
    inputs = {each.name: _tensor(problem, each, case) for each in problem.inputs}
    scalars = {name: {"shape": None, "dtype": "float32"} for name in problem.parameters}
    arguments = ", ".join([*inputs, *scalars])
    return {
        "name": problem.name,
        "op_type": re.sub(r"\W+", "_", problem.room),
        "description": problem.summary,
        "axes": {name: {"type": "var"} for name in _axes(problem, case)},
        "inputs": inputs | scalars,
        "outputs": {each.name: _tensor(problem, each, case) for each in problem.outputs},
        "reference": f"{eager.source}\n\ndef run({arguments}):\n    return custom_kernel(({arguments},))\n",
        "tags": ["from:presage"],
    }


def _tensor(problem: Problem, array: Any, case: Case) -> dict[str, Any]:
    return {"shape": _names(array.shape), "dtype": str(problem.dtype(array, case))}


def _workload(problem: Problem, case: Case) -> dict[str, Any]:
    numbers = {name: {"type": "scalar", "value": case.dims[name]} for name in problem.parameters}
    return {
        "axes": _axes(problem, case),
        "inputs": {each.name: {"type": "random"} for each in problem.inputs} | numbers,
        "uuid": str(uuid.uuid5(_SPACE, f"{problem.name} {case.name}")),
    }


def _name(problem: Problem, row: Row) -> str:
    return f"{problem.name}_{Path(row.family).stem}_{row.hash[:8]}"


def _solution(problem: Problem, row: Row) -> dict[str, Any]:
    arguments = ", ".join([*(each.name for each in problem.inputs), *problem.parameters])
    text = f"{row.source}\n\ndef run({arguments}):\n    return custom_kernel(({arguments},))\n"
    assert row.language in LANGUAGES.values()
    return {
        "name": _name(problem, row),
        "definition": problem.name,
        "author": _AUTHOR,
        "description": row.name,
        "spec": {
            "language": _SPOKEN[row.language],
            "target_hardware": ["cuda"],
            "entry_point": "main.py::run",
            "dependencies": [],
            "destination_passing_style": False,
        },
        "sources": [{"path": "main.py", "content": text}],
    }


def _traces(
    problem: Problem, row: Row, eager: Row, workloads: Mapping[str, Mapping[str, Any]], place: str
) -> list[dict[str, Any]]:
    times = {case.case: case.median.value / _MS for case in row.cases}
    ours = {case.case: case.median.value / _MS for case in eager.cases}
    return [
        {
            "definition": problem.name,
            "workload": workload,
            "solution": _name(problem, row),
            "evaluation": _evaluation(row, times.get(name), ours.get(name), place),
        }
        for name, workload in workloads.items()
        if row.status is not Status.OK or (name in times and name in ours)
    ]


def _evaluation(row: Row, time: float | None, reference: float | None, place: str) -> dict[str, Any]:
    status = _WORDS.get(row.status, "RUNTIME_ERROR")
    has_answer = status in ("PASSED", "INCORRECT_NUMERICAL")
    performance = None
    if status == "PASSED" and time and reference:
        performance = {"latency_ms": time, "reference_latency_ms": reference, "speedup_factor": reference / time}
    return {
        "status": status,
        "environment": {"hardware": place, "libs": {}},
        "timestamp": str(row.facts.get("time") or _WITHOUT_TIME),
        "log": row.reason,
        "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0} if has_answer else None,
        "performance": performance,
    }
