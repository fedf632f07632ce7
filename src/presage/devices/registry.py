"""Devices by name: entry points in the group `presage.devices`."""

from __future__ import annotations

from presage.core.errors import PresageError
from presage.devices.base import Device
from presage.plugins.group import DEVICES, RECORDINGS

_RECORDED = "recorded"


def names() -> list[str]:
    """Every device that can be named, with every recording that is installed."""
    others = [name for name in DEVICES.names() if name != _RECORDED]
    return [*others, *(f"{_RECORDED}:{name}" for name in RECORDINGS.names())]


def get(spec: str, compiler: str | None = None) -> Device:
    """The device of this name, or a PresageError saying why it cannot be had."""
    name, _, text = spec.partition(":")
    if name not in DEVICES.names() or (name == _RECORDED and not text):
        raise PresageError(f"there is no device '{spec}'; there are: {', '.join([*names(), 'recorded:FILE.parquet'])}")
    make = DEVICES.load(name)
    device: Device
    if hasattr(make, "from_text"):
        with DEVICES.blamed(name, "cannot be made"):
            device = make.from_text(text)
        return device
    device = DEVICES.make(spec, **({"compiler": compiler} if compiler else {}))
    return device
