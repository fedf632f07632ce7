"""`presage devices`: list the devices, their facts, and the sandbox that compilers run in."""

from __future__ import annotations

import argparse
from typing import Any

from presage.cli import documents
from presage.core.errors import PresageError
from presage.devices import ray_cluster, registry
from presage.sandbox import processes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    return


def run(arguments: argparse.Namespace) -> int:
    found = [_describe(name) for name in registry.names()]
    compiling = _compiling()
    if arguments.json:
        documents.write("devices", {"devices": found, "compiling": compiling})
        return 0
    for device in found:
        if not device["available"]:
            print(f"{device['name']}: not available: {device['reason']}")
            continue
        print(device["name"])
        for key, value in device["facts"].items():
            print(f"  {key.replace('_', ' '):16} {_show(key, value)}")
    print("compiling and static reports, for any device")
    print(f"  {'sandbox':16} {_show('sandbox', compiling['sandbox'])}")
    return 0


def _compiling() -> dict[str, Any]:
    """Return the layers of the sandbox in which compilers and static reports run."""
    return {"sandbox": processes.layers()}


def _describe(name: str) -> dict[str, Any]:
    try:
        if name == "ray":
            return {"name": name, "available": True, "reason": "", "facts": ray_cluster.outline()}
        device = registry.get(name)
        try:
            return {"name": name, "available": True, "reason": "", "facts": device.describe()}
        finally:
            device.close()
    except PresageError as error:
        return {"name": name, "available": False, "reason": str(error), "facts": {}}


def _show(key: str, value: Any) -> str:
    if key in ("peak_flops", "peak_half_flops"):
        return f"{value / 1e9:.4g} GFLOP/s"
    if key == "peak_bandwidth":
        return f"{value / 1e9:.4g} GB/s"
    if isinstance(value, dict):
        return ", ".join(_show_item(name, held) for name, held in value.items())
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _show_item(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name.replace('_', ' ')} {value}"
