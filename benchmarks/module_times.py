"""Compare the operator model's times for KernelBench's references with published times.

    python benchmarks/module_times.py FOLDER [--host H100_together] [--cuda-l1 FOLDER] [--split SPLIT] [--json]

FOLDER holds `timings.parquet` and `problems.jsonl.zst`: KernelBench's own times on several GPUs and hosts. They were
taken without holding the GPU back until the host had queued its work, so that a short module takes as long as its host
code. The comparison is only a plausibility check.
For the times of version 0, FOLDER has the texts of larger problems than the timed ones; CUDA-L1 has the timed ones.
Decompressing needs the program `zstd`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from presage import StaticReport, load_kernel, load_problem
from presage.forecasters.module_time import ModuleTime, module_time
from presage.forecasters.operator_model import OperatorModel
from presage.problems import splits, static
from presage.static import hardware
from presage.static.hardware import Hardware

AT_ONCE = 16


def references(folder: Path, host: str, cuda_l1: Path | None) -> Iterator[tuple[str, str, float, str]]:
    """Yield the name of each problem, its text, its published time in nanoseconds, and the GPU."""
    rows = [row for row in pq.read_table(folder / "timings.parquet").to_pylist() if row["host"] == host]
    texts = _of_cuda_l1(cuda_l1) if cuda_l1 else _of_version(folder, rows[0]["version"])
    for row in rows:
        name = f"level{row['level']}/{row['problem']}"
        text = texts.get(splits.canonical(name))
        if row["mode"] == "torch" and text:
            yield name, text, 1e6 * row["mean_ms"], row["hardware"]


def _of_version(folder: Path, version: str) -> dict[str, str]:
    problems = _unpacked(folder / "problems.jsonl.zst")
    return {
        splits.canonical(f"level{each['level']}/{each['problem']}"): each["text"]
        for each in problems
        if each["version"] == version
    }


def _of_cuda_l1(folder: Path) -> dict[str, str]:
    codes = {each["code_id"]: each["text"] for each in _unpacked(folder / "codes.jsonl.zst")}
    pairs = pq.read_table(folder / "pairs.parquet").to_pylist()
    return {
        splits.canonical(each["problem_id"]): codes[each["task_code_id"]]
        for each in pairs
        if each["task_code_id"] in codes
    }


def _unpacked(file: Path) -> Iterator[dict[str, Any]]:
    text = subprocess.run(["zstd", "-dc", file], capture_output=True, check=True).stdout.decode()
    return map(json.loads, text.splitlines())


def traced(texts: list[str], target: Hardware) -> list[StaticReport]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = []
        for number, text in enumerate(texts):
            place = Path(folder, str(number))
            place.mkdir()
            (place / "problem.py").write_text(text)
            (place / "new.py").write_text(text.replace("Model(", "ModelNew(").replace("(Model,", "(ModelNew,"))
            problem = load_problem(str(place / "problem.py"))
            wanted.append((problem, load_kernel(problem, str(place / "new.py")), problem.timed["gpu"]))
        return [report for (report,) in static.of_several(wanted, target)]


def figures(found: list[dict[str, Any]]) -> dict[str, float]:
    said, published, low, high = (
        np.array([each[name] for each in found]) for name in ("ns", "published", "low", "high")
    )
    ratio = said / published
    ranks = [np.argsort(np.argsort(each)) for each in (said, published)]
    return {
        "modules": len(found),
        "spearman": float(np.corrcoef(*ranks)[0, 1]),
        "median ratio": float(np.median(ratio)),
        "median error, %": float(np.median(100 * np.abs(ratio - 1))),
        "within a factor of 2": float(np.mean(np.abs(np.log2(ratio)) < 1)),
        "in the 90 % interval": float(np.mean((low < published) & (published < high))),
    }


def told(name: str, published: float, time: ModuleTime) -> dict[str, Any]:
    low, high = (2 ** time.quantile(level) for level in (0.05, 0.95))
    about = {"split": splits.of_problem(name), "published": published, "ns": time.ns, "low": low, "high": high}
    return {"name": name, **about, "gap_ns": time.gap_ns, "note": time.note()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="H100_together")
    parser.add_argument("--cuda-l1", type=Path, help="take the problems' texts from this folder of CUDA-L1's")
    parser.add_argument("--split", help="only problems of this split")
    parser.add_argument("--count", type=int, help="only so many problems")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    model, found = OperatorModel.load(), []
    chosen = list(references(arguments.folder, arguments.host, arguments.cuda_l1))
    chosen = [each for each in chosen if arguments.split in (None, splits.of_problem(each[0]))][: arguments.count]
    for first in range(0, len(chosen), AT_ONCE):
        some = chosen[first : first + AT_ONCE]
        target = hardware.find(some[0][3])
        for (name, _, published, _), report in zip(some, traced([each[1] for each in some], target), strict=True):
            if report.trace is not None and report.trace.lacks is None:
                found.append(told(name, published, module_time(report.trace, target, model, lead_ns=0.0)))
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    every = {"all": found, "of 0.2 ms or more": [each for each in found if each["published"] >= 2e5]}
    for split in (splits.TRAIN, splits.VALIDATION, splits.TEST):
        every[split] = [each for each in found if each["split"] == split]
    print(f"{len(found)} of {len(chosen)} traced")
    for label, some in every.items():
        if len(some) > 2:
            print(f"{label:18s} " + ", ".join(f"{name} {value:.3g}" for name, value in figures(some).items()))


if __name__ == "__main__":
    main()
