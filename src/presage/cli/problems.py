"""`presage problems [NAME]`."""

from __future__ import annotations

import argparse
from typing import Any

from presage.cli import terminal
from presage.kernels.kernel import Kernel
from presage.problems import registry
from presage.problems.base import Case, Problem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="show this problem: its statement, signature, cases and seed kernels")


def run(arguments: argparse.Namespace) -> int:
    if arguments.name:
        problem = registry.get(arguments.name)
        document = _detail(problem)
        if arguments.json:
            terminal.print_json(document)
        else:
            _print_detail(problem, document)
        return 0
    problems = [registry.get(name) for name in registry.names()]
    if arguments.json:
        terminal.print_json({"problems": [_summary(problem) for problem in problems]})
        return 0
    rows = [
        [p.name, p.room, ", ".join(sorted({k.language for k in registry.seed_kernels(p)})), p.summary]
        for p in sorted(problems, key=lambda p: (p.room, p.name))
    ]
    print(terminal.table(rows, ["problem", "room", "kernels in", "what it computes"]))
    return 0


def _summary(problem: Problem) -> dict[str, Any]:
    return {"name": problem.name, "room": problem.room, "summary": problem.summary}


def _detail(problem: Problem) -> dict[str, Any]:
    return {
        **_summary(problem),
        "signature": problem.signature(problem.name),
        "inputs": [vars(array) for array in problem.inputs],
        "outputs": [vars(array) for array in problem.outputs],
        "parameters": list(problem.parameters),
        "timed": {kind: [_case(problem, case) for case in cases] for kind, cases in problem.timed.items()},
        "checks": [_case(problem, case) for case in problem.checks],
        "kernels": [_kernel(kernel) for kernel in registry.seed_kernels(problem)],
    }


def _case(problem: Problem, case: Case) -> dict[str, Any]:
    tolerance, cost = problem.tolerance(case), problem.cost(case)
    return {
        "case": case.name,
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "values": case.values,
        "bytes": cost.bytes,
        "flops": cost.flops,
        "tolerance": {"relative": tolerance.relative, "absolute": tolerance.absolute, "reason": tolerance.reason},
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "path": kernel.name,
        "language": kernel.language,
        "configurations": sum(1 for _ in kernel.configurations()),
        "tunables": {name: list(values) for name, values in kernel.header.tunables.items()},
    }


def _print_detail(problem: Problem, document: dict[str, Any]) -> None:
    print(f"{problem.name} ({problem.room}): {problem.summary}\n")
    print(f"bare kernel  {document['signature']}")
    data = ", ".join([*(array.name for array in problem.inputs), *problem.parameters])
    print(f"module       custom_kernel(data), data = ({data},), returns {', '.join(a.name for a in problem.outputs)}\n")
    print(f"tolerance    {document['checks'][0]['tolerance']['reason']}\n")
    for kind, cases in document["timed"].items():
        for case in cases:
            cost = f"{case['bytes'] / 1e6:.4g} MB, {case['flops'] / 1e6:.4g} MFLOP at least"
            print(f"timed on {kind}  {case['case']}: {cost}")
    print(f"checked on    {'; '.join(case['case'] for case in document['checks'])}; and sizes drawn anew each time\n")
    for kernel in document["kernels"]:
        tunables = ", ".join(kernel["tunables"])
        family = f"{kernel['configurations']} configurations of {tunables}" if tunables else "concrete"
        print(f"{kernel['language']:7} {kernel['path']}  ({family})")
