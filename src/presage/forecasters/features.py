"""Features that forecasters learn from: a row of named numbers for a kernel and a case. Unknown values are absent.

They come only from compiling, walking and parsing, never from names in the source, comments or labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from presage.forecasters.base import Candidate, Task
from presage.forecasters.source_features import source_features
from presage.kernels.kernel import LANGUAGES
from presage.problems.base import Case, Problem
from presage.static.hardware import WARP, Hardware
from presage.static.pipes import PIPES
from presage.static.report import STATUSES, LaunchReport, StaticReport
from presage.static.sass import CLASSES
from presage.static.warp import KINDS

Row = dict[str, float]

_HZ = 1.7e9
"""The clock of a GPU whose clock is not known."""
_SECTOR = 32
LEARNED_ARCH = "sm_90"
"""The architecture of all GPUs that the trees were trained on."""
_COUNTS = tuple(kind for kind in KINDS if kind != "wmma_flops")
"""The counts of a walk that are features. Those of `wmma` are in no report of a bare kernel."""
_PIPES_OF = {
    "instructions": ("issue",), "integer": ("alu",), "fp32": ("fma", "multiply"), "special": ("special",),
    "convert": (), "fp16": ("fp16",), "fp64": ("fp64",),
}  # fmt: skip
"""The pipes that execute each kind of PTX instruction. The pipe `special` executes conversions, too."""


def case_rows(task: Task, candidate: Candidate, compiled: bool = True) -> list[Row]:
    """A row for each timed case. compiled: whether to use the static reports besides source and launch."""
    common = {f"source_{name}": value for name, value in source_features(candidate.kernel).items()}
    common |= {f"is_{language}": float(candidate.kernel.language == language) for language in LANGUAGES}
    is_reported = compiled and len(candidate.reports) == len(task.cases)
    reports = candidate.reports if is_reported else [None] * len(task.cases)
    rows = []
    for case, report in zip(task.cases, reports, strict=True):
        must = problem_features(task.problem, case, task.hardware)
        row = common | must
        if report is not None and task.hardware is not None:
            row |= report_features(report, task.hardware, must)
        rows.append(row)
    return rows


def problem_features(problem: Problem, case: Case, hardware: Hardware | None) -> Row:
    """The least bytes and operations of a case, and the time for them at the hardware's peaks. Empty if the problem's
    arrays are not known, such as for a problem that only a recording knows."""
    if not problem.inputs:
        return {}
    moved, flops = float(problem.bytes(case)), float(max(1, problem.textbook_flops(case)))
    written = float(sum(problem.array_bytes(array, case) for array in problem.outputs))
    row = {
        "must_bytes": math.log2(moved),
        "must_flops": math.log2(flops),
        "must_intensity": math.log2(flops / moved),
        "must_arrays": float(len(problem.inputs) + len(problem.outputs)),
        "must_written": written / moved,
        "must_output": math.log2(written),
    }
    if hardware and hardware.bandwidth:
        row["must_seconds"] = math.log2(floor_seconds(problem, case, hardware))
        row["must_in_cache"] = math.log2(moved / (hardware.l2_bytes or 1))
    return row


def floor_seconds(problem: Problem, case: Case, hardware: Hardware | None) -> float:
    """The roofline in seconds with the data sheet's peaks, or with those of a mid-range GPU where they are unknown."""
    peaks = hardware.peak_flops if hardware else {}
    peak = peaks.get("fp16" if problem.precision(case) == "float16" else "fp32", 1e13)
    bandwidth = (hardware and hardware.bandwidth) or 1e12
    return max(problem.bytes(case) / bandwidth, problem.textbook_flops(case) / peak)


def report_features(report: StaticReport, hardware: Hardware, must: Mapping[str, float]) -> Row:
    """Features from the compiler and the walk, and how long each unit of the GPU is busy relative to the least time."""
    row = {f"compiled_{status}": float(report.status == status) for status in STATUSES}
    row["operators"] = float(sum(report.operators.values()))
    if not report.launches:
        return row
    launches, rounds = _bounded([_in_machine_code(launch, hardware) for launch in report.launches], must)
    row["unbounded"] = math.log2(rounds)
    row["launches"] = float(sum(launch.count for launch in launches))
    main = max(launches, key=lambda launch: _work(launch))
    row |= _launch_features(main, hardware)
    row["main_share"] = _work(main) / max(1.0, sum(map(_work, launches)))
    row |= _busy(launches, hardware, must)
    return row


def _bounded(launches: Sequence[LaunchReport], must: Mapping[str, float]) -> tuple[Sequence[LaunchReport], float]:
    """The launches with loops whose end depends on values in memory repeated so often that all bytes of the problem are
    moved, and the number of repetitions."""
    once = sum(_warps(launch) * _sectors(launch.unbounded) for launch in launches)
    if not once or "must_bytes" not in must:
        return launches, 1.0
    others = sum(_warps(launch) * _sectors(launch.executed or {}) for launch in launches) - once
    rounds = max(1.0, (2.0 ** must["must_bytes"] / _SECTOR - others) / once)
    return [_repeated(launch, rounds) for launch in launches], rounds


def _repeated(launch: LaunchReport, rounds: float) -> LaunchReport:
    if not launch.executed or not launch.unbounded:
        return launch
    more = {kind: (rounds - 1) * count for kind, count in launch.unbounded.items()}
    return replace(launch, executed={kind: count + more.get(kind, 0.0) for kind, count in launch.executed.items()})


def _sectors(counts: Mapping[str, float]) -> float:
    return counts.get("load_sectors", 0.0) + counts.get("store_sectors", 0.0)


def _warps(launch: LaunchReport) -> float:
    return launch.count * math.prod(launch.grid) * -(-math.prod(launch.block) // WARP)


def _work(launch: LaunchReport) -> float:
    """Instructions of all warps: those executed in the walk, or else those of the code."""
    executed = launch.executed or {}
    return _warps(launch) * (executed.get("instructions") or sum(launch.instructions.values()) or 1)


_MOST_COUNTED = 1024


def _launch_features(launch: LaunchReport, hardware: Hardware) -> Row:
    threads, blocks = math.prod(launch.block), math.prod(launch.grid)
    row = {
        "threads": math.log2(threads),
        "blocks": math.log2(blocks),
        "registers": float(launch.registers),
        "spilled": math.log2(1 + launch.spill_bytes),
        "stack": math.log2(1 + launch.stack_bytes),
        "shared": math.log2(1 + launch.shared_bytes),
        "code": math.log2(1 + launch.code_bytes),
        "loops": float(launch.loops),
        "occupancy": launch.occupancy,
        "blocks_per_sm": float(launch.blocks_per_sm),
        "flat": float(launch.grid[1] == launch.grid[2] == 1),
        "block_x": math.log2(launch.block[0]),
    }
    row |= {f"limit_{limiter}": float(launch.occupancy_limiter == limiter) for limiter in _LIMITERS}
    if launch.waves:
        row["waves"] = math.log2(launch.waves)
        row["last_wave"] = launch.waves / math.ceil(launch.waves)
        row["resident_warps"] = math.log2(min(launch.waves, 1.0) * max(launch.occupancy, 1e-3))
    for name in ("num_warps", "num_stages"):
        if type(count := launch.options.get(name)) is int:  # foreign code may have written it
            row[name] = float(min(max(count, 0), _MOST_COUNTED))
    total = max(1, sum(launch.instructions.values()))
    inside = max(1, sum(launch.instructions_in_loops.values()))
    for kind in CLASSES:
        row[f"code_{kind}"] = math.log2(1 + launch.instructions.get(kind, 0))
        row[f"share_{kind}"] = launch.instructions.get(kind, 0) / total
        row[f"loop_{kind}"] = launch.instructions_in_loops.get(kind, 0) / inside
    return row | _warp_features(launch)


_LIMITERS = ("warps", "registers", "shared_memory", "blocks", "barriers")


def _warp_features(launch: LaunchReport) -> Row:
    """Features of the instructions that one warp executes from start to end."""
    if launch.executed is None:
        return {"walked": 0.0}
    ran = {kind: launch.executed.get(kind, 0.0) for kind in _COUNTS}
    row = {f"warp_{kind}": math.log2(1 + count) for kind, count in ran.items()}
    row["walked"] = 1.0
    row["lanes_in_use"] = ran["lanes"] / (WARP * max(1.0, ran["instructions"]))
    row["load_width"] = _ratio(ran["load_sectors"], ran["global_load"] + ran["async_copy"])
    row["store_width"] = _ratio(ran["store_sectors"], ran["global_store"])
    row["bank_conflicts"] = _ratio(ran["shared_wavefronts"], ran["shared_load"] + ran["shared_store"])
    row["arithmetic_per_load"] = _ratio(ran["fp32"] + ran["fp16"], ran["global_load"] + ran["shared_load"])
    if launch.waves:
        row["serial_instructions"] = math.log2(1 + ran["instructions"] * math.ceil(launch.waves))
        row["serial_loads"] = math.log2(1 + ran["global_load"] * math.ceil(launch.waves))
        row["serial_barriers"] = math.log2(1 + ran["barrier"] * math.ceil(launch.waves))
    return row


def _busy(launches: Sequence[LaunchReport], hardware: Hardware, must: Mapping[str, float]) -> Row:
    """How long each unit would be busy if nothing else delayed it, in octaves above the least time."""
    if any(launch.executed is None for launch in launches) or not hardware.multiprocessors:
        return {}
    seconds: dict[str, float] = dict.fromkeys(("memory", "issue", "shared", "tensor", "atomic", *hardware.lanes), 0.0)
    cycles = hardware.multiprocessors * (hardware.boost_hz or _HZ)
    for launch in launches:
        ran, warps = launch.executed or {}, _warps(launch)
        sectors = ran.get("load_sectors", 0.0) + ran.get("store_sectors", 0.0)
        seconds["memory"] += warps * sectors * _SECTOR / (hardware.bandwidth or 1e12)
        seconds["atomic"] += warps * ran.get("atomic_sectors", 0.0) / cycles
        seconds["shared"] += warps * max(ran.get("shared_wavefronts", 0.0), _begun(ran, hardware)) / cycles
        seconds["tensor"] += warps * ran.get("tensor_flops", 0.0) / hardware.peak_flops.get("fp16", 1e15)
        seconds["issue"] += warps * ran.get("instructions", 0.0) / (4 * cycles)
        for kind, lanes in hardware.lanes.items():
            seconds[kind] += warps * ran.get(kind, 0.0) * WARP / (lanes * cycles)
    least = 2.0 ** must.get("must_seconds", 0.0)
    row = {f"busy_{unit}": math.log2(least * 1e-3 + each) - math.log2(least) for unit, each in seconds.items()}
    row["busy_most"] = math.log2(max(least, *seconds.values()) / least)
    row["busy_sum"] = math.log2((least + sum(seconds.values())) / least)
    for kind in ("instructions", "global_load", "barrier"):  # launches run one after the other, and so do their waves
        row[f"in_a_row_{kind}"] = math.log2(1 + sum(_in_a_row(launch, kind) for launch in launches))
    atomics = sum(_warps(launch) * (launch.executed or {}).get("atomic_sectors", 0.0) for launch in launches)
    row["atomics_per_place"] = math.log2(1 + atomics / 2.0 ** (must.get("must_output", 2.0) - 2))
    return row


def busiest(row: Row) -> float:
    """Octaves above the least time that the busiest unit needs, and a little more if other units need nearly as long;
    NaN if not known. Memory counts with the least time only, because the traffic that caches absorb is not known.

    >>> [round(busiest({"busy_issue": each, "busy_memory": 5.0}), 3) for each in (3.0, -10.0)]
    [3.0, 0.0]
    """
    units = [value for name, value in row.items() if name.startswith("busy_") and name not in _NOT_UNITS]
    return math.log2(1 + sum(2 ** (_SHARP * each) for each in units)) / _SHARP if units else math.nan


_NOT_UNITS = ("busy_memory", "busy_most", "busy_sum")
_SHARP = 4
"""The exponent of the power mean of the units' times: 1 adds them up; a larger value comes nearer to the longest."""


def _in_machine_code(launch: LaunchReport, hardware: Hardware) -> LaunchReport:
    """The launch with counts of machine code in place of PTX, where they are known. On `LEARNED_ARCH` the PTX counts
    stay, because the trees were trained on them."""
    if launch.machine is None or launch.unbounded or not launch.executed or hardware.arch == LEARNED_ARCH:
        return launch
    ran, machine = launch.executed, {name: launch.machine.get(name, 0.0) for name in PIPES}
    ptx, issued = ran.get("instructions") or 1.0, machine["issue"]
    counted = {kind: sum(machine[pipe] for pipe in pipes) for kind, pipes in _PIPES_OF.items()}
    return replace(launch, executed={**ran, **counted, "lanes": ran.get("lanes", 0.0) * issued / ptx})


def _begun(ran: Mapping[str, float], hardware: Hardware) -> float:
    """Cycles to issue a warp's accesses to shared memory, if each takes more than one cycle; else 0."""
    accesses = ran.get("shared_load", 0.0) + ran.get("shared_store", 0.0)
    return accesses * WARP / hardware.load_store if hardware.load_store < WARP else 0.0


def _in_a_row(launch: LaunchReport, kind: str) -> float:
    return launch.count * math.ceil(launch.waves or 1.0) * (launch.executed or {}).get(kind, 0.0)


def _ratio(what: float, of: float) -> float:
    return what / of if of else 0.0
