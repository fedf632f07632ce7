"""StaticReport: what is known about a kernel from compiling it, without a device."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from presage.core.shown import Shown
from presage.static import pipes, walk
from presage.static.cubin import Resources
from presage.static.hardware import MAX_THREADS_PER_BLOCK, REGISTERS_PER_SM, Hardware
from presage.static.occupancy import occupancy
from presage.static.sass import Mix
from presage.static.trace import Trace
from presage.static.warp import SKIPPABLE

STATUSES = ("ok", "compile_error", "runtime_error", "timeout", "unknown")
"""`runtime_error`: loading the module, its call or a launch would fail. `unknown`: its host code cannot run on tensors
without values."""
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True)
class Launched:
    """One distinct launch, as the header declares it or as host code made it."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    cubin: bytes
    count: int = 1
    spill_bytes: int | None = None
    """Bytes spilled according to the compiler; None if only the machine code can tell."""
    options: Mapping[str, Any] = field(default_factory=dict)
    executed: Mapping[str, float] | None = None
    """Counts of what a warp executes, by kind; None if the walk of its code did not reach the end."""

    def __post_init__(self) -> None:
        _refuse_impossible((self.executed or {}).values())


@dataclass(frozen=True)
class LaunchReport:
    """What is known about one launch before it runs."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    count: int
    """The number of launches that are like this one."""
    registers: int
    spill_bytes: int
    """Bytes per thread that spill stores and loads move, each instruction counted once."""
    stack_bytes: int
    shared_bytes: int
    """Static and dynamic shared memory per block."""
    code_bytes: int
    occupancy: float
    occupancy_limiter: str
    blocks_per_sm: int
    waves: float | None
    """Blocks of the grid divided by the blocks that the whole GPU holds at once; None for a bare architecture."""
    loops: int
    instructions: Mapping[str, int]
    instructions_in_loops: Mapping[str, int]
    options: Mapping[str, Any]
    """For Triton: warps, stages, constants, and each argument's type and alignment."""
    executed: Mapping[str, float] | None = None
    """Counts of what a warp executes, with every iteration of loops, by `warp.KINDS`; None if not known."""
    unbounded: Mapping[str, float] = field(default_factory=dict)
    """The part of `executed` in loops whose end depends on values in memory. Such loops are counted once."""
    machine: Mapping[str, float] | None = None
    """Machine instructions that a warp executes, by `pipes.PIPES`; None if not known."""

    @property
    def skippable(self) -> float:
        """The share of its instructions that blocks or threads skip where a value in memory says so."""
        executed = self.executed or {}
        return executed.get(SKIPPABLE, 0.0) / max(1.0, executed.get("instructions", 0.0))

    def __post_init__(self) -> None:
        if len(self.grid) != 3 or len(self.block) != 3 or min(*self.grid, *self.block, self.count) < 1:
            raise ValueError(f"a launch of {self.grid} blocks of {self.block} threads")
        sizes = (self.registers, self.spill_bytes, self.stack_bytes, self.shared_bytes, self.code_bytes, self.loops)
        _refuse_impossible((*sizes, self.blocks_per_sm, self.occupancy, self.waves or 0.0))
        for counts in (self.instructions, self.instructions_in_loops, self.executed, self.unbounded, self.machine):
            _refuse_impossible((counts or {}).values())
        if not isinstance(self.options, Mapping):
            raise ValueError("options without names")


@dataclass(frozen=True)
class StaticReport(Shown):
    """What compiling a kernel for one target tells about one case."""

    target: str
    arch: str
    status: str
    compiler: str
    launches: tuple[LaunchReport, ...] = ()
    error: str | None = None
    operators: Mapping[str, int] = field(default_factory=dict)
    """Calls of torch's own operators in a module's host code, by name. Their kernels are not in the report."""
    notes: tuple[str, ...] = ()
    trace: Trace | None = None
    """What a module's call does, step by step, without machine code. None for a bare kernel, which only launches."""

    def to_json(self) -> dict[str, Any]:
        told = dataclasses.asdict(dataclasses.replace(self, trace=None))
        return told | {"trace": self.trace.to_document() if self.trace else None}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> StaticReport:
        """Read a report that was stored as JSON or in a recording."""
        return cls(
            **{name: record[name] for name in ("target", "arch", "status", "compiler", "error")},
            launches=tuple(_launch(launch) for launch in record["launches"]),
            operators=_loaded(record["operators"]),
            notes=tuple(record["notes"] or ()),
            trace=Trace.from_document(_loaded(record["trace"])) if record.get("trace") else None,
        )


def _refuse_impossible(counts: Collection[float]) -> None:
    """Raise ValueError for counts that no kernel has. Others may have written them."""
    if counts and not (sum(counts) < _MOST_COUNTED and min(counts) >= 0):  # the sum is NaN if one is
        raise ValueError("a count that no kernel has")


_MOST_COUNTED = 1e30


def describe(
    launched: Launched, resources: Resources, mix: Mix, target: Hardware, code: pipes.Bodies = ()
) -> LaunchReport:
    """Combine the facts from the launch, the cubin and the disassembly."""
    shared = resources.shared_bytes + launched.dynamic_shared
    fit = occupancy(target, math.prod(launched.block), resources.registers, shared, resources.barriers)
    waves = None
    if target.multiprocessors and fit.blocks:
        waves = math.prod(launched.grid) / (fit.blocks * target.multiprocessors)
    executed, unbounded = (None, {}) if launched.executed is None else walk.parted(launched.executed)
    return LaunchReport(
        name=launched.name,
        grid=launched.grid,
        block=launched.block,
        count=launched.count,
        registers=resources.registers,
        spill_bytes=mix.local_bytes if launched.spill_bytes is None else launched.spill_bytes,
        stack_bytes=resources.stack_bytes,
        shared_bytes=shared,
        code_bytes=len(resources.code),
        occupancy=fit.fraction,
        occupancy_limiter=fit.limiter,
        blocks_per_sm=fit.blocks,
        waves=waves,
        loops=mix.loops,
        instructions=mix.classes,
        instructions_in_loops=mix.in_loops,
        options=launched.options,
        executed=executed,
        unbounded=unbounded,
        machine=pipes.executed(code, walk.rounds(launched.executed)) if launched.executed and code else None,
    )


def launch_problem(launched: Launched, resources: Resources, target: Hardware) -> str | None:
    """Return why the target would refuse this launch, or None."""
    threads, shared = math.prod(launched.block), resources.shared_bytes + launched.dynamic_shared
    for what, sizes, limits in (("grid", launched.grid, _MAX_GRID), ("block", launched.block, _MAX_BLOCK)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if not 1 <= size <= limit:
                return f"the {what}'s {axis} is {size}; it can be 1 to {limit}"
    if threads > MAX_THREADS_PER_BLOCK:
        return f"a block of {threads} threads; at most {MAX_THREADS_PER_BLOCK} are allowed"
    if resources.required_threads not in (None, threads):
        return f"a block of {threads} threads, but the code was compiled for exactly {resources.required_threads}"
    if resources.most_threads and threads > resources.most_threads:
        return f"a block of {threads} threads, but the code was compiled for at most {resources.most_threads}"
    if shared > target.shared_per_block:
        return f"{shared} bytes of shared memory per block; {target.name} has {target.shared_per_block}"
    if occupancy(target, threads, resources.registers).blocks == 0:
        return f"{threads} threads of {resources.registers} registers exceed the {REGISTERS_PER_SM} there are"
    return None


def _launch(record: Mapping[str, Any]) -> LaunchReport:
    changed = {
        "grid": tuple(record["grid"]),
        "block": tuple(record["block"]),
        "instructions": _present(record["instructions"]),
        "instructions_in_loops": _present(record["instructions_in_loops"]),
        "options": _loaded(record["options"]),
        "executed": _present(record["executed"]) if record.get("executed") is not None else None,
        "unbounded": _present(record.get("unbounded") or {}),
        "machine": _present(record["machine"]) if record.get("machine") is not None else None,
    }
    return LaunchReport(**{**record, **changed})


def _present(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: count for name, count in counts.items() if count is not None}


def _loaded(value: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return json.loads(value) if isinstance(value, str) else value
