"""A problem that is small enough to measure in a second, and how to measure it."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elsewhere import REFERENCE, TASK, UTILS

from presage import Case, Device, Effort, Kernel, Measurement, PresageError, Problem
from presage.core import machine
from presage.devices import registry as devices
from presage.devices.cpu import CpuDevice
from presage.kernels.kernel import from_source
from presage.problems import registry

Measure = Callable[..., list[Measurement]]

PATIENT = Effort(precision=1.0, case_seconds=3.0, timeout=120.0)
"""Stops at the fewest rounds there can be, however busy the machine is."""


@pytest.fixture(scope="session")
def cpu() -> Iterator[CpuDevice]:
    """For what asks whether answers are right; other tests run beside, so it has one thread."""
    device = CpuDevice()
    device.threads = 1
    yield device
    device.close()


@pytest.fixture(scope="session")
def gpu() -> Iterator[Device]:
    try:
        device = devices.get("cuda")
    except PresageError as error:
        pytest.skip(str(error))
    yield device
    device.close()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> Device:
    """Where modules can be measured."""
    found: Device = request.getfixturevalue("cpu" if request.param == "cpu" else "gpu")
    return found


@pytest.fixture
def addition() -> Problem:
    problem = copy.copy(registry.get("vector_add"))
    problem.timed = {"cpu": (Case({"n": 200_000}),)}
    problem.checks = (Case({"n": 1}), Case({"n": 1001}, values="large"))
    return problem


@pytest.fixture
def naive(addition: Problem) -> Kernel:
    return registry.seed_kernels(addition, "c")[0]


@pytest.fixture
def measure(addition: Problem) -> Measure:
    """Measure sources of the small problem, given as C, or as Python where they define custom_kernel."""

    def run(*sources: str, effort: Effort = PATIENT, device: CpuDevice | None = None) -> list[Measurement]:
        kernels = [
            from_source(source, ".py", "k.py")
            if "custom_kernel" in source
            else from_source(f"// presage: entry vector_add\n{source}", ".c", "k.c")
            for source in sources
        ]
        with contextlib.closing(device or CpuDevice()) as used:
            for _ in range(3):
                measured = used.measure(addition, kernels, effort, lambda doing, share: None)
                busy = [m.reason for m in measured if "too busy" in m.reason]
                if not busy:
                    return measured
        pytest.skip(busy[0])

    return run


@pytest.fixture
def on_an_idle_machine() -> None:
    """For what compares times: where others have the processors, one kernel may be several times as fast as itself."""
    load, cores = os.getloadavg()[0], machine.cores()
    if load > 2 * cores:
        pytest.skip(f"the load is {load:.1f} on {cores} cores")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task in GPU MODE's form."""
    folder = tmp_path / "scaled_add_py"
    folder.mkdir()
    (folder / "task.yml").write_text(TASK)
    (folder / "task.py").write_text("input_t = output_t = object\n")
    (folder / "reference.py").write_text(REFERENCE)
    (tmp_path / "utils.py").write_text(UTILS)
    return folder
