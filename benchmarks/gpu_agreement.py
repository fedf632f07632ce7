"""Compare our medians with `triton.testing.do_bench` on the catalogue's GPU kernels, and show how well they repeat.

    python benchmarks/gpu_agreement.py [--repeats 3] [--short] [--json]

do_bench runs as its users run it: in one process that trusts the kernel, on one set of inputs. With `--short` the cases
are reduced until they take about 20 us or less.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch
import triton.testing

from presage import Case, Effort, Kernel, Measurement, Problem
from presage.devices.cuda import CudaDevice
from presage.problems import registry
from presage.problems.on_torch import TorchSampler

LANGUAGES = ("torch", "triton")
PROBLEMS = (
    "argmax batched_matmul causal_conv1d conv2d cross_entropy cumsum gelu histogram layernorm matmul maxpool2d rmsnorm"
    " softmax sum transpose vector_add"
)
SHORT_BYTES = 4 << 20


def kernels(problems: Sequence[str]) -> list[tuple[Problem, Kernel]]:
    """Return eager PyTorch and the Triton kernels of each problem's own folder, with their default tunables."""
    return [
        (problem, kernel.render())
        for problem in map(registry.get, problems)
        for kernel in registry.seed_kernels(problem)
        if kernel.language in LANGUAGES
        and Path(kernel.name).parent.name == problem.name
        and not kernel.name.endswith("compiled.py")
    ]


def shortened(problem: Problem) -> Problem:
    """Return the problem with small timed cases: the largest dimension is halved until a case moves at most 4 MiB."""
    short = copy.copy(problem)
    cases: dict[str, Case] = {}
    for case in problem.timed["gpu"]:
        while problem.bytes(case) > SHORT_BYTES:
            largest = max(case.dims, key=lambda name: case.dims[name])
            case = dataclasses.replace(case, dims={**case.dims, largest: case.dims[largest] // 2})
        cases[case.name] = case
    short.timed = {"gpu": tuple(cases.values())}
    return short


def do_bench_ns(problem: Problem, kernel: Kernel, case: Case) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(kernel.source)
        spec = importlib.util.spec_from_file_location("kernel", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        inputs = problem.make_inputs(case, TorchSampler(1, case.values))
        data = (*inputs, *(case.dims[name] for name in problem.parameters))
        with torch.no_grad():
            return 1e6 * float(triton.testing.do_bench(lambda: module.custom_kernel(data), return_mode="median"))


def measure(device: CudaDevice, problem: Problem, kernel: Kernel, repeats: int) -> list[Measurement]:
    return list(device.measure_each([(problem, kernel)] * repeats, Effort()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=str.split, default=PROBLEMS.split(), help="names with spaces between them")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="small cases, which take under 20 us or so")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    device = CudaDevice()
    rows = []
    for problem, kernel in kernels(arguments.problems):
        if arguments.short:
            problem = shortened(problem)
        measured = measure(device, problem, kernel, arguments.repeats)
        name = f"{problem.name}/{os.path.basename(kernel.name).split('@')[0]}"
        bad = next((m for m in measured if not m.cases), None)
        if bad:
            print(f"{name}: {bad.status}: {bad.reason}", file=sys.stderr)
            continue
        for i, case in enumerate(problem.timed["gpu"]):
            medians = [m.cases[i].median.value for m in measured]
            half_widths = [m.cases[i].median.relative_half_width for m in measured]
            theirs = do_bench_ns(problem, kernel, case)
            ours = median(medians)
            rows.append(
                {
                    "kernel": name,
                    "case": case.name,
                    "ours_ns": ours,
                    "do_bench_ns": theirs,
                    "difference": ours / theirs - 1,
                    "spread": (max(medians) - min(medians)) / ours,
                    "half_width": median(half_widths),
                    "processes": max(len(m.cases[i].parts) for m in measured),
                    "bytes": problem.bytes(case),
                }
            )
            row = rows[-1]
            print(
                f"{name:40} {case.name:44} ours {ours / 1e3:9.2f} us  do_bench {theirs / 1e3:9.2f} us "
                f" {100 * row['difference']:+6.1f} %  spread {100 * row['spread']:.2f} %"
                f"  95 % ±{100 * row['half_width']:.2f} %  {row['processes']} processes",
                file=sys.stderr if arguments.json else sys.stdout,
                flush=True,
            )
    long = [row for row in rows if row["ours_ns"] >= 20_000]
    summary = {
        "kernels": len({row["kernel"] for row in rows}),
        "cases": len(rows),
        "within_3_percent": sum(abs(row["difference"]) <= 0.03 for row in rows),
        "spread_over_20us_within_1_percent": f"{sum(row['spread'] <= 0.01 for row in long)} of {len(long)}",
        "spread_over_20us_max": max((row["spread"] for row in long), default=None),
        "spread_over_20us_median": median(row["spread"] for row in long) if long else None,
        "spread_under_20us_max": max((row["spread"] for row in rows if row["ours_ns"] < 20_000), default=0.0),
    }
    if arguments.json:
        print(json.dumps({"summary": summary, "rows": rows}, indent=1))
    else:
        print(summary)
    device.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
