"""A device that runs nothing, and parents to start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from presage import Device, Effort, Kernel, Measured, Measurement, Parent, Problem
from presage.devices.base import Progress


class StillDevice(Device):
    """Knows languages, and measures nothing."""

    def __init__(self, kind: str = "cpu", languages: tuple[str, ...] = ("c",)) -> None:
        self.kind, self.languages = kind, languages

    @property
    def name(self) -> str:
        return "still"

    def describe(self) -> dict[str, Any]:
        return {}

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        raise AssertionError("a proposer measures nothing")


def parent_of(kernel: Kernel, value: float | None = 0.5, **more: Any) -> Parent:
    return Parent(Measured(kernel), value, **more)
