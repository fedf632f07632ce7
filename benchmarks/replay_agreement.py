"""Compare the times of replayed modules with `triton.testing.do_bench`, and with the modules in their own process.

    python benchmarks/replay_agreement.py OUT.jsonl [--problems "softmax gelu"] [--folder PROBLEM FOLDER] [--seconds S]

OUT.jsonl gets a line for each case of each module. Modules that it already has are not measured again, so that the same
command resumes. `--folder` also measures the `.py` files of a folder, for a problem given by name or file. `--summary`
only reads the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from presage import Effort, Kernel, Measurement, PresageError, Problem
from presage.kernels.kernel import read
from presage.problems import registry
from presage.problems.external import ExternalProblem

EFFORT = Effort(case_seconds=1.0, processes=1)
SHORT_NS, NEAR = 20_000, 0.03
FORCED = "the benchmark asks for it"


def work(arguments: argparse.Namespace) -> Iterator[tuple[Problem, Kernel]]:
    from gpu_agreement import kernels

    yield from kernels(arguments.problems)
    for name, folder in arguments.folder:
        problem = registry.get(name)
        yield from ((problem, read(path)) for path in sorted(Path(folder).glob("*.py")))


def in_worker(device: Any, problem: Problem, kernel: Kernel) -> Measurement:
    """Measure the same module in its own process, not replayed."""
    from presage.devices.module_trial import ModuleTrial

    why_not = ModuleTrial._why_not
    ModuleTrial._why_not = lambda self, cases: FORCED  # type: ignore[method-assign]
    try:
        return next(iter(device.measure_each([(problem, kernel)], EFFORT)))
    finally:
        ModuleTrial._why_not = why_not  # type: ignore[method-assign]


def do_bench(problem: Problem, kernel: Kernel) -> list[float | None]:
    """Return do_bench's times of all cases; None for an external problem, whose inputs cannot be made here."""
    from gpu_agreement import do_bench_ns

    if isinstance(problem, ExternalProblem) or "def custom_kernel" not in kernel.source:
        return [None]
    return [do_bench_ns(problem, kernel, case) for case in problem.timed["gpu"]]


def rows(device: Any, problem: Problem, kernel: Kernel) -> Iterator[dict[str, Any]]:
    start = time.monotonic()
    replayed = next(iter(device.measure_each([(problem, kernel)], EFFORT)))
    about = {"problem": problem.name, "kernel": kernel.name, "hash": kernel.hash, "language": kernel.language}
    about |= {"status": str(replayed.status), "believed": replayed.believed, "seconds": time.monotonic() - start}
    if not replayed.cases:
        yield about | {"reason": replayed.reason}
        return
    worker = in_worker(device, problem, kernel)
    theirs = do_bench(problem, kernel)
    traces = replayed.facts.get("traces", {})
    for at, case in enumerate(replayed.cases):
        own = worker.cases[at].median if worker.cases else None
        told = traces.get(case.case, {}) | about  # `about` overrides the trace's own hash
        yield told | {
            "case": case.case,
            "not_replayed": replayed.not_replayed,
            "replay_ns": case.median.value,
            "half_width": case.median.relative_half_width,
            "wait_ns": case.wait_ns,
            "floor_ns": case.floor_ns,
            "worker_ns": own.value if own else None,
            "worker_half_width": own.relative_half_width if own else None,
            "worker_reason": worker.reason,
            "do_bench_ns": theirs[at] if at < len(theirs) else None,
        }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the modules that were replayed, and why others were not. Compare times over 20 us if the host keeps up."""
    modules = {(row["problem"], row["hash"]): row for row in found}.values()
    timed = [row for row in found if row.get("replay_ns", 0) >= SHORT_NS and row["believed"] == "replay"]
    kept_up = [row for row in timed if (row["wait_ns"] or 0) <= (1 + NEAR) * row["replay_ns"]]
    return {
        "modules": len(modules),
        "believed": dict(Counter(str(row["believed"] or row["status"]) for row in modules)),
        "why not": dict(
            Counter((row.get("not_replayed") or "")[:80] for row in modules if row["believed"] == "worker")
        ),
        "worker": agreement(kept_up, "worker_ns"),
        "do_bench": agreement(timed, "do_bench_ns"),
        "the host cannot keep up": len(timed) - len(kept_up),
        "seconds a module": median([row["seconds"] for row in modules]) if modules else None,
    }


def agreement(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    off = [row["replay_ns"] / row[name] - 1 for row in found if row.get(name)]
    near = sum(abs(each) <= NEAR for each in off)
    return {"cases": len(off), "within 3 %": near, "median": median(off) if off else None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--problems", type=str.split, default=None, help="names with spaces between them")
    parser.add_argument("--folder", nargs=2, action="append", default=[], metavar=("PROBLEM", "FOLDER"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no module after so long")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    found = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    if not arguments.summary:
        from gpu_agreement import PROBLEMS

        from presage.devices.cuda import CudaDevice

        arguments.problems = PROBLEMS.split() if arguments.problems is None else arguments.problems
        measure(CudaDevice(), arguments, found)
    print(json.dumps(summary(found), indent=1))
    return 0


def measure(device: Any, arguments: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    known, until = {(row["problem"], row["hash"]) for row in found}, time.monotonic() + arguments.seconds
    with arguments.out.open("a") as file:
        for problem, kernel in work(arguments):
            if (problem.name, kernel.hash) in known or time.monotonic() > until:
                continue
            kernel = replace(kernel, name=Path(kernel.name).name)
            try:
                made = list(rows(device, problem, kernel))
            except PresageError as error:
                made = [{"problem": problem.name, "hash": kernel.hash, "status": "error", "believed": None}]
                made[0] |= {"reason": str(error), "kernel": kernel.name, "seconds": 0.0}
            for row in made:
                file.write(json.dumps(row) + "\n")
            file.flush()
            found += made
            print(
                f"{problem.name}/{kernel.name}: {made[0]['status']} {made[0]['believed']}", file=sys.stderr, flush=True
            )
    device.close()


if __name__ == "__main__":
    sys.exit(main())
