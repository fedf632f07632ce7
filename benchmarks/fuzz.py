"""Fuzz the readers of texts and files with nearly valid input. Like tests/fuzz, but for as long as you like.

    .venv/bin/python benchmarks/fuzz.py --minutes 60
    .venv/bin/python benchmarks/fuzz.py --target headers --seed 17    # repeat a failure that was printed

The readers take turns until the time is up. Each turn has a new seed and tries --examples inputs. The first failure
stops the program, which prints its smallest example and exits with status 1. The number of tried inputs is printed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzz"))

from targets import TARGETS, Target

from presage.core.text import printable


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--examples", type=int, default=500, help="of each turn (default: %(default)s)")
    parser.add_argument("--target", choices=list(TARGETS), action="append", help="only this; may be repeated")
    parser.add_argument("--seed", type=int, help="one turn with this seed")
    arguments = parser.parse_args()
    targets = {name: TARGETS[name]() for name in arguments.target or TARGETS}
    tried, took = dict.fromkeys(targets, 0), dict.fromkeys(targets, 0.0)
    until, number = time.monotonic() + 60 * arguments.minutes, arguments.seed or 0
    failed = False
    while not failed and (time.monotonic() < until if arguments.seed is None else number == arguments.seed):
        for name, target in targets.items():
            start = time.monotonic()
            failed = not passes(name, target, number, arguments.examples)
            tried[name], took[name] = tried[name] + arguments.examples, took[name] + time.monotonic() - start
            if failed or time.monotonic() > until:
                break
        number += 1
    for name, count in tried.items():
        print(f"{name:20} {count:>9} examples in {took[name]:8.1f} s")
    print(f"{'memory':20} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:>9.0f} MiB at most")
    return 1 if failed else 0


def passes(name: str, target: Target, number: int, examples: int) -> bool:
    """Run one turn. Return whether the reader only returned values or raised documented errors."""

    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(target.examples)
    def read(example: object) -> None:
        target.try_out(example)

    try:
        read()
    except Exception:
        print(printable(traceback.format_exc()))
        print(f"again: benchmarks/fuzz.py --target '{name}' --seed {number} --examples {examples}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
