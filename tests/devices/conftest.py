"""A problem that is small enough to measure in a second, and how to measure it."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable

import pytest

from presage import Case, Effort, Kernel, Measurement, Problem
from presage.core import machine
from presage.devices.cpu import CpuDevice
from presage.kernels.kernel import from_source
from presage.problems import registry

Measure = Callable[..., list[Measurement]]

PATIENT = Effort(precision=1.0, case_seconds=3.0, timeout=120.0)
"""Stops at the fewest rounds there can be, however busy the machine is."""


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
