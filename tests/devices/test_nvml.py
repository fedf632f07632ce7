"""The sensors of a GPU: what NVIDIA's library says, and nothing where it says nothing."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from presage.devices.nvml import Nvml


class Library(ModuleType):
    """As pynvml, on a machine whose one GPU is a part of one and does not tell its power."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetHandleByUUID(self, name: str) -> Any:  # noqa: N802
        if name != "MIG-1234":
            raise self.NVMLError
        return name

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            if name == "nvmlDeviceGetPowerUsage":
                raise self.NVMLError
            return "580.1" if "Driver" in name else 1980

        return answer


def test_what_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Library("pynvml"))
    assert Nvml("1234").read() == {"sm_mhz": 1980, "memory_mhz": 1980, "celsius": 1980, "throttled": 1980}
    assert Nvml("1234").driver() == "580.1"
    assert Nvml("of another GPU").read() == {}


def test_without_the_library_there_are_no_sensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert (Nvml("1234").read(), Nvml("1234").driver()) == ({}, "unknown")
