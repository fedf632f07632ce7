"""Count the candidates per second on a GPU: foreign kernels, our own kernels, and the plain way.

Foreign kernels run each in its own process, our own kernels in shared workers. The plain way starts one process per
candidate, one after the other; each imports torch, and compiles, checks and times its candidate.

    python benchmarks/gpu_throughput.py [--candidates 200] [--plain 4] [--json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from presage import Kernel, Problem
from presage.devices.cuda import OWN_EFFORT, CudaDevice
from presage.problems import registry
from presage.searches.measuring import EFFORT

PLAIN = """
import sys, torch, triton.testing
sys.path.insert(0, {source!r})
from torch.utils.cpp_extension import load_inline
from presage.problems import registry
from presage.problems.compare import difference, solve
from presage.problems.on_torch import TorchSampler, namespace
problem = registry.get({problem!r})
case = problem.timed["gpu"][0]
inputs = problem.make_inputs(case, TorchSampler(1, case.values))
declaration = "torch::Tensor run(torch::Tensor x);"
module = load_inline(name={name!r}, cpp_sources=declaration, cuda_sources={cuda!r}, functions=["run"])
output = module.run(*inputs)
assert difference(problem, case, solve(problem, case, inputs, namespace), (output,), namespace) is None
print(triton.testing.do_bench(lambda: module.run(*inputs), return_mode="median"))
"""


def pool(problem: Problem, suffix: str, count: int) -> list[Kernel]:
    """Return `count` configurations of the problem's families in one language, shuffled; none if fewer than 8 exist."""
    families = [k for k in registry.seed_kernels(problem) if k.name.endswith(suffix) and k.is_family]
    every = [family.render(values) for family in families for values in family.configurations()]
    random.Random(0).shuffle(every)
    return list(itertools.islice(itertools.cycle(every), count)) if len(every) >= 8 else []


def rate(device: CudaDevice, problem: Problem, kernels: Sequence[Kernel], foreign: bool) -> dict[str, object]:
    start = time.perf_counter()
    effort = EFFORT if foreign else OWN_EFFORT
    statuses = Counter(
        str(m.status) for m in device.measure_each(((problem, kernel) for kernel in kernels), effort, foreign)
    )
    seconds = time.perf_counter() - start
    return {"candidates": len(kernels), "seconds": seconds, "per_second": len(kernels) / seconds, "statuses": statuses}


def plain_rate(problem: Problem, kernels: Sequence[Kernel]) -> dict[str, object]:
    """Run one process per candidate, one after the other, as a script with an inline extension would."""
    start = time.perf_counter()
    failed = 0
    for number, kernel in enumerate(kernels):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "plain.py")
            script.write_text(_plain_script(problem, kernel, number))
            result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
            if result.returncode:
                failed += 1
                print(result.stderr[-1500:], file=sys.stderr)
    seconds = time.perf_counter() - start
    return {"candidates": len(kernels), "seconds": seconds, "per_second": len(kernels) / seconds, "failed": failed}


def _plain_script(problem: Problem, kernel: Kernel, number: int) -> str:
    """Return a script with the kernel and the host code of an inline extension. It supports only softmax's arrays."""
    launch = kernel.header.launches[0]
    grid, block = (text.replace("//", "/") for text in (launch.grid[0], launch.block[0]))
    host = f"""
#include <torch/extension.h>
#include <algorithm>
static int cdiv(int a, int b) {{ return (a + b - 1) / b; }}
torch::Tensor run(torch::Tensor x) {{
    int rows = x.size(0), cols = x.size(1);
    auto y = torch::empty_like(x);
    {launch.entry}<<<{grid}, {block}, {launch.shared}>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);
    return y;
}}
"""
    source = str(Path(__file__).parents[1] / "src")
    cuda = kernel.source + host
    return PLAIN.format(source=source, problem=problem.name, name=f"plain_{number}", cuda=cuda)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--candidates", type=int, default=200, help="how many .cu files (default: 200)")
    parser.add_argument("--triton", type=int, default=64, help="how many Triton modules (default: 64)")
    parser.add_argument("--plain", type=int, default=4, help="candidates for the plain way, a minute each")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    problem = registry.get(arguments.problem)
    device = CudaDevice()
    device.describe()  # measures the peaks and starts the fork server, which happens only once
    results = {}
    for label, suffix, foreign in (
        ("foreign .cu", ".cu", True),
        ("foreign Triton", "_triton.py", True),
        ("our own .cu", ".cu", False),
        ("our own Triton", "_triton.py", False),
    ):
        kernels = pool(problem, suffix, arguments.candidates if suffix == ".cu" else arguments.triton)
        if kernels:
            results[label] = rate(device, problem, kernels, foreign)
            print(label, results[label], file=sys.stderr, flush=True)
    device.close()
    kernels = [k for k in pool(problem, "block_row.cu", 64) if len(k.header.launches) == 1][: arguments.plain]
    if kernels:
        results["the plain way, inline extension"] = plain_rate(problem, kernels)
    if arguments.json:
        print(json.dumps(results, indent=1))
    else:
        for label, result in results.items():
            took = f"{result['candidates']:4} in {result['seconds']:7.1f} s"
            print(f"{label:34} {took} = {result['per_second']:.2f} per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
