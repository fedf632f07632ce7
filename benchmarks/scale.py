"""Measure how large searches scale: the time per step as the archive grows, and the time and memory of resuming.

    .venv/bin/python benchmarks/scale.py --kernels 100000 --events 1000000

The loop, the store, the strategy and the policy are the product's own. The device, the proposer and the forecaster are
fakes that cost almost nothing, so that the search itself is timed. A step has 4 candidates.

A large run is made from a real run by repeating its events, each time with other kernels, until there are enough
events. A new process then resumes it. Its memory is the peak that the operating system reports.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from presage import (
    Candidate,
    Device,
    Effort,
    Forecast,
    Forecaster,
    Kernel,
    Measurement,
    Parent,
    Prediction,
    Problem,
    Proposal,
    Proposer,
    Status,
    Task,
)
from presage.cli.terminal import table
from presage.devices.base import CaseTiming, Progress
from presage.kernels import header as headers
from presage.policies import registry as policies
from presage.problems import registry as problems
from presage.searches import registry as strategies
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.searches.state import State
from presage.store.store import Event, Store

SOURCE = "// presage: entry f\n#define A {number}\nvoid f(void) {{ }}\n"
UNLIMITED = Budget(10**9)
BATCH = 4
COPIED = 10_000
"""The number of events of the run that is repeated."""
EVENTS_PER_KERNEL = 3
"""Approximate: some candidates fail and are not in the archive."""
TIMED = 100
"""The number of steps whose median time is reported."""


def kernel(number: int) -> Kernel:
    source = SOURCE.format(number=number)
    made = Kernel(source, "c", headers.parse(source, "f.c"), f"f.c@A={number}", {"A": number})
    made.__dict__["hash"] = f"{number:016x}"
    return made


def true_value(number: int) -> float:
    return random.Random(number).gauss(0, 1)


class MadeUpDevice(Device):
    kind = "cpu"
    languages = ("c",)
    name = "made-up"

    def describe(self) -> dict[str, Any]:
        return {}

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        return [self._measurement(problem, each) for each in kernels]

    def _measurement(self, problem: Problem, made: Kernel) -> Measurement:
        number = int(made.hash, 16)
        if number % 10 == 9:
            return Measurement(problem.name, made, self.name, Status.WRONG_RESULT, "y[0] is 1, not 2")
        samples = tuple(1e6 / 2 ** true_value(number) for _ in range(8))
        return Measurement(
            problem.name, made, self.name, Status.OK, cases=(CaseTiming("n=1", samples, tuple(range(8)), 1.0, 1),)
        )


class Numbers(Proposer):
    """A proposer of kernels that are random numbers."""

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        return [Proposal(kernel(1 + rng.getrandbits(38)), "any number") for _ in range(count)]


class Vague(Forecaster):
    """A forecaster that adds noise to the truth."""

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(self._one(int(candidate.kernel.hash, 16))) for candidate in candidates]

    def _one(self, number: int) -> Forecast:
        middle = true_value(number) + random.Random(-number).gauss(0, 0.3)
        return Forecast.from_quantiles([0.1, 0.5, 0.9], [middle - 0.4, middle, middle + 0.4], p_fail=0.1)


def parts(policy: str, strategy: str) -> Parts:
    problem = problems.get("softmax")
    return Parts(
        problem, MadeUpDevice(), kernel(0), Numbers, strategies.get(strategy), policies.get(policy), Vague()
    )  # fmt: skip


class EnoughError(Exception):
    """The archive is large enough."""


def grow(folder: Path, policy: str, strategy: str, events: int) -> None:
    """Search until the run has this many events."""

    def watch(event: Event, state: State) -> None:
        if event.kind == "asked" and event.seq >= events:
            raise EnoughError

    with Store(folder) as store, contextlib.suppress(EnoughError):
        store.append("begun", {"configuration": {}})
        Search(store, parts(policy, strategy), UNLIMITED, BATCH, watch=watch).run()


def repeat(folder: Path, events: int) -> None:
    """Repeat a run's steps with other kernels until the run has this many events."""
    with Store(folder) as store:
        told = [event for event in store.events() if event.kind not in ("begun", "session")][1:]
        told = told[: max(i for i, event in enumerate(told) if event.kind == "asked")]
        database, seq = store._database, len(store)
        step = max(event.payload["step"] for event in told if event.kind == "asked")
        rows = database.execute("SELECT * FROM kernels").fetchall()
        documents = database.execute("SELECT * FROM measurements").fetchall()
        copies = 0
        while seq < events:
            copies += 1
            with database:
                database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", _shifted(told, seq, copies, step))
                database.executemany(
                    "INSERT OR IGNORE INTO kernels VALUES (?, ?, ?, ?, ?, ?)",
                    [(_other(hash, copies), *rest) for hash, *rest in rows],
                )
                database.executemany(
                    "INSERT INTO measurements VALUES (?, ?, ?)",
                    [(seq + at, _other(hash, copies), document) for at, hash, document in documents],
                )
            seq += len(told)


def _other(hash: str, copy: int) -> str:
    return hash if int(hash, 16) == 0 else f"{int(hash, 16) | copy << 40:016x}"


def _shifted(told: Sequence[Event], seq: int, copy: int, step: int) -> Iterator[tuple[int, float, str, str]]:
    for number, event in enumerate(told, start=seq + 1):
        payload = dict(event.payload)
        if event.kind == "asked":
            payload["step"] += copy * step
        elif event.kind == "proposed":
            payload["candidates"] = [[_other(hash, copy), why] for hash, why in payload["candidates"]]
        elif event.kind == "forecast":
            for part in ("forecasts", "hopes", "notes", "broken"):
                payload[part] = {_other(hash, copy): said for hash, said in payload[part].items()}
        elif event.kind == "decided":
            payload["decisions"] = [[_other(hash, copy), *said] for hash, *said in payload["decisions"]]
            payload["chances"] = {_other(hash, copy): chance for hash, chance in payload["chances"].items()}
        elif event.kind == "measured":
            payload["kernel"] = _other(payload["kernel"], copy)
        yield number, event.time, event.kind, json.dumps(payload, separators=(",", ":"))


def resume(folder: Path, policy: str, strategy: str) -> dict[str, Any]:
    """Resume a run, advance it by some steps, and return the time and memory that this took."""
    start, cpu = time.perf_counter(), time.process_time()
    with Store(folder) as store:
        search = Search(store, parts(policy, strategy), UNLIMITED, BATCH)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        events, archive, memory = len(store), len(search.state.hashes), resource.getrusage(resource.RUSAGE_SELF)
        steps, at = [], time.process_time()
        while len(steps) <= TIMED:
            number = search.state.step.number if search.state.step else 0
            search.advance()
            if search.state.step and search.state.step.number > number:
                steps.append(time.process_time() - at)
                at = time.process_time()
    return {
        "policy": policy,
        "strategy": strategy,
        "events": events,
        "archive": archive,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "step_ms": 1e3 * float(np.median(steps[1:])),
        "mb": memory.ru_maxrss / 1024,
    }


def large(policy: str, strategy: str, events: int) -> dict[str, Any]:
    """Make a run with this many events, and resume it in a new process."""
    with tempfile.TemporaryDirectory() as name:
        grow(Path(name), policy, strategy, min(COPIED, events))
        if events > COPIED:
            repeat(Path(name), events)
        command = [sys.executable, __file__, "--resume", name, "--policy", policy, "--strategy", strategy]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100_000, help="the largest archive (default: %(default)s)")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the run to resume (default: %(default)s)")
    parser.add_argument("--policy", default="risk")
    parser.add_argument("--strategy", default="puct")
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.resume:
        print(json.dumps(resume(chosen.resume, chosen.policy, chosen.strategy)))
        return
    found = [large(chosen.policy, chosen.strategy, events) for events in sizes(chosen.kernels, chosen.events)]
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    columns = ["events", "archive", "step_ms", "seconds", "cpu_seconds", "mb"]
    rows = [[_cell(each[name]) for name in columns] for each in found]
    print(table(rows, columns))


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def sizes(kernels: int, events: int) -> list[int]:
    """Return the numbers of events for archives of 100, 1000, … up to `kernels` kernels, and for the run to resume."""
    powers = range(2, int(math.log10(kernels)) + 1) if kernels >= 100 else ()
    return [*(EVENTS_PER_KERNEL * 10**power for power in powers), *([events] if events else [])]


if __name__ == "__main__":
    main()
