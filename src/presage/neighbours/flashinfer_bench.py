"""Read data sets of FlashInfer-Bench as problems, modules and a recording. flashinfer_export.py writes data sets.

A data set is a folder: `definitions/` and `solutions/` hold JSON files, `workloads/` and `traces/` JSON lines.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.files import read_limited
from presage.core.text import excerpt
from presage.devices import recording
from presage.devices.recording import RecordedCase, Recording, Row
from presage.devices.status import Status
from presage.kernels.normalise import digest
from presage.problems.base import Case

_MS = 1e6
_LARGEST = 64 << 20
_WRONG = (AttributeError, LookupError, TypeError, ValueError)
LANGUAGES = {"triton": "triton", "python": "torch", "cuda": "torch", "cpp": "torch", "tilelang": "torch"}
"""FlashInfer-Bench's languages as languages of Presage. All code with host code is a module."""
STATUSES = {
    "PASSED": Status.OK,
    "INCORRECT_SHAPE": Status.WRONG_RESULT,
    "INCORRECT_NUMERICAL": Status.WRONG_RESULT,
    "INCORRECT_DTYPE": Status.WRONG_RESULT,
    "RUNTIME_ERROR": Status.RUNTIME_ERROR,
    "COMPILE_ERROR": Status.COMPILE_ERROR,
    "TIMEOUT": Status.TIMEOUT,
}
REFERENCE = "reference"
"""The name of the definition's own code in a recording."""
_CALLED = "\n\ndef custom_kernel(data):\n    return {entry}(*data)\n"
_INTEGERS = ("int", "bool")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")


@dataclass
class Dataset:
    """The contents of a data set by the name of the definition."""

    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    solutions: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    workloads: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    traces: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


def is_dataset(folder: Path) -> bool:
    return (folder / "definitions").is_dir()


def read(folder: Path) -> Dataset:
    """The data set in a folder. Raises PresageError for a file of the wrong form."""
    found = Dataset()
    for path in sorted(folder.glob("definitions/**/*.json")):
        with _blamed(path):
            (document,) = _documents(path)
            found.definitions[_named(document)] = document
    for path in sorted(folder.glob("solutions/**/*.json")):
        with _blamed(path):
            (document,) = _documents(path)
            _named(document)
            found.solutions[document["definition"]].append(document)
    for what, kept in (("workloads", found.workloads), ("traces", found.traces)):
        for path in sorted(folder.glob(f"{what}/**/*.jsonl")):
            with _blamed(path):
                for document in _documents(path):
                    kept[document["definition"]].append(document)
    if not found.definitions:
        raise PresageError(f"{folder} has no definitions; a FlashInfer-Bench data set has them in definitions/")
    return found


class _blamed:  # noqa: N801  it reads as a statement
    """Turns errors from a document of the wrong form into a message that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _WRONG) and not isinstance(error, PresageError):
            raise PresageError(f"{self._path} does not hold what its format says: {excerpt(repr(error))}") from error


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    text = read_limited(path, _LARGEST).decode()
    for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
        if part.strip():
            document = json.loads(part)
            if not isinstance(document, dict):
                raise ValueError("it is no object")
            yield document


def _named(document: Mapping[str, Any]) -> str:
    """The document's name. Raises ValueError if it cannot be a file name."""
    name = str(document["name"])
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{excerpt(name)}' is no name")
    return name


# -- a recording of the traces ----------------------------------------------------------------------------------------


def import_traces(folder: Path, to: Path, *, hardware: str | None = None) -> Recording:
    """Make a recording of the traces of one GPU. Speedups are relative to the definition's own code.

    A solution that failed on any workload gets the status of that failure. Raises PresageError if there are no traces,
    or if there are traces of several GPUs and `hardware` does not select one."""
    found = read(folder)
    with _blamed(folder / "traces"):
        places = sorted({_hardware(each) for traces in found.traces.values() for each in traces})
    chosen = [place for place in places if hardware is None or hardware.lower() in place.lower()]
    if len(chosen) != 1:
        told = f"has traces on {', '.join(places)}; name one of them with --hardware" if places else "has no traces"
        raise PresageError(f"{folder} {told}")
    rows: list[Row] = []
    for name, definition in found.definitions.items():
        with _blamed(folder / "traces"):
            traces = [each for each in found.traces[name] if _hardware(each) == chosen[0]]
            rows += _rows(definition, found.solutions[name], traces)
    facts = {"name": to.stem, "kind": "gpu", "hardware": chosen[0], "from": folder.name}
    return recording.write(to, rows, facts)


def _hardware(trace: Mapping[str, Any]) -> str:
    return str(trace["evaluation"]["environment"]["hardware"])


def _rows(
    definition: Mapping[str, Any], solutions: Sequence[Mapping[str, Any]], traces: Sequence[Mapping[str, Any]]
) -> list[Row]:
    sources = {str(each["name"]): each for each in solutions}
    by_solution: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for trace in traces:
        by_solution[str(trace["solution"])].append(trace)
    passed = [each for each in traces if each["evaluation"]["status"] == "PASSED"]
    if not passed:
        return []
    times = {_case(each): each["evaluation"]["performance"]["reference_latency_ms"] for each in passed}
    anchor = _row(definition, REFERENCE, "torch", definition["reference"] + _CALLED.format(entry="run"), times)
    rows = [anchor]
    for name, own in by_solution.items():
        solution = sources.get(name)
        language, text = (LANGUAGES[solution["spec"]["language"]], _text(solution)) if solution else ("torch", "")
        failed = next((each["evaluation"] for each in own if each["evaluation"]["status"] != "PASSED"), None)
        if failed:
            status, reason = STATUSES[failed["status"]], excerpt(failed.get("log") or failed["status"], 2000)
            rows.append(_row(definition, name, language, text, {}, status, reason))
        else:
            found = {_case(each): each["evaluation"]["performance"]["latency_ms"] for each in own}
            rows.append(_row(definition, name, language, text, found))
    return [_relative(row, anchor) for row in rows]


def _case(trace: Mapping[str, Any]) -> str:
    return Case(_arguments(trace["workload"])).name or str(trace["workload"]["uuid"])


def _row(
    definition: Mapping[str, Any],
    name: str,
    language: str,
    text: str,
    times: Mapping[str, float],
    status: Status = Status.OK,
    reason: str = "",
) -> Row:
    return Row(
        problem=str(definition["name"]),
        room=str(definition["op_type"]),
        split="",
        family=name,
        language=language,
        hash=digest(text or name, language),
        source=text,
        values={},
        status=status,
        reason=reason,
        cases=tuple(RecordedCase(case, 0.0, (_positive(time) * _MS,)) for case, time in times.items()),
        facts={"solution": name},
    )


def _relative(row: Row, anchor: Row) -> Row:
    known = {case.case: case for case in row.cases}
    both = [case for case in anchor.cases if case.case in known]
    speedup = recording.speedup_over(both, [known[case.case] for case in both]) if both else None
    return replace(row, anchor=anchor.hash, speedup=speedup)


def _positive(time: Any) -> float:
    if not 0 < float(time) < 1e12:
        raise ValueError(f"{time} is not a time")
    return float(time)


# -- problems and modules ---------------------------------------------------------------------------------------------


def write_modules(folder: Path, into: Path) -> dict[str, int]:
    """Write each definition as a one-file problem, and its solutions as modules in a folder of the same name, in the
    layout that `presage corpus collect --modules` reads. Nothing is run.

    Returns the numbers of problems, of modules, and of those left out: definitions whose workloads need data from a
    file, and solutions that are not one Python file."""
    found = read(folder)
    counts = {"problems": 0, "modules": 0, "left_out": 0}
    into.mkdir(parents=True, exist_ok=True)
    for name, definition in found.definitions.items():
        with _blamed(folder / "definitions"):
            text = problem_text(definition, [each["workload"] for each in found.workloads[name]])
        if text is None:
            counts["left_out"] += 1
            continue
        (into / f"{name}.py").write_text(text, encoding="utf-8")
        counts["problems"] += 1
        for solution in found.solutions[name]:
            with _blamed(folder / "solutions"):
                module = _text(solution) if _is_module(solution) else ""
            counts["modules" if module else "left_out"] += 1
            if module:
                (into / name).mkdir(exist_ok=True)
                (into / name / f"{solution['name']}.py").write_text(module, encoding="utf-8")
    return counts


def _is_module(solution: Mapping[str, Any]) -> bool:
    """Whether the solution is one Python file that returns its outputs."""
    spec = solution["spec"]
    return (
        spec["language"] in ("python", "triton")
        and len(solution["sources"]) == 1
        and not spec.get("destination_passing_style", True)
    )


def _text(solution: Mapping[str, Any]) -> str:
    """The text of the file with the entry point; a Python file gets a `custom_kernel` that calls it."""
    path, _, entry = str(solution["spec"]["entry_point"]).partition("::")
    text = next(str(each["content"]) for each in solution["sources"] if each["path"] == path)
    return text + (_CALLED.format(entry=entry) if path.endswith(".py") else "")


def _arguments(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The values that distinguish workloads: the sizes of axes, and scalar inputs."""
    scalars = {name: each["value"] for name, each in workload["inputs"].items() if each["type"] == "scalar"}
    return {**workload["axes"], **scalars}


def problem_text(definition: Mapping[str, Any], workloads: Sequence[Mapping[str, Any]]) -> str | None:
    """The definition as a one-file problem; None if all its workloads need data from a file."""
    cases = [_arguments(each) for each in workloads if all(i["type"] != "safetensors" for i in each["inputs"].values())]
    if workloads and not cases:
        return None
    variable = [name for name, axis in definition["axes"].items() if axis["type"] == "var"]
    scalars = [name for name, each in definition["inputs"].items() if each["shape"] is None]
    cases = cases or [dict.fromkeys(variable, 128) | dict.fromkeys(scalars, 1)]
    constants = {name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"}
    tensors = [_drawn(name, each) for name, each in definition["inputs"].items()]
    summary = " ".join(str(definition.get("description") or definition["name"]).split()).replace('"""', "'''")
    lines = [
        f'"""{summary}"""',
        "",
        "import torch",
        "",
        *(f"{name} = {int(value)}" for name, value in constants.items()),
        "",
        str(definition["reference"]).strip("\n"),
        "",
        "",
        "def reference(*data):",
        "    return run(*data)",
        "",
        "",
        f"def inputs({', '.join(_checked([*variable, *scalars]))}):",
        f"    return ({', '.join(tensors)},)",
        "",
        "",
        f"cases = {cases!r}",
        "",
    ]
    _checked(constants)
    return "\n".join(lines)


def _checked(names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """The names, checked to be Python identifiers. Raises ValueError."""
    for name in names:
        if not str(name).isidentifier():
            raise ValueError(f"'{excerpt(str(name))}' is no name of an axis or an input")
    return list(names)


def _drawn(name: str, spec: Mapping[str, Any]) -> str:
    """The Python expression that draws an input."""
    if spec["shape"] is None:
        return name
    shape, dtype = f"[{', '.join(_checked(spec['shape']))}]", str(spec["dtype"])
    if not dtype.isidentifier():
        raise ValueError(f"'{excerpt(dtype)}' is no type")
    if dtype.startswith(_INTEGERS):
        return f"torch.randint(0, 2, {shape}).to(torch.{dtype})"
    return f"torch.randn({shape}).to(torch.{dtype})"
