"""A small recording of real C kernels with made-up times, and a device that replays it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from presage import Recording, StaticReport, Status
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import RecordedCase, Row
from presage.problems import registry

PROBLEMS = ("gelu", "softmax")


def make_rows(report: StaticReport) -> list[Row]:
    """Every second configuration of two problems: the naive kernel takes 1 ms, the n-th one 1 ms / (1 + n / 10)."""
    rng = np.random.default_rng(0)
    rows = []
    for name in PROBLEMS:
        problem = registry.get(name)
        kernels = []
        for family in registry.seed_kernels(problem, "c"):
            rendered = [family.render(values) for values in family.configurations()][:24]
            kernels += [(family, kernel) for kernel in rendered]
        for n, (family, kernel) in enumerate(kernels):
            failed = n % 7 == 3
            samples = 1e6 / (1 + n / 10) * np.exp(rng.normal(0, 0.01, size=(2, 9)))
            cases = zip(problem.timed["cpu"], samples, strict=True)
            timings = tuple(RecordedCase(case.name, 10.0, tuple(times.tolist())) for case, times in cases)
            rows.append(
                Row(
                    problem=name,
                    room=problem.room,
                    split=problem.split,
                    family=Path(family.name).name,
                    language="c",
                    hash=kernel.hash,
                    source=kernel.source,
                    values=kernel.values,
                    status=Status.WRONG_RESULT if failed else Status.OK,
                    reason="y[0] is 1, not 2" if failed else "",
                    cases=() if failed else timings,
                    reports=(report,),
                    facts={"run": "first"},
                )
            )
    return rows


@pytest.fixture(scope="session")
def rows(static_report: StaticReport) -> list[Row]:
    return make_rows(static_report)


@pytest.fixture(scope="session")
def small(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "small.parquet"
    return recording.write(path, rows, {"name": "small", "kind": "cpu", "hardware": "a small machine"})


@pytest.fixture
def device(small: Recording) -> RecordedDevice:
    return RecordedDevice(small)
