"""Count the third-party modules that can be traced without a GPU, and print why the others cannot.

    python benchmarks/tracing.py FOLDER [--count N] [--only references|torch|inline] [--json]

FOLDER holds CUDA-L1's published modules (`codes.jsonl.zst`, `pairs.parquet`): KernelBench's references, and candidates
that a language model wrote for them. Decompressing needs the program `zstd`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from presage import Kernel, StaticReport, load_kernel, load_problem
from presage.problems import static
from presage.static import hardware

BUILDS = ("cpp_extension", "RawKernel", "RawModule", "_compile_kernel")
"""Names that occur only in a module that builds CUDA code itself."""
AT_ONCE = 16


def modules(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each module, its text, and the text of its problem."""
    unpacked = subprocess.run(["zstd", "-dc", folder / "codes.jsonl.zst"], capture_output=True, check=True).stdout
    codes = {code["code_id"]: code for code in map(json.loads, unpacked.decode().splitlines())}
    seen = set()
    for code in codes.values():
        if code["role"] == "ref_code":
            yield (
                "references",
                code["text"].replace("Model(", "ModelNew(").replace("(Model,", "(ModelNew,"),
                code["text"],
            )
    for pair in pq.read_table(folder / "pairs.parquet").to_pylist():
        code = codes.get(pair["candidate_code_id"])
        if code and code["role"] == "custom_code" and code["code_id"] not in seen:
            seen.add(code["code_id"])
            kind = "inline" if any(word in code["text"] for word in BUILDS) else "torch"
            yield kind, code["text"], codes[pair["task_code_id"]]["text"]


def traced(texts: list[tuple[str, str, str]]) -> Iterator[tuple[str, StaticReport]]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = []
        for number, (_, text, reference) in enumerate(texts):
            place = Path(folder, str(number))
            place.mkdir()
            (place / "problem.py").write_text(reference)
            (place / "new.py").write_text(text)
            problem = load_problem(str(place / "problem.py"))
            kernel: Kernel = load_kernel(problem, str(place / "new.py"))
            wanted.append((problem, kernel, problem.timed["gpu"]))
        for (kind, _, _), (report,) in zip(texts, static.of_several(wanted, hardware.find("h200")), strict=True):
            yield kind, report


def verdict(report: StaticReport) -> str:
    if report.trace is not None and report.trace.lacks is None:
        return "traced"
    reason = (report.trace.lacks if report.trace else report.error) or report.status
    return f"{report.status}: {' '.join(reason.split())[:160]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, help="so many of each kind, drawn at random")
    parser.add_argument("--only", choices=("references", "torch", "inline"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, Counter[str]] = {}
    seconds: dict[str, float] = {}
    for kind in [arguments.only] if arguments.only else ["references", "torch", "inline"]:
        texts = [each for each in modules(arguments.folder) if each[0] == kind]
        random.Random(0).shuffle(texts)
        texts = texts[: arguments.count]
        start = time.perf_counter()
        found[kind] = Counter()
        for first in range(0, len(texts), AT_ONCE):
            found[kind].update(verdict(report) for _, report in traced(texts[first : first + AT_ONCE]))
        seconds[kind] = (time.perf_counter() - start) / max(1, len(texts))
    if arguments.json:
        print(json.dumps({kind: {"seconds": seconds[kind], **counts} for kind, counts in found.items()}, indent=1))
        return
    for kind, counts in found.items():
        every = counts.total()
        print(
            f"{kind}: {counts['traced']} of {every} traced ({counts['traced'] / every:.1%}), {seconds[kind]:.2f} s each"
        )
        for reason, count in counts.most_common():
            if reason != "traced":
                print(f"  {count:3d}  {reason}")


if __name__ == "__main__":
    main()
