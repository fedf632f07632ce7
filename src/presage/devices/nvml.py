"""Clocks, temperature and power of a GPU, read through NVIDIA's management library if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Nvml:
    """Reads the sensors of the GPU, or the part of a GPU, with this UUID. Values that cannot be read are left out. The
    GPU's number would not identify it: CUDA counts only the GPUs that it can see, the fastest first."""

    def __init__(self, uuid: object) -> None:
        self._library: Any = None
        self._device: Any = None
        try:
            import pynvml
        except ImportError:
            return
        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            self._library = pynvml
            for name in (f"GPU-{uuid}", f"MIG-{uuid}"):
                with suppress(pynvml.NVMLError):
                    self._device = pynvml.nvmlDeviceGetHandleByUUID(name)
                    return

    def read(self) -> dict[str, Any]:
        """The current values of the sensors: MHz, degrees Celsius, watts, and why the clocks are held back, as a bit
        mask."""
        if self._device is None:
            return {}
        nvml, device = self._library, self._device
        sensors: dict[str, Callable[[], Any]] = {
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            "celsius": lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
            "watts": lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
            "throttled": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
        }
        facts: dict[str, Any] = {}
        for name, sensor in sensors.items():
            with suppress(nvml.NVMLError):
                facts[name] = sensor()
        return facts

    def driver(self) -> str:
        if self._library is not None:
            with suppress(self._library.NVMLError):
                return str(self._library.nvmlSystemGetDriverVersion())
        return "unknown"
