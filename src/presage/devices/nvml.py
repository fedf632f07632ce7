"""Clocks, temperature and power of a GPU, read through NVIDIA's management library where it is installed."""

from __future__ import annotations

import ctypes
from typing import Any

_SM_CLOCK, _MEMORY_CLOCK, _GPU_TEMPERATURE = 1, 2, 0


class Nvml:
    """Reads the sensors of the GPU, or the part of one, with this UUID; what cannot be read is left out. Its number
    would not do: CUDA counts only the GPUs that it may see, and the fastest first."""

    def __init__(self, uuid: object) -> None:
        self._library: Any = None
        self._device = ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0:
            self._library = library
            for name in (f"GPU-{uuid}", f"MIG-{uuid}"):
                if library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self._device)) == 0:
                    return
            self._device = ctypes.c_void_p()

    def read(self) -> dict[str, Any]:
        """What the sensors say now: MHz, degrees Celsius, watts, and why the clocks are held back, as a bit mask."""
        facts: dict[str, Any] = {}
        if not self._device:
            return facts
        value, wide = ctypes.c_uint(), ctypes.c_ulonglong()
        for name, kind in (("sm_mhz", _SM_CLOCK), ("memory_mhz", _MEMORY_CLOCK)):
            if self._library.nvmlDeviceGetClockInfo(self._device, kind, ctypes.byref(value)) == 0:
                facts[name] = value.value
        if self._library.nvmlDeviceGetTemperature(self._device, _GPU_TEMPERATURE, ctypes.byref(value)) == 0:
            facts["celsius"] = value.value
        if self._library.nvmlDeviceGetPowerUsage(self._device, ctypes.byref(value)) == 0:
            facts["watts"] = value.value / 1000
        if self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._device, ctypes.byref(wide)) == 0:
            facts["throttled"] = wide.value
        return facts

    def driver(self) -> str:
        text = ctypes.create_string_buffer(96)
        if self._library is None or self._library.nvmlSystemGetDriverVersion(text, 96):
            return "unknown"
        return text.value.decode()
