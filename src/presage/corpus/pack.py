"""Packs what was collected into a recording: renders sources, assigns splits, computes speedups."""

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
from presage.devices.recording import RecordedCase, Recording, Row
from presage.devices.status import Status
from presage.problems import registry, static
from presage.problems.base import Problem
from presage.static.hardware import Hardware

_ANCHORS = {"cpu": "naive.c", "gpu": "naive.cu"}
"""The seed kernels: speedups in a corpus are relative to them."""
_REPORTED = ("cuda", "triton")
_AT_ONCE = 256


def add_reports(
    folder: Path, target: Hardware, seconds: float | None, processes: int | None = None, say: Any = print
) -> int:
    """Compile every collected kernel without a static report, and write the report."""
    deadline = time.monotonic() + seconds if seconds else math.inf
    state = journal.read(folder)
    waiting = [
        kernel
        for kernel in state.kernels.values()
        if kernel.language in _REPORTED and kernel.status is not None and not kernel.reports
    ]
    waiting.sort(key=lambda kernel: kernel.language != "triton")  # those take longest
    own = Journal(folder, {"device": None, "target": target.name})
    done = 0
    try:
        while done < len(waiting) and time.monotonic() < deadline:
            chosen = waiting[done : done + _AT_ONCE]
            problems = [_problem(each.problem) for each in chosen]
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


def pack(folder: Path, path: Path, name: str, hardware: str | None = None) -> Recording:
    """Make a recording of a folder of journals."""
    state = journal.read(folder)
    runs = [run for run in state.runs if run.get("device")]
    if not runs or not state.kernels:
        raise PresageError(f"{folder} has no collected kernels; 'presage corpus collect --into {folder}' makes some")
    kinds = {run["kind_of_device"] for run in runs}
    if len(kinds) > 1:
        raise PresageError(
            f"{folder} has runs on devices of several kinds: {', '.join(sorted(kinds))}; use a folder for each"
        )
    kind = kinds.pop()
    rows = [_row(state, each) for each in state.kernels.values() if each.status is not None]
    rows = _with_speedups(rows, _ANCHORS[kind])
    facts = runs[-1].get("facts", {})
    return recording.write(
        path,
        rows,
        {
            "name": name,
            "kind": kind,
            "hardware": hardware or facts.get("hardware") or facts.get("processor") or "unknown",
            "toolchain": facts.get("toolchain") or facts.get("compiler") or "unknown",
            "facts": facts,
            "recorded": " to ".join(sorted({runs[0]["date"], runs[-1]["date"]})),
            "runs": [{key: run.get(key) for key in ("run", "date", "seconds")} for run in runs],
            "between_runs": _between_runs(state.kernels.values()),
            "left_out": sum(each.status is None for each in state.kernels.values()),
            "unreadable_lines": state.damaged,
        },
    )


def _row(state: State, found: Collected) -> Row:
    _, kernel = state.render(found)
    problem = _problem(found.problem)
    assert found.status is not None
    return Row(
        problem=found.problem,
        room=problem.room,
        split=problem.split,
        family=state.families[found.family]["name"],
        language=found.language,
        hash=found.hash,
        source=kernel.source,
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


def _with_speedups(rows: Sequence[Row], anchor: str) -> list[Row]:
    anchors: dict[str, Row] = {row.problem: row for row in rows if row.family == anchor and not row.values}
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
    """The log ratio of second measurements in another run to the first ones."""
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
