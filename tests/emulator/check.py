"""Checks a problem's kernels without a GPU: emulates them on its checking cases and compiles them for a target.

PYTHONPATH=src TRITON_INTERPRET=1 python tests/emulator/check.py silu stream.cu --configurations 4
PYTHONPATH=src python tests/emulator/check.py silu --compile h200
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from emulator import EmulationError, WrongError, check

from presage.problems import registry, static
from presage.static import hardware


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("files", nargs="*", help="names of its kernel files; all of them unless given")
    parser.add_argument("--configurations", type=int, default=3, help="how many of each family: the first, then random")
    parser.add_argument("--cases", type=int, default=99, help="how many checking cases, beside two drawn anew")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--compile", metavar="GPU", help="compile for this GPU and the timed cases instead of emulating"
    )
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    problem = registry.get(arguments.problem)
    rng = random.Random(arguments.seed)
    failed = 0
    for family in registry.seed_kernels(problem):
        file = Path(family.name).name
        if family.language not in ("cuda", "triton", "torch") or (arguments.files and file not in arguments.files):
            continue
        if file == "compiled.py":
            continue
        every = list(family.configurations()) or [{}]
        chosen = [every[0], *rng.sample(every[1:], min(len(every) - 1, arguments.configurations - 1))]
        if arguments.compile and family.language != "torch":
            target = hardware.find(arguments.compile)
            kernels = [family.render(values) for values in chosen]
            for kernel, (report, *_) in zip(
                kernels, static.reports(problem, kernels, problem.timed["gpu"][:1], target), strict=True
            ):
                facts = [(each.registers, each.shared_bytes, each.spill_bytes) for each in report.launches]
                print(f"{file} {dict(kernel.values)}: {report.status} {facts} {report.error or ''}", flush=True)
                failed += report.status != "ok"
            continue
        for values in chosen:
            start = time.time()
            cases = [*problem.checks[: arguments.cases], problem.draw_case(rng), problem.draw_case(rng)]
            try:
                check(problem, family.render(values), cases, arguments.seed)
                result = "right"
            except EmulationError as error:
                result = f"cannot be emulated: {error}"
            except WrongError as error:
                result, failed = f"WRONG: {error}", failed + 1
            except Exception as error:
                result, failed = f"WRONG: {type(error).__name__}: {error}", failed + 1
            print(f"{file} [{len(every)}] {values}: {result} ({time.time() - start:.1f} s)", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
