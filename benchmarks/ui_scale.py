"""Measure how fast the web view opens a run of 100,000 kernels, and how much following a live run slows the search.

    python benchmarks/ui_scale.py open  [--kernels 100000] [--measured 20000]
    python benchmarks/ui_scale.py live  [--rounds 5]

`open` writes a run with the store's own writer, serves it, and requests its pages: once when all events must be read,
and again. Besides the wall time it shows the processor time of the server, which does not depend on other load. `live`
repeats the same recorded search, alternately alone and followed by a server with an open stream, and compares wall and
processor times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from presage import Forecast, Kernel, Measurement, Status
from presage.devices.base import CaseTiming
from presage.kernels import header as headers
from presage.store.store import Store

STEP, CONSIDERED = 32, 16
SOURCE = "// presage: entry f\n#define N {n}\n" + "void f(float *x) {{ for (int i = 0; i < N; i++) x[i] += 1; }}\n" * 20


def kernel(number: int) -> Kernel:
    source = SOURCE.format(n=number)
    made = Kernel(source, "c", headers.parse(source, "f.c"), f"rows.c@N={number}", {"N": number})
    made.__dict__["hash"] = f"{number:016x}"
    return made


def write(folder: Path, kernels: int, measured: int) -> None:
    """Write a run as a search would: steps of proposals, forecasts, decisions and measurements."""
    rng = random.Random(0)
    share = measured / kernels
    configuration = {
        "problem": "made_up", "kernels": None, "only": False, "device": "recorded:none", "forecaster": "learned",
        "policy": "risk", "strategy": "puct", "acquisition": "expected_improvement", "proposer": "knobs",
        "anchor": None, "budget": measured * 2,
        "device_seconds": None, "wall": None, "tokens": None, "dollars": None, "alpha": None,
        "delta": None, "until": None, "batch": STEP, "seed": 0,
    }  # fmt: skip
    with Store(folder) as store:
        store.append("begun", {"configuration": configuration})
        store.append("session", {"pid": os.getpid(), "lived": 0.0, "notes": []})
        anchor = kernel(0)
        store.append("measured", result(anchor, 0.0), kernels=[anchor], measurements=[measurement(anchor, 1e6)])
        archive = [(anchor, 0.0)]
        for step in range(1, -(-kernels // STEP)):
            parent, height = max(rng.sample(archive, min(8, len(archive))), key=lambda each: each[1])
            fresh = [kernel(step * STEP + at) for at in range(STEP)]
            values = [height + rng.gauss(-0.3, 0.4) for _ in fresh]
            forecasts = [around(value + rng.gauss(0, 0.2)) for value in values]
            store.append("asked", {"step": step, "parents": [0], "wanted": 1, "consider": STEP})
            told = {"parent": 0, "parent_kernel": parent.hash, "candidates": [[each.hash, "unroll"] for each in fresh]}
            rest = {"duplicates": 0, "notes": [], "short": "", "tokens": 0, "dollars": 0.0}
            store.append("proposed", told | rest, kernels=fresh)
            said = {each.hash: one.to_json() for each, one in zip(fresh, forecasts, strict=True)}
            hopes = {each.hash: [0.1, one.mean()] for each, one in zip(fresh, forecasts, strict=True)}
            cost = {"broken": {}, "short": "", "tokens": 0, "dollars": 0.0, "notes": {}}
            store.append("forecast", {"forecasts": said, "hopes": hopes} | cost)
            chosen = [rng.random() < share for _ in fresh]
            actions = [
                [each.hash, "measure" if yes else "trust", "why"] for each, yes in zip(fresh, chosen, strict=True)
            ]
            standing = {"best": 0.0, "measured": 1, "left": None}
            store.append("decided", {"decisions": actions, "chances": {}, "standing": standing})
            for each, value, yes in zip(fresh, values, chosen, strict=True):
                if yes:
                    timed = [measurement(each, 1e6 / 2**value)]
                    store.append("measured", result(each, value), measurements=timed)
                    archive.append((each, value))


def around(value: float) -> Forecast:
    levels = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98]
    return Forecast.from_quantiles(levels, [value + 0.6 * (level - 0.5) for level in levels], p_fail=0.05)


def result(of: Kernel, value: float) -> dict[str, object]:
    told = {"kernel": of.hash, "name": of.name, "status": "ok", "reason": "", "value": value}
    return told | {"expected": None, "surprise": None, "seconds": 0.01}


def measurement(of: Kernel, ns: float) -> Measurement:
    samples = tuple(ns * (1 + 0.001 * i) for i in range(8))
    return Measurement("made_up", of, "none", Status.OK, cases=(CaseTiming("n=1", samples, tuple(range(8)), 1.0, 1),))


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a server as a user would. Yield its address and process id, and stop it at the end."""
    command = [sys.executable, "-P", "-m", "presage", "ui", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while "}" not in text:
            text += process.stdout.readline()
        yield json.loads(text)["address"], process.pid
        process.terminate()


def busy(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(address: str, pid: int) -> tuple[float, float, int]:
    start, before = time.perf_counter(), busy(pid)
    size = len(urllib.request.urlopen(address).read())
    return time.perf_counter() - start, busy(pid) - before, size


def opening(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        write(run, arguments.kernels, arguments.measured)
        print(f"run.db has {(run / 'run.db').stat().st_size / 1e6:.0f} MB")
        with served(Path(folder)) as (address, pid):
            pages = {
                "all runs": "", "the run, first": "runs/run", "the run, again": "runs/run",
                "sorted by forecast": "runs/run?sort=forecast", "with words": "runs/run?q=N%3D123",
                "the last page": "runs/run?page=99999", "a kernel": f"runs/run/kernels/{77:016x}",
            }  # fmt: skip
            for name, path in pages.items():
                seconds, processor, size = timed(address + path, pid)
                print(f"{name:20} {seconds:6.2f} s, {processor:.2f} s busy {size / 1e3:8.0f} kB", flush=True)
            memory = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
            print(f"the server holds {int(memory[1]) / 1e3:.0f} MB" if memory else "")


def search(folder: Path) -> tuple[float, float]:
    """Run a search. Return its wall time by its own clock, and its processor time, in seconds."""
    asked = ["softmax", "--budget", "62", "--run", str(folder), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", "presage", "search", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = float(json.loads(done.stdout)["spent"]["wall_seconds"])
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def follow(run: Path, address: str) -> None:
    """Wait until the run exists, then read the stream of its page until the server stops."""
    while not (run / "run.db").exists():
        time.sleep(0.2)
    with suppress(OSError), urllib.request.urlopen(f"{address}live/runs/{run.name}") as answer:
        for _ in answer:
            pass


def live(arguments: argparse.Namespace) -> None:
    times: dict[str, list[tuple[float, float]]] = {"alone": [], "followed": []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "runs")
        folder.mkdir()
        search(folder / "warm")
        with served(folder) as (address, pid):
            for number in range(2 * arguments.rounds):
                kind = ("alone", "followed", "followed", "alone")[number % 4]
                run = (folder if kind == "followed" else Path(place)) / f"run-{number}"
                if kind == "followed":
                    threading.Thread(target=follow, args=(run, address), daemon=True).start()
                before = busy(pid)
                times[kind].append(search(run))
                share = (busy(pid) - before) / times[kind][-1][0]
                print(
                    "{:9} {:.2f} s, {:.2f} s busy".format(kind, *times[kind][-1]), f"; server {share:.1%}", flush=True
                )
    for at, what in enumerate(("seconds", "seconds of the processor")):
        one, other = (statistics.median(each[at] for each in times[kind]) for kind in ("alone", "followed"))
        print(f"median {what}: alone {one:.2f}, followed {other:.2f}: {other / one - 1:+.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("open", "live"))
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--measured", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    (opening if chosen.what == "open" else live)(chosen)
