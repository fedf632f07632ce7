"""The ray device on a cluster of several hosts, which are all on this machine: its workers are real, and so are their
losses."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from presage import Effort, Kernel, Measurement, PresageError, Problem, Status, load_kernel, load_problem, search
from presage.devices import registry
from presage.devices.base import CaseTiming, Device, Progress
from presage.devices.pool import LOSSES
from presage.devices.ray import RayDevice
from presage.store.store import Event, Store

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


class Pretending(Device):
    """Measures nothing, and says that a kernel takes as long as its first tunable says. One with B = 3 ends its
    process."""

    kind, languages, name = "cpu", ("c",), "pretending"

    def __init__(self, models: dict[str, str] | None = None) -> None:
        self._models = models or {}

    @property
    def model(self) -> str:
        return self._models.get(os.environ.get("CUDA_VISIBLE_DEVICES", ""), "Pretender 1")

    def describe(self) -> dict[str, Any]:
        return {"hardware": self.model}

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        if any(kernel.values.get("B") == 3 for kernel in kernels):
            os.kill(os.getpid(), signal.SIGKILL)
        return [self._measurement(problem, kernel) for kernel in kernels]

    def _measurement(self, problem: Problem, kernel: Kernel) -> Measurement:
        cases = problem.timed["cpu"]
        took = 1e6 / float(kernel.values.get("A", 1))
        timings = tuple(CaseTiming(case.name, (took,) * 8, tuple(range(8)), 1.0, 1) for case in cases)
        return Measurement(problem.name, kernel, self.name, Status.OK, cases=timings)
