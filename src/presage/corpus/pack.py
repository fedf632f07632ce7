"""Pack collected measurements into a recording: render sources, assign splits, compute speedups."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.corpus import journal
from presage.corpus.journal import Collected, Journal, State
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import RecordedCase, Recording, Row, open_recording
from presage.devices.status import Status
from presage.forecasters.faults import OTHER_COMPILER
from presage.kernels.kernel import Kernel, read
from presage.problems import external, registry, splits, static
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.static.hardware import Hardware
from presage.static.report import StaticReport

_ANCHORS = {"cpu": "naive.c", "gpu": "naive.cu"}
"""The seed kernels, by kind of device. Speedups in a corpus are relative to them."""
_REPORTED = ("cuda", "triton")
_AT_ONCE = 256


def add_reports(
    folder: Path,
    target: Hardware,
    seconds: float | None,
    processes: int | None = None,
    say: Any = print,
    modules: Path | None = None,
) -> int:
    """Compile every collected kernel that has no static report, and write its reports to a journal. Returns how many
    kernels were compiled.

    seconds: the time limit. processes: how many compilers run at the same time. modules: the folder of the external
    problems; without it, their modules are left out."""
    deadline = time.monotonic() + seconds if seconds else math.inf
    state = journal.read(folder)
    waiting = [
        kernel
        for kernel in state.kernels.values()
        if kernel.status is not None and not kernel.reports and _is_compiled(kernel, state, modules)
    ]
    waiting.sort(key=lambda kernel: kernel.language != "triton")  # Triton kernels first: they take longest
    own = Journal(folder, {"device": None, "target": target.name})
    done = 0
    try:
        while done < len(waiting) and time.monotonic() < deadline:
            chosen = waiting[done : done + _AT_ONCE]
            problems = [_stated(each.problem, modules) or _problem(each.problem) for each in chosen]
            wanted = [
                (problem, state.render(each)[1], problem.timed["gpu"])
                for problem, each in zip(problems, chosen, strict=True)
            ]
            for each, reports in zip(chosen, static.of_several(wanted, target, processes=processes), strict=True):
                own.add_reports(each.problem, each.hash, reports)
            done += len(chosen)
            say(f"{done} of {len(waiting)} compiled")
    finally:
        own.close()
    return done


def add_reports_to(
    path: Path,
    target: Hardware | None,
    seconds: float | None,
    processes: int | None = None,
    say: Any = print,
    modules: Path | None = None,
) -> int:
    """Compile kernels of a recording, and write the recording again with their reports. Returns how many kernels were
    compiled.

    Compiles the kernels without reports whose headers declare their launch and arrays. With `modules`, compiles the
    modules in that folder instead, also those that have reports. Raises PresageError if there are no such kernels, or
    if the GPU is not known and `target` is None."""
    deadline = time.monotonic() + seconds if seconds else math.inf
    found = open_recording(path)
    device = RecordedDevice(found)
    target = target or device.hardware
    if target is None:
        raise PresageError(f"nothing is known of the GPU that {path} was measured on; name it with --target")
    rows = found.rows()
    texts: dict[str, Kernel] = {}
    if modules:
        foreign = {name: problem for name in found.counts if (problem := _stated(name, modules))}
        texts = {kernel.hash: kernel for problem in foreign.values() for kernel in problem.with_modules()}
        stated: Mapping[str, Problem] = foreign
        waiting = [i for i, row in enumerate(rows) if row.problem in stated and row.hash in texts]
    else:
        stated = {name: own for name in found.counts if (own := device.problem(name)).inputs}
        waiting = [i for i, row in enumerate(rows) if not row.reports and row.problem in stated]
    if not stated:
        raise PresageError(
            f"{modules} has none of the problems of {path}"
            if modules
            else f"no kernel of {path} declares its launch and its arrays; import it with --source FILE.cu"
        )
    done = 0
    while done < len(waiting) and time.monotonic() < deadline:
        chosen = waiting[done : done + _AT_ONCE]
        wanted = [
            (stated[row.problem], texts.get(row.hash) or row.kernel, stated[row.problem].timed["gpu"])
            for row in (rows[i] for i in chosen)
        ]
        for i, reports in zip(chosen, static.of_several(wanted, target, processes=processes), strict=True):
            rows[i] = replace(rows[i], reports=tuple(reports if modules else map(_by_another_compiler, reports)))
        done += len(chosen)
        say(f"{done} of {len(waiting)} compiled")
    recording.write(path, rows, found.facts)
    return done


def _by_another_compiler(report: StaticReport) -> StaticReport:
    """Add a note to a report that the kernel needs too many registers. The kernel was measured elsewhere, compiled by
    another compiler, which may have used fewer."""
    is_doubtful = report.status == "runtime_error" and "registers" in (report.error or "")
    return replace(report, notes=(*report.notes, OTHER_COMPILER)) if is_doubtful else report


def _is_compiled(kernel: Collected, state: State, modules: Path | None) -> bool:
    if kernel.problem in state.problems:
        return _stated(kernel.problem, modules) is not None
    return kernel.language in _REPORTED


@cache
def _stated(name: str, modules: Path | None) -> ExternalProblem | None:
    """The external problem of this name in a folder; None if there is none."""
    places = [modules / f"{name}.py", modules / name] if modules else []
    return next((external.read(place) for place in places if registry.is_path(str(place))), None)


def pack(
    folder: Path,
    path: Path,
    name: str,
    hardware: str | None = None,
    without: Path | None = None,
    earlier: Recording | None = None,
) -> Recording:
    """Make a recording from a folder of journals, and write it to `path`.

    name, hardware: the names of the recording and of its device. without: a folder of external problems and modules
    whose sources are not recorded. earlier: a recording from which rows are taken that the folder does not have.

    Raises PresageError if the folder holds no kernels, or if the runs are on different kinds of devices."""
    state = journal.read(folder)
    withheld = _hashes_in(without) if without else frozenset()
    runs = [run for run in state.runs if run.get("device")]
    if not runs or not state.kernels:
        raise PresageError(f"{folder} has no collected kernels; 'presage corpus collect --into {folder}' makes some")
    kinds = {run["kind_of_device"] for run in runs}
    if len(kinds) > 1:
        raise PresageError(
            f"{folder} has runs on devices of several kinds: {', '.join(sorted(kinds))}; use a folder for each"
        )
    kind = kinds.pop()
    if earlier and earlier.facts.get("kind") != kind:
        raise PresageError(f"{earlier.path} was recorded on a {earlier.facts.get('kind')}, and {folder} on a {kind}")
    rows = [_row(state, each, withheld) for each in state.kernels.values() if each.status is not None]
    before = earlier.rows() if earlier else []
    references = {row.problem: row.anchor for row in before if row.room in external.CONVENTIONS}
    references |= {problem: each["reference"] for problem, each in state.problems.items()}
    rows = _with_speedups(_joined(before, rows), _ANCHORS[kind], references)
    about = {"name": name, "kind": kind, **_about(state, runs, earlier.facts if earlier else {}, hardware)}
    return recording.write(path, rows, about)


def _about(
    state: State, runs: Sequence[Mapping[str, Any]], known: Mapping[str, Any], hardware: str | None
) -> dict[str, Any]:
    """The facts of a recording of these runs. known: those of an earlier recording that is continued."""
    facts = runs[-1].get("facts", {})
    dates = [*str(known.get("recorded") or runs[0]["date"]).split(" to "), runs[-1]["date"]]
    return {
        "hardware": hardware or facts.get("hardware") or facts.get("processor") or "unknown",
        "toolchain": facts.get("toolchain") or facts.get("compiler") or "unknown",
        "facts": facts,
        "recorded": " to ".join(sorted({min(dates), max(dates)})),
        "runs": [
            *known.get("runs", ()),
            *({key: run.get(key) for key in ("run", "date", "seconds")} for run in runs),
        ],
        "between_runs": [*known.get("between_runs", ()), *_between_runs(state.kernels.values())],
        "left_out": known.get("left_out", 0) + sum(each.status is None for each in state.kernels.values()),
        "unreadable_lines": state.damaged,
    }


def _joined(before: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Merge rows by problem and kernel. The later measurement wins. Earlier static reports are kept if there are no
    later ones."""
    found = {(row.problem, row.hash): row for row in before}
    for row in rows:
        known = found.get((row.problem, row.hash))
        found[row.problem, row.hash] = replace(row, reports=row.reports or known.reports) if known else row
    return list(found.values())


def _hashes_in(folder: Path) -> frozenset[str]:
    """The hashes of the modules in a folder, and of the references of its problems."""
    problems = [path for path in folder.iterdir() if registry.is_path(str(path))]
    references = [external.read(path).reference_kernel().hash for path in problems]
    return frozenset((*references, *(read(path).hash for path in folder.glob("*/**/*.py"))))


def _place(state: State, name: str) -> tuple[str, str]:
    """The room and the split of a problem."""
    if name in state.problems:
        return state.problems[name]["room"], splits.of_problem(name)
    problem = _problem(name)
    return problem.room, problem.split


def _row(state: State, found: Collected, withheld: frozenset[str]) -> Row:
    _, kernel = state.render(found)
    room, split = _place(state, found.problem)
    assert found.status is not None
    return Row(
        problem=found.problem,
        room=room,
        split=split,
        family=state.families[found.family]["name"],
        language=found.language,
        hash=found.hash,
        source="" if found.hash in withheld else kernel.source,
        values=found.values,
        status=found.status,
        reason=found.reason,
        cases=found.cases,
        repeat_ns=tuple(case.median.value for case in found.repeat),
        reports=found.reports,
        facts=found.facts,
    )


@cache
def _problem(name: str) -> Problem:
    return registry.get(name)


def _with_speedups(rows: Sequence[Row], anchor: str, references: Mapping[str, str]) -> list[Row]:
    """Add speedups, relative to the seed kernel, or to the reference of an external problem."""

    def is_anchor(row: Row) -> bool:
        if row.problem in references:
            return row.hash == references[row.problem]
        return row.family == anchor and not row.values

    anchors: dict[str, Row] = {row.problem: row for row in rows if is_anchor(row)}
    found = []
    for row in rows:
        seed = anchors.get(row.problem)
        if seed is None or seed.status is not Status.OK:
            found.append(row)
            continue
        speedup = recording.speedup_over(seed.cases, row.cases) if row.cases else None
        found.append(replace(row, anchor=seed.hash, speedup=speedup))
    return found


def _between_runs(kernels: Any) -> list[float]:
    """The log ratios of second measurements, made in another run, to the first ones."""
    return [
        round(_log_time(kernel.repeat) - _log_time(kernel.cases), 5)
        for kernel in kernels
        if kernel.repeat and kernel.cases
    ]


def _log_time(cases: Sequence[RecordedCase]) -> float:
    return sum(math.log(case.median.value) for case in cases) / len(cases)


def summary(found: Recording) -> Mapping[str, Any]:
    """The main numbers of a recording."""
    return {
        "name": found.name,
        "hardware": found.facts.get("hardware"),
        "kernels": sum(found.counts.values()),
        "problems": len(found.counts),
        "left_out": found.facts.get("left_out", 0),
        "unreadable_lines": found.facts.get("unreadable_lines", 0),
        "bytes": found.path.stat().st_size,
    }
