"""Measure the overhead of a measurement, and how it grows with the input, the cases and the kernels.

    .venv/bin/python benchmarks/measure_overhead.py

The functions of each phase are wrapped with a timer. The time of a nested phase does not count for the outer phase.
Every setting runs the fewest rounds that a measurement may have, so that the settings can be compared.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from presage import Case, Effort, Status
from presage.cli.terminal import table
from presage.devices import plan
from presage.devices.arena import Arena
from presage.devices.child import Child
from presage.devices.cpu import CpuDevice
from presage.problems import registry as problems

PHASES = (
    "start",
    "compile and load",
    "make inputs",
    "fill and poison",
    "run",
    "stop and resume",
    "oracle",
    "compare",
    "end",
    "rest",
)


class Clock:
    """Attributes the main thread's time to the innermost active phase."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.windows = 0
        self._phases = ["rest"]
        self._since = time.perf_counter()

    def enter(self, phase: str) -> None:
        self._switch()
        self._phases.append(phase)

    def leave(self) -> None:
        self._switch()
        self._phases.pop()

    def move(self, seconds: float, source: str, target: str) -> None:
        self.seconds[source] -= seconds
        self.seconds[target] += seconds

    def _switch(self) -> None:
        now = time.perf_counter()
        self.seconds[self._phases[-1]] += now - self._since
        self._since = now


clock = Clock()


def wrap(owner: Any, name: str, phase: str) -> None:
    function: Callable[..., Any] = getattr(owner, name)

    def timed(*arguments: Any, **options: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments, **options)
        clock.enter(phase)
        try:
            return function(*arguments, **options)
        finally:
            clock.leave()

    setattr(owner, name, timed)


def instrument() -> None:
    wrap(Child, "__init__", "start")
    wrap(Child, "wait_ready", "start")
    wrap(Child, "kill", "end")
    wrap(CpuDevice, "_load", "compile and load")
    wrap(plan.Inputs, "__getitem__", "make inputs")
    wrap(Arena, "write_inputs", "fill and poison")
    wrap(Arena, "poison", "fill and poison")
    wrap(Arena, "tampering", "compare")
    wrap(plan, "solve", "oracle")
    wrap(plan, "difference", "compare")
    window = Child.window

    def counted(self: Child, calls: int) -> Any:
        seen = window(self, calls)
        clock.windows += 1
        clock.move(seen.child_ns / 1e9, "stop and resume", "run")
        return seen

    Child.window = counted  # type: ignore[method-assign]
    wrap(Child, "window", "stop and resume")


def measure(device: CpuDevice, sizes: list[int], kernels: int) -> dict[str, Any]:
    """Make one measurement of `kernels` copies of the naive vector_add, with one case for each size."""
    global clock
    problem = copy.copy(problems.get("vector_add"))
    problem.timed = {"cpu": tuple(Case({"n": n}) for n in sizes)}
    naive = problems.seed_kernels(problem, "c")[0]
    clock = Clock()
    start = time.perf_counter()
    measured = device.measure(problem, [naive] * kernels, Effort(1.0, 60.0, 600.0), lambda doing, share: None)
    total = time.perf_counter() - start
    clock.enter("rest")
    for m in measured:
        if m.status is not Status.OK:
            sys.exit(f"{m.kernel.name} is {m.status}: {m.reason}")
    phases = {phase: clock.seconds[phase] for phase in PHASES}
    return {"sizes": sizes, "kernels": kernels, "seconds": total, "windows": clock.windows, "phases": phases}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1 << 12, 1 << 16, 1 << 20, 1 << 22])
    parser.add_argument("--cases", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kernels", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    device = CpuDevice()
    facts = device.describe()  # measures the peaks, which are then cached for this machine
    instrument()
    middle = 1 << 18
    settings = [([size], 1) for size in arguments.sizes]
    settings += [([middle + i for i in range(cases)], 1) for cases in arguments.cases]
    settings += [([middle], kernels) for kernels in arguments.kernels]
    results = []
    for sizes, kernels in settings:
        print(f"{len(sizes)} cases of n={sizes[0]}, {kernels} kernels", file=sys.stderr, flush=True)
        results.append(measure(device, sizes, kernels))
    if arguments.json:
        json.dump({"device": facts, "results": results}, sys.stdout, indent=2)
        print()
        return
    rows = []
    for result in results:
        cells = [
            f"{result['sizes'][0]}",
            str(len(result["sizes"])),
            str(result["kernels"]),
            f"{result['seconds']:.2f} s",
        ]
        cells += [f"{1000 * result['phases'][phase]:.0f}" for phase in PHASES]
        rows.append([*cells, str(result["windows"])])
    print("all phases in ms\n" + table(rows, ["n", "cases", "kernels", "total", *PHASES, "windows"]))


if __name__ == "__main__":
    main()
