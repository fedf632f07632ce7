"""Devices by name: entry points in the group `presage.devices`."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from presage.core.errors import PresageError
from presage.devices.base import Device
from presage.plugins.group import DEVICES, RECORDINGS
from presage.static import hardware

_RECORDED = "recorded"
ON_CPU = {"c", "numpy"}
ON_GPU = {"cuda", "triton"}


def names() -> list[str]:
    """The names of all devices, with every recording that is installed."""
    others = [name for name in DEVICES.names() if name != _RECORDED]
    return [*others, *(f"{_RECORDED}:{name}" for name in RECORDINGS.names())]


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether there is an NVIDIA GPU. In a container it may have any number, not only 0."""
    return any(file.name.removeprefix("nvidia").isdigit() for file in devices.glob("nvidia[0-9]*"))


def default(languages: Collection[str] = ("cuda",)) -> str:
    """The device for kernels in these languages if the user names none: cpu for C and NumPy; for others cuda if there
    is a GPU, else the recorded H200 for CUDA and Triton, else cpu."""
    if set(languages) <= ON_CPU:
        return "cpu"
    if has_gpu() and find_spec("torch"):
        return "cuda"
    return f"{_RECORDED}:h200" if set(languages) & ON_GPU and "h200" in RECORDINGS.names() else "cpu"


def _suggestion(name: str) -> str:
    """What to write instead of the name of hardware, which is not a device; empty for any other name."""
    if name in RECORDINGS.names():
        recorded = f"write --device {_RECORDED}:{name} to look up recorded measurements, or"
    elif name in hardware.catalogue():
        recorded = "it is hardware, not a device:"
    else:
        return ""
    return f"{recorded} use --target {name} with forecast and inspect; "


def get(spec: str, compiler: str | None = None) -> Device:
    """The device of this name. Raises PresageError with the reason if there is none."""
    name, _, text = spec.partition(":")
    if name not in DEVICES.names() or (name == _RECORDED and not text):
        listed = ", ".join([*names(), "recorded:FILE.parquet"])
        raise PresageError(f"there is no device '{spec}'; {_suggestion(spec)}there are: {listed}")
    make = DEVICES.load(name)
    device: Device
    if hasattr(make, "from_text"):
        with DEVICES.blamed(name, "cannot be made"):
            device = make.from_text(text)
        return device
    device = DEVICES.make(spec, **({"compiler": compiler} if compiler else {}))
    return device
