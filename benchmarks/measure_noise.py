"""Measure the noise of measurements: one kernel measured repeatedly, and two kernels a few percent apart.

    .venv/bin/python benchmarks/measure_noise.py --repeats 20

The pair is one kernel that does its work once, and the same kernel that does a share of it again. The share is
calibrated until the second kernel takes about 5 % longer. Then both are repeatedly measured side by side.

With each measurement, a plain loop in this process times the same kernel: the median of a second of calls. The spread
of these medians is the noise of the machine itself.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy as np

from presage import Case, Device, Effort, Interval, Kernel, Measurement, Problem, Status
from presage.cli.terminal import duration, table
from presage.devices import registry as devices
from presage.devices.base import speedup
from presage.devices.c_compiler import Compiler
from presage.kernels.kernel import from_source
from presage.problems import registry as problems
from presage.problems.sampler import Sampler

PAIR = """\
// presage: problem softmax
// presage: entry softmax
{work}
void softmax(const float *x, float *y, int rows, int cols) {{
    work(x, y, rows, cols);
    __asm__ volatile("" ::: "memory");
    work(x, y, rows * {extra}L / 1000, cols);
}}
"""


@dataclass
class Bench:
    """The device and the effort of all measurements."""

    device: Device
    effort: Effort

    def measure(self, problem: Problem, *kernels: Kernel) -> list[Measurement]:
        measured = self.device.measure(problem, kernels, self.effort, lambda doing, share: None)
        for m in measured:
            if m.status is not Status.OK:
                sys.exit(f"{m.kernel.name} is {m.status}: {m.reason}")
        return measured


def repeat(bench: Bench, problem: Problem, kernel: Kernel, repeats: int) -> list[dict[str, object]]:
    """Return the spread of each case's medians over separate measurements."""
    medians: dict[str, list[float]] = {}
    claimed: dict[str, list[float]] = {}
    plain: dict[str, list[float]] = {}
    loop = PlainLoop(problem, kernel)
    for i in range(repeats):
        progress("alone", i, repeats)
        (measured,) = bench.measure(problem, kernel)
        for case in measured.cases:
            medians.setdefault(case.case, []).append(case.median.value)
            claimed.setdefault(case.case, []).append(case.median.relative_half_width)
        for case in problem.timed["cpu"]:
            plain.setdefault(case.name, []).append(loop.median_ns(case))
    return [spread(case, values, claimed[case], plain[case]) for case, values in medians.items()]


class PlainLoop:
    """A plain timing loop that calls the kernel in this process, without a sandbox."""

    def __init__(self, problem: Problem, kernel: Kernel) -> None:
        self._problem = problem
        self._folder = tempfile.TemporaryDirectory()
        library = Compiler.find().compile(kernel.source, self._folder.name, "kernel")
        self._function = getattr(ctypes.CDLL(library), kernel.header.launches[0].entry)

    def median_ns(self, case: Case, seconds: float = 1.0) -> float:
        problem = self._problem
        inputs = problem.make_inputs(case, Sampler(1, case.values))
        outputs = [np.empty(problem.shape(a, case), problem.dtype(a, case)) for a in problem.outputs]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)]
        arguments = [*pointers, *(ctypes.c_int(case.dims[name]) for name in problem.scalars)]
        times: list[int] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter_ns()
            self._function(*arguments)
            times.append(time.perf_counter_ns() - start)
        return float(np.median(times))


def spread(case: str, medians: list[float], claimed: list[float], plain: list[float]) -> dict[str, object]:
    middle = float(np.median(medians))
    low, high = np.quantile(medians, [0.025, 0.975])
    return {
        "case": case,
        "median_ns": middle,
        "range": (max(medians) - min(medians)) / middle,
        "range_95": float(high - low) / middle,
        "claimed_half_width": float(np.median(claimed)),
        "plain_range": (max(plain) - min(plain)) / float(np.median(plain)),
    }


def pair(work: str, extra: int) -> Kernel:
    """Return a softmax kernel that does `extra` thousandths of its rows a second time."""
    return from_source(PAIR.format(work=work, extra=extra), ".c", f"extra={extra}/1000")


def calibrate(bench: Bench, problem: Problem, work: str, difference: float) -> int:
    """Return the extra work, in thousandths of the rows, that makes the kernel slower by the share `difference`."""
    extra = round(1000 * difference)
    for _ in range(3):
        ratio = slowdown(bench, problem, work, extra).value
        if ratio > 1:
            extra = max(1, min(4 * extra, round(extra * difference / (ratio - 1))))
    return extra


def slowdown(bench: Bench, problem: Problem, work: str, extra: int) -> Interval:
    """Return the time of the kernel with extra work over the plain kernel's. Both are measured in the same rounds."""
    plain, heavier = bench.measure(problem, pair(work, 0), pair(work, extra))
    ratio = speedup(heavier, plain)
    assert ratio is not None
    return ratio


def keep_order(bench: Bench, problem: Problem, difference: float, repeats: int) -> dict[str, object]:
    """Return the share of repeats in which the kernel with less work is measured as the faster one, with details."""
    work = (problem.kernel_folders[0] / "naive.c").read_text().replace("void softmax(", "static void work(")
    work = "\n".join(line for line in work.splitlines() if "presage:" not in line)
    extra = calibrate(bench, problem, work, difference)
    ratios = []
    for i in range(repeats):
        progress("pair", i, repeats)
        ratios.append(slowdown(bench, problem, work, extra))
    return {
        "extra_share": extra / 1000,
        "median_ratio": float(np.median([r.value for r in ratios])),
        "order_kept": float(np.mean([r.value > 1 for r in ratios])),
        "proved": float(np.mean([r.low > 1 for r in ratios])),
        "proved_wrongly": float(np.mean([r.high < 1 for r in ratios])),
        "ratios": [r._asdict() for r in ratios],
    }


def progress(what: str, done: int, repeats: int) -> None:
    print(f"{what}: {done + 1} of {repeats}", file=sys.stderr, flush=True)


def main() -> None:
    default = Effort()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="softmax", help="for the repeats (the pair is always softmax)")
    parser.add_argument("--kernel", default="naive.c", help="for the repeats")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--difference", type=float, default=0.05, help="how much slower the slower of the pair is")
    parser.add_argument("--precision", type=float, default=default.precision)
    parser.add_argument("--seconds", type=float, default=default.case_seconds)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    effort = Effort(precision=arguments.precision, case_seconds=arguments.seconds)
    bench = Bench(devices.get("cpu"), effort)
    problem = problems.get(arguments.problem)
    kernel = problems.find_kernel(problem, arguments.kernel)
    alone = repeat(bench, problem, kernel, arguments.repeats)
    together = keep_order(bench, problems.get("softmax"), arguments.difference, arguments.repeats)
    if arguments.json:
        settings = vars(arguments) | {"device": bench.device.describe()}
        json.dump({"settings": settings, "alone": alone, "pair": together}, sys.stdout, indent=2)
        print()
        return
    rows = [
        [str(a["case"]), duration(a["median_ns"]), *(f"{100 * a[key]:.2f} %" for key in list(a)[2:])] for a in alone
    ]
    print(f"{kernel.name}, {arguments.repeats} separate measurements")
    print(table(rows, ["case", "median", "(max - min) / median", "95 % of them", "claimed ±", "a plain loop's"]))
    print(
        f"\ntwo kernels, the slower {100 * (together['median_ratio'] - 1):.1f} % slower, measured side by side"
        f" {arguments.repeats} times:\nin the right order {100 * together['order_kept']:.0f} %,"
        f" proved (interval above 1) {100 * together['proved']:.0f} %,"
        f" proved wrongly {100 * together['proved_wrongly']:.0f} %"
    )


if __name__ == "__main__":
    main()
