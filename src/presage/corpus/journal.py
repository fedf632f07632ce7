"""Journal: the collected measurements, one line each (see lines.py)."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.corpus.lines import Lines, read_lines
from presage.devices.base import Measurement
from presage.devices.recording import RecordedCase
from presage.devices.status import Status
from presage.kernels.kernel import Kernel, from_source
from presage.static.report import StaticReport

MOST_FAULTS = 2
"""A kernel is not measured again after this many device faults."""


@dataclass
class Collected:
    """Everything collected about one kernel."""

    problem: str
    hash: str
    family: str
    """The key of its family's source in `State.families`."""
    values: Mapping[str, Any]
    language: str
    status: Status | None = None
    reason: str = ""
    cases: tuple[RecordedCase, ...] = ()
    repeat: tuple[RecordedCase, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    reports: tuple[StaticReport, ...] = ()
    faults: int = 0


@dataclass
class State:
    """The contents of the journals of a folder."""

    kernels: dict[tuple[str, str], Collected] = field(default_factory=dict)
    """By problem and kernel hash."""
    families: dict[str, dict[str, str]] = field(default_factory=dict)
    """The name and source of each family, by key."""
    problems: dict[str, dict[str, str]] = field(default_factory=dict)
    """The room and the reference's hash of each external problem, by name."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    damaged: int = 0
    """The number of lines that could not be read."""

    def measured(self, problem: str, hash: str) -> bool:
        """Whether the kernel has a result, or too many device faults to be tried again."""
        known = self.kernels.get((problem, hash))
        return known is not None and (known.status is not None or known.faults >= MOST_FAULTS)

    def hash_of(self, problem: str, family: Kernel, values: Mapping[str, Any]) -> str | None:
        """The hash of the collected kernel of this family with these values; None if there is none."""
        return self._hashes.get((family_key(problem, family), _frozen(values)))

    @cached_property
    def _hashes(self) -> dict[tuple[str, Any], str]:
        return {(each.family, _frozen(each.values)): each.hash for each in self.kernels.values()}

    def render(self, found: Collected) -> tuple[Kernel, Kernel]:
        """Return the family and the kernel, rendered from the source as it was when the kernel was measured. Raises
        PresageError if the source is missing, or if the rendered kernel has another hash."""
        record = self.families.get(found.family)
        if record is None:
            raise PresageError(f"the source of {found.problem} {found.hash} is not in the journals: a file is missing")
        family = from_source(record["source"], Path(record["name"]).suffix, record["name"])
        family = replace(family, language=found.language)  # a module without imports has its problem's language
        kernel = family.render(found.values) if found.values else family
        if kernel.hash != found.hash:
            raise PresageError(f"{found.problem} {family.name} renders to {kernel.hash}; {found.hash} was measured")
        return family, kernel


class Journal(Lines):
    """The journal file of this run. Every line is written before the next kernel is measured. The methods raise
    PresageError if the file cannot be written."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self._families: set[str] = set()
        super().__init__(folder, about)

    def add_problem(self, problem: str, room: str, reference: str) -> None:
        """Write the facts about an external problem that cannot be looked up later."""
        self.write({"kind": "problem", "problem": problem, "room": room, "reference": reference})

    def add(self, family: Kernel, measurement: Measurement, seconds: float, repeat: bool = False) -> None:
        """Write the measurement of a kernel of this family."""
        cases = [
            {"case": c.case, "floor_ns": round(c.floor_ns, 1), "samples_ns": [round(ns, 1) for ns in c.samples_ns]}
            for c in measurement.cases
        ]
        waits = {c.case: round(c.wait_ns, 1) for c in measurement.cases if c.wait_ns is not None}
        self.write(
            self._about(measurement.problem, family, measurement.kernel)
            | {
                "kind": "repeat" if repeat else "kernel",
                "status": str(measurement.status),
                "reason": measurement.reason[:300],
                "cases": cases,
                "facts": {k: v for k, v in measurement.facts.items() if k != "timing"}
                | {"run": self.run}
                | ({"wait_ns": waits} if waits else {})
                | ({"believed": measurement.believed} if measurement.believed else {})
                | ({"not_replayed": measurement.not_replayed} if measurement.not_replayed else {}),
                "seconds": round(seconds, 3),
            }
        )

    def add_reports(self, problem: str, hash: str, reports: list[StaticReport]) -> None:
        """Write the static reports of a kernel."""
        self.write({"kind": "reports", "problem": problem, "hash": hash, "reports": [r.to_json() for r in reports]})

    def _about(self, problem: str, family: Kernel, kernel: Kernel) -> dict[str, Any]:
        key = family_key(problem, family)
        if key not in self._families:
            self._families.add(key)
            name = Path(family.name).name
            self.write({"kind": "family", "family": key, "name": name, "source": family.source, "problem": problem})
        return {
            "problem": problem,
            "hash": kernel.hash,
            "family": key,
            "values": dict(kernel.values),
            "language": kernel.language,
        }


def family_key(problem: str, family: Kernel) -> str:
    return hashlib.sha256(f"{problem}\n{family.source}".encode()).hexdigest()[:16]


def _frozen(values: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(values.items())


def read(folder: Path) -> State:
    """Read all journals of a folder. An empty or missing folder gives an empty state."""
    state = State()
    for file in sorted(folder.glob("*.jsonl")):
        for record in read_lines(file):
            try:
                _take(state, record)
            except (LookupError, ValueError, TypeError, AttributeError, OverflowError):
                state.damaged += 1
    return state


def _take(state: State, record: dict[str, Any]) -> None:
    kind = record["kind"]
    if kind == "run":
        state.runs.append({name: value for name, value in record.items() if name != "kind"})
        return
    if kind == "family":
        state.families[str(record["family"])] = {name: str(record[name]) for name in ("name", "source")}
        return
    if kind == "problem":
        state.problems[str(record["problem"])] = {name: str(record[name]) for name in ("room", "reference")}
        return
    key = (str(record["problem"]), str(record["hash"]))
    if kind == "reports":
        with contextlib.suppress(KeyError):
            state.kernels[key].reports = tuple(StaticReport.from_record(report) for report in record["reports"])
        return
    family, values, language = str(record["family"]), dict(record["values"]), str(record["language"])
    _frozen(values)  # raises TypeError for values that cannot be hashed
    status = Status(record["status"])
    cases = tuple(
        RecordedCase(str(c["case"]), float(c["floor_ns"]), tuple(map(float, c["samples_ns"]))) for c in record["cases"]
    )
    known = state.kernels.setdefault(key, Collected(*key, family, values, language))
    state.runs[-1]["seconds"] = state.runs[-1].get("seconds", 0.0) + float(record.get("seconds", 0.0))
    is_own = key[0] not in state.problems  # our own kernels do not cheat: the machine was too busy
    if status is Status.DEVICE_FAULT or (is_own and status is Status.CHEATING):
        known.faults += 1
    elif kind == "repeat" and status is not Status.WRONG_RESULT:
        known.repeat = cases
    else:  # a first result; or a repeat, in its own process and with more checks than in a group, that was wrong
        known.status, known.reason, known.cases, known.facts = (
            status,
            str(record["reason"]),
            cases,
            dict(record["facts"]),
        )
        known.family, known.values = family, values
