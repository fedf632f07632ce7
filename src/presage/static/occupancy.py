"""Theoretical occupancy: how many of a kernel's blocks fit on one multiprocessor, and which resource limits them.

The rules are those of NVIDIA's cuda_occupancy.h, with the largest shared-memory carve-out.
"""

from __future__ import annotations

from dataclasses import dataclass

from presage.static.hardware import (
    MAX_THREADS_PER_BLOCK,
    PARTITIONS_PER_SM,
    REGISTER_GRANULARITY,
    REGISTERS_PER_SM,
    WARP,
    Hardware,
)


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident per multiprocessor. `fraction` is the share of the warps that the hardware can hold."""

    blocks: int
    warps: int
    fraction: float
    limiter: str
    """What runs out first: warps, blocks, registers, shared_memory or barriers."""


def occupancy(hardware: Hardware, threads: int, registers: int, shared: int = 0, barriers: int = 1) -> Occupancy:
    """Occupancy of blocks of `threads`, with `registers` per thread and `shared` bytes (static and dynamic) per block.

    >>> from presage.static.hardware import find
    >>> occupancy(find("h200"), threads=256, registers=64)
    Occupancy(blocks=4, warps=32, fraction=0.5, limiter='registers')
    """
    warps = -(-threads // WARP)
    limits = {
        "warps": hardware.warps_per_sm // warps if threads <= MAX_THREADS_PER_BLOCK else 0,
        "blocks": hardware.blocks_per_sm,
        "registers": _by_registers(warps, registers, hardware.blocks_per_sm),
        "shared_memory": _by_shared(hardware, shared),
    }
    if hardware.barriers_per_sm is not None and barriers > 0:
        limits["barriers"] = hardware.barriers_per_sm // barriers
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps / hardware.warps_per_sm, limiter)


def _by_registers(warps: int, registers: int, unlimited: int) -> int:
    if registers == 0:
        return unlimited
    per_warp = _round_up(registers * WARP, REGISTER_GRANULARITY)
    if per_warp * _round_up(warps, PARTITIONS_PER_SM) > REGISTERS_PER_SM:
        return 0
    return REGISTERS_PER_SM // PARTITIONS_PER_SM // per_warp * PARTITIONS_PER_SM // warps


def _by_shared(hardware: Hardware, shared: int) -> int:
    if shared > hardware.shared_per_block:
        return 0
    if shared + hardware.shared_reserved == 0:
        return hardware.blocks_per_sm
    return hardware.shared_per_sm // _round_up(shared + hardware.shared_reserved, hardware.shared_granularity)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
