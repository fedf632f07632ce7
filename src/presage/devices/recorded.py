"""The recorded device: measures by looking up a recording, and adds the recorded noise. It runs anywhere."""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from presage.core.errors import PresageError, hint
from presage.devices.base import COMPILING, CaseTiming, Device, Effort, Measurement, Progress
from presage.devices.recording import Recording, Row, open_recording
from presage.devices.status import Status
from presage.kernels.kernel import LANGUAGES, Kernel
from presage.plugins.group import RECORDINGS
from presage.problems import registry as problems
from presage.problems.base import Array, Case, Cost, Problem, Tolerance
from presage.problems.external import CONVENTIONS
from presage.problems.kernel_file import KernelProblem
from presage.problems.sampler import Sampler
from presage.static import hardware, roofline
from presage.static.hardware import Hardware
from presage.static.report import StaticReport

_FAR = 4.0
"""A repeat is left out if it was faster than the first run by more than this many times the usual difference of two
runs."""


def packaged() -> list[str]:
    """The names of the installed recordings, those of GPUs first: entry points in `presage.recordings`."""
    return sorted(RECORDINGS.names(), key=lambda name: (name == "cpu", name))


def find(name: str) -> Recording:
    """An installed recording by name, or any other by its path."""
    if name in packaged():
        return open_recording(Path(RECORDINGS.load(name)))
    if name.endswith(".parquet") or "/" in name or os.path.isfile(name):
        return open_recording(Path(name))
    known = ", ".join(packaged()) or "none is installed"
    raise PresageError(f"there is no recording '{name}'; there are: {known}; or give the path of a .parquet file")


class RecordedDevice(Device):
    """A device whose measurements were recorded and can be looked up again. It knows its pool of kernels."""

    languages = LANGUAGES
    at_once = 1

    def __init__(self, recording: Recording, seed: int = 0) -> None:
        self.recording = recording
        self.kind = str(recording.facts["kind"])
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self._rows: dict[str, dict[str, Row]] = {}

    @classmethod
    def from_text(cls, text: str) -> RecordedDevice:
        """The device of `recorded:NAME` or `recorded:FILE.parquet`."""
        return cls(find(text))

    @property
    def name(self) -> str:
        return f"recorded:{self.recording.name}"

    @cached_property
    def hardware(self) -> Hardware | None:
        try:
            return hardware.find(str(self.recording.facts.get("hardware"))) if self.kind == "gpu" else None
        except PresageError:
            return None

    def describe(self) -> dict[str, Any]:
        facts = self.recording.facts
        return {
            "hardware": facts.get("hardware", "unknown"),
            "kernels": sum(self.recording.counts.values()),
            "problems": len(self.recording.counts),
            "recorded": facts.get("recorded", "at an unknown time"),
            "toolchain": facts.get("toolchain", "unknown"),
        }

    def rows(self, problem: str) -> dict[str, Row]:
        """The recorded rows of a problem's kernels, by hash. Raises PresageError if there are none."""
        if problem not in self._rows:
            found = {row.hash: row for row in self.recording.rows(problem)}
            if not found:
                counts = self.recording.counts
                told = hint(problem, counts, f"it has: {', '.join(list(counts)[:12])}, …")
                if problem.endswith((".c", ".cu", ".py")) and not os.path.exists(problem):
                    raise PresageError(f"there is no file {problem}")
                raise PresageError(f"{self.recording.name} has no recorded kernel of '{problem}'; {told}")
            self._rows[problem] = found
        return self._rows[problem]

    def each(self, chosen: Sequence[str]) -> Iterator[tuple[str, dict[str, Row]]]:
        """The rows of these problems, as `rows` gives them, from one reading of the file."""
        for problem, rows in self.recording.each(chosen):
            if rows:
                self._rows.setdefault(problem, {row.hash: row for row in rows})
            yield problem, self.rows(problem)

    def pool(self, problem: str) -> list[Kernel]:
        """Every kernel that can be measured here, in an order that does not depend on their speed."""
        return [row.kernel for row in self.rows(problem).values()]

    def problem(self, name: str) -> Problem:
        """A problem of the catalogue, or one that only the recording knows. A file is read even if nothing of it was
        recorded."""
        if not name.strip():
            raise PresageError("name a problem: 'presage problems' lists the catalogue's")
        is_file = name not in self.recording.counts and problems.is_path(name)
        return problems.get(name) if is_file or name in problems.names() else RecordedProblem(name, self)

    def kernel(self, problem: Problem, spec: str) -> Kernel:
        """A kernel by path or name, or by its hash or its name in the pool."""
        for row in self.rows(problem.name).values():
            if spec in (row.hash, row.name):
                return row.kernel
        if isinstance(problem, RecordedProblem):
            raise PresageError(f"{self.name} has no kernel '{spec}' of {problem.name}; 'presage corpus ls' lists them")
        return super().kernel(problem, spec)

    def reports(
        self, problem: Problem, kernels: Sequence[Kernel], seconds: float = COMPILING
    ) -> list[tuple[StaticReport, ...]]:
        rows = self.rows(problem.name)
        return [rows[kernel.hash].reports if kernel.hash in rows else () for kernel in kernels]

    def anchor(self, problem: Problem) -> Kernel | None:
        anchors = {row.anchor for row in self.rows(problem.name).values()} & self.rows(problem.name).keys()
        return self.rows(problem.name)[min(anchors)].kernel if anchors else None

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        rows = self.rows(problem.name)
        for kernel in kernels:
            if kernel.hash not in rows:
                raise PresageError(
                    f"{kernel.name} is not among the {len(rows)} kernels of {problem.name} that {self.name} has;"
                    " ask a live device"
                )
        return [self._measurement(rows[kernel.hash], kernel) for kernel in kernels]

    def resume(self, measured: Iterable[str]) -> None:
        self._asked = Counter(measured)

    def _measurement(self, row: Row, kernel: Kernel) -> Measurement:
        """A measurement drawn from the recorded samples, and shifted by a recorded difference between two runs."""
        asked = self._asked[row.hash]
        self._asked[row.hash] += 1
        key = f"{self._seed} {row.problem} {row.hash} {asked}".encode()
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:8], "little"))
        shift = math.exp(float(rng.choice(self._shifts)))
        cases = []
        for case in row.cases:
            drawn = shift * rng.choice(case.samples_ns, size=len(case.samples_ns))
            # Each measurement has its own rounds, since recorded kernels were never measured side by side.
            rounds = range(first := int(rng.integers(1 << 40)), first + len(drawn))
            cases.append(CaseTiming(case.case, tuple(drawn.tolist()), tuple(rounds), case.floor_ns, 1))
        reason = row.reason if row.status is not Status.OK else ""
        return Measurement(
            row.problem, kernel, self.name, row.status, reason, tuple(cases), facts=dict(row.facts),
            believed=row.believed, not_replayed=str(row.facts.get("not_replayed", "")),
        )  # fmt: skip

    @cached_property
    def _shifts(self) -> list[float]:
        """The differences, as logarithms, between two recorded measurements of a kernel in different runs. A
        disturbance only slows a run down: if a repeat was far faster, the first run was disturbed, and the difference
        is left out."""
        shifts = [float(shift) for shift in self.recording.facts.get("between_runs", ())] or [0.0]
        usual = median(map(abs, shifts))
        return [shift for shift in shifts if shift >= -_FAR * usual] or shifts


class RecordedProblem(Problem):
    """A problem that only a recording knows. Its outputs cannot be checked, and nothing new can be measured. Its arrays
    and sizes are known if its kernels' headers declare them."""

    inputs: tuple[Array, ...] = ()
    outputs: tuple[Array, ...] = ()
    checks = ()

    def __init__(self, name: str, device: RecordedDevice) -> None:
        rows = device.rows(name)
        some = next((row for row in rows.values() if row.cases), next(iter(rows.values())))
        self.name, self.room = name, some.room
        self.is_foreign = some.room in CONVENTIONS
        self.summary = f"recorded on {device.recording.facts.get('hardware', 'an unknown device')}"
        dims: list[dict[str, int]] = [{}] * len(some.cases)
        if some.kernel.header.outputs and some.kernel.header.launches:
            stated = KernelProblem(some.kernel)
            self.inputs, self.outputs = stated.inputs, stated.outputs
            dims = [dict(case.dims) for case in stated.timed["gpu"]]
        cases = zip(dims, some.cases, strict=False)
        self.timed = {device.kind: tuple(_NamedCase(sizes, name=case.case) for sizes, case in cases)}
        anchor = rows.get(some.anchor)
        reports = zip(self.timed[device.kind], anchor.reports if anchor else (), strict=False)
        self._flops = {case.name: int(roofline.launch_flops(report)) for case, report in reports}

    def cost(self, case: Case) -> Cost:
        """The cost without inputs, since it is unknown which inputs must be read. Only outputs must be written."""
        return Cost(sum(self.array_bytes(array, case) for array in self.outputs), 0)

    def textbook_flops(self, case: Case) -> int:
        """The operations of the anchor, or 0 if it was not compiled."""
        return self._flops.get(case.name, 0)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        raise self._refusal()

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        raise self._refusal()

    def tolerance(self, case: Case) -> Tolerance:
        raise self._refusal()

    def flops(self, case: Case) -> int:
        if not self.outputs:
            raise self._refusal()
        return 0

    def draw_case(self, rng: random.Random) -> Case:
        raise self._refusal()

    def _refusal(self) -> PresageError:
        return PresageError(f"{self.name} is known from a recording alone; it can be measured only there")


class _NamedCase(Case):
    """A case of which only the name is known."""

    def __init__(self, dims: dict[str, int], name: str) -> None:
        super().__init__(dims)
        object.__setattr__(self, "_name", name)

    @property
    def name(self) -> str:
        return str(self._name)  # type: ignore[attr-defined]
