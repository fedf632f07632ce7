"""Hardware: the known properties of a GPU, read from hardware.toml, so that no GPU is needed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError, hint

WARP = 32
MAX_THREADS_PER_BLOCK = 1024
REGISTERS_PER_SM = 65536
REGISTER_GRANULARITY = 256
"""Registers are allocated to a warp in units of this many."""
PARTITIONS_PER_SM = 4


@dataclass(frozen=True)
class Hardware:
    """A GPU, or a bare architecture, whose fields that depend on the product are None."""

    name: str
    product: str
    arch: str
    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block: int
    """The most bytes that a block can have when it opts in. Without opting in, the limit is 48 KiB."""
    shared_reserved: int
    """Bytes that the system takes from every block's allocation."""
    shared_granularity: int
    load_store: int
    """Threads whose accesses a multiprocessor's load/store units can start per cycle."""
    lanes: Mapping[str, int]
    """Results that a multiprocessor gives per cycle, by kind of arithmetic."""
    barriers_per_sm: int | None = None
    """Named barriers that resident blocks share; None before Hopper, where they limit nothing."""
    aliases: tuple[str, ...] = ()
    multiprocessors: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    bandwidth: float | None = None
    """Bytes per second, from the data sheet."""
    boost_hz: float | None = None
    tdp_watts: float | None = None
    peak_flops: Mapping[str, float] = field(default_factory=dict)
    """Flops per second: `fp32` of the ordinary cores; tf32, fp16, bf16, fp8, int8 and fp64_tensor of the tensor cores,
    dense."""

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability: (9, 0) for sm_90."""
        number = int(self.arch.removeprefix("sm_"))
        return number // 10, number % 10

    def results_per_second(self, kind: str) -> float:
        """The results per second of all lanes for a kind of arithmetic, at the boost clock; 0 if that is not known."""
        return self.lanes.get(kind, 0) * (self.multiprocessors or 0) * (self.boost_hz or 0.0)

    @property
    def warps_per_sm(self) -> int:
        return self.threads_per_sm // WARP

    @property
    def compile_arch(self) -> str:
        """The architecture to compile for: with the suffix `a`, which enables wgmma and tcgen05, where there is one."""
        return f"{self.arch}a" if self.capability >= (9, 0) else self.arch


def find(name: str) -> Hardware:
    """The GPU of this name (`h200`, `NVIDIA H100 80GB HBM3`), or a bare architecture (`sm_90`)."""
    wanted = _plain(name)
    if re.fullmatch(r"sm\d+a?", wanted):
        return _architecture(name, f"sm_{wanted.removeprefix('sm').removesuffix('a')}")
    for hardware in catalogue().values():
        if wanted in {_plain(known) for known in (hardware.name, hardware.product, *hardware.aliases)}:
            return hardware
    known = [*catalogue(), *_table()["arch"]]
    told = hint(name, known, f"known are: {', '.join(known)}")
    raise PresageError(f"there is no target '{name}'; {told}")


@cache
def catalogue() -> dict[str, Hardware]:
    """Every GPU, by its short name."""
    return {name: _product(name, entry) for name, entry in _table()["gpu"].items()}


def _architecture(asked: str, arch: str) -> Hardware:
    limits = _table()["arch"].get(arch)
    if limits is None:
        raise PresageError(f"there is no target '{asked}'; known architectures are: {', '.join(_table()['arch'])}")
    return Hardware(name=arch, product=arch, arch=arch, **_limits(limits))


def _product(name: str, entry: Mapping[str, Any]) -> Hardware:
    return Hardware(
        name=name,
        product=entry["product"],
        arch=entry["arch"],
        **_limits(_table()["arch"][entry["arch"]]),
        aliases=tuple(entry.get("aliases", ())),
        multiprocessors=entry["multiprocessors"],
        l2_bytes=entry["l2_mib"] << 20,
        memory_bytes=entry["memory_gib"] << 30,
        bandwidth=entry["bandwidth_gbs"] * 1e9,
        boost_hz=entry["boost_mhz"] * 1e6,
        tdp_watts=entry.get("tdp_watts"),
        peak_flops={kind: peak * 1e12 for kind, peak in entry["peak_tflops"].items()},
    )


def _limits(entry: Mapping[str, Any]) -> dict[str, Any]:
    limits = dict(entry)
    limits["shared_per_sm"] = limits.pop("shared_per_sm_kib") << 10
    limits["shared_per_block"] = limits.pop("shared_per_block_kib") << 10
    return limits


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("nvidia "))


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("hardware.toml").read_text("utf-8"))
