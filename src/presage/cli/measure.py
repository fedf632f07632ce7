"""`presage measure PROBLEM KERNEL…`: compile, check and time kernels on a device."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from presage import api
from presage.cli import documents, terminal
from presage.core.errors import PresageError
from presage.core.statistics import Interval
from presage.devices import registry as devices
from presage.devices.base import Effort, Measurement, speedup
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems import registry as problems
from presage.problems.external import KERNELBENCH, ExternalProblem

_WAITS = 1.2
"""If the caller's wait exceeds the GPU time by more than this factor, the output says so."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = Effort()
    terminal.add_problem(parser)
    parser.add_argument(
        "kernels",
        nargs="+",
        metavar="KERNEL",
        help=f"{terminal.KERNELS}; several kernels are measured together and compared with the first",
    )
    parser.add_argument(
        "--device",
        help="where to measure (default: cpu for C and NumPy kernels; for others cuda where there is a GPU, else"
        " recorded:h200 for CUDA and Triton, else cpu)",
    )
    parser.add_argument(
        "--anchor", metavar="KERNEL",
        help="the kernel that speedups are relative to (default: the problem's naive.c on a CPU, eager.py on a GPU);"
        " 'none' for no speedups",
    )  # fmt: skip
    parser.add_argument(
        "--precision", type=terminal.positive, default=default.precision, metavar="SHARE",
        help="stop when the 95 %% interval of each median is within this share of it (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=terminal.positive, default=default.case_seconds, metavar="S",
        help="time each case for at most this long (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=terminal.positive, default=default.timeout, metavar="S",
        help="kill a kernel that takes longer than this in total (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", choices=["scale", "kernelbench"], default="scale",
        help="how to compare outputs where KernelBench's own tolerance would accept zeros or a constant:"
        " relative to the scale of the output (the default), or as KernelBench does",
    )  # fmt: skip
    parser.add_argument("--cc", metavar="PATH", help="the C compiler (default: $CC, gcc, clang or cc)")
    terminal.add_fail(parser, "any kernel, or the anchor, is not ok")


def run(arguments: argparse.Namespace) -> int:
    named, kernels = terminal.problem_and_kernels(arguments, "measure")
    device = devices.get(arguments.device or default_device(named, kernels), arguments.cc)
    problem = device.problem(named)
    if arguments.tolerance == "kernelbench":
        if not isinstance(problem, ExternalProblem) or problem.convention != KERNELBENCH:
            raise PresageError(f"--tolerance kernelbench is for KernelBench problems; {problem.name} is not one")
        problem.keeps_tolerance = True
    effort = Effort(arguments.precision, arguments.seconds, arguments.timeout)
    if not arguments.device:
        print(f"measuring on {device.name}; --device chooses another", file=sys.stderr, flush=True)
    progress = terminal.ProgressLine()
    try:
        reference, measured = api.measure_beside_anchor(problem, kernels, device, arguments.anchor, effort, progress)
    finally:
        progress.clear()
        device.close()
    if reference and reference.status is not Status.OK:
        name = _short(reference.kernel)
        print(f"presage: the anchor {name} is {reference.status}: {reference.reason}", file=sys.stderr)
    ratios = [ratio(measured[0], other) for other in measured[1:]]
    if arguments.json:
        documents.write("measure", document(measured, reference, ratios))
    else:
        _print(measured, reference, ratios)
    failed = any(m.status is not Status.OK for m in (*measured, *([reference] if reference else [])))
    return int(arguments.fail and failed)


def default_device(named: str, kernels: list[str]) -> str:
    """Return the default device for the kernels' languages. An external problem always gets a device for torch."""
    problem = problems.get(named)
    if isinstance(problem, ExternalProblem):
        return devices.default({"torch"})
    return devices.default({problems.find_kernel(problem, spec).language for spec in kernels})


def ratio(first: Measurement, other: Measurement) -> dict[str, Any]:
    """Return the speedup of the other kernel over the first; None if it is not known."""
    found = speedup(first, other)
    return {"of": other.kernel.name, "to": first.kernel.name, "speedup": found._asdict() if found else None}


def document(measured: list[Measurement], anchor: Measurement | None, ratios: list[dict[str, Any]]) -> dict[str, Any]:
    first = measured[0]
    return {
        "problem": first.problem,
        "device": first.device,
        "anchor": _measurement(anchor) if anchor else None,
        "measurements": [_measurement(m) for m in measured],
        "ratios": ratios,
    }


def _measurement(of: Measurement) -> dict[str, Any]:
    own = {name: value for name, value in of.to_json().items() if name not in ("problem", "device")}
    return own | {"kernel": documents.kernel(of.kernel)}


def _print(measured: list[Measurement], anchor: Measurement | None, ratios: list[dict[str, Any]]) -> None:
    shown = [*([anchor] if anchor else []), *measured]
    rows = []
    for m in shown:
        role = "anchor" if m is anchor else "kernel"
        if m.status is not Status.OK:
            rows.append([role, _short(m.kernel), str(m.status), "", "", "", "", ""])
        for i, case in enumerate(m.cases):
            value, _, _ = case.median
            interval = f"±{100 * case.median.relative_half_width:.1f} %" if case.median.is_known else "?"
            cells = [role, _short(m.kernel), "ok"] if i == 0 else ["", "", ""]
            believed = (m.believed or "") if i == 0 else ""
            share = f"{100 * case.floor_ns / value:.0f} %"
            rows.append([*cells, case.case, terminal.duration(value), interval, share, believed])
    titles = ["", "file", "status", "case", "median", "95 %", "roofline", "believed"]
    asked = any(m.believed for m in shown)
    print(terminal.table(rows if asked else [row[:-1] for row in rows], titles if asked else titles[:-1]))
    how: dict[str, list[str]] = {}
    for m in shown:
        if m.cases and "timing" in m.facts:
            how.setdefault(f"{m.facts['timing']}{_processes(m)}", []).append(_short(m.kernel))
    for text, names in how.items():
        print(f"\n{', '.join(names)}: {text}")
    for m in shown:
        if m.not_replayed:
            print(f"\n{_short(m.kernel)} was timed in its own process, not replayed: {m.not_replayed}")
        for line in _waits(m):
            print(line)
    for note in dict.fromkeys(m.facts["tolerance"] for m in shown if "tolerance" in m.facts):
        print(f"\nTolerance: {note}.")
    for m in shown:
        if m.status is not Status.OK:
            print(f"\n{_short(m.kernel)}: {m.reason}")
            if m.output:
                print("  " + m.output.replace("\n", "\n  "))
    for m in measured:
        if m.speedup:
            print(f"\n{_short(m.kernel)} is {terminal.times(m.speedup)} the anchor's speed")
    for ratio in ratios:
        if ratio["speedup"]:
            of, to = os.path.basename(ratio["of"]), os.path.basename(ratio["to"])
            print(f"{of} is {terminal.times(Interval(**ratio['speedup']))} the speed of {to}")


def _waits(of: Measurement) -> list[str]:
    """Return a line for each case in which a caller of a replayed module waits for much longer than the GPU works."""
    return [
        f"\n{_short(of.kernel)}, {case.case}: the GPU needs {terminal.duration(case.median.value)}; a caller waits"
        f" {terminal.duration(case.wait_ns)}, because the host cannot keep up"
        for case in of.cases
        if of.believed == "replay" and case.wait_ns is not None and case.wait_ns > _WAITS * case.median.value
    ]


def _processes(measurement: Measurement) -> str:
    counts = sorted({len(case.parts) for case in measurement.cases})
    return f"; in {' to '.join(map(str, counts[:1] + counts[1:][-1:]))} processes" if counts[-1] > 1 else ""


def _short(kernel: Kernel) -> str:
    return os.path.basename(kernel.name)
