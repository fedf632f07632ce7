"""`presage inspect PROBLEM KERNEL --target h200`: compile or trace a kernel without a GPU, and show the report."""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from presage.cli import documents, steps, terminal
from presage.core.errors import PresageError
from presage.core.text import plain_name
from presage.forecasters.from_names import hardware_of
from presage.kernels.kernel import Kernel
from presage.problems import registry, static
from presage.problems.base import Case, Problem
from presage.static import hardware
from presage.static.report import LaunchReport, StaticReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_problem(parser)
    parser.add_argument("kernel", help="a .cu file or a Python module; PATH@NAME=VALUE,… sets tunables")
    terminal.add_target(parser, "the hardware to compile for: a GPU (h200, rtx4090) or an architecture (sm_90)")
    parser.add_argument("--case", metavar="NUMBER", type=int, help="show only this timed GPU case, counted from 1")
    parser.add_argument(
        "--timeout", type=terminal.positive, default=60.0, metavar="S",
        help="stop compiling after this long (default: %(default)s)",
    )  # fmt: skip
    terminal.add_fail(parser, "the kernel does not compile or cannot be launched")


def run(arguments: argparse.Namespace) -> int:
    named = (
        arguments.problem,
        arguments.first or (None if arguments.problem else terminal.kernel_file(arguments.kernel)),
    )
    words = [word for word in named if word is not None]
    if len(words) != 1:
        raise PresageError("a problem and a kernel are needed; write 'presage inspect PROBLEM KERNEL'")
    problem = registry.get(words[0])
    kernel = registry.find_kernel(problem, arguments.kernel)
    target = target_of(arguments.target)
    cases = _cases(problem, arguments.case)
    (reports,) = static.reports(problem, [kernel], cases, target, arguments.timeout)
    if arguments.json:
        documents.write("inspect", document(problem, kernel, target, cases, reports))
    else:
        _print(kernel, target, cases, reports)
    return int(arguments.fail and any(report.status not in ("ok", "unknown") for report in reports))


def target_of(name: str) -> hardware.Hardware:
    """Return the GPU of this name. Raises PresageError for a target that nothing is compiled for."""
    if (found := hardware_of(name)) is None:
        raise PresageError(f"nothing is compiled for {name}; name a GPU with --target")
    return found


def _cases(problem: Problem, number: int | None) -> Sequence[Case]:
    cases = problem.timed["gpu"]
    if number is None:
        return cases
    if not 1 <= number <= len(cases):
        names = "; ".join(f"{index}: {case.name}" for index, case in enumerate(cases, start=1))
        raise PresageError(f"{problem.name} has no case {number}; it has {names}")
    return cases[number - 1 : number]


def document(
    problem: Problem,
    kernel: Kernel,
    target: hardware.Hardware,
    cases: Sequence[Case],
    reports: Sequence[StaticReport],
) -> dict[str, Any]:
    worst = _worst(reports)
    told = [
        report.to_json() | {"trace": steps.document(report.trace, target) if report.trace else None}
        for report in reports
    ]
    return {
        "problem": problem.name,
        "kernel": documents.kernel(kernel),
        "target": worst.target,
        "arch": worst.arch,
        "compiler": worst.compiler,
        "status": worst.status,
        "error": worst.error,
        "trace": told[0]["trace"],
        "cases": [
            {"case": case.name, **{key: document[key] for key in ("status", "error", "operators", "notes", "trace")}}
            for case, document in zip(cases, told, strict=True)
        ],
        "launches": [
            {"case": case.name, **launch}
            for case, document in zip(cases, told, strict=True)
            for launch in document["launches"]
        ],
    }


def _worst(reports: Sequence[StaticReport]) -> StaticReport:
    return next((report for report in reports if report.status != "ok"), reports[0])


def _print(kernel: Kernel, target: hardware.Hardware, cases: Sequence[Case], reports: Sequence[StaticReport]) -> None:
    first = reports[0]
    how = "compiled by" if kernel.is_bare else "traced with"
    print(f"{os.path.basename(kernel.name)} for {target.product} ({first.arch}), {how} {first.compiler}\n")
    for case, report in zip(cases, reports, strict=True):
        if report.trace is not None:
            print(f"{case.name}, step by step\n{steps.table(report.trace, target)}\n")
    launches = [(case, launch) for case, report in zip(cases, reports, strict=True) for launch in report.launches]
    if launches:
        header = "case", "kernel", "grid", "block", "regs", "spilled", "stack", "shared", "occupancy", "limit", "waves"
        print(terminal.table([_row(case, launch) for case, launch in launches], header))
        print()
        print(terminal.table(_instructions([launch for _, launch in launches]), ("instructions", "all", "in loops")))
        print()
        ran = "case", "kernel", "runs, a warp", "lanes", "reads", "writes", "sectors a read", "passes in shared"
        print(terminal.table([_executed(case, launch) for case, launch in launches], ran))
        if unbounded := list(dict.fromkeys(plain_name(launch.name) for _, launch in launches if launch.unbounded)):
            print(f"in {', '.join(unbounded)}, loops whose length depends on memory are counted once")
        if skipped := list(dict.fromkeys(plain_name(launch.name) for _, launch in launches if launch.skippable)):
            print(f"of {', '.join(skipped)}, all is counted, also what blocks or threads skip where memory says so")
    said: dict[str, list[str]] = {}
    for case, report in zip(cases, reports, strict=True):
        for remark in _remarks(report, target):
            said.setdefault(remark, []).append(case.name)
    for remark, where in said.items():
        print(f"{'all cases' if len(where) == len(cases) > 1 else '; '.join(where)}: {remark}")


def _remarks(report: StaticReport, target: hardware.Hardware) -> Iterator[str]:
    if report.error:
        yield f"{report.status}\n  " + report.error.rstrip().replace("\n", "\n  ")
    yield from report.notes
    if report.trace is not None:
        yield from steps.remarks(report.trace, target)


def _row(case: Case, launch: LaunchReport) -> list[str]:
    return [
        case.name,
        plain_name(launch.name) + (f" ({launch.count} times)" if launch.count > 1 else ""),
        _sizes(launch.grid),
        _sizes(launch.block),
        str(launch.registers),
        f"{launch.spill_bytes} B",
        f"{launch.stack_bytes} B",
        f"{launch.shared_bytes} B",
        f"{100 * launch.occupancy:.0f} %",
        launch.occupancy_limiter.replace("_", " "),
        "?" if launch.waves is None else f"{launch.waves:.3g}",
    ]


def _instructions(launches: Sequence[LaunchReport]) -> list[list[str]]:
    """Return table rows with the instruction mix of each distinct kernel."""
    rows: list[list[str]] = []
    distinct = {(launch.name, tuple(launch.instructions.items())): launch for launch in launches}
    for launch in distinct.values():
        rows.append(
            [
                plain_name(launch.name),
                str(sum(launch.instructions.values())),
                f"{launch.loops} loop{'s' if launch.loops != 1 else ''}",
            ]
        )
        for kind, count in launch.instructions.items():
            rows.append([f"  {kind.replace('_', ' ')}", str(count), str(launch.instructions_in_loops.get(kind, 0))])
    return rows


def _executed(case: Case, launch: LaunchReport) -> list[str]:
    """Return a table row with what the launch will execute, counted by a walk through its code."""
    name = [case.name, plain_name(launch.name)]
    if launch.executed is None:
        return [*name, *["?"] * 6]
    ran = defaultdict(float, launch.executed)
    warps = launch.count * math.prod(launch.grid) * -(-math.prod(launch.block) // 32)
    return [
        *name,
        f"{ran['instructions']:.4g}",
        f"{100 * ran['lanes'] / (32 * ran['instructions']):.0f} %",
        _moved(launch, ran["load_sectors"] * warps, "global_load", "async_copy"),
        _moved(launch, (ran["store_sectors"] + ran["atomic_sectors"]) * warps, "global_store"),
        _ratio(ran["load_sectors"], ran["global_load"] + ran["async_copy"]),
        _ratio(ran["shared_wavefronts"], ran["shared_load"] + ran["shared_store"] + ran["async_copy"]),
    ]


def _moved(launch: LaunchReport, sectors: float, *kinds: str) -> str:
    """Return the bytes moved; `?` if the walk counted none, but the kernel has such instructions (bulk copies)."""
    unseen = not sectors and any(kind.startswith(kinds) for kind in launch.instructions)
    return "?" if unseen else _bytes(32 * sectors)


def _bytes(count: float) -> str:
    unit = next((unit for unit in ("GB", "MB", "kB") if count >= _UNITS[unit]), "B")
    return f"{count / _UNITS[unit]:.4g} {unit}"


_UNITS = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}


def _ratio(what: float, of: float) -> str:
    return f"{what / of:.3g}" if of else "-"


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = sizes[:3] if sizes[2] > 1 else sizes[:2] if sizes[1] > 1 else sizes[:1]
    return " x ".join(map(str, used))
