"""Devices by name."""

from __future__ import annotations

from presage.core.errors import PresageError
from presage.devices.base import Device


def names() -> list[str]:
    from presage.devices import recorded

    return ["cpu", "cuda", *(f"recorded:{name}" for name in recorded.packaged())]


def get(name: str, compiler: str | None = None) -> Device:
    """The device of this name, or a PresageError saying why it cannot be had."""
    if name == "cpu":
        from presage.devices.cpu import CpuDevice

        return CpuDevice(compiler)
    if name == "cuda":
        from presage.devices.cuda import CudaDevice

        return CudaDevice()
    if name.startswith("recorded:"):
        from presage.devices import recorded

        return recorded.RecordedDevice(recorded.find(name.removeprefix("recorded:")))
    raise PresageError(f"there is no device '{name}'; there are: {', '.join([*names(), 'recorded:FILE.parquet'])}")
